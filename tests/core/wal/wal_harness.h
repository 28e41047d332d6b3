// One incarnation of a log over a MemoryDisk, and what it told its listener.
#pragma once

#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/wal/wal.h"
#include "tests/core/wal/wal_model.h"
#include "tests/support/memory_files.h"

namespace detcd::wal {

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
class WalRun final : public HeardLog {
 public:
  explicit WalRun(testing::MemoryDisk& disk, WalOptions options = {.segment_bytes = 1024, .read_bytes = 512})
      : host(disk), wal(host, options, *this) {}

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
  Wal wal;
};

}  // namespace detcd::wal
