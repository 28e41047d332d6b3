#include "scenarios/sweep_totals.h"

namespace detcd::scenario {
namespace {

using ::testing::SizeIs;

SeedReport Report(uint64_t seed, Verdict verdict) {
  SeedReport report;
  report.set_seed(seed);
  report.set_verdict(static_cast<uint32_t>(verdict));
  report.set_digest(seed * 3);
  return report;
}

constexpr sim::Victim kLeader = {.role = sim::VictimRole::kLeader, .phase = sim::Phase::kChaos};

SeedReport WithFault(sim::FaultKind kind, uint64_t armed, uint64_t effective, uint64_t changing = 0) {
  RunResult result;
  result.effects.Armed(kind, armed);
  result.effects.Effective(kind, kLeader, effective);
  result.effects.Changing(kind, kLeader, changing);
  return MakeReport(result);
}

TEST(SweepTotalsTest, NothingIsFine) { EXPECT_EQ(SweepTotals().ExitCode(), 0); }

TEST(SweepTotalsTest, TheSmallestCodeOfSeveralCounts) {
  SweepTotals totals;
  totals.Add(Report(1, Verdict::kFine));
  EXPECT_EQ(totals.ExitCode(), 0);
  totals.Add(Report(2, Verdict::kUndetermined));
  EXPECT_EQ(totals.ExitCode(), 4);
  totals.Add(Report(3, Verdict::kCrash));
  EXPECT_EQ(totals.ExitCode(), 3);
  totals.Add(Report(4, Verdict::kNotLive));
  EXPECT_EQ(totals.ExitCode(), 2);
  totals.Add(Report(5, Verdict::kViolation));
  EXPECT_EQ(totals.ExitCode(), 1);
  totals.Add(Report(6, Verdict::kFine));
  EXPECT_EQ(totals.ExitCode(), 1);
  EXPECT_EQ(totals.failures(), 4u);
}

TEST(SweepTotalsTest, AFaultArmedOftenWithoutEffectIsDead) {
  SweepTotals totals;
  totals.Add(WithFault(sim::FaultKind::kPause, kDeadFaultArmedMin - 1, 0));
  EXPECT_EQ(totals.ExitCode(), 0);
  totals.Add(WithFault(sim::FaultKind::kPause, 1, 0));
  EXPECT_EQ(totals.ExitCode(), 4);
  totals.Add(WithFault(sim::FaultKind::kPause, 0, 1));
  EXPECT_EQ(totals.ExitCode(), 0);
}

TEST(SweepTotalsTest, AFaultArmedVeryOftenThatChangesNothingIsInert) {
  SweepTotals totals;
  totals.Add(WithFault(sim::FaultKind::kPause, kInertFaultArmedMin - 1, 9));
  EXPECT_EQ(totals.ExitCode(), 0);
  totals.Add(WithFault(sim::FaultKind::kPause, 1, 0));
  EXPECT_EQ(totals.ExitCode(), 4);
  EXPECT_TRUE(totals.Faults()[0].inert());
  EXPECT_FALSE(totals.Faults()[0].dead());
  totals.Add(WithFault(sim::FaultKind::kPause, 0, 1, 1));
  EXPECT_EQ(totals.ExitCode(), 0);
}

TEST(SweepTotalsTest, FaultsThatNeverHappenedAreNotListed) {
  SweepTotals totals;
  totals.Add(WithFault(sim::FaultKind::kCrash, 2, 3, 1));
  totals.Add(WithFault(sim::FaultKind::kCrash, 3, 0));
  const std::vector<Fault> faults = totals.Faults();
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_EQ(faults[0].ShortDebugString(), R"(kind: "crash" armed: 5 effective: 3 seeds_armed: 2 seeds_effective: 1 changing: 1 seeds_changing: 1 )"
            R"(victims { role: "leader" phase: "chaos" effective: 3 changing: 1 })");
}

TEST(SweepTotalsTest, TheDigestIsOfSeedsAndTheirDigestsInOrder) {
  const auto digest = [](std::vector<SeedReport> reports) {
    SweepTotals totals;
    for (const SeedReport& report : reports) totals.Add(report);
    return totals.DigestText();
  };
  const SeedReport one = Report(1, Verdict::kFine);
  const SeedReport two = Report(2, Verdict::kFine);
  EXPECT_EQ(digest({one, two}), digest({one, two}));
  EXPECT_NE(digest({one, two}), digest({two, one}));
  EXPECT_NE(digest({one}), digest({one, two}));
  // The digest of a run that died is not known, whatever stands there.
  SeedReport crash = Report(1, Verdict::kCrash);
  SeedReport same = crash;
  same.set_digest(99);
  EXPECT_EQ(digest({crash}), digest({same}));
}

}  // namespace
}  // namespace detcd::scenario
