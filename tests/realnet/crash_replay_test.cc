// Power loss, from the calls that the real log really makes: after each of them, what files.h says may be lost is lost
// in several ways, the rest is put on real files, and the real log opens it.
//
// Longer: DETCD_CRASH_ROUNDS (workloads, two by default), DETCD_CRASH_SEED (of the first).
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/realnet/crash_run.h"
#include "tests/realnet/temporary_folder.h"

namespace detcd::realnet {
namespace {

using ::detcd::testing::Chooser;
using ::detcd::testing::MemoryDisk;
using Rng = std::mt19937_64;

constexpr int kBatches = 35;

// Of what is not durable: nothing, everything, or a part of it, of a drawn share.
enum class Survival { kNothing, kEverything, kPart };
constexpr Survival kSurvivals[] = {Survival::kNothing, Survival::kEverything, Survival::kPart};

DiskTree Crash(const DiskTree& beginning, const std::vector<DiskCall>& calls, size_t count, Survival survival,
               Rng& rng) {
  MemoryDisk disk;
  ApplyCalls(beginning, calls, count, disk);
  const uint64_t share = rng() % 9 + 1;
  disk.Crash([&](size_t outcomes) -> size_t {
    if (survival == Survival::kNothing) return 0;
    if (survival == Survival::kEverything) return outcomes - 1;
    return rng() % 10 < share ? outcomes - 1 : rng() % outcomes;
  });
  return TreeOf(disk);
}

bool HoldsRepairedLog(const DiskTree& tree) {
  return std::any_of(tree.begin(), tree.end(), [](const auto& file) { return file.first.ends_with(".broken"); });
}

// The log recovers from `tree`, and also when power is lost at a drawn moment of that (`crashes` times). `repairs`
// counts the recoveries that cut a torn tail off.
void ExpectRecovers(const DiskTree& tree, const std::vector<wal::LogModel>& states, const Promise& promise, int crashes,
                    Rng& rng, size_t& repairs, const std::string& where) {
  TemporaryFolder folder(FolderInMemory());
  WriteTree(tree, folder.path());
  DiskTrace trace(folder.path());
  Ledger ledger(trace);
  RunRecovery(folder.path(), states, promise, ledger, where);
  trace.End();
  if (!HoldsRepairedLog(tree) && HoldsRepairedLog(ReadTree(folder.path()))) ++repairs;
  if (::testing::Test::HasFatalFailure() || crashes == 0) return;
  const size_t count = rng() % (trace.calls().size() + 1);
  const DiskTree next = Crash(trace.beginning(), trace.calls(), count, kSurvivals[rng() % 3], rng);
  ExpectRecovers(next, ledger.states, ledger.At(count), crashes - 1, rng, repairs,
                 where + ", then after call " + std::to_string(count) + " of recovery");
}

// Without this the tests below would prove little: a call that the recording misses is one that no crash loses.
TEST(DiskTraceTest, ReplayingEveryCallGivesTheFolder) {
  TemporaryFolder folder;
  DiskTrace trace(folder.path());
  Ledger ledger(trace);
  RunWorkload(folder.path(), 1, kBatches, ledger);
  trace.End();
  MemoryDisk disk;
  ApplyCalls(trace.beginning(), trace.calls(), trace.calls().size(), disk);
  EXPECT_EQ(TreeOf(disk), ReadTree(folder.path()));

  // What was there before is the beginning of another trace.
  DiskTrace second(folder.path());
  Ledger again(second);
  RunRecovery(folder.path(), ledger.states, ledger.latest(), again, "");
  second.End();
  EXPECT_EQ(second.beginning(), TreeOf(disk));
  MemoryDisk second_disk;
  ApplyCalls(second.beginning(), second.calls(), second.calls().size(), second_disk);
  EXPECT_EQ(TreeOf(second_disk), ReadTree(folder.path()));
}

TEST(CrashReplayTest, NothingAcknowledgedIsLostAfterAnyCall) {
  const uint64_t first = NumberFromEnvironment("DETCD_CRASH_SEED", 1);
  const uint64_t rounds = NumberFromEnvironment("DETCD_CRASH_ROUNDS", 2);
  size_t repairs = 0;
  for (uint64_t seed = first; seed < first + rounds; ++seed) {
    TemporaryFolder folder;
    DiskTrace trace(folder.path());
    Ledger ledger(trace);
    RunWorkload(folder.path(), seed, kBatches, ledger);
    trace.End();
    ASSERT_FALSE(HasFailure());
    Rng rng(seed);
    std::map<Survival, std::pair<DiskTree, Promise>> last;  // many calls change nothing of what survives
    for (size_t count = 0; count <= trace.calls().size(); ++count) {
      std::vector<Survival> survivals(std::begin(kSurvivals), std::end(kSurvivals));
      // Only the sectors of a long record can be torn, and most of their subsets still end before the record.
      const bool is_write = count > 0 && trace.calls()[count - 1].kind == DiskCall::Kind::kWrite;
      if (is_write && trace.calls()[count - 1].bytes.size() > kSectorBytes)
        survivals.insert(survivals.end(), 10, Survival::kPart);
      for (const Survival survival : survivals) {
        const std::string where = "seed " + std::to_string(seed) + ", call " + std::to_string(count) +
                                  (count == 0 ? "" : ": " + Describe(trace.calls()[count - 1]));
        DiskTree tree = Crash(trace.beginning(), trace.calls(), count, survival, rng);
        const Promise& promise = ledger.At(count);
        auto& before = last[survival];
        if (before == std::pair(tree, promise)) continue;
        before = {std::move(tree), promise};
        ExpectRecovers(before.first, ledger.states, promise, 1, rng, repairs, where);
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GT(repairs, 0u);
}

}  // namespace
}  // namespace detcd::realnet
