// What the tests of the log share whatever disk is below it: a model of what a log holds, batches that pass through
// known states, and what a log told.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/wal/wal.h"

namespace detcd::wal {

inline raft::Entry MakeEntry(uint64_t term, uint64_t index, std::string_view data,
                             raft::EntryType type = raft::EntryType::kNormal) {
  raft::Entry entry;
  entry.term = Term(term), entry.index = LogIndex(index), entry.type = type, entry.data = Bytes::Copy(data);
  return entry;
}
inline raft::HardState MakeState(uint64_t term, uint64_t vote, uint64_t commit) {
  raft::HardState state;
  state.term = Term(term), state.vote = MemberId(vote), state.commit = LogIndex(commit);
  return state;
}

// What a log holds: all entries and the last hard state.
struct LogModel {
  std::vector<raft::Entry> entries;
  raft::HardState hard_state;

  void Add(const raft::Entry& entry) {
    entries.resize(entry.index.value - 1);
    entries.push_back(entry);
  }
  friend bool operator==(const LogModel&, const LogModel&) = default;
};

inline WalBootstrap Bootstrap() {
  return {.metadata = {.member = MemberId(0xca7a34e16cff9c1b), .cluster = ClusterId(0xcce94708faa3944e)},
          .entries = {MakeEntry(1, 1, "member", raft::EntryType::kConfChange)},
          .hard_state = MakeState(1, 0, 1)};
}

// Batches that depend on the seed alone, and every state that the log passes through, record by record.
class Workload {
 public:
  explicit Workload(uint64_t seed) : rng_(seed) {
    states.push_back({Bootstrap().entries, Bootstrap().hard_state});
  }

  std::vector<LogModel> states;
  size_t durable = 0;  // of `states`: at least this one survives

  WalBatch Next() {
    WalBatch batch;
    LogModel now = states.back();
    uint64_t commit = now.hard_state.commit.value;
    if (rng_() % 4 != 0) {
      uint64_t index = now.entries.size() + 1;
      if (rng_() % 5 == 0) index = commit + 1 + rng_() % (now.entries.size() - commit + 1);
      for (uint64_t n = rng_() % 3 + 1; n > 0; --n, ++index) {
        std::string data(rng_() % (rng_() % 6 == 0 ? 1500 : 60), rng_() % 5 == 0 ? '\0' : 'x');
        raft::Entry entry = MakeEntry(now.hard_state.term.value + 1, index, data);
        batch.entries.push_back(entry);
        now.Add(entry);
        states.push_back(now);
      }
      batch.sync = true;
    }
    if (batch.entries.empty() || rng_() % 3 != 0) {
      uint64_t last = now.entries.size();
      now.hard_state.commit = LogIndex(commit + rng_() % (last - commit + 1));
      if (batch.sync) now.hard_state.term = now.hard_state.term + 1;
      batch.hard_state = now.hard_state;
      states.push_back(now);
    }
    return batch;
  }

 private:
  std::mt19937_64 rng_;
};

// All that a log told.
class HeardLog : public WalListener {
 public:
  void OnWalMetadata(const WalMetadata& m) override { metadata = m; }
  void OnWalCommitted(std::vector<raft::Entry> entries) override {
    ++committed_calls;
    for (raft::Entry& entry : entries) log.entries.push_back(std::move(entry));
    committed = log.entries.size();
  }
  void OnWalOpened(raft::HardState hard_state, std::vector<raft::Entry> tail) override {
    opened = true;
    log.hard_state = hard_state;
    for (raft::Entry& entry : tail) log.entries.push_back(std::move(entry));
  }
  void OnWalAppended(uint64_t sequence) override { appended = sequence; }
  void OnWalRead(uint64_t token, std::vector<raft::Entry> entries) override { reads[token] = std::move(entries); }
  void OnWalFailed(std::string reason) override { failed = std::move(reason); }

  std::optional<WalMetadata> metadata;
  LogModel log;  // as recovered
  size_t committed = 0;
  size_t committed_calls = 0;
  bool opened = false;
  uint64_t appended = 0;
  std::map<uint64_t, std::vector<raft::Entry>> reads;
  std::string failed;

 protected:
  ~HeardLog() = default;
};

}  // namespace detcd::wal
