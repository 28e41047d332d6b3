// A fresh log: made whole under another name (member/wal.tmp), synced, then renamed, so that a crash at any point leaves
// no log or all of it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/io/files.h"
#include "core/wal/file_steps.h"
#include "core/wal/log_state.h"
#include "core/wal/wal.h"

namespace detcd::wal {

class Creation {
 public:
  // `data` is the data folder, `member` the folder `member` in it, whose entries are `member_names`. Neither holds a
  // log. `done` gets the log, made of `bootstrap` and durable; errors go to `steps`. Everything outlives this object.
  Creation(FileSystem& files, Directory& data, Directory& member, std::vector<std::string> member_names,
           FileSteps& steps, const WalOptions& options, WalBootstrap bootstrap, std::function<void(LogState)> done);

  void Start() { RemoveOld(0); }

 private:
  void RemoveOld(size_t which);
  void Empty(size_t which);
  void WriteSegment();
  void Publish();

  FileSystem& files_;
  Directory& data_;
  Directory& member_;
  std::vector<std::string> member_names_;
  FileSteps& steps_;
  WalOptions options_;
  WalBootstrap bootstrap_;
  std::function<void(LogState)> done_;

  std::unique_ptr<Directory> old_;     // a folder being removed
  std::unique_ptr<Directory> folder_;  // member/wal.tmp
  LogState log_;
};

}  // namespace detcd::wal
