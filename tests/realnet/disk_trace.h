// What the real implementation does to files and folders, recorded call by call below it: the program is linked so that
// the system calls of realnet/file_calls.cc pass through here (ld --wrap). A layer at the seam would believe a
// File::Sync that never reaches the kernel; this one does not.
//
//   DiskTrace trace(folder);     // all that lies in `folder` now is its durable beginning
//   ... run a log in it ...      // from any thread
//   trace.End();
//   ApplyCalls(trace.beginning(), trace.calls(), n, disk);   // the disk after the first n calls, nothing lost yet
//   disk.Crash(choose);
//
// The calls are in one order, that of their ends; no two recorded calls overlap.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/memory_files.h"

namespace detcd::realnet {

using NodeId = uint64_t;  // of a file or folder within a trace; 0 is the traced folder itself

// One call that succeeded.
struct DiskCall {
  enum class Kind : uint8_t { kMakeFolder, kMakeFile, kRename, kRemove, kWrite, kResize, kSync };
  Kind kind;
  NodeId node = 0;      // what was written, resized, synced; the folder of an entry that changed
  NodeId made = 0;      // kMake...
  std::string name;     // of the entry made, renamed, removed
  std::string to;       // kRename
  uint64_t offset = 0;  // kWrite
  uint64_t size = 0;    // kResize
  std::string bytes;    // kWrite
};
std::string Describe(const DiskCall& call);

// Files and folders as they are, durable: path (of a folder: ending in a slash) to content.
using DiskTree = std::map<std::string, std::string>;
DiskTree ReadTree(const std::string& folder);
// `folder` is there and empty.
void WriteTree(const DiskTree& tree, const std::string& folder);
DiskTree TreeOf(testing::MemoryDisk& disk);

class DiskTrace {
 public:
  // Hears of each call after it, before any other call on the folder begins; `descriptor` is what it was made on.
  using Hook = std::function<void(const DiskCall& call, int descriptor)>;

  explicit DiskTrace(const std::string& folder, Hook hook = nullptr);
  ~DiskTrace() { End(); }
  DiskTrace(const DiskTrace&) = delete;
  DiskTrace& operator=(const DiskTrace&) = delete;

  // Calls made up to now.
  size_t count() const;
  // Runs `work` while no call on a traced folder is under way.
  static void WhileStill(const std::function<void()>& work);
  // Records no more.
  void End();

  // After End.
  const DiskTree& beginning() const { return beginning_; }
  const std::vector<DiskCall>& calls() const { return calls_; }

  // --- for the wrapped calls, which hold the lock; calls outside the folder are ignored
  void OnMade(DiskCall::Kind kind, int folder, std::string_view name);
  void OnCall(DiskCall call, int descriptor);

 private:
  using Inode = std::pair<dev_t, ino_t>;

  const NodeId* Find(int descriptor) const;

  Hook hook_;
  DiskTree beginning_;
  std::map<Inode, NodeId> nodes_;
  NodeId last_node_ = 0;
  std::vector<DiskCall> calls_;
};

// Puts `beginning` on the empty `disk`, durable, and does the first `count` of `calls`.
void ApplyCalls(const DiskTree& beginning, const std::vector<DiskCall>& calls, size_t count, testing::MemoryDisk& disk);

}  // namespace detcd::realnet
