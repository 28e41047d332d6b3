// Files below the data folder, on two threads: one for folders of the log, one for all others, so that a large sync of
// the page file never holds up the log. The calls on one handle run in order because its thread does them in order.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/files.h"
#include "realnet/loop.h"
#include "realnet/worker.h"

namespace detcd::realnet {

// A folder whose files are on the log's thread.
struct LogFolder {
  std::string path;       // as given to OpenDirectory: "member/wal"
  std::string elsewhere;  // where it really is, when not below the data folder (--wal-dir); otherwise empty
};

struct FileNode;

class RealFileSystem final : public FileSystem {
 public:
  // `root` is the data folder's path; it is made when a folder is opened with `create`.
  RealFileSystem(Loop& loop, std::string root, std::vector<LogFolder> log_folders);
  ~RealFileSystem();

  std::unique_ptr<Directory> OpenDirectory(std::string_view path, bool create, FileListener& listener,
                                           FileToken token) override;

  // Drops calls not begun, waits for those that run, and closes all descriptors, whose locks end thereby. Handles may
  // be destroyed later, but before the file system.
  void End();

  // --- for the handles
  Loop& loop() { return loop_; }
  std::shared_ptr<FileNode> NewNode(Worker& worker, FileListener& listener);
  // The node's handle is gone: closes the descriptor behind the calls already made; no event follows.
  void Release(const std::shared_ptr<FileNode>& node);
  // Its descriptor is closed.
  void Remove(const std::shared_ptr<FileNode>& node) { nodes_.erase(node); }

 private:
  Loop& loop_;
  const std::string root_;
  const std::vector<LogFolder> log_folders_;
  Worker log_worker_;
  Worker bulk_worker_;
  std::set<std::shared_ptr<FileNode>> nodes_;  // all that may have a descriptor
};

}  // namespace detcd::realnet
