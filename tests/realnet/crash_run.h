// A log on the real files of a folder, and at each moment what a power loss then would have to leave of it.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "realnet/real_host.h"
#include "tests/core/wal/wal_model.h"
#include "tests/realnet/disk_trace.h"

namespace detcd::realnet {

// What may be found after a crash.
struct Promise {
  bool exists = false;  // the log was reported open: it must be there
  size_t first = 0;     // of the states of a ledger, one in [first, limit) is found: what was acknowledged is not lost,
  size_t limit = 1;     // and what was never asked for is not there
  friend bool operator==(const Promise&, const Promise&) = default;
};

// What a log promised, in the course of a trace.
class Ledger {
 public:
  explicit Ledger(const DiskTrace& trace) : trace_(trace) {}

  std::vector<wal::LogModel> states;
  std::function<void()> on_promise;  // hears of each Note; no call on a traced folder is under way

  // From now on.
  void Note(Promise promise);
  // In a hook of the trace, or when no log runs: the latest.
  const Promise& latest() const { return promises_.back().second; }
  // After the first `calls` calls of the trace.
  const Promise& At(size_t calls) const;

 private:
  const DiskTrace& trace_;
  std::vector<std::pair<size_t, Promise>> promises_;  // by the count of calls
};

class RealLog final : public wal::HeardLog {
 public:
  explicit RealLog(const std::string& folder);
  ~RealLog() { host_.End(); }

  // Each runs until the answer is there or the log failed.
  void Open(std::optional<wal::WalBootstrap> bootstrap);
  void Append(wal::WalBatch batch);
  std::vector<raft::Entry> Read(LogIndex first, LogIndex last);

  void OnWalOpened(raft::HardState hard_state, std::vector<raft::Entry> tail) override;
  void OnWalAppended(uint64_t sequence) override;

  std::function<void()> on_acknowledged;  // inside the event, before the log makes any further call

 private:
  void RunUntil(const std::function<bool()>& done);

  RealHost host_;
  wal::Wal wal_;
};

// Makes a fresh log in `folder` and appends `batches` batches of the workload of `seed`. Now and then, after a batch
// that was not synced, the process ends and begins again: what it then finds in the page cache it hands over, which
// makes it a promise. `between` is called after each step.
void RunWorkload(const std::string& folder, uint64_t seed, int batches, Ledger& ledger,
                 const std::function<void()>& between = nullptr);

// Opens what a crash left in `folder`, checks it against `promise` and its `states`, appends an entry, reads all back
// and opens it once more.
// `ledger` is empty and gets what this log promises in its turn. Failures are gtest's, told with `where`.
void RunRecovery(const std::string& folder, const std::vector<wal::LogModel>& states, const Promise& promise,
                 Ledger& ledger, const std::string& where);

// A whole number from the environment, for longer runs; `otherwise` when it is not there.
uint64_t NumberFromEnvironment(const char* name, uint64_t otherwise);

}  // namespace detcd::realnet
