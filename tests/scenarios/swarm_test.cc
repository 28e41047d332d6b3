#include "scenarios/swarm.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "scenarios/command_files.h"
#include "scenarios/runner.h"

namespace detcd::scenario {
namespace {

TEST(SwarmTest, EveryScenarioCanBeRunAndIsAFunctionOfItsSeed) {
  uint64_t wire = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    const Scenario scenario = MakeSwarm(seed, FidelityChoice::kMixed);
    EXPECT_EQ(CheckScenario(scenario), "") << seed;
    EXPECT_EQ(scenario.SerializeAsString(), MakeSwarm(seed, FidelityChoice::kMixed).SerializeAsString()) << seed;
    wire += scenario.fidelity() == WIRE;
  }
  EXPECT_GT(wire, 25u);
  EXPECT_LT(wire, 100u);
}

// A stopped clock breaks what leases assume: in a negative run that report would stand in for one about a disk.
TEST(SwarmTest, ClocksNeitherLeapNorStopBesideLeases) {
  KnobSheet drawn;
  KnobSheet with_leases;
  ASSERT_EQ(with_leases.Add("lease_reads=on"), "");
  for (const ProfileChoice profile : {ProfileChoice::kTolerated, ProfileChoice::kBeyond, ProfileChoice::kNegative}) {
    uint64_t leaping = 0;
    for (uint64_t seed = 1; seed <= 200; ++seed) {
      const auto leaps = [&](const Scenario& scenario) {
        return std::any_of(scenario.episodes().begin(), scenario.episodes().end(), [](const Episode& episode) {
          return episode.has_clock_leap() || episode.has_clock_freeze();
        });
      };
      const Scenario scenario = DrawScenario(seed, FidelityChoice::kMixed, profile, drawn);
      EXPECT_FALSE(leaps(scenario) && scenario.knobs().lease_reads()) << seed;
      EXPECT_FALSE(leaps(DrawScenario(seed, FidelityChoice::kMixed, profile, with_leases))) << seed;
      leaping += leaps(scenario) ? 1 : 0;
    }
    EXPECT_GT(leaping, 0u);
  }
}

// About one seed in thirty is reported.
TEST(SwarmTest, InTheProfileOfClocksTheyLeapAndStopBesideLeasesUntilAJudgeSaysSo) {
  uint64_t leaping = 0;
  uint64_t seed = 0;
  bool reported = false;
  while (!reported && seed < 300) {
    const Scenario scenario = DrawScenario(++seed, FidelityChoice::kDirect, ProfileChoice::kClocks, KnobSheet());
    EXPECT_TRUE(scenario.knobs().lease_reads());
    leaping += std::ranges::any_of(scenario.episodes(), [](const Episode& episode) {
      EXPECT_FALSE(episode.has_corruption() || episode.has_lying_drive() || episode.has_wiped_disk());
      return episode.has_clock_leap() || episode.has_clock_freeze();
    });
    const RunResult result = RunScenario(scenario, {});
    EXPECT_EQ(result.verdict, Verdict::kFine) << "seed " << seed << "\n" << result.story;
    reported = result.reported.has_value();
  }
  EXPECT_TRUE(reported);
  EXPECT_GT(leaping, seed / 2);
}

TEST(SwarmTest, TheFirstSeedsAreFineInBothFidelities) {
  for (const FidelityChoice fidelity : {FidelityChoice::kDirect, FidelityChoice::kWire}) {
    for (uint64_t seed = 1; seed <= 24; ++seed) {
      const Scenario scenario = MakeSwarm(seed, fidelity);
      const RunResult result = RunScenario(scenario, {});
      EXPECT_EQ(result.verdict, Verdict::kFine) << "seed " << seed << "\n" << result.story;
      EXPECT_EQ(result.digest, RunScenario(scenario, {}).digest) << "seed " << seed;
      for (size_t i = 0; i < sim::kFaultKindCount; ++i) {
        const auto kind = static_cast<sim::FaultKind>(i);
        if (result.effects.effective(kind) > 0) {
          EXPECT_GT(result.effects.armed(kind), 0u) << "seed " << seed << ": " << sim::FaultKindName(kind);
        }
      }
    }
  }
}

}  // namespace
}  // namespace detcd::scenario
