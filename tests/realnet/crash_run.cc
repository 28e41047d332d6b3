#include "tests/realnet/crash_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace detcd::realnet {
namespace {

// Small enough for a cut every few batches; records of the workload are up to three times as long.
constexpr wal::WalOptions kOptions = {.segment_bytes = 2'048, .read_bytes = 1'000};

}  // namespace

void Ledger::Note(Promise promise) {
  DiskTrace::WhileStill([&] {
    promises_.emplace_back(trace_.count(), promise);
    if (on_promise) on_promise();
  });
}

const Promise& Ledger::At(size_t calls) const {
  auto after = std::upper_bound(promises_.begin(), promises_.end(), calls,
                                [](size_t count, const auto& noted) { return count < noted.first; });
  return (after - 1)->second;
}

RealLog::RealLog(const std::string& folder)
    : host_({.data_folder = folder, .log_level = LogLevel::kPanic}), wal_(host_, kOptions, *this) {}

void RealLog::RunUntil(const std::function<bool()>& done) {
  while (failed.empty() && !done()) host_.RunTurn(Millis(100));
}

void RealLog::Open(std::optional<wal::WalBootstrap> bootstrap) {
  wal_.Open(std::move(bootstrap));
  RunUntil([this] { return opened; });
}

void RealLog::Append(wal::WalBatch batch) {
  const uint64_t sequence = wal_.Append(std::move(batch));
  RunUntil([this, sequence] { return appended == sequence; });
}

std::vector<raft::Entry> RealLog::Read(LogIndex first, LogIndex last) {
  wal_.Read(first, last, SIZE_MAX, 1);
  RunUntil([this] { return reads.contains(1); });
  return std::move(reads[1]);
}

void RealLog::OnWalOpened(raft::HardState hard_state, std::vector<raft::Entry> tail) {
  HeardLog::OnWalOpened(hard_state, std::move(tail));
  if (on_acknowledged) on_acknowledged();
}

void RealLog::OnWalAppended(uint64_t sequence) {
  HeardLog::OnWalAppended(sequence);
  if (on_acknowledged) on_acknowledged();
}

void RunWorkload(const std::string& folder, uint64_t seed, int batches, Ledger& ledger,
                 const std::function<void()>& between) {
  wal::Workload work(seed);
  ledger.states = work.states;
  ledger.Note({});
  auto log = std::make_unique<RealLog>(folder);
  log->on_acknowledged = [&] { ledger.Note({.exists = true, .first = 0, .limit = 1}); };
  log->Open(wal::Bootstrap());
  if (between) between();
  size_t durable = 0;
  int unsynced = 0;
  for (int i = 0; i < batches && log->failed.empty() && !::testing::Test::HasFatalFailure(); ++i) {
    wal::WalBatch batch = work.Next();
    ledger.states = work.states;
    const size_t limit = work.states.size();
    ledger.Note({.exists = true, .first = durable, .limit = limit});
    const bool restarts = !batch.sync && ++unsynced % 2 == 0;
    if (batch.sync) durable = limit - 1;
    const auto note = [&] { ledger.Note({.exists = true, .first = durable, .limit = limit}); };
    log->on_acknowledged = note;
    log->Append(std::move(batch));
    if (between) between();
    if (!restarts || !log->failed.empty()) continue;
    log = nullptr;
    log = std::make_unique<RealLog>(folder);
    log->on_acknowledged = [&] {
      durable = limit - 1;
      note();
    };
    log->Open(std::nullopt);
    ASSERT_EQ(log->failed, "");
    ASSERT_EQ(log->log, work.states.back()) << "the process ended, power was not lost";
    if (between) between();
  }
  ASSERT_EQ(log->failed, "");
}

void RunRecovery(const std::string& folder, const std::vector<wal::LogModel>& states, const Promise& promise,
                 Ledger& ledger, const std::string& where) {
  const auto at = [](size_t i) { return static_cast<ptrdiff_t>(i); };
  ledger.states.assign(states.begin() + at(promise.first), states.begin() + at(promise.limit));
  const size_t allowed = ledger.states.size();
  ledger.Note({.exists = promise.exists, .first = 0, .limit = allowed});

  auto log = std::make_unique<RealLog>(folder);
  // What was handed over is a promise of its own, exactly that.
  log->on_acknowledged = [&] {
    ledger.states.push_back(log->log);
    ledger.Note({.exists = true, .first = allowed, .limit = allowed + 1});
  };
  log->Open(promise.exists ? std::nullopt : std::optional(wal::Bootstrap()));
  ASSERT_TRUE(log->opened) << where << ": " << log->failed;
  ASSERT_EQ(log->metadata.value_or(wal::Bootstrap().metadata), wal::Bootstrap().metadata) << where;
  const auto limit = ledger.states.begin() + at(allowed);
  const wal::LogModel& oldest = ledger.states.front();
  ASSERT_NE(std::find(ledger.states.begin(), limit, log->log), limit)
      << where << ": found " << log->log.entries.size() << " entries, commit index " << log->log.hard_state.commit.value
      << "; acknowledged were " << oldest.entries.size() << ", " << oldest.hard_state.commit.value;

  wal::LogModel next = log->log;
  const raft::Entry entry = wal::MakeEntry(1'000'000, next.entries.size() + 1, "after");
  next.Add(entry);
  ledger.states.push_back(next);
  ledger.Note({.exists = true, .first = allowed, .limit = allowed + 2});
  log->on_acknowledged = [&] { ledger.Note({.exists = true, .first = allowed + 1, .limit = allowed + 2}); };
  log->Append({.entries = {entry}, .hard_state = {}, .sync = true});
  ASSERT_EQ(log->failed, "") << where;
  ASSERT_EQ(log->Read(LogIndex(1), entry.index), next.entries) << where;

  // Nothing that the repair left lies in the way of what was appended after it.
  log = nullptr;
  log = std::make_unique<RealLog>(folder);
  log->Open(std::nullopt);
  ASSERT_EQ(log->failed, "") << where;
  ASSERT_EQ(log->log, next) << where;
}

uint64_t NumberFromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace detcd::realnet
