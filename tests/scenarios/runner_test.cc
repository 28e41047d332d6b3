#include "scenarios/runner.h"

#include <string>

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

namespace detcd::scenario {
namespace {

using sim::FaultKind;

Scenario Parse(const std::string& text) {
  Scenario scenario;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &scenario)) << text;
  return scenario;
}

// A minute's load in little: two clients, puts and reads of two keys over `chaos_ms`.
Scenario Calm(Fidelity fidelity, uint32_t members, uint32_t chaos_ms = 5'000) {
  Scenario scenario = Parse("format_version: 1 seed: 5 clients: 2");
  scenario.set_fidelity(fidelity);
  scenario.set_members(members);
  scenario.set_chaos_ms(chaos_ms);
  for (uint32_t i = 1; i <= 40; ++i) {
    Operation& operation = *scenario.add_operations();
    operation.set_id(i);
    operation.set_client(i % 2 + 1);
    operation.set_at_ms(chaos_ms * i / 50);
    const std::string key = i % 4 < 2 ? "a" : "b";
    if (i % 3 == 0) {
      operation.mutable_range()->set_key(key);
    } else {
      operation.mutable_put()->set_key(key);
    }
  }
  return scenario;
}

RunResult RunWith(Scenario scenario, const std::string& episode) {
  Scenario plan = Parse("episodes { id: 1 " + episode + " }");
  *scenario.add_episodes() = plan.episodes(0);
  return RunScenario(scenario, {});
}

class CalmWorld : public testing::TestWithParam<std::tuple<Fidelity, uint32_t>> {};

TEST_P(CalmWorld, AnswersEverythingAndRepeatsExactly) {
  const auto [fidelity, members] = GetParam();
  const Scenario scenario = Calm(fidelity, members);
  const RunResult first = RunScenario(scenario, {});
  EXPECT_EQ(first.verdict, Verdict::kFine) << first.story;
  EXPECT_EQ(first.operations, 40 + 2 * members);
  EXPECT_EQ(first.answered, first.operations);
  EXPECT_EQ(first.leader_changes, 1u);
  const RunResult second = RunScenario(scenario, {});
  EXPECT_EQ(first.digest, second.digest);
  EXPECT_EQ(first.events, second.events);
  Scenario other = scenario;
  other.set_seed(6);
  EXPECT_NE(RunScenario(other, {}).digest, first.digest);
}

INSTANTIATE_TEST_SUITE_P(Sizes, CalmWorld,
                         testing::Combine(testing::Values(DIRECT, WIRE), testing::Values(1u, 3u, 5u)));

class FaultyWorld : public testing::TestWithParam<Fidelity> {
 protected:
  RunResult Run(const std::string& episode) { return RunWith(Calm(GetParam(), 3), episode); }
};

TEST_P(FaultyWorld, PartitionHoldsMessages) {
  const RunResult result = Run("at_ms: 1500 for_ms: 3000 partition { group: 1 }");
  EXPECT_EQ(result.verdict, Verdict::kFine) << result.story;
  EXPECT_GT(result.effects.effective(FaultKind::kPartition), 10u);
}

TEST_P(FaultyWorld, OneWayHoldsMessages) {
  const RunResult result = Run("at_ms: 1500 for_ms: 3000 one_way { from: 1 to: 2 to: 3 }");
  EXPECT_EQ(result.verdict, Verdict::kFine) << result.story;
  EXPECT_GT(result.effects.effective(FaultKind::kPartition), 0u);
}

TEST_P(FaultyWorld, ClientPartitionHoldsCalls) {
  const RunResult result = Run("at_ms: 1500 for_ms: 3000 client_partition { clients: 1 clients: 2 members: 1 members: 2 }");
  EXPECT_EQ(result.verdict, Verdict::kFine) << result.story;
  EXPECT_GT(result.effects.effective(FaultKind::kPartition), 0u);
}

TEST_P(FaultyWorld, SlowLinksDelay) {
  const RunResult result = Run("at_ms: 1500 for_ms: 3000 slow { members: 2 delay { min_us: 50000 max_us: 60000 } }");
  EXPECT_EQ(result.verdict, Verdict::kFine) << result.story;
  EXPECT_GT(result.effects.effective(FaultKind::kClog), 10u);
}

TEST_P(FaultyWorld, LossLosesOrDelays) {
  const RunResult result = Run("at_ms: 1500 for_ms: 3000 loss { members: 2 loss_ppm: 300000 duplicate_ppm: 300000 }");
  EXPECT_EQ(result.verdict, Verdict::kFine) << result.story;
  const bool wire = GetParam() == WIRE;
  EXPECT_GT(result.effects.effective(wire ? FaultKind::kSegmentLoss : FaultKind::kMessageLoss), 0u);
  EXPECT_EQ(result.effects.effective(FaultKind::kMessageDuplicate) > 0, !wire);
}

