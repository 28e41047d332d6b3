// Reading a log back: which frames are good, where it ends, and what a bad frame means.
//
// Two pure parts (LogReplay: what records say; JudgeTail: what a bad frame is) and Recovery, which feeds them from large
// sequential reads and leaves the last segment clean, durable and ready for appending.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/io/files.h"
#include "core/io/trace.h"
#include "core/wal/file_steps.h"
#include "core/wal/log_state.h"
#include "core/wal/record.h"
#include "core/wal/wal.h"

namespace detcd::wal {

// Data of a metadata record: etcdserverpb.Metadata.
std::string EncodeMetadata(const WalMetadata& metadata);
std::optional<WalMetadata> DecodeMetadata(std::string_view encoded);

// The records of a log in order, and what they add up to.
class LogReplay {
 public:
  // Takes in a record of good CRC. `data` is its data, shared with entries; `position` is where its frame starts.
  // Errors: kDataLoss, the record contradicts those before; kFailedPrecondition, it needs what this release lacks.
  absl::Status Apply(uint64_t type, const Bytes& data, const EntryPosition& position);
  // The end of a segment: its head must have been there.
  absl::Status EndSegment();

  // Committed entries that became known since the last call, in order.
  std::vector<raft::Entry> TakeCommitted();

  const std::string& metadata() const { return metadata_; }
  const std::optional<raft::HardState>& hard_state() const { return hard_state_; }
  EntryIndex& index() { return index_; }
  // The entries above the highest commit index seen.
  std::vector<raft::Entry> TakeTail();

 private:
  absl::Status ApplyEntry(const Bytes& data, const EntryPosition& position);
  absl::Status ApplyState(std::string_view data);
  absl::Status ApplySnapshot(std::string_view data);

  std::string metadata_;
  std::optional<raft::HardState> hard_state_;
  std::vector<raft::Entry> committed_;  // below `tail_`, not handed over yet
  std::deque<raft::Entry> tail_;        // above the highest commit index seen
  Term committed_term_;                 // of the entry before `tail_`
  LogIndex last_index_;                 // of the last entry; tail_.back() unless that is empty
  LogIndex commit_;                     // highest seen; the entries up to min(commit_, last_index_) left `tail_`
  uint64_t records_in_segment_ = 0;
  bool metadata_in_segment_ = false;
  EntryIndex index_;
};

enum class TailKind : uint8_t {
  kEnd,      // nothing was written here, or what was written left nothing readable
  kTorn,     // the remains of a write that was never synced: to be cut off
  kDamaged,  // bytes that were durable have changed
};
struct TailVerdict {
  TailKind kind;
  std::string found;  // what lies there, with expected values; empty for kEnd
};

// What `rest`, the bytes from file offset `offset` to the end of the file, holds when no good frame starts there.
// `crc` is the running CRC of the good records before. The rules and their proofs are in format.md.
TailVerdict JudgeTail(std::string_view rest, uint64_t offset, uint32_t crc);

class Recovery {
 public:
  struct Result {
    LogState log;
    std::vector<raft::Entry> tail;
  };

  // `names` is not empty, ascending. Committed entries and metadata go to `listener` on the way, the rest to `done`.
  // Errors go to `steps`. Everything outlives this object.
  Recovery(Directory& directory, FileSteps& steps, Trace& trace, const WalOptions& options,
           std::vector<SegmentName> names, WalListener& listener, std::function<void(Result)> done);

  void Start();

 private:
  bool InLast() const { return segment_ + 1 == names_.size(); }
  File& file() { return InLast() ? *last_ : *file_; }
  size_t Buffered() const { return buffer_.size() - position_; }
  uint64_t FrameOffset() const { return buffer_offset_ + position_; }
  uint64_t FileRemaining() const { return file_size_ - FrameOffset(); }

  void StartSegment();
  void BeginReading(uint64_t size);
  void ReadMore(uint64_t missing_bytes);
  enum class Progress : uint8_t { kFrame, kNeedsMore, kEnd, kBad, kFailed };
  Progress TakeFrame(uint64_t& missing_bytes);
  void TakeFrames();
  void HandOver();
  void Judge();
  void EndSegment();
  void EndLog(bool torn);
  void CopyBroken();
  void CopyPiece(uint64_t offset);
  void CleanTail();
  void Finish();
  void Damaged(uint64_t offset, std::string_view found);

  Directory& directory_;
  FileSteps& steps_;
  Trace& trace_;
  WalOptions options_;
  std::vector<SegmentName> names_;
  WalListener& listener_;
  std::function<void(Result)> done_;

  LogReplay replay_;
  bool metadata_told_ = false;
  size_t segment_ = 0;
  std::unique_ptr<File> last_;    // locked from the start
  std::unique_ptr<File> file_;    // the segment being read, unless it is the last
  std::unique_ptr<File> broken_;  // the copy being made
  uint64_t last_size_ = 0;
  uint64_t file_size_ = 0;
  Bytes buffer_;                  // bytes of the file from buffer_offset_ on
  uint64_t buffer_offset_ = 0;
  size_t position_ = 0;           // in buffer_, of the next frame
  uint32_t crc_ = 0;              // running value before the next frame
};

}  // namespace detcd::wal
