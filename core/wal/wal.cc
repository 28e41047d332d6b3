#include "core/wal/wal.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/check.h"
#include "core/base/limits.h"
#include "core/base/probe.h"
#include "core/wal/creation.h"
#include "core/wal/file_steps.h"
#include "core/wal/log_state.h"
#include "core/wal/reader.h"
#include "core/wal/record.h"
#include "core/wal/recovery.h"

namespace detcd::wal {

class Wal::Impl final : public PostListener {
 public:
  Impl(Host& host, const WalOptions& options, WalListener& listener)
      : host_(host), options_(options), listener_(listener), steps_([this](std::string reason) { Failed(std::move(reason)); }) {
    CHECK(options.segment_bytes > 0);
    CHECK(options.read_bytes > 0);
  }

  void Open(std::optional<WalBootstrap> bootstrap);
  uint64_t Append(WalBatch batch);
  bool Busy() const { return busy_; }
  void Read(LogIndex first, LogIndex last, size_t bytes_max, uint64_t token);

  void OnPost(uint64_t token) override;

 private:
  // --- opening
  void OnMemberListed(std::vector<std::string> names);
  void OnWalListed(std::vector<std::string> names);
  void Create();
  void Opened(LogState log, raft::HardState hard_state, std::vector<raft::Entry> tail);

  // --- the next segment, made ahead
  void PrepareNext();
  void NextReady(IoError error);

  // --- cutting, one step after the other
  void CutTail();
  void WriteHead();
  void PublishHead();
  void Appended();

  void Failed(std::string reason);
  std::string TailPath() const { return SegmentPath(log_.segments.back()); }

  Host& host_;
  WalOptions options_;
  WalListener& listener_;
  FileSteps steps_;

  std::unique_ptr<Directory> data_folder_;
  std::unique_ptr<Directory> member_folder_;
  std::unique_ptr<Directory> wal_folder_;
  std::optional<WalBootstrap> bootstrap_;
  std::vector<std::string> member_names_;
  std::unique_ptr<Creation> creation_;
  std::unique_ptr<Recovery> recovery_;

  LogState log_;
  std::unique_ptr<LogReader> reader_;
  bool open_ = false;
  bool busy_ = false;
  uint64_t sequence_ = 0;        // of the last Append
  LogIndex appended_index_;      // last entry of what is complete

  std::unique_ptr<File> next_;   // under `next_name_`; becomes the tail at the next cut
  std::string next_name_;
  bool next_ready_ = false;
  IoError next_error_ = IoError::kOk;
  bool cut_waits_ = false;       // a cut waits for `next_`
  bool prepared_again_ = false;  // this cut has had `next_` made a second time
  FrameWriter head_{0};          // head records of the segment being cut to
  uint64_t prepared_count_ = 0;

