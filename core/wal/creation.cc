#include "core/wal/creation.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/probe.h"
#include "core/wal/recovery.h"

namespace detcd::wal {
namespace {

constexpr std::string_view kNewName = "wal.tmp";
constexpr std::string_view kFinalName = "wal";
constexpr std::string_view kNewFolder = "member/wal.tmp";
constexpr std::string_view kSnapFolder = "member/snap";

}  // namespace

Creation::Creation(FileSystem& files, Directory& data, Directory& member, std::vector<std::string> member_names,
                   FileSteps& steps, const WalOptions& options, WalBootstrap bootstrap,
                   std::function<void(LogState)> done)
    : files_(files),
      data_(data),
      member_(member),
      member_names_(std::move(member_names)),
      steps_(steps),
      options_(options),
      bootstrap_(std::move(bootstrap)),
      done_(std::move(done)) {}

// A wal.tmp of an attempt that did not finish, and a folder `wal` without segments, go away with all they hold.
void Creation::RemoveOld(size_t which) {
  constexpr std::string_view kOld[] = {kNewName, kFinalName};
  if (which == std::size(kOld)) return WriteSegment();
  std::string name(kOld[which]);
  if (std::find(member_names_.begin(), member_names_.end(), name) == member_names_.end()) return RemoveOld(which + 1);
  PROBE("wal.creation_replaces_leftover");
  std::string path = "member/" + name;
  old_ = files_.OpenDirectory(path, false, steps_, steps_.Then("open of " + path, [](FileResult&) {}));
  old_->List(steps_.Then("listing of " + path, [this, which, name, path](FileResult& r) {
    for (const std::string& file : r.names) {
      old_->Unlink(file, steps_.Then("removal of " + path + "/" + file, [](FileResult&) {}));
    }
    // Not needed for what a crash may keep, but it tells when the removals are done.
    old_->Sync(steps_.Then("sync of " + path, [this, which, name, path](FileResult&) {
      old_ = nullptr;
      member_.Unlink(name, steps_.Then("removal of " + path, [this, which](FileResult&) { RemoveOld(which + 1); }));
    }));
  }));
}

void Creation::WriteSegment() {
  // Only to have it there; its entry in `member` becomes durable with that of the log.
  old_ = files_.OpenDirectory(kSnapFolder, true, steps_, steps_.Then("creation of member/snap", [this](FileResult&) {
    old_ = nullptr;
    folder_ = files_.OpenDirectory(kNewFolder, true, steps_, steps_.Then("creation of member/wal.tmp", [](FileResult&) {}));
    SegmentName name;
    std::string path = std::string(kNewFolder) + "/" + FormatSegmentName(name);
    log_.tail = folder_->Open(FormatSegmentName(name), OpenMode::kCreateNew, steps_,
                              steps_.Then("creation of " + path, [](FileResult&) {}));
    log_.segments.push_back(name);
    log_.metadata = EncodeMetadata(bootstrap_.metadata);
    log_.hard_state = bootstrap_.hard_state;

    FrameWriter writer(0);
    writer.AddCrc();
    writer.AddMetadata(log_.metadata);
    writer.AddEmptySnapshot();
    for (const raft::Entry& entry : bootstrap_.entries) {
      CHECK(entry.index == log_.index.last_index() + 1);
      log_.index.Add({.index = entry.index, .offset = writer.size(), .crc = writer.crc()});
      writer.AddEntry(entry);
    }
    writer.AddState(bootstrap_.hard_state);
    log_.offset = writer.size();
    log_.crc = writer.crc();
    std::vector<Bytes> pieces = writer.TakePieces();
    log_.tail->Preallocate(options_.segment_bytes, steps_.Then("preallocation of " + path, [](FileResult&) {}));
    log_.tail->WriteAt(0, pieces, steps_.Then("write of " + path, [pieces](FileResult&) {}));
    log_.tail->Sync(steps_.Then("sync of " + path, [this](FileResult&) {
      folder_->Sync(steps_.Then("sync of member/wal.tmp", [this](FileResult&) { Publish(); }));
    }));
  }));
}

// The name, then the entry of `member` in the data folder: without both the log is not there after a crash.
void Creation::Publish() {
  member_.Rename(kNewName, kFinalName, steps_.Then("rename of member/wal.tmp to member/wal", [](FileResult&) {}));
  member_.Sync(steps_.Then("sync of member", [this](FileResult&) {
    data_.Sync(steps_.Then("sync of the data folder", [this](FileResult&) {
      folder_ = nullptr;
      done_(std::move(log_));
    }));
  }));
}

}  // namespace detcd::wal
