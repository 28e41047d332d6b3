// Reading entries back from the segments, beside appends: every read has a handle of its own, so that no append waits.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/io/files.h"
#include "core/raft/message.h"
#include "core/wal/file_steps.h"
#include "core/wal/log_state.h"

namespace detcd::wal {

class LogReader {
 public:
  using Done = std::function<void(uint64_t token, std::vector<raft::Entry> entries)>;

  // Everything outlives this object; `directory` is the folder of the segments.
  LogReader(Directory& directory, FileSteps& steps, const LogState& log, Done done)
      : directory_(directory), steps_(steps), log_(log), done_(std::move(done)) {}

  // Reads [first, last], which is not empty and in the log, until the entries take `bytes_max`. `done` hears `token`.
  void Read(LogIndex first, LogIndex last, size_t bytes_max, uint64_t token);

  // Entry `index` is replaced: reads under way end before it, so that no answer mixes two histories.
  void Replaced(LogIndex index);

 private:
  struct Job {
    LogIndex next;        // wanted next
    LogIndex limit;       // read below this
    size_t bytes_left = 0;
    uint64_t token = 0;
    std::vector<raft::Entry> entries;
    LogIndex scanned;     // the entry that the frames lead to next; at most `next`
    EntryPosition at;     // of the next frame; `index` unused
    LogIndex jump;        // from here on another position is the place to read; 0: none
    std::unique_ptr<File> file;
    Bytes buffer;         // of the file, from at.offset on
  };

  void Seek(uint64_t id, LogIndex index);
  void ReadMore(uint64_t id, uint64_t size);
  void Scan(uint64_t id);
  void Finish(uint64_t id);

  Directory& directory_;
  FileSteps& steps_;
  const LogState& log_;
  Done done_;
  std::map<uint64_t, Job> jobs_;
  uint64_t last_id_ = 0;
};

}  // namespace detcd::wal