  std::map<uint64_t, uint64_t> empty_reads_;  // posts that answer reads of nothing: their tokens
  uint64_t last_post_ = 0;
};

void Wal::Impl::Open(std::optional<WalBootstrap> bootstrap) {
  bootstrap_ = std::move(bootstrap);
  data_folder_ = host_.files().OpenDirectory("", true, steps_, steps_.Then("open of the data folder", [this](FileResult&) {
    member_folder_ = host_.files().OpenDirectory("member", true, steps_, steps_.Then("open of member", [](FileResult&) {}));
    member_folder_->List(steps_.Then("listing of member", [this](FileResult& r) { OnMemberListed(std::move(r.names)); }));
  }));
}

void Wal::Impl::OnMemberListed(std::vector<std::string> names) {
  member_names_ = std::move(names);
  if (std::find(member_names_.begin(), member_names_.end(), "wal") == member_names_.end()) return Create();
  wal_folder_ = host_.files().OpenDirectory(kWalFolder, false, steps_,
                                            steps_.Then("open of member/wal", [](FileResult&) {}));
  wal_folder_->List(steps_.Then("listing of member/wal", [this](FileResult& r) { OnWalListed(std::move(r.names)); }));
}

void Wal::Impl::OnWalListed(std::vector<std::string> names) {
  std::vector<SegmentName> segments;
  for (const std::string& name : names) {
    if (std::optional<SegmentName> segment = ParseSegmentName(name)) segments.push_back(*segment);
  }
  if (segments.empty()) {
    for (const std::string& name : names) {
      if (name.ends_with(".wal")) return steps_.Fail(std::string(kWalFolder) + "/" + name + ": not the name of a segment");
    }
    return Create();
  }
  std::sort(segments.begin(), segments.end());
  bootstrap_.reset();
  auto done = [this](Recovery::Result result) {
    // The incarnation that made the log may have ended between the rename of its folder and these syncs.
    auto opened = [this, kept = std::make_shared<Recovery::Result>(std::move(result))](FileResult&) {
      raft::HardState hard_state = kept->log.hard_state.value_or(raft::HardState());
      Opened(std::move(kept->log), hard_state, std::move(kept->tail));
    };
    member_folder_->Sync(steps_.Then("sync of member", [this, opened](FileResult&) {
      data_folder_->Sync(steps_.Then("sync of the data folder", opened));
    }));
  };
  recovery_ = std::make_unique<Recovery>(*wal_folder_, steps_, host_.trace(), options_, std::move(segments), listener_, done);
  recovery_->Start();
}

void Wal::Impl::Create() {
  if (!bootstrap_) return steps_.Fail("member/wal: there is no log, and nothing to begin one with");
  CHECK(bootstrap_->entries.size() >= bootstrap_->hard_state.commit.value);
  wal_folder_ = nullptr;
  auto done = [this](LogState log) {
    auto opened = [this, made = std::make_shared<LogState>(std::move(log))](FileResult&) {
      std::vector<raft::Entry> committed = std::move(bootstrap_->entries);
      auto limit = committed.begin() + static_cast<ptrdiff_t>(bootstrap_->hard_state.commit.value);
      std::vector<raft::Entry> tail(limit, committed.end());
      committed.erase(limit, committed.end());
      if (!committed.empty()) listener_.OnWalCommitted(std::move(committed));
      Opened(std::move(*made), bootstrap_->hard_state, std::move(tail));
    };
    wal_folder_ = host_.files().OpenDirectory(kWalFolder, false, steps_, steps_.Then("open of member/wal", opened));
  };
  creation_ = std::make_unique<Creation>(host_.files(), *data_folder_, *member_folder_, member_names_, steps_, options_,
                                         *bootstrap_, done);
  creation_->Start();
}

void Wal::Impl::Opened(LogState log, raft::HardState hard_state, std::vector<raft::Entry> tail) {
  log_ = std::move(log);
  appended_index_ = log_.index.last_index();
  reader_ = std::make_unique<LogReader>(*wal_folder_, steps_, log_, [this](uint64_t token, std::vector<raft::Entry> entries) {
    listener_.OnWalRead(token, std::move(entries));
  });
  open_ = true;
  PrepareNext();
  listener_.OnWalOpened(hard_state, std::move(tail));
}

// etcd's names: 0.tmp and 1.tmp in turn. A leftover under that name is emptied: it may hold the head of a cut that a
// crash stopped.
void Wal::Impl::PrepareNext() {
  next_name_ = std::to_string(prepared_count_++ % 2) + ".tmp";
  next_ready_ = false;
  next_error_ = IoError::kOk;
  auto note = [this](FileResult& r) {
    if (next_error_ == IoError::kOk) next_error_ = r.error;
  };
  next_ = wal_folder_->Open(next_name_, OpenMode::kCreate, steps_, steps_.Try(note));
  next_->Truncate(0, steps_.Try(note));
  next_->Preallocate(options_.segment_bytes, steps_.Try([this](FileResult& r) { NextReady(r.error); }));
}

// Trouble here is no trouble of the current segment, which goes on to its end.
void Wal::Impl::NextReady(IoError error) {
  if (next_error_ == IoError::kOk) next_error_ = error;
  next_ready_ = true;
  if (cut_waits_) WriteHead();
}

uint64_t Wal::Impl::Append(WalBatch batch) {
  ++sequence_;
  if (steps_.failed()) return sequence_;
  CHECK(open_);
  CHECK(!busy_);
  // The repair of torn tails rests on it (format.md).
  if (!batch.entries.empty()) CHECK(batch.sync);
  busy_ = true;
  FrameWriter writer(log_.crc);
  for (const raft::Entry& entry : batch.entries) {
    CHECK_MSG(!entry.index.IsZero() && entry.index <= log_.index.last_index() + 1, "append with a gap");
    if (entry.index <= log_.index.last_index()) {
      reader_->Replaced(entry.index);
      appended_index_ = std::min(appended_index_, entry.index - 1);
    }
    log_.index.Add({.index = entry.index,
                    .segment = log_.segments.size() - 1,
                    .offset = log_.offset + writer.size(),
                    .crc = writer.crc()});
    writer.AddEntry(entry);
  }
  if (batch.hard_state) {
    log_.hard_state = batch.hard_state;
    writer.AddState(*batch.hard_state);
  }
  uint64_t offset = log_.offset;
  log_.offset += writer.size();
  log_.crc = writer.crc();
  bool cut = log_.offset >= options_.segment_bytes;
  std::vector<Bytes> pieces = writer.TakePieces();
  bool last_step = !cut && !batch.sync;
  log_.tail->WriteAt(offset, pieces, steps_.Then("write of " + TailPath(), [this, pieces, last_step](FileResult&) {
    if (last_step) Appended();
  }));
  if (cut) {
    CutTail();
  } else if (batch.sync) {
    log_.tail->Sync(steps_.Then("sync of " + TailPath(), [this](FileResult&) { Appended(); }));
  }
  return sequence_;
}

// The old segment ends at its last record and is durable before the new one gets its name: so a later segment proves
// that all before it is whole.
void Wal::Impl::CutTail() {
  PROBE("wal.cut");
  log_.tail->Truncate(log_.offset, steps_.Then("truncation of " + TailPath(), [](FileResult&) {}));
  log_.tail->Sync(steps_.Then("sync of " + TailPath(), [this](FileResult&) {
    if (next_ready_) return WriteHead();
    PROBE("wal.cut_waits_for_next");
    cut_waits_ = true;
  }));
}

void Wal::Impl::WriteHead() {
  cut_waits_ = false;
  if (next_error_ != IoError::kOk && !prepared_again_) {
    // What was in the way then (no space, no descriptors) may be gone.
    PROBE("wal.next_prepared_again");
    prepared_again_ = cut_waits_ = true;
    return PrepareNext();
  }
  prepared_again_ = false;
  std::string path = std::string(kWalFolder) + "/" + next_name_;
  if (next_error_ != IoError::kOk) {
    return steps_.Fail("preparation of " + path + ": " + std::string(IoErrorName(next_error_)));
  }
  head_ = FrameWriter(log_.crc);
  head_.AddCrc();
  head_.AddMetadata(log_.metadata);
  if (log_.hard_state) head_.AddState(*log_.hard_state);
  std::vector<Bytes> pieces = head_.TakePieces();
  next_->WriteAt(0, pieces, steps_.Then("write of " + path, [pieces](FileResult&) {}));
  next_->Sync(steps_.Then("sync of " + path, [this](FileResult&) { PublishHead(); }));
}

void Wal::Impl::PublishHead() {
  SegmentName name{.sequence = log_.segments.back().sequence + 1, .index = log_.index.last_index() + 1};
  std::string path = SegmentPath(name);
  wal_folder_->Rename(next_name_, FormatSegmentName(name), steps_.Then("rename to " + path, [](FileResult&) {}));
  wal_folder_->Sync(steps_.Then("sync of member/wal", [this, name](FileResult&) {
    log_.segments.push_back(name);
    log_.tail = std::move(next_);
    log_.offset = head_.size();
    log_.crc = head_.crc();
    PrepareNext();
    Appended();
  }));
}

void Wal::Impl::Appended() {
  busy_ = false;
  appended_index_ = log_.index.last_index();
  listener_.OnWalAppended(sequence_);
}

void Wal::Impl::Read(LogIndex first, LogIndex last, size_t bytes_max, uint64_t token) {
  if (steps_.failed()) return;
  CHECK(open_);
  last = std::min(last, appended_index_);
  if (first.IsZero() || first > last) {
    empty_reads_.emplace(++last_post_, token);
    return host_.events().Post(*this, last_post_);
  }
  reader_->Read(first, last, bytes_max, token);
}

void Wal::Impl::OnPost(uint64_t token) {
  auto node = empty_reads_.extract(token);
  if (!node.empty() && !steps_.failed()) listener_.OnWalRead(node.mapped(), {});
}

void Wal::Impl::Failed(std::string reason) { listener_.OnWalFailed(std::move(reason)); }

Wal::Wal(Host& host, const WalOptions& options, WalListener& listener)
    : impl_(std::make_unique<Impl>(host, options, listener)) {}
Wal::~Wal() = default;
void Wal::Open(std::optional<WalBootstrap> bootstrap) { impl_->Open(std::move(bootstrap)); }
uint64_t Wal::Append(WalBatch batch) { return impl_->Append(std::move(batch)); }
bool Wal::Busy() const { return impl_->Busy(); }
void Wal::Read(LogIndex first, LogIndex last, size_t bytes_max, uint64_t token) {
  impl_->Read(first, last, bytes_max, token);
}

}  // namespace detcd::wal
