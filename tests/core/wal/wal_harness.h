// One incarnation of a log over a MemoryDisk, what it told its listener, and a model of what a log must hold.
#pragma once

#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/wal/wal.h"
#include "tests/support/memory_files.h"

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

// The host of a log: files, posts and a silent trace.
class WalHost final : public Host, public Events, public Trace {
 public:
  explicit WalHost(testing::MemoryDisk& disk) : memory(disk) {}

  Events& events() override { return *this; }
  Clock& clock() override { std::abort(); }
  Network& network() override { std::abort(); }
  FileSystem& files() override { return memory; }
  Offloader& offloader() override { std::abort(); }
  Trace& trace() override { return *this; }
  KeyedRandom Random(std::string_view) override { std::abort(); }
  void FillSecure(std::span<uint8_t>) override { std::abort(); }
  void Stop(bool, std::string) override { std::abort(); }
  void Post(PostListener& listener, uint64_t token) override { posts_.emplace_back(&listener, token); }
  void SetTurnListener(TurnListener&) override {}
  bool Wants(LogLevel) const override { return false; }
  void Emit(const TraceEvent&) override {}

  bool Step() {
    if (posts_.empty()) return memory.Step();
    auto [listener, token] = posts_.front();
    posts_.pop_front();
    listener->OnPost(token);
    return true;
  }

  testing::MemoryFiles memory;

 private:
  std::deque<std::pair<PostListener*, uint64_t>> posts_;
};

// A running log and all it said.
class WalRun final : public WalListener {
 public:
  explicit WalRun(testing::MemoryDisk& disk, WalOptions options = {.segment_bytes = 1024, .read_bytes = 512})
      : host(disk), wal(host, options, *this) {}

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

  void Pump() {
    while (host.Step()) {}
  }
  void Open(std::optional<WalBootstrap> bootstrap = std::nullopt) {
    wal.Open(std::move(bootstrap));
    Pump();
  }
  void Append(std::vector<raft::Entry> entries, std::optional<raft::HardState> state = std::nullopt, bool sync = true) {
    wal.Append({.entries = std::move(entries), .hard_state = state, .sync = sync});
    Pump();
  }

  WalHost host;
  std::optional<WalMetadata> metadata;
  LogModel log;  // as recovered
  size_t committed = 0;
  size_t committed_calls = 0;
  bool opened = false;
  uint64_t appended = 0;
  std::map<uint64_t, std::vector<raft::Entry>> reads;
  std::string failed;
  Wal wal;
};

inline WalBootstrap Bootstrap() {
  return {.metadata = {.member = MemberId(0xca7a34e16cff9c1b), .cluster = ClusterId(0xcce94708faa3944e)},
          .entries = {MakeEntry(1, 1, "member", raft::EntryType::kConfChange)},
          .hard_state = MakeState(1, 0, 1)};
}

}  // namespace detcd::wal
