#include "core/wal/recovery.h"

#include <algorithm>
#include <cstring>

#include "core/base/codec.h"
#include "core/base/crc32c.h"
#include "core/base/probe.h"

namespace detcd::wal {
namespace {

uint64_t LengthField(std::string_view bytes) { return ByteReader(bytes.substr(0, kFrameHeadBytes)).LittleEndian64(); }

bool IsCrc(uint64_t type) { return type == static_cast<uint64_t>(RecordType::kCrc); }

// Whether `record` continues the chain at `crc`. A crc record repeats the value; at the very start of a log (0) it sets it.
bool FitsChain(const Record& record, uint32_t crc) {
  if (IsCrc(record.type)) return crc == 0 || record.crc == crc;
  return ExtendCrc32c(crc, record.data) == record.crc;
}

uint32_t HighestField(std::string_view message) {
  uint32_t highest = 0;
  ProtoFields fields(message);
  for (ProtoField field; fields.Next(field);) highest = std::max(highest, field.number);
  return highest;
}

// Whether one of the pieces into which sectors cut `body`, which lies at file offset `offset`, is all zeros.
bool HasZeroPiece(std::string_view body, uint64_t offset) {
  while (!body.empty()) {
    size_t size = std::min<size_t>(body.size(), kSectorBytes - offset % kSectorBytes);
    std::string_view piece = body.substr(0, size);
    if (piece.find_first_not_of('\0') == std::string_view::npos) return true;
    body.remove_prefix(size);
    offset += size;
  }
  return false;
}

// Whether frames behind the bad one show that it was durable: a batch with entries ends in a sync before anything else
// is written, so an entry (the bad record or a later one), then a state, then one more record in one chain were not
// written by the same unfinished batch.
bool LaterBatchFollows(std::string_view rest, const FrameLength& bad) {
  enum { kNothing, kEntry, kEntryThenState } seen = kNothing;
  std::optional<uint32_t> chain;
  auto note = [&](const Record& record) {
    if (record.type == static_cast<uint64_t>(RecordType::kEntry) && seen == kNothing) seen = kEntry;
    if (record.type == static_cast<uint64_t>(RecordType::kState) && seen == kEntry) seen = kEntryThenState;
  };
  if (auto record = DecodeRecord(rest.substr(kFrameHeadBytes, bad.record_bytes))) note(*record);
  rest.remove_prefix(bad.frame_bytes());
  while (rest.size() > kFrameHeadBytes) {
    FrameLength length = DecodeFrameLength(LengthField(rest));
    if (!length.canonical || length.frame_bytes() > rest.size()) return false;
    std::optional<Record> record = DecodeRecord(rest.substr(kFrameHeadBytes, length.record_bytes));
    if (!record || IsCrc(record->type)) return false;
    if (chain && ExtendCrc32c(*chain, record->data) != record->crc) return false;
    if (chain && seen == kEntryThenState) return true;
    chain = record->crc;
    note(*record);
    rest.remove_prefix(length.frame_bytes());
  }
  return false;
}

}  // namespace

std::string EncodeMetadata(const WalMetadata& metadata) {
  std::string out;
  ByteWriter writer(out);
  writer.VarintField(1, metadata.member.value);
  writer.VarintField(2, metadata.cluster.value);
  return out;
}

std::optional<WalMetadata> DecodeMetadata(std::string_view encoded) {
  WalMetadata metadata;
  ProtoFields fields(encoded);
  for (ProtoField field; fields.Next(field);) {
    if (field.number > 2) continue;
    if (field.wire_type != 0) return std::nullopt;
    if (field.number == 1) metadata.member = MemberId(field.varint);
    if (field.number == 2) metadata.cluster = ClusterId(field.varint);
  }
  if (!fields.ok()) return std::nullopt;
  return metadata;
}

absl::Status LogReplay::Apply(uint64_t type, const Bytes& data, const EntryPosition& position) {
  if (++records_in_segment_ == 1 && !IsCrc(type)) {
    return DataLoss("want a crc record at the head of the segment, found %s record (type %d)", RecordTypeName(type), type);
  }
  switch (type) {
    case static_cast<uint64_t>(RecordType::kMetadata):
      if (!DecodeMetadata(data.view())) return DataLoss("malformed metadata record");
      if (!metadata_.empty() && metadata_ != data.view()) return DataLoss("metadata differs from that of the first segment");
      metadata_ = data.view();
      metadata_in_segment_ = true;
      return absl::OkStatus();
    case static_cast<uint64_t>(RecordType::kEntry):
      return ApplyEntry(data, position);
    case static_cast<uint64_t>(RecordType::kState):
      return ApplyState(data.view());
    case static_cast<uint64_t>(RecordType::kCrc):
      return absl::OkStatus();
    case static_cast<uint64_t>(RecordType::kSnapshot):
      return ApplySnapshot(data.view());
    default:
      return DataLoss("record of unknown type %d", type);
  }
}

absl::Status LogReplay::ApplyEntry(const Bytes& data, const EntryPosition& position) {
  std::optional<raft::Entry> entry = raft::DecodeEntry(data);
  if (!entry) return DataLoss("malformed entry record");
  // A record's type is not under its CRC. What a state taken for an entry would be, no leader appends.
  if (entry->term.IsZero()) return DataLoss("entry %d has term 0", entry->index.value);
  if (entry->type != raft::EntryType::kNormal && entry->data.empty()) {
    return DataLoss("entry %d is a change of members without content", entry->index.value);
  }
  if (entry->index.IsZero() || entry->index > last_index_ + 1) {
    return DataLoss("gap in the log: found entry %d, want at most %d", entry->index.value, last_index_.value + 1);
  }
  if (entry->index <= commit_) {
    return DataLoss("entry %d replaces a committed one, commit index is %d", entry->index.value, commit_.value);
  }
  if (entry->index <= last_index_) {
    PROBE("wal.recovery_replaced_entries");
    tail_.resize(tail_.size() - (last_index_ - entry->index + 1));
  }
  Term previous = tail_.empty() ? committed_term_ : tail_.back().term;
  if (entry->term < previous) {
    return DataLoss("entry %d has term %d after one of term %d", entry->index.value, entry->term.value, previous.value);
  }
  last_index_ = entry->index;
  EntryPosition at = position;
  at.index = entry->index;
  index_.Add(at);
  tail_.push_back(*std::move(entry));
  return absl::OkStatus();
}

absl::Status LogReplay::ApplyState(std::string_view data) {
  std::optional<raft::HardState> state = raft::DecodeHardState(data);
  if (!state) return DataLoss("malformed state record");
  // As for entries: an entry taken for a state has no term, or a field too many.
  if (state->term.IsZero() || HighestField(data) > 3) return DataLoss("state record of term %d is none", state->term.value);
  if (state->commit > last_index_) {
    return DataLoss("state record with commit index %d, last entry is %d", state->commit.value, last_index_.value);
  }
  hard_state_ = *state;
  if (state->commit > commit_) {
    auto limit = tail_.end() - static_cast<ptrdiff_t>(last_index_ - state->commit);
    committed_term_ = (limit - 1)->term;
    std::move(tail_.begin(), limit, std::back_inserter(committed_));
    tail_.erase(tail_.begin(), limit);
    commit_ = state->commit;
  }
  hard_state_->commit = commit_;  // what was handed over as committed stays so
  return absl::OkStatus();
}

absl::Status LogReplay::ApplySnapshot(std::string_view data) {
  uint64_t index = 0;
  uint64_t term = 0;
  ProtoFields fields(data);
  for (ProtoField field; fields.Next(field);) {
    if (field.number == 1) index = field.varint;
    if (field.number == 2) term = field.varint;
  }
  if (!fields.ok() || (index == 0 && term != 0)) return DataLoss("malformed snapshot record");
  if (index == 0) return absl::OkStatus();
  return FailedPrecondition("snapshot record at index %d: snapshots are not supported by this release", index);
}

absl::Status LogReplay::EndSegment() {
  if (records_in_segment_ == 0 || !metadata_in_segment_) return DataLoss("the segment ends within its head records");
  records_in_segment_ = 0;
  metadata_in_segment_ = false;
  return absl::OkStatus();
}

std::vector<raft::Entry> LogReplay::TakeCommitted() { return std::exchange(committed_, {}); }

std::vector<raft::Entry> LogReplay::TakeTail() {
  std::vector<raft::Entry> tail(std::move_iterator(tail_.begin()), std::move_iterator(tail_.end()));
  tail_.clear();
  return tail;
}

TailVerdict JudgeTail(std::string_view rest, uint64_t offset, uint32_t crc) {
  if (rest.empty()) return {TailKind::kEnd, {}};
  if (rest.size() < kFrameHeadBytes) {
    return {TailKind::kTorn, absl::StrFormat("%d bytes of a length field", rest.size())};
  }
  uint64_t field = LengthField(rest);
  std::string_view behind = rest.substr(kFrameHeadBytes);

  size_t prefix_bytes = 0;
  if (auto record = DecodeRecordPrefix(behind, prefix_bytes);
      record && FitsChain(*record, crc) && field != EncodeFrameLength(prefix_bytes)) {
    // The record is whole and in the chain, its length field is not what was written with it. A crash does that only
    // when they lie in two sectors and the first was lost.
    bool lost = field == 0 && (offset + kFrameHeadBytes) % kSectorBytes == 0;
    if (!lost) {
      return {TailKind::kDamaged, absl::StrFormat("length field %#x before a good %s record, want %#x", field,
                                                  RecordTypeName(record->type), EncodeFrameLength(prefix_bytes))};
    }
    PROBE("wal.length_sector_lost");
  }
  if (field == 0) return {TailKind::kEnd, {}};

  FrameLength length = DecodeFrameLength(field);
  // Compared this way round, a length near 2^56 cannot overflow; a larger limit on records may not come before this.
  if (length.record_bytes + length.pad_bytes > behind.size()) {
    PROBE("wal.torn_record_past_end");
    return {TailKind::kTorn, absl::StrFormat("a record of %d bytes, %d bytes are left", length.record_bytes, behind.size())};
  }
  std::string found;
  if (auto record = DecodeRecord(behind.substr(0, length.record_bytes)); !record) {
    found = absl::StrFormat("a malformed record of %d bytes", length.record_bytes);
  } else if (!FitsChain(*record, crc)) {
    uint32_t want = IsCrc(record->type) ? crc : ExtendCrc32c(crc, record->data);
    found = absl::StrFormat("a %s record with CRC %08x, want %08x", RecordTypeName(record->type), record->crc, want);
  } else {
    return {TailKind::kDamaged, absl::StrFormat("length field %#x, want %#x", field, EncodeFrameLength(length.record_bytes))};
  }
  if (!HasZeroPiece(behind.substr(0, length.record_bytes + length.pad_bytes), offset + kFrameHeadBytes)) {
    return {TailKind::kDamaged, std::move(found)};
  }
  if (LaterBatchFollows(rest, length)) {
    PROBE("wal.damage_with_zero_sector");
    return {TailKind::kDamaged, found + ", and records of a later batch behind it"};
  }
  PROBE("wal.torn_record");
  return {TailKind::kTorn, std::move(found)};
}

Recovery::Recovery(Directory& directory, FileSteps& steps, Trace& trace, const WalOptions& options,
                   std::vector<SegmentName> names, WalListener& listener, std::function<void(Result)> done)
    : directory_(directory),
      steps_(steps),
      trace_(trace),
      options_(options),
      names_(std::move(names)),
      listener_(listener),
      done_(std::move(done)) {}

void Recovery::Start() {
  const SegmentName& first = names_.front();
  if (first.sequence != 0 || !first.index.IsZero()) {
    return steps_.Fail(absl::StrFormat(
        "%s: the log does not begin with segment 0; logs that begin at a snapshot are not supported by this release",
        SegmentPath(first)));
  }
  for (size_t i = 1; i < names_.size(); ++i) {
    if (names_[i].sequence != names_[i - 1].sequence + 1) {
      return steps_.Fail(absl::StrFormat("%s: want sequence number %d, found %d", SegmentPath(names_[i]),
                                         names_[i - 1].sequence + 1, names_[i].sequence));
    }
  }
  last_ = directory_.Open(FormatSegmentName(names_.back()), OpenMode::kWrite, steps_, steps_.Try([this](FileResult& r) {
    if (r.error == IoError::kLocked) {
      return steps_.Fail(SegmentPath(names_.back()) + ": locked: another process runs on this data directory");
    }
    if (r.error != IoError::kOk) {
      return steps_.Fail("open of " + SegmentPath(names_.back()) + ": " + std::string(IoErrorName(r.error)));
    }
    last_size_ = r.size;
    StartSegment();
  }));
}

void Recovery::StartSegment() {
  if (InLast()) {
    file_ = nullptr;
    return BeginReading(last_size_);
  }
  file_ = directory_.Open(FormatSegmentName(names_[segment_]), OpenMode::kRead, steps_,
                          steps_.Then("open of " + SegmentPath(names_[segment_]),
                                      [this](FileResult& r) { BeginReading(r.size); }));
}

void Recovery::BeginReading(uint64_t size) {
  file_size_ = size;
  buffer_ = Bytes();
  buffer_offset_ = 0;
  position_ = 0;
  TakeFrames();
}

void Recovery::ReadMore(uint64_t missing_bytes) {
  uint64_t offset = buffer_offset_ + buffer_.size();
  uint64_t size = std::min(std::max(missing_bytes, options_.read_bytes), file_size_ - offset);
  file().ReadAt(offset, size, steps_.Then("read of " + SegmentPath(names_[segment_]), [this, size](FileResult& r) {
    if (r.data.size() != size) return Damaged(FrameOffset(), "the file became shorter while it was read");
    size_t kept = Buffered();
    if (kept == 0) {
      buffer_offset_ += position_;
      buffer_ = std::move(r.data);
    } else {
      Bytes joined = Bytes::Build(kept + size, [&](char* out) {
        std::memcpy(out, buffer_.data() + position_, kept);
        std::memcpy(out + kept, r.data.data(), size);
      });
      buffer_offset_ += position_;
      buffer_ = std::move(joined);
    }
    position_ = 0;
    TakeFrames();
  }));
}

Recovery::Progress Recovery::TakeFrame(uint64_t& missing_bytes) {
  auto need = [&](uint64_t bytes) {
    if (Buffered() >= bytes) return false;
    missing_bytes = bytes - Buffered();
    return true;
  };
  if (FileRemaining() == 0) return Progress::kEnd;
  // One byte behind the length field is looked at as well: where it is zero, no record follows a length of zero.
  if (FileRemaining() < kFrameHeadBytes) return Progress::kBad;
  if (need(std::min<uint64_t>(kFrameHeadBytes + 1, FileRemaining()))) return Progress::kNeedsMore;
  std::string_view bytes = buffer_.view().substr(position_);
  uint64_t field = LengthField(bytes);
  if (field == 0) {
    bool more = bytes.size() > kFrameHeadBytes && bytes[kFrameHeadBytes] != '\0';
    return more ? Progress::kBad : Progress::kEnd;
  }
  FrameLength length = DecodeFrameLength(field);
  if (!length.canonical || length.frame_bytes() > FileRemaining()) return Progress::kBad;
  if (need(length.frame_bytes())) return Progress::kNeedsMore;
  std::optional<Record> record = DecodeRecord(bytes.substr(kFrameHeadBytes, length.record_bytes));
  if (!record || !FitsChain(*record, crc_)) return Progress::kBad;

  Bytes data;
  if (!record->data.empty()) {
    data = buffer_.Slice(static_cast<size_t>(record->data.data() - buffer_.data()), record->data.size());
  }
  absl::Status status =
      replay_.Apply(record->type, data, {.segment = segment_, .offset = FrameOffset(), .crc = crc_});
  if (!status.ok()) {
    Damaged(FrameOffset(), std::string_view(status.message().data(), status.message().size()));
    return Progress::kFailed;
  }
  crc_ = record->crc;
  position_ += length.frame_bytes();
  return Progress::kFrame;
}

void Recovery::TakeFrames() {
  uint64_t missing_bytes = 0;
  Progress progress;
  do {
    progress = TakeFrame(missing_bytes);
  } while (progress == Progress::kFrame);
  if (progress == Progress::kFailed) return;
  HandOver();
  switch (progress) {
    case Progress::kNeedsMore:
      return ReadMore(missing_bytes);
    case Progress::kEnd:
      return EndSegment();
    case Progress::kBad:
      return Judge();
    case Progress::kFrame:
    case Progress::kFailed:
      return;
  }
}

void Recovery::HandOver() {
  if (!metadata_told_ && !replay_.metadata().empty()) {
    metadata_told_ = true;
    listener_.OnWalMetadata(*DecodeMetadata(replay_.metadata()));
  }
  std::vector<raft::Entry> committed = replay_.TakeCommitted();
  if (!committed.empty()) listener_.OnWalCommitted(std::move(committed));
}

void Recovery::Judge() {
  uint64_t size = FileRemaining();
  file().ReadAt(FrameOffset(), size, steps_.Then("read of " + SegmentPath(names_[segment_]), [this, size](FileResult& r) {
    if (r.data.size() != size) return Damaged(FrameOffset(), "the file became shorter while it was read");
    TailVerdict verdict = JudgeTail(r.data.view(), FrameOffset(), crc_);
    switch (verdict.kind) {
      case TailKind::kEnd:
        return EndSegment();
      case TailKind::kDamaged:
        return Damaged(FrameOffset(), verdict.found);
      case TailKind::kTorn:
        if (!InLast()) return Damaged(FrameOffset(), verdict.found + ", in a segment that others follow");
        Emit(trace_, LogLevel::kWarn, "wal/recovery", "cutting off a torn record",
             {TraceField::Text("found", verdict.found), TraceField::Number("offset", FrameOffset())});
        return EndLog(true);
    }
  }));
}

void Recovery::EndSegment() {
  if (InLast()) return EndLog(false);
  absl::Status status = replay_.EndSegment();
  if (!status.ok()) return Damaged(FrameOffset(), std::string_view(status.message().data(), status.message().size()));
  ++segment_;
  StartSegment();
}

void Recovery::EndLog(bool torn) {
  // The head of a segment is durable before its name exists, so it is never what a crash tears.
  absl::Status status = replay_.EndSegment();
  if (!status.ok()) return Damaged(FrameOffset(), std::string_view(status.message().data(), status.message().size()));
  if (torn) return CopyBroken();
  CleanTail();
}

void Recovery::CopyBroken() {
  std::string name = FormatSegmentName(names_.back()) + ".broken";
  std::string what = "copy to " + SegmentPath(names_.back()) + ".broken";
  broken_ = directory_.Open(name, OpenMode::kCreate, steps_, steps_.Then(what, [](FileResult&) {}));
  broken_->Truncate(0, steps_.Then(what, [this](FileResult&) { CopyPiece(0); }));
}

void Recovery::CopyPiece(uint64_t offset) {
  std::string what = "copy to " + SegmentPath(names_.back()) + ".broken";
  if (offset == file_size_) {
    broken_->Truncate(file_size_, steps_.Then(what, [](FileResult&) {}));
    broken_->Sync(steps_.Then(what, [this, what](FileResult&) {
      directory_.Sync(steps_.Then(what, [this](FileResult&) {
        broken_ = nullptr;
        CleanTail();
      }));
    }));
    return;
  }
  uint64_t size = std::min(options_.read_bytes, file_size_ - offset);
  last_->ReadAt(offset, size, steps_.Then("read of " + SegmentPath(names_.back()), [=, this](FileResult& r) {
    if (r.data.size() != size) return Damaged(offset, "the file became shorter while it was read");
    // Most of a segment is space set aside: the copy has holes there, so that it costs no more than what was written.
    if (r.data.view().find_first_not_of('\0') == std::string_view::npos) return CopyPiece(offset + size);
    std::vector<Bytes> pieces = {r.data};
    broken_->WriteAt(offset, pieces, steps_.Then(what, [=, this](FileResult&) { CopyPiece(offset + size); }));
  }));
}

// Zeros behind the last good record, and everything before it durable: what is handed over now may rest on bytes that the
// last incarnation wrote without a sync.
void Recovery::CleanTail() {
  std::string path = SegmentPath(names_.back());
  last_->Truncate(FrameOffset(), steps_.Then("truncation of " + path, [](FileResult&) {}));
  last_->Preallocate(options_.segment_bytes, steps_.Then("preallocation of " + path, [](FileResult&) {}));
  last_->Sync(steps_.Then("sync of " + path, [this](FileResult&) {
    directory_.Sync(steps_.Then("sync of " + std::string(kWalFolder), [this](FileResult&) { Finish(); }));
  }));
}

void Recovery::Finish() {
  Result result;
  result.log.metadata = replay_.metadata();
  result.log.hard_state = replay_.hard_state();
  result.log.segments = names_;
  result.log.index = std::move(replay_.index());
  result.log.tail = std::move(last_);
  result.log.offset = FrameOffset();
  result.log.crc = crc_;
  buffer_ = Bytes();
  result.tail = replay_.TakeTail();
  done_(std::move(result));
}

void Recovery::Damaged(uint64_t offset, std::string_view found) {
  steps_.Fail(absl::StrFormat("%s at offset %d: %s", SegmentPath(names_[segment_]), offset, found));
}

}  // namespace detcd::wal
