// The engine of sweeps with functions that misbehave in every way a run can.
#include "scenarios/sweep.h"

#include <csignal>
#include <cstdlib>

#include <unistd.h>

#include "core/base/check.h"
#include "core/base/digest.h"
#include "scenarios/runner.h"
#include "scenarios/worker.h"

namespace detcd::scenario {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Reports final : public SweepListener {
 public:
  void OnSeed(const SeedReport& report) override { all.push_back(report); }
  void OnProgress(const SweepProgress&) override {}

  std::vector<uint64_t> Seeds() const {
    std::vector<uint64_t> seeds;
    for (const SeedReport& report : all) seeds.push_back(report.seed());
    return seeds;
  }
  // One line a seed, without what differs from run to run.
  std::vector<std::string> Content() const {
    std::vector<std::string> lines;
    for (SeedReport report : all) {
      report.clear_cpu_ns();
      report.clear_story();
      lines.push_back(report.ShortDebugString());
    }
    return lines;
  }

  std::vector<SeedReport> all;
};

SweepOptions Seeds(uint64_t first, uint64_t last, uint32_t jobs = 2) {
  SweepOptions options{.first = first, .last = last, .jobs = jobs, .twin_share = 0, .twin_command = {}, .limits = {}};
  options.limits.memory_bytes_max = 512u << 20;
  options.limits.cpu_ns_max = 20'000'000'000;
  return options;
}

SeedReport Fine(uint64_t seed) {
  SeedReport report;
  report.set_digest(MixWord(seed));
  return report;
}

SeedReport Violation(uint64_t seed) {
  SeedReport report = Fine(seed);
  report.set_verdict(static_cast<uint32_t>(Verdict::kViolation));
  report.set_property("K4");
  return report;
}

// Seed 3 of 1..5 does `trouble`.
template <class Trouble>
Reports SweepWithTrouble(const Trouble& trouble, SweepOptions options = Seeds(1, 5)) {
  Reports reports;
  Sweep(options, [&](uint64_t seed) {
    if (seed == 3) trouble();
    return Fine(seed);
  }, reports);
  return reports;
}

TEST(SweepTest, TellsSeedsInOrderWhateverTheNumberOfJobs) {
  const auto run = [](uint64_t seed) {
    if (seed % 7 == 0) CHECK(seed == 0);
    return seed % 5 == 0 ? Violation(seed) : Fine(seed);
  };
  Reports one;
  Reports four;
  Sweep(Seeds(10, 40, 1), run, one);
  Sweep(Seeds(10, 40, 4), run, four);
  ASSERT_EQ(one.all.size(), 31u);
  EXPECT_EQ(one.all.front().seed(), 10u);
  EXPECT_EQ(one.Content(), four.Content());
}

TEST(SweepTest, OneSeedIsARange) {
  Reports reports;
  Sweep(Seeds(9, 9, 4), Fine, reports);
  EXPECT_THAT(reports.Seeds(), ElementsAre(9));
}

TEST(SweepTest, TheLastSeedOfAllIsReached) {
  const uint64_t last = (uint64_t{1} << 63) - 1;
  Reports reports;
  Sweep(Seeds(last - 1, last), Fine, reports);
  EXPECT_THAT(reports.Seeds(), ElementsAre(last - 1, last));
}

TEST(SweepTest, AnAbortIsAVerdictAndTheSweepGoesOn) {
  const Reports reports = SweepWithTrouble([] { CHECK_MSG(getpid() == 0, "the reason"); });
  EXPECT_THAT(reports.Seeds(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(reports.all[2].verdict(), static_cast<uint32_t>(Verdict::kCrash));
  EXPECT_EQ(reports.all[2].property(), "crash");
  EXPECT_THAT(reports.all[2].sentence(), HasSubstr("getpid() == 0 the reason; the process died of signal 6"));
  EXPECT_EQ(reports.all[3].verdict(), 0u);
}

TEST(SweepTest, WordsOfAnEarlierSeedAreNotThoseOfACrash) {
  Reports reports;
  Sweep(Seeds(1, 2, 1), [](uint64_t seed) {
    if (seed == 1) std::fprintf(stderr, "CHECK failed long ago\n");
    if (seed == 2) raise(SIGKILL);
    return Fine(seed);
  }, reports);
  EXPECT_EQ(reports.all[1].sentence(), "the process died of signal 9 (Killed)");
}

TEST(SweepTest, AnExitIsAVerdict) {
  const Reports reports = SweepWithTrouble([] { _exit(7); });
  EXPECT_EQ(reports.all[2].verdict(), static_cast<uint32_t>(Verdict::kCrash));
  EXPECT_EQ(reports.all[2].sentence(), "the process ended with status 7");
}

TEST(SweepTest, AnEndlessLoopIsAHang) {
  SweepOptions options = Seeds(1, 5);
  options.limits.cpu_ns_max = 100'000'000;
  const Reports reports = SweepWithTrouble([] { while (getpid() != 0) {} }, options);
  EXPECT_THAT(reports.Seeds(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(reports.all[2].property(), "hang");
  EXPECT_EQ(reports.all[2].sentence(), "takes more than 100 ms of CPU time");
}

TEST(SweepTest, AnEndlessWaitIsAHang) {
  SweepOptions options = Seeds(1, 5);
  options.limits.stall_ns_max = 300'000'000;
  const Reports reports = SweepWithTrouble([] { while (true) pause(); }, options);
  EXPECT_EQ(reports.all[2].property(), "hang");
  EXPECT_EQ(reports.all[2].sentence(), "waits without end: no CPU time used for 300 ms");
}

#if !defined(__SANITIZE_ADDRESS__)
TEST(SweepTest, AllMemoryIsAVerdict) {
  const Reports reports = SweepWithTrouble([] {
    std::vector<std::string> all;
    while (true) all.emplace_back(1 << 20, 'x');
  });
  EXPECT_EQ(reports.all[2].property(), "memory");
  EXPECT_EQ(reports.all[2].sentence(), "wants more than 512 MiB of memory");
  EXPECT_EQ(reports.all[4].verdict(), 0u);
}
#endif

TEST(SweepTest, EverySeedMayCrash) {
  Reports reports;
  Sweep(Seeds(1, 20), [](uint64_t) -> SeedReport { std::abort(); }, reports);
  EXPECT_EQ(reports.all.size(), 20u);
  for (const SeedReport& report : reports.all) EXPECT_EQ(report.property(), "crash");
}

TEST(SweepTest, EndsAtTheFailureOfTheNumberAsked) {
  SweepOptions options = Seeds(1, 1'000, 4);
  options.failures_max = 3;
  Reports reports;
  Sweep(options, [](uint64_t seed) { return seed % 10 == 0 ? Violation(seed) : Fine(seed); }, reports);
  EXPECT_EQ(reports.all.size(), 30u);
  EXPECT_EQ(reports.all.back().seed(), 30u);
}

TEST(SweepTest, BeginsNothingAfterItsTime) {
  SweepOptions options = Seeds(1, uint64_t{1} << 40);
  options.wall_ns_max = 50'000'000;
  Reports reports;
  const SweepEnd end = Sweep(options, Fine, reports);
  EXPECT_GE(end.wall_ns, options.wall_ns_max);
  for (size_t i = 0; i < reports.all.size(); ++i) EXPECT_EQ(reports.all[i].seed(), i + 1);  // none is passed over
}

TEST(SweepTest, BeginsNothingOnceItsCpuTimeIsUsed) {
  // Each seed works; the time of all workers together counts.
  const auto work = [](uint64_t) {
    timespec time{};
    do {
      clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    } while (time.tv_nsec % 10'000'000 < 9'000'000);
    return SeedReport();
  };
  SweepOptions options = Seeds(1, uint64_t{1} << 40);
  options.cpu_ns_max = 200'000'000;
  Reports reports;
  Sweep(options, work, reports);
  uint64_t cpu_ns = 0;
  for (const SeedReport& report : reports.all) cpu_ns += report.cpu_ns();
  EXPECT_GE(cpu_ns, options.cpu_ns_max);
  EXPECT_LT(cpu_ns, 2 * options.cpu_ns_max);
}

TEST(SweepTest, ALongStoryIsCut) {
  Reports reports;
  Sweep(Seeds(1, 1), [](uint64_t seed) {
    SeedReport report = Violation(seed);
    report.set_story(std::string(10 * kStoryBytesMax, 'x'));
    return report;
  }, reports);
  EXPECT_EQ(reports.all[0].story(), std::string(kStoryBytesMax, 'x').append("...\n"));
}

TEST(SweepTest, SecondRunsInAnotherProcessAreCompared) {
  SweepOptions options = Seeds(1, 8);
  options.twin_share = 1;
  Reports reports;
  EXPECT_EQ(Sweep(options, Fine, reports).seeds_compared, 8u);
  for (const SeedReport& report : reports.all) EXPECT_EQ(report.verdict(), 0u);
}

TEST(SweepTest, ARunThatDependsOnItsProcessIsDivergent) {
  SweepOptions options = Seeds(1, 4, 1);
  options.twin_share = 1;
  Reports reports;
  Sweep(options, [](uint64_t seed) { return seed == 2 ? Fine(static_cast<uint64_t>(getpid())) : Fine(seed); }, reports);
  EXPECT_EQ(reports.all[0].verdict(), 0u);
  EXPECT_EQ(reports.all[1].verdict(), static_cast<uint32_t>(Verdict::kUndetermined));
  EXPECT_EQ(reports.all[1].property(), "divergence");
  EXPECT_EQ(reports.all[2].verdict(), 0u);
}

#if !defined(__SANITIZE_ADDRESS__)
TEST(SweepTest, ARunThatReadsWhatItNeverWroteIsDivergent) {
  SweepOptions options = Seeds(1, 1, 1);
  options.twin_share = 1;
  Reports reports;
  Sweep(options, [](uint64_t) {
    void* volatile memory = std::malloc(1 << 16);  // volatile: the compiler would see through it
    const uint64_t digest = static_cast<unsigned char*>(memory)[40'000];
    std::free(memory);
    return Fine(digest);
  }, reports);
  EXPECT_EQ(reports.all[0].property(), "divergence");
}

TEST(SweepTest, ARunThatOrdersByAddressIsDivergent) {
  SweepOptions options = Seeds(1, 1, 1);
  options.twin_share = 1;
  Reports reports;
  Sweep(options, [](uint64_t) {
    std::vector<std::unique_ptr<std::string>> blocks;
    uint64_t order = 0;
    for (int i = 0; i < 60; ++i) {
      blocks.push_back(std::make_unique<std::string>());
      order = order << 1 | (blocks.front().get() < blocks.back().get() ? 1u : 0u);
    }
    return Fine(order);
  }, reports);
  EXPECT_EQ(reports.all[0].property(), "divergence");
}
#endif

TEST(SweepTest, EverySeedMayBeRunTwiceByManyWorkers) {
  SweepOptions options = Seeds(1, 200, 4);
  options.twin_share = 1;
  Reports reports;
  EXPECT_EQ(Sweep(options, Fine, reports).seeds_compared, 200u);
  EXPECT_EQ(reports.all.size(), 200u);
}

TEST(SweepTest, ACrashOfOneRunOfTwoIsDivergent) {
  SweepOptions options = Seeds(1, 1, 1);
  options.twin_share = 1;
  // Shared by the two workers: the second to come is the one that dies.
  WorkerSlots shared(1);
  auto* runs = &shared.at(0).seed;
  Reports reports;
  Sweep(options, [runs](uint64_t seed) {
    if (runs->fetch_add(1) == 1) std::abort();
    return Fine(seed);
  }, reports);
  ASSERT_EQ(reports.all.size(), 1u);
  EXPECT_EQ(reports.all[0].property(), "divergence");
  EXPECT_THAT(reports.all[0].sentence(), HasSubstr("one of two runs died: the process died of signal 6"));
}

TEST(SweepTest, OneSeedInTheShareHasATwin) {
  int twins = 0;
  for (uint64_t seed = 0; seed < 6'400; ++seed) twins += HasTwin(seed, 64) ? 1 : 0;
  EXPECT_GT(twins, 60);
  EXPECT_LT(twins, 140);
  EXPECT_FALSE(HasTwin(1, 0));
  EXPECT_TRUE(HasTwin(1, 1));
}

}  // namespace
}  // namespace detcd::scenario
