// A file system in memory under the control of a test: calls run when the test pumps, any operation can be made to fail,
// and a crash keeps of the unsynced sectors, sizes and folder entries what the test chooses (core/io/files.h says what
// may be chosen).
//
//   MemoryDisk disk;                       // outlives incarnations
//   MemoryFiles files(disk);               // one incarnation
//   ... files.Pump(); ...
//   disk.Crash(chooser);                   // pending calls may have had any part of their effect
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/files.h"

namespace detcd::testing {

// Picks one of `count` outcomes, below `count`; the last one is "everything happened", 0 "nothing".
using Chooser = std::function<size_t(size_t count)>;

// The bytes of one file: what is durable, what a reader sees, and in between what each sector held since the last sync.
class MemoryInode {
 public:
  std::string content;

  void Write(uint64_t offset, std::string_view bytes);
  void Resize(uint64_t size);
  void Sync();
  void Crash(const Chooser& choose);
  bool Clean() const { return sectors_.empty() && sizes_.size() == 1; }

 private:
  std::string SectorOf(const std::string& bytes, uint64_t sector) const;
  void Note(uint64_t first, uint64_t limit);

  std::string durable_;
  std::map<uint64_t, std::vector<std::string>> sectors_;  // versions since the sync, padded; the durable one first
  std::vector<uint64_t> sizes_{0};                        // the durable one first
};

struct MemoryFolder;
struct MemoryEntry {
  std::shared_ptr<MemoryInode> file;      // one of the two
  std::shared_ptr<MemoryFolder> folder;
};
struct MemoryFolder {
  std::map<std::string, MemoryEntry, std::less<>> entries;  // as seen
  std::map<std::string, MemoryEntry, std::less<>> durable;
  struct Change {  // make (`to` set), remove (`from` set), rename (both)
    std::string from;
    std::string to;
    MemoryEntry made;
  };
  std::vector<Change> changes;  // since the last sync

  void Apply(const Change& change);
  static void ApplyTo(std::map<std::string, MemoryEntry, std::less<>>& map, const Change& change);
  void Sync();
  void Crash(const Chooser& choose);
};

class MemoryDisk {
 public:
  MemoryDisk() : root_(std::make_shared<MemoryFolder>()) {}

  MemoryFolder& root() { return *root_; }
  // The folder or file at `path`, as seen now; null: absent.
  std::shared_ptr<MemoryFolder> Folder(std::string_view path);
  std::shared_ptr<MemoryInode> File(std::string_view path);
  // Puts a durable file in place, with durable folders above it.
  void Put(std::string_view path, std::string content);
  // Everything as it was at the last syncs, plus what `choose` keeps.
  void Crash(const Chooser& choose) { root_->Crash(choose); }
  // Every file as `path=content`, for comparing.
  std::map<std::string, std::string> Files();

 private:
  std::shared_ptr<MemoryFolder> root_;
};

class MemoryFiles final : public FileSystem {
 public:
  explicit MemoryFiles(MemoryDisk& disk) : disk_(disk) {}
  ~MemoryFiles() override;

  std::unique_ptr<Directory> OpenDirectory(std::string_view path, bool create, FileListener& listener,
                                           FileToken token) override;

  // Runs the oldest pending call and delivers its event. False: nothing is pending.
  bool Step();
  void Pump() {
    while (Step()) {}
  }
  size_t pending() const { return calls_.size(); }
  // Calls run so far, failed ones included.
  uint64_t calls_run() const { return calls_run_; }

  // The call with this number (from 1) fails, or all from there on. Reads, writes, everything counts.
  void FailCall(uint64_t number, IoError error, bool from_there_on) {
    fail_call_ = number, fail_error_ = error, fail_on_ = from_there_on;
  }
  // Applies what is pending without completing it (a crash in the middle of these calls): unsynced effects only.
  void StartPending();
  // Called before each call runs, with `OPERATION name`.
  std::function<void(std::string_view)> on_call;

 private:
  friend class MemoryFile;
  friend class MemoryDirectory;
  struct Handle {  // of a file or folder, shared with its pending calls
    bool live = true;
    std::string name;
    IoError open_error = IoError::kOk;
    bool locks = false;
    std::shared_ptr<MemoryInode> file;
    std::shared_ptr<MemoryFolder> folder;
    FileListener* listener = nullptr;
  };
  struct Call {
    std::shared_ptr<Handle> handle;
    std::string operation;
    FileToken token = 0;
    bool is_sync = false;
    std::function<FileResult()> run;
  };
  void Add(std::shared_ptr<Handle> handle, std::string operation, FileToken token, std::function<FileResult()> run,
           bool is_sync = false);
  void Close(Handle& handle);

  MemoryDisk& disk_;
  std::deque<Call> calls_;
  std::map<const MemoryInode*, int> locks_;
  uint64_t calls_run_ = 0;
  uint64_t fail_call_ = 0;
  IoError fail_error_ = IoError::kOk;
  bool fail_on_ = false;
};

}  // namespace detcd::testing
