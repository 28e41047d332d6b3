#include "core/wal/reader.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_format.h"
#include "core/base/check.h"
#include "core/base/codec.h"
#include "core/base/crc32c.h"
#include "core/wal/record.h"

namespace detcd::wal {

void LogReader::Read(LogIndex first, LogIndex last, size_t bytes_max, uint64_t token) {
  uint64_t id = ++last_id_;
  Job& job = jobs_[id];
  job.next = first;
  job.limit = last + 1;
  job.bytes_left = bytes_max;
  job.token = token;
  Seek(id, first);
}

void LogReader::Replaced(LogIndex index) {
  for (auto& [id, job] : jobs_) {
    if (job.limit <= index) continue;
    job.limit = index;
    while (!job.entries.empty() && job.entries.back().index >= index) job.entries.pop_back();
  }
}

// Goes on at the last position at or below `index`.
void LogReader::Seek(uint64_t id, LogIndex index) {
  Job& job = jobs_.at(id);
  std::optional<EntryPosition> at = log_.index.Find(index);
  CHECK_MSG(at.has_value(), absl::StrFormat("no position for entry %d", index.value));
  bool same_file = job.file != nullptr && job.at.segment == at->segment;
  if (!same_file) job.file = nullptr;
  job.at = *at;
  job.scanned = at->index;
  job.jump = LogIndex();
  if (std::optional<EntryPosition> next = log_.index.Next(at->index)) job.jump = next->index;
  job.buffer = Bytes();
  if (same_file) return ReadMore(id, kIndexSpacingBytes);
  const SegmentName& name = log_.segments[at->segment];
  auto opened = [this, id, path = SegmentPath(name)](FileResult& r) {
    // Out of descriptors: what was read so far is the answer, and the rest is asked for again.
    if (r.error == IoError::kTooManyOpen) return Finish(id);
    if (r.error != IoError::kOk) return steps_.Fail("open of " + path + ": " + std::string(IoErrorName(r.error)));
    ReadMore(id, kIndexSpacingBytes);
  };
  job.file = directory_.Open(FormatSegmentName(name), OpenMode::kRead, steps_, steps_.Try(opened));
}

void LogReader::ReadMore(uint64_t id, uint64_t size) {
  Job& job = jobs_.at(id);
  std::string what = "read of " + SegmentPath(log_.segments[job.at.segment]);
  job.file->ReadAt(job.at.offset, size, steps_.Then(what, [this, id, size, what](FileResult& r) {
    Job& read = jobs_.at(id);
    // A frame that was asked for as a whole and is not there: Scan would ask again for ever.
    if (r.data.size() <= read.buffer.size() && r.data.size() < size) {
      return steps_.Fail(absl::StrFormat("%s at offset %d: want a record, found the end of the file", what, read.at.offset));
    }
    read.buffer = std::move(r.data);
    Scan(id);
  }));
}

void LogReader::Scan(uint64_t id) {
  Job& job = jobs_.at(id);
  while (job.next < job.limit) {
    if (!job.jump.IsZero() && job.scanned >= job.jump) return Seek(id, job.scanned);
    std::string_view bytes = job.buffer.view();
    if (bytes.size() < kFrameHeadBytes) return ReadMore(id, kIndexSpacingBytes);
    FrameLength length = DecodeFrameLength(ByteReader(bytes.substr(0, kFrameHeadBytes)).LittleEndian64());
    std::optional<Record> record;
    if (length.canonical && length.frame_bytes() > bytes.size()) {
      return ReadMore(id, std::max(kIndexSpacingBytes, length.frame_bytes()));
    }
    if (length.canonical) record = DecodeRecord(bytes.substr(kFrameHeadBytes, length.record_bytes));
    if (!record || ExtendCrc32c(job.at.crc, record->data) != record->crc) {
      return steps_.Fail(absl::StrFormat("%s at offset %d: want a record with a good CRC before entry %d, found damage",
                                         SegmentPath(log_.segments[job.at.segment]), job.at.offset, job.next.value));
    }
    if (record->type == static_cast<uint64_t>(RecordType::kEntry)) {
      size_t data_offset = static_cast<size_t>(record->data.data() - job.buffer.data());
      std::optional<raft::Entry> entry = raft::DecodeEntry(job.buffer.Slice(data_offset, record->data.size()));
      if (!entry || entry->index != job.scanned) {
        return steps_.Fail(absl::StrFormat("%s at offset %d: want entry %d, found %d",
                                           SegmentPath(log_.segments[job.at.segment]), job.at.offset,
                                           job.scanned.value, entry ? entry->index.value : 0));
      }
      ++job.scanned;
      if (entry->index == job.next) {
        size_t size = raft::EncodedEntrySize(*entry);
        // Entries must not hold on to the buffer around them.
        entry->data = Bytes::Copy(entry->data.view());
        job.entries.push_back(*std::move(entry));
        ++job.next;
        if (size >= job.bytes_left) break;
        job.bytes_left -= size;
      }
    }
    job.at.offset += length.frame_bytes();
    job.at.crc = record->crc;
    job.buffer = job.buffer.Slice(length.frame_bytes(), job.buffer.size() - length.frame_bytes());
  }
  Finish(id);
}

void LogReader::Finish(uint64_t id) {
  auto node = jobs_.extract(id);
  done_(node.mapped().token, std::move(node.mapped().entries));
}

}  // namespace detcd::wal
