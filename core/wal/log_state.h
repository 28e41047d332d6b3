// An open log: what creation or recovery hands to the one who appends.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/io/files.h"
#include "core/raft/message.h"
#include "core/wal/segment.h"

namespace detcd::wal {

inline constexpr std::string_view kWalFolder = "member/wal";

struct LogState {
  std::string metadata;                       // the data of the metadata record, repeated in every segment
  std::optional<raft::HardState> hard_state;  // the last one written, if any
  std::vector<SegmentName> segments;          // ascending; the last one is the tail
  EntryIndex index;
  std::unique_ptr<File> tail;                 // open for writing; locked
  uint64_t offset = 0;                        // where the next frame goes; everything behind is zero
  uint32_t crc = 0;                           // the running CRC there
};

// `member/wal/NAME`, for messages.
inline std::string SegmentPath(const SegmentName& name) {
  return std::string(kWalFolder) + "/" + FormatSegmentName(name);
}

}  // namespace detcd::wal
