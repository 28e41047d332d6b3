// Segments: the files of the log, how they are named, and where entries lie in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/types.h"

namespace detcd::wal {

// `SEQ-INDEX.wal`, both 16 lower-case hex digits.
struct SegmentName {
  uint64_t sequence = 0;  // 0, 1, ... without gaps
  LogIndex index;         // the first entry that may be in the file: last entry + 1 at the cut, 0 for the first segment

  friend auto operator<=>(const SegmentName&, const SegmentName&) = default;
};
std::string FormatSegmentName(const SegmentName& name);
// nullopt: not the name of a segment (a .tmp, a .broken, anything else that lies there).
std::optional<SegmentName> ParseSegmentName(std::string_view file_name);

// Where the frame of an entry starts, and the running CRC before it, so that what is read from there can be verified.
struct EntryPosition {
  LogIndex index;
  size_t segment = 0;    // position in the list of segments
  uint64_t offset = 0;
  uint32_t crc = 0;

  friend bool operator==(const EntryPosition&, const EntryPosition&) = default;
};

// Sparse positions of the entries that are in the log now (not of those that later ones replaced): the first entry of
// each segment, one about every kIndexSpacingBytes, and every entry that replaced another one.
//
// Why reading from a position forward gives the right versions: between two neighbouring positions a and b, the entries
// below b.index that lie behind a are in the log and in order. A replaced entry d lying there has a later replacer with
// an index of at most d, which got a position; that one, or the one that replaced it in turn, still is a position, and
// it is not above d and not below a (or a would be gone): it would lie between a and b, or b.index would be at most d.
class EntryIndex {
 public:
  // An entry is written at `position`; calls come in the order of the log. Forgets positions of what it replaces.
  void Add(const EntryPosition& position);

  // Where to begin reading for `index`: the last position at or below it. nullopt: nothing of the log is there.
  std::optional<EntryPosition> Find(LogIndex index) const;
  // The first position above `index`.
  std::optional<EntryPosition> Next(LogIndex index) const;

  LogIndex last_index() const { return last_index_; }

 private:
  std::vector<EntryPosition> positions_;  // ascending in index, and in place
  LogIndex last_index_;                   // of the entry added last
};

inline constexpr uint64_t kIndexSpacingBytes = 65'536;

}  // namespace detcd::wal
