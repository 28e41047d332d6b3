#include "sim/disk_log.h"

#include <optional>
#include <string>

#include "core/base/codec.h"
#include "core/base/crc32c.h"
#include "core/raft/message.h"
#include "core/wal/record.h"
#include "core/wal/segment.h"

namespace detcd::sim {
namespace {

// Takes the entries of one segment. False at a bad record, behind which nothing counts.
bool TakeSegment(const Bytes& content, uint32_t& crc, std::vector<Term>& terms) {
  std::string_view rest = content.view();
  while (rest.size() >= wal::kFrameHeadBytes) {
    const uint64_t field = ByteReader(rest.substr(0, wal::kFrameHeadBytes)).LittleEndian64();
    if (field == 0) return true;
    const wal::FrameLength length = wal::DecodeFrameLength(field);
    if (!length.canonical || length.frame_bytes() > rest.size()) return false;
    const std::optional<wal::Record> record = wal::DecodeRecord(rest.substr(wal::kFrameHeadBytes, length.record_bytes));
    if (!record) return false;
    const bool is_crc = record->type == static_cast<uint64_t>(wal::RecordType::kCrc);
    const uint32_t want = is_crc ? (crc == 0 ? record->crc : crc) : ExtendCrc32c(crc, record->data);
    if (record->crc != want) return false;
    crc = want;
    rest.remove_prefix(length.frame_bytes());
    if (record->type != static_cast<uint64_t>(wal::RecordType::kEntry)) continue;
    const std::optional<raft::Entry> entry = raft::DecodeEntry(Bytes::Copy(record->data));
    if (!entry || entry->index.IsZero() || entry->index.value > terms.size() + 1) return false;
    terms.resize(entry->index.value - 1);
    terms.push_back(entry->term);
  }
  return true;
}

}  // namespace

std::vector<Term> ReadDiskLog(const SimDisk& disk) {
  std::vector<Term> terms;
  const std::shared_ptr<Inode> folder = disk.Walk("member/wal");
  if (folder == nullptr || !folder->is_folder) return terms;
  uint32_t crc = 0;
  for (const auto& [name, file] : folder->entries()) {  // the names of segments sort as their numbers do
    if (!wal::ParseSegmentName(name)) continue;
    if (!TakeSegment(file->Read(0, file->size()), crc, terms)) break;
  }
  return terms;
}

}  // namespace detcd::sim
