// The file system of one endpoint: handles over its SimDisk. The disk and its faults outlive incarnations; handles do
// not. Each handle runs its calls one after another, each after a latency; a call takes effect when it completes.
//
// A process that ends (without power loss) may have had calls under way: of each handle, a drawn number of the waiting
// calls still happens, silently. A failed sync is not repeated by the disk, and the next one reports success.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/delay_law.h"
#include "sim/inbox.h"
#include "sim/sim_disk.h"

namespace detcd::sim {

struct DiskKnobs {
  DelayLaw read = DelayLaw::Uniform(Micros(20), Micros(100));
  DelayLaw write = DelayLaw::Uniform(Micros(5), Micros(50));
  DelayLaw sync = DelayLaw::Uniform(Micros(200), Millis(2));
  DelayLaw folder = DelayLaw::Uniform(Micros(20), Micros(200));  // open, rename, unlink, list, sizes
  uint32_t read_error_permille = 0;
  uint32_t write_error_permille = 0;
  uint32_t sync_error_permille = 0;
  uint32_t misdirect_permille = 0;  // writes that land at another sector of the same file, and report success
  bool sync_lies = false;  // syncs report success and make nothing safe
};

class SimFile;
class SimDirectory;

class SimFiles final : public FileSystem {
 public:
  SimFiles(SimContext& context, Inboxes& inboxes, EndpointId endpoint, const DiskKnobs& knobs);
  SimFiles(const SimFiles&) = delete;

  std::unique_ptr<Directory> OpenDirectory(std::string_view path, bool create, FileListener& listener,
                                           FileToken token) override;

  void OnEvent(const Event& event);
  // Runs an inbox item of a handle; false when the handle is gone.
  bool Deliver(const InboxItem& item);

  // A new incarnation is about to run.
  void StartIncarnation() { failed_a_call_ = false; }
  // The incarnation is over; its handles are dead. Whether any call of them had not been heard to end.
  bool EndIncarnation();
  // Power loss, after EndIncarnation.
  void Crash(Survival survival = Survival::kDrawn);

  // Whether a fault made a call of the last incarnation fail.
  bool failed_a_call() const { return failed_a_call_; }

  SimDisk& disk() { return disk_; }
  DiskKnobs& knobs() { return knobs_; }
  // No call completes before `time` (true nanoseconds).
  void StallUntil(int64_t time) { stalled_until_ = time; }

 private:
  friend class SimFile;
  friend class SimDirectory;

  enum class Call : uint8_t {
    kOpenDirectory, kOpen, kRename, kUnlink, kList, kSyncFolder,  // of a folder
    kWrite, kRead, kPreallocate, kTruncate, kSync,                // of a file
  };
  struct Operation {
    Call call;
    FileToken token = 0;
    uint64_t offset = 0;
    uint64_t size = 0;
    uint64_t child = 0;  // kOpen: the handle to open
    OpenMode mode = OpenMode::kRead;
    bool create = false;
    std::string name;
    std::string to;
    std::vector<Bytes> pieces;
  };
  struct Handle {
    uint32_t generation = 1;
    bool used = false;
    bool opened = false;   // calls may run
    bool running = false;  // an event of the first operation is on its way
    bool writable = false;
    bool holds_lock = false;
    IoError error = IoError::kOk;  // of the opening: every call ends in it
    std::shared_ptr<Inode> inode;
    FileListener* listener = nullptr;  // null: the object is gone, calls still take effect
    SimFile* file = nullptr;
    SimDirectory* directory = nullptr;
    std::deque<Operation> operations;
    std::deque<std::pair<FileToken, FileResult>> done;  // heard by nobody yet
  };

  uint64_t Make(FileListener& listener);
  Handle* Find(uint64_t id);
  void Free(Handle& handle, uint64_t id);
  void Close(uint64_t id);
  void Submit(uint64_t id, Operation operation);
  void Start(Handle& handle, uint64_t id);
  FileResult Execute(Handle& handle, Operation& operation);
  FileResult ExecuteFolder(Handle& handle, Operation& operation);
  FileResult ExecuteFile(Handle& handle, Operation& operation);
  FileResult ExecuteOpenDirectory(Handle& handle, const Operation& operation);
  FileResult ExecuteOpen(Handle& folder, Handle& child, const Operation& operation);
  IoError ExecuteUnlink(Inode& folder, const std::string& name);
  IoError ExecuteRename(Inode& folder, const Operation& operation);
  void Complete(Handle& handle, uint64_t id, FileToken token, FileResult result);
  bool Fails(uint32_t permille, FaultKind kind);

  SimContext& context_;
  Inboxes& inboxes_;
  EndpointId endpoint_;
  DiskKnobs knobs_;
  KeyedRandom random_;
  KeyedRandom crash_random_;
  int64_t stalled_until_ = 0;
  bool failed_a_call_ = false;
  SimDisk disk_;
  std::deque<Handle> handles_;
  std::vector<uint32_t> free_;
};

}  // namespace detcd::sim
