// Crashes, failures and damage at every place: what was acknowledged is there afterwards, what is there was written, and
// nothing durable is taken for a torn tail.
#include <random>
#include <set>

#include "core/wal/segment.h"
#include "tests/core/wal/wal_harness.h"

namespace detcd::wal {
namespace {

using ::detcd::testing::Chooser;
using ::detcd::testing::MemoryDisk;
using Rng = std::mt19937_64;

Chooser RandomChooser(Rng& rng) {
  return [&rng](size_t count) { return static_cast<size_t>(rng() % count); };
}

// Goes through all sequences of choices, one Run after the other.
class AllChoices {
 public:
  Chooser chooser() {
    at_ = 0;
    return [this](size_t count) -> size_t {
      if (at_ == choices_.size()) choices_.push_back({0, count});
      EXPECT_EQ(choices_[at_].second, count);
      return choices_[at_++].first;
    };
  }
  bool Next() {
    while (!choices_.empty()) {
      if (++choices_.back().first < choices_.back().second) return true;
      choices_.pop_back();
    }
    return false;
  }

 private:
  std::vector<std::pair<size_t, size_t>> choices_;
  size_t at_ = 0;
};

// Runs `batches` batches until the call number `crash_at` (0: never) has run or the log failed.
void RunUntil(WalRun& run, Workload& work, int batches, uint64_t crash_at) {
  auto stopped = [&] { return !run.failed.empty() || (crash_at != 0 && run.host.memory.calls_run() >= crash_at); };
  auto pump = [&] {
    while (!stopped() && run.host.Step()) {}
    return !stopped();
  };
  run.wal.Open(Bootstrap());
  if (!pump()) return;
  for (int i = 0; i < batches; ++i) {
    WalBatch batch = work.Next();
    size_t state = work.states.size() - 1;
    bool sync = batch.sync;
    uint64_t sequence = run.wal.Append(std::move(batch));
    bool goes_on = pump();
    if (run.appended == sequence && sync) work.durable = state;
    if (!goes_on) return;
  }
}

void Crash(std::unique_ptr<WalRun>& run, MemoryDisk& disk, const Chooser& choose) {
  run->host.memory.StartPending();
  run = nullptr;
  disk.Crash(choose);
}

// The log opens and holds one of the states that may have survived; again the same when opened again; and it goes on.
void ExpectRecovers(MemoryDisk& disk, const Workload& work, const std::string& where) {
  LogModel first;
  {
    WalRun run(disk);
    run.Open(Bootstrap());
    ASSERT_TRUE(run.opened) << where << ": " << run.failed;
    first = run.log;
    bool known = false;
    for (size_t i = work.durable; i < work.states.size(); ++i) known = known || work.states[i] == first;
    ASSERT_TRUE(known) << where << ": " << first.entries.size() << " entries, commit " << first.hard_state.commit.value
                       << "; want at least " << work.states[work.durable].entries.size() << " entries";
  }
  // What was handed over is durable: losing all that is not changes nothing.
  disk.Crash([](size_t) -> size_t { return 0; });
  {
    WalRun run(disk);
    run.Open();
    ASSERT_TRUE(run.opened) << where << ": " << run.failed;
    ASSERT_EQ(run.log, first) << where;
    raft::Entry entry = MakeEntry(99, first.entries.size() + 1, "after");
    run.Append({entry});
    ASSERT_EQ(run.appended, 1u) << where;
    first.Add(entry);
    run.wal.Read(LogIndex(1), LogIndex(first.entries.size()), SIZE_MAX, 1);
    run.Pump();
    ASSERT_EQ(run.reads[1], first.entries) << where;
  }
  disk.Crash([](size_t) -> size_t { return 0; });
  WalRun run(disk);
  run.Open();
  ASSERT_TRUE(run.opened) << where << ": " << run.failed;
  ASSERT_EQ(run.log, first) << where;
}

enum class Fault { kOnce, kFromThereOn, kCrash };
constexpr Fault kFaults[] = {Fault::kOnce, Fault::kFromThereOn, Fault::kCrash};

// One run with `fault` at call `n`. False: the run ended before.
bool RunWithFault(MemoryDisk& disk, Workload& work, Fault fault, uint64_t n, int batches, Rng& rng) {
  auto run = std::make_unique<WalRun>(disk);
  IoError error = rng() % 2 == 0 ? IoError::kDevice : IoError::kNoSpace;
  if (fault != Fault::kCrash) run->host.memory.FailCall(n, error, fault == Fault::kFromThereOn);
  RunUntil(*run, work, batches, fault == Fault::kCrash ? n : 0);
  bool reached = run->host.memory.calls_run() >= n;
  if (rng() % 4 == 0) {
    run = nullptr;  // only the process dies
  } else {
    Crash(run, disk, RandomChooser(rng));
  }
  return reached;
}

TEST(WalFaultTest, NothingAcknowledgedIsLostWhereverItFails) {
  Rng rng(1);
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    for (Fault fault : kFaults) {
      for (uint64_t n = 1;; ++n) {
        MemoryDisk disk;
        Workload work(seed);
        bool reached = RunWithFault(disk, work, fault, n, 25, rng);
        ExpectRecovers(disk, work, "seed " + std::to_string(seed) + " call " + std::to_string(n));
        if (HasFatalFailure()) return;
        if (!reached) break;
      }
    }
  }
}

TEST(WalFaultTest, RecoveryMayFailAnywhereToo) {
  Rng rng(2);
  for (uint64_t n = 1;; n += 3) {
    bool reached = false;
    for (uint64_t m = 1;; ++m) {
      MemoryDisk disk;
      Workload work(n);
      reached = RunWithFault(disk, work, Fault::kCrash, n, 15, rng);
      Workload none = work;
      bool again = RunWithFault(disk, none, kFaults[m % 3], m, 0, rng);
      ExpectRecovers(disk, work, "call " + std::to_string(n) + ", recovery call " + std::to_string(m));
      if (HasFatalFailure()) return;
      if (!again) break;
    }
    if (!reached) break;
  }
}

// Every subset of the sectors of small batches, old or new, at every offset within a sector.
TEST(WalTornTest, EverySubsetOfSectorsIsRepaired) {
  for (size_t shift = 0; shift < 512; shift += 24) {
    for (size_t size : {size_t{0}, size_t{40}, size_t{480}, size_t{1100}}) {
      for (char fill : {'x', '\0'}) {
        AllChoices choices;
        do {
          MemoryDisk disk;
          Workload work(1);
          auto run = std::make_unique<WalRun>(disk, WalOptions{.segment_bytes = 4096, .read_bytes = 512});
          run->Open(Bootstrap());
          LogModel now = work.states.back();
          auto add = [&](raft::Entry entry) {
            now.Add(entry);
            work.states.push_back(now);
            return entry;
          };
          run->Append({add(MakeEntry(1, 2, std::string(shift, 'b')))});
          work.durable = work.states.size() - 1;
          // A commit that is not synced, then a batch that is not acknowledged.
          now.hard_state.commit = LogIndex(2);
          work.states.push_back(now);
          run->Append({}, now.hard_state, false);
          std::vector<raft::Entry> entries = {add(MakeEntry(2, 3, std::string(size, fill))), add(MakeEntry(2, 4, "y")),
                                              add(MakeEntry(2, 5, std::string(size / 2, fill)))};
          now.hard_state.term = Term(2);
          work.states.push_back(now);
          run->wal.Append({.entries = entries, .hard_state = now.hard_state, .sync = true});
          Crash(run, disk, choices.chooser());
          ExpectRecovers(disk, work, "shift " + std::to_string(shift) + " size " + std::to_string(size));
          if (HasFatalFailure()) return;
        } while (choices.Next());
      }
    }
  }
}

// Data that looks like frames of a log, torn: it must not be taken for later batches.
TEST(WalTornTest, RandomSubsetsOfLargeBatches) {
  Rng rng(3);
  for (int round = 0; round < 300; ++round) {
    MemoryDisk disk;
    Workload work(rng());
    auto run = std::make_unique<WalRun>(disk, WalOptions{.segment_bytes = 1024u << (rng() % 6), .read_bytes = 700});
    RunUntil(*run, work, 5 + static_cast<int>(rng() % 10), 0);
    std::string inner;
    for (auto& [name, content] : disk.Files()) inner += content;
    LogModel now = work.states.back();
    WalBatch batch{.entries = {}, .hard_state = {}, .sync = true};
    for (int i = 0; i < 4; ++i) {
      batch.entries.push_back(MakeEntry(now.hard_state.term.value + 1, now.entries.size() + 1, inner.substr(0, rng() % 6000)));
      now.Add(batch.entries.back());
      work.states.push_back(now);
    }
    run->wal.Append(batch);
    Crash(run, disk, RandomChooser(rng));
    ExpectRecovers(disk, work, "round " + std::to_string(round));
    if (HasFatalFailure()) return;
  }
}

// zoo-D9 as a whole: the sector of the length reached the disk, nothing behind it, and the file kept its old size.
TEST(WalTornTest, LengthWithoutBodyIsRepairedInAFileThatEnds) {
  MemoryDisk disk;
  Workload work(1);
  auto run = std::make_unique<WalRun>(disk);
  run->Open(Bootstrap());
  run->wal.Append({.entries = {MakeEntry(1, 2, std::string(100'000, 'x'))}, .hard_state = {}, .sync = true});
  int sizes = 0;
  Crash(run, disk, [&](size_t count) -> size_t { return sizes++ == 1 ? 1 : std::min<size_t>(count - 1, 0); });
  ExpectRecovers(disk, work, "length only");
}

// Any byte of a log that was synced: refused, or without effect. The exception is a length field at the very end of its
// sector that became zero, which is what a lost sector leaves.
TEST(WalDamageTest, AnyChangedByteIsRefusedOrHarmless) {
  MemoryDisk good;
  LogModel model{Bootstrap().entries, Bootstrap().hard_state};
  {
    WalRun run(good);
    run.Open(Bootstrap());
    for (uint64_t i = 2; i < 30; ++i) {
      raft::Entry entry = MakeEntry(2, i, std::string(i * 13 % 150 + 1, 'v'));
      model.Add(entry);
      model.hard_state = MakeState(2, 1, i - 1);
      run.Append({entry}, model.hard_state);
    }
    ASSERT_EQ(run.failed, "");
  }
  std::map<std::string, std::string> files = good.Files();
  size_t refused = 0, cut = 0;
  for (auto& [name, content] : files) {
    if (!name.ends_with(".wal")) continue;
    for (size_t at = 0; at < content.size(); ++at) {
      for (int change : {0x01, 0x80, 0xff, 0x100}) {
        std::string damaged = content;
        damaged[at] = static_cast<char>(change == 0x100 ? 0 : damaged[at] ^ change);
        if (damaged == content) continue;
        MemoryDisk disk;
        for (auto& [other, bytes] : files) disk.Put(other, other == name ? damaged : bytes);
        WalRun run(disk);
        run.Open();
        if (!run.opened) {
          // The file itself, or the next one when the chain breaks only there.
          ASSERT_THAT(run.failed, ::testing::StartsWith("member/wal/")) << at;
          ++refused;
        } else if (run.log != model) {
          bool lost_sector = at % 512 == 504 && damaged[at] == 0;
          ASSERT_TRUE(lost_sector) << name << " at " << at << " change " << change << ": " << run.log.entries.size();
          ++cut;
        }
      }
    }
  }
  EXPECT_GT(refused, 5000u);
  EXPECT_LE(cut, 3u);
}

RC_GTEST_PROP(WalPropertyTest, WhatIsWrittenIsReadBackInAnySegmentSize, ()) {
  uint64_t seed = *rc::gen::arbitrary<uint64_t>();
  WalOptions options{.segment_bytes = *rc::gen::inRange<uint64_t>(1, 5000), .read_bytes = *rc::gen::inRange<uint64_t>(1, 5000)};
  MemoryDisk disk;
  Workload work(seed);
  {
    WalRun run(disk, options);
    RunUntil(run, work, *rc::gen::inRange(0, 60), 0);
    RC_ASSERT(run.failed == "");
  }
  WalRun run(disk, options);
  run.Open();
  RC_ASSERT(run.opened);
  RC_ASSERT(run.log == work.states.back());
  uint64_t last = run.log.entries.size();
  uint64_t first = *rc::gen::inRange<uint64_t>(1, last + 1);
  run.wal.Read(LogIndex(first), LogIndex(last), SIZE_MAX, 1);
  run.Pump();
  RC_ASSERT(run.reads[1] ==
            std::vector<raft::Entry>(run.log.entries.begin() + static_cast<ptrdiff_t>(first - 1), run.log.entries.end()));
}

}  // namespace
}  // namespace detcd::wal