TEST_P(FaultyWorld, PowerLossTakesMembersDown) {
  const RunResult result = Run("at_ms: 3000 for_ms: 1000 crash { members: 1 members: 2 members: 3 survival: NOTHING }");
  EXPECT_EQ(result.verdict, Verdict::kFine) << result.story;
  EXPECT_EQ(result.effects.effective(FaultKind::kPowerLoss), 3u);
  EXPECT_GE(result.leader_changes, 2u);
}

TEST_P(FaultyWorld, EndOfAProcessKeepsWhatWasDone) {
  const RunResult result = Run("at_ms: 1500 for_ms: 1000 crash { members: 1 members: 2 members: 3 survival: EVERYTHING }");
  EXPECT_EQ(result.verdict, Verdict::kFine) << result.story;
  EXPECT_EQ(result.effects.effective(FaultKind::kPowerLoss), 0u);
  EXPECT_EQ(result.effects.armed(FaultKind::kCrash), 3u);
}

TEST_P(FaultyWorld, PauseHoldsEvents) {
  const RunResult result = Run("at_ms: 1500 for_ms: 3000 pause { members: 1 members: 2 }");
  EXPECT_EQ(result.verdict, Verdict::kFine) << result.story;
  EXPECT_GT(result.effects.effective(FaultKind::kPause), 0u);
}

TEST_P(FaultyWorld, SyncStallHoldsTheDisk) {
  const RunResult result = Run("at_ms: 1500 for_ms: 3000 sync_stall { members: 1 members: 2 }");
  EXPECT_EQ(result.verdict, Verdict::kFine) << result.story;
  EXPECT_GT(result.effects.effective(FaultKind::kSyncStall), 0u);
}

TEST_P(FaultyWorld, DriftChangesAClock) {
  const RunResult result = Run("at_ms: 1500 for_ms: 3000 drift { member: 1 drift_ppm: 200000 }");
  EXPECT_EQ(result.verdict, Verdict::kFine) << result.story;
  EXPECT_GT(result.effects.effective(FaultKind::kClockDrift), 0u);
}

INSTANTIATE_TEST_SUITE_P(Fidelities, FaultyWorld, testing::Values(DIRECT, WIRE));

TEST(RunnerTest, ResetsCutConnections) {
  const RunResult result = RunWith(Calm(WIRE, 3), "at_ms: 1500 for_ms: 3000 resets { members: 1 interval_ms: 20 }");
  EXPECT_EQ(result.verdict, Verdict::kFine) << result.story;
  EXPECT_GT(result.effects.effective(FaultKind::kStreamReset), 0u);
}

TEST(RunnerTest, StopsBeforeTheEventAskedFor) {
  const RunResult result = RunScenario(Calm(DIRECT, 3), {.stop_at_event = 500});
  EXPECT_EQ(result.events, 499u);
  EXPECT_NE(result.story.find("stopped before event 500"), std::string::npos) << result.story;
}

TEST(RunnerTest, TracesWhenAskedAndRunsTheSame) {
  uint64_t lines = 0;
  const RunResult traced = RunScenario(Calm(DIRECT, 3), {.trace = [&](std::string_view) { ++lines; }});
  EXPECT_GT(lines, 10u);
  EXPECT_EQ(traced.digest, RunScenario(Calm(DIRECT, 3), {}).digest);
}

TEST(RunnerTest, AnEpisodeThatDoesNothingChangesNoOtherChoice) {
  Scenario with = Calm(DIRECT, 3);
  *with.add_episodes() = Parse("episodes { id: 9 at_ms: 1000 }").episodes(0);
  EXPECT_EQ(RunScenario(with, {}).answered, RunScenario(Calm(DIRECT, 3), {}).answered);
}

TEST(RunnerTest, TheOthersServeWithoutLostMembers) {
  for (const Fidelity fidelity : {DIRECT, WIRE}) {
    Scenario scenario = Calm(fidelity, 5);
    scenario.add_lost_members(1);
    scenario.add_lost_members(4);
    const RunResult result = RunScenario(scenario, {});
    EXPECT_EQ(result.verdict, Verdict::kFine) << result.story;
    EXPECT_EQ(result.effects.effective(FaultKind::kPowerLoss), 2u);
    EXPECT_EQ(result.operations, 40u + 2 * 3);
  }
}

// Votes take longer than an election timeout: nobody ever leads.
TEST(RunnerTest, AClusterThatNeverServesIsNotLive) {
  Scenario scenario = Calm(DIRECT, 3);
  scenario.mutable_links()->mutable_delay()->set_min_us(4'000'000);
  scenario.mutable_links()->mutable_delay()->set_max_us(4'000'000);
  const RunResult result = RunScenario(scenario, {});
  EXPECT_EQ(result.verdict, Verdict::kNotLive);
  ASSERT_TRUE(result.violation.has_value());
  EXPECT_EQ(result.violation->signature, "convergence: no leader");
}

TEST(RunnerTest, AScenarioWithNothingInItHealsAndEnds) {
  const RunResult result = RunScenario(Parse("format_version: 1"), {});
  EXPECT_EQ(result.verdict, Verdict::kFine) << result.story;
  EXPECT_EQ(result.answered, 6u);
}

}  // namespace
}  // namespace detcd::scenario
