#include "core/wal/segment.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace detcd::wal {
namespace {

constexpr size_t kHexDigits = 16;
constexpr std::string_view kSuffix = ".wal";

std::optional<uint64_t> ParseHex(std::string_view digits) {
  uint64_t v = 0;
  for (char c : digits) {
    if (c >= '0' && c <= '9') {
      v = v << 4 | static_cast<uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      v = v << 4 | static_cast<uint64_t>(c - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  return v;
}

}  // namespace

std::string FormatSegmentName(const SegmentName& name) {
  return absl::StrFormat("%016x-%016x.wal", name.sequence, name.index.value);
}

std::optional<SegmentName> ParseSegmentName(std::string_view file_name) {
  if (file_name.size() != 2 * kHexDigits + 1 + kSuffix.size()) return std::nullopt;
  if (file_name[kHexDigits] != '-' || file_name.substr(2 * kHexDigits + 1) != kSuffix) return std::nullopt;
  std::optional<uint64_t> sequence = ParseHex(file_name.substr(0, kHexDigits));
  std::optional<uint64_t> index = ParseHex(file_name.substr(kHexDigits + 1, kHexDigits));
  if (!sequence || !index) return std::nullopt;
  return SegmentName{.sequence = *sequence, .index = LogIndex(*index)};
}

void EntryIndex::Add(const EntryPosition& position) {
  bool replaces = position.index <= last_index_;
  while (!positions_.empty() && positions_.back().index >= position.index) positions_.pop_back();
  bool wanted = replaces || positions_.empty() || positions_.back().segment != position.segment ||
                position.offset - positions_.back().offset >= kIndexSpacingBytes;
  if (wanted) positions_.push_back(position);
  last_index_ = position.index;
}

std::optional<EntryPosition> EntryIndex::Find(LogIndex index) const {
  auto above = std::upper_bound(positions_.begin(), positions_.end(), index,
                                [](LogIndex i, const EntryPosition& p) { return i < p.index; });
  if (above == positions_.begin()) return std::nullopt;
  return *(above - 1);
}

std::optional<EntryPosition> EntryIndex::Next(LogIndex index) const {
  auto above = std::upper_bound(positions_.begin(), positions_.end(), index,
                                [](LogIndex i, const EntryPosition& p) { return i < p.index; });
  if (above == positions_.end()) return std::nullopt;
  return *above;
}

}  // namespace detcd::wal
