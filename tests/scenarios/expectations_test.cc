// Expectations: each kind met and broken, at the bound and one beyond, and no run changed by being measured.
#include "scenarios/expectations.h"

#include <string>

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "absl/strings/str_format.h"
#include "scenarios/runner.h"
#include "scenarios/shrink_edits.h"
#include "scenarios/shrink_passes.h"

namespace detcd::scenario {
namespace {

Scenario Parse(const std::string& text) {
  Scenario scenario;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &scenario)) << text;
  return scenario;
}

// Member 1 leads from 3 s on; puts and reads until 10 s.
Scenario Base(const std::string& more) {
  Scenario scenario = Parse(
      "format_version: 1 seed: 5 clients: 2 chaos_ms: 10000 knobs { client_timeout_ms: 300 }"
      "episodes { id: 1 at_ms: 3000 transfer { to: 1 } }"
      "operations { id: 1 client: 1 at_ms: 500 times: 180 every_ms: 50 put { key: 'a' } }"
      "operations { id: 1001 client: 2 at_ms: 525 times: 180 every_ms: 50 range { key: 'a' } }");
  scenario.MergeFrom(Parse(more));
  return scenario;
}

constexpr char kLeaderLost[] = "episodes { id: 2 at_ms: 5000 for_ms: 4000 crash { members: 1 } }";
constexpr char kFromFourSeconds[] = "from_ms: 4000 to_ms: 10000";

uint64_t MeasuredOf(const Scenario& scenario, Metric metric, const Window& window = {}) {
  RunOptions options;
  options.measure = window;
  const RunResult result = RunScenario(scenario, options);
  EXPECT_EQ(result.verdict, Verdict::kFine) << result.story;
  return result.measured.at(static_cast<size_t>(metric));
}

class EveryMetric : public testing::TestWithParam<size_t> {};

// What was measured is met as its own bound, from both sides; one less or one more is a violation of its property.
TEST_P(EveryMetric, IsMetAtItsBoundAndBrokenBeyond) {
  const MetricRow& row = kMetrics[GetParam()];
  const std::string name(row.name);
  // Without pre-vote the return of member 3 costs a leadership; member 1 is lost, so that calls fail.
  const Scenario scenario = Base("episodes { id: 3 at_ms: 3200 for_ms: 1600 partition { group: 3 } } knobs { no_pre_vote: true }" +
                                 std::string(kLeaderLost));
  const uint64_t value = MeasuredOf(scenario, row.metric, {.from = Millis(3'100).nanos, .member = {}});
  const auto run = [&](const std::string& bounds) {
    Scenario bound = scenario;
    bound.MergeFrom(Parse(absl::StrFormat("expectations { from_ms: 3100 %s { %s } }", name, bounds)));
    EXPECT_EQ(CheckScenario(bound), "");
    return RunScenario(bound, {});
  };
  const RunResult met = run(absl::StrFormat("min: %d max: %d", value, value));
  EXPECT_EQ(met.verdict, Verdict::kFine) << met.story;
  const RunResult less = run(absl::StrFormat("min: %d", value + 1));
  ASSERT_TRUE(less.violation.has_value());
  EXPECT_EQ(less.verdict, Verdict::kViolation);
  EXPECT_EQ(less.violation->property, "E:" + name);
  EXPECT_EQ(less.violation->signature, "E:" + name + ": less than expected");
  const bool stale = name.starts_with("stale");
  EXPECT_EQ(value == 0, stale) << value;
  if (stale) return;
  const RunResult more = run(absl::StrFormat("max: %d", value - 1));
  ASSERT_TRUE(more.violation.has_value());
  EXPECT_EQ(more.violation->signature, "E:" + name + ": more than expected");
}

INSTANTIATE_TEST_SUITE_P(Metrics, EveryMetric, testing::Range(size_t{0}, kMetricCount),
                         [](const auto& tested) { return std::string(kMetrics[tested.param].name); });

TEST(ExpectationsTest, ARunIsTheSameMeasuredOrNot) {
  const Scenario scenario = Base(kLeaderLost);
  RunOptions options;
  options.measure = Window();
  const RunResult plain = RunScenario(scenario, {});
  const RunResult measured = RunScenario(scenario, options);
  EXPECT_EQ(plain.digest, measured.digest);
  EXPECT_TRUE(plain.measured.empty());
  EXPECT_EQ(measured.measured.size(), kMetricCount);
}

TEST(ExpectationsTest, AFailureRepeatsAndNamesItsWindow) {
  const Scenario scenario =
      Base(std::string(kLeaderLost) + "expectations { name: 'loss' " + kFromFourSeconds + " leader_changes { max: 0 } }");
  const RunResult first = RunScenario(scenario, {});
  ASSERT_TRUE(first.violation.has_value());
  EXPECT_EQ(first.violation->signature, "E:leader_changes: more than expected in loss");
  EXPECT_EQ(first.violation->sentence, "leader_changes from 4000 to 10000 ms in loss: 1, expected at most 0");
  EXPECT_GE(first.violation->moment.true_time, Instant{} + Seconds(5));
  EXPECT_LT(first.violation->moment.true_time, Instant{} + Seconds(9));  // at once, not at the end
  const RunResult second = RunScenario(scenario, {});
  EXPECT_EQ(first.digest, second.digest);
}

TEST(ExpectationsTest, AWindowSeesOnlyWhatIsInIt) {
  const Scenario scenario = Base(kLeaderLost);
  const auto changes = [&](int64_t from_ms, int64_t to_ms) {
    return MeasuredOf(scenario, Metric::kLeaderChanges, {.from = Millis(from_ms).nanos, .to = Millis(to_ms).nanos, .member = {}});
  };
  EXPECT_EQ(changes(4'000, 5'000), 0u);
  EXPECT_EQ(changes(5'000, 9'000), 1u);
  EXPECT_EQ(changes(9'000, 10'000), 0u);
  EXPECT_EQ(MeasuredOf(scenario, Metric::kLeaderChanges, {.from = Seconds(5).nanos, .member = 0}), 0u);
}

TEST(ExpectationsTest, PhasesPartAtTheHealing) {
  const std::string chaos = "expectations { phase: CHAOS leader_changes { min: 3 } }";
  const std::string healing = "expectations { phase: HEALING leader_changes { max: 0 } failed_writes { max: 0 } }";
  EXPECT_EQ(RunScenario(Base(kLeaderLost + healing), {}).verdict, Verdict::kFine);
  EXPECT_EQ(RunScenario(Base(chaos), {}).violation->property, "E:leader_changes");
}

TEST(ExpectationsTest, ALeaderThatIsLostIsNoDisruption) {
  EXPECT_EQ(MeasuredOf(Base(kLeaderLost), Metric::kDisruptions), 0u);
}

TEST(ExpectationsTest, ATransferIsNoDisruption) {
  const Scenario scenario = Base("episodes { id: 2 at_ms: 5000 transfer { to: 2 } } episodes { id: 3 at_ms: 6500 transfer { to: 3 } }");
  EXPECT_EQ(MeasuredOf(scenario, Metric::kLeaderChanges, {.from = Seconds(4).nanos, .member = {}}), 2u);
  EXPECT_EQ(MeasuredOf(scenario, Metric::kDisruptions), 0u);
}

TEST(ExpectationsTest, TimeWithoutServiceIsThatOfTheOutage) {
  // Nobody can serve a write for two seconds, and clients ask all the time.
  const Scenario scenario = Base("episodes { id: 2 at_ms: 5000 for_ms: 2000 client_partition { clients: [1, 2] members: [1, 2, 3] } }");
  for (const Metric metric : {Metric::kWriteGap, Metric::kReadGap, Metric::kWriteOutage, Metric::kReadOutage}) {
    const uint64_t ms = MeasuredOf(scenario, metric, {.from = Seconds(4).nanos, .member = {}});
    EXPECT_GE(ms, 1'900u);
    EXPECT_LE(ms, 2'500u);
  }
  const Window inside = {.from = Millis(5'500).nanos, .to = Millis(6'000).nanos, .member = {}};
  EXPECT_EQ(MeasuredOf(scenario, Metric::kWriteGap, inside), 500u);
}

TEST(ExpectationsTest, ASerializableReadOfAMemberThatIsCutOffIsStale) {
  const Scenario scenario = Base(
      "episodes { id: 2 at_ms: 5000 for_ms: 3000 partition { group: 3 } } clients: 3 "
      "operations { id: 2001 client: 3 at_ms: 5000 times: 60 every_ms: 50 range { key: 'a' serializable: true } }");
  EXPECT_GT(MeasuredOf(scenario, Metric::kStaleSerializableReads), 5u);
  EXPECT_EQ(MeasuredOf(scenario, Metric::kStaleReads), 0u);
}

TEST(ExpectationsTest, WhatCannotBeExpectedIsNamed) {
  const auto trouble = [](const std::string& expectation) { return CheckScenario(Base("expectations { " + expectation + " }")); };
  EXPECT_EQ(trouble("member: 4 elections { max: 0 }"), "expectations[0].member: want 1 to 3, got 4");
  EXPECT_EQ(trouble("member: 1 write_gap_ms { max: 0 }"), "expectations[0].write_gap_ms: is of all members together");
  EXPECT_EQ(trouble("phase: CHAOS from_ms: 1"), "expectations[0].phase: excludes from_ms and to_ms");
  EXPECT_EQ(trouble("from_ms: 5 to_ms: 5"), "expectations[0].to_ms: want more than from_ms 5, got 5");
  EXPECT_EQ(trouble("elections { min: 2 max: 1 }"), "expectations[0].elections: max 1 is below min 2");
  EXPECT_EQ(trouble("elections { }"), "");
}

TEST(ExpectationsTest, RepeatedOperationsTakeTheIdsThatFollow) {
  EXPECT_EQ(CheckScenario(Base("operations { id: 180 client: 1 at_ms: 9900 put { key: 'b' } }")), "operations[2].id: 180 is zero or not unique");
  EXPECT_EQ(CheckScenario(Base("operations { id: 181 client: 1 at_ms: 9449 put { key: 'b' } }")),
            "operations[2].at_ms: is before that of an earlier operation of its client");
  const Scenario scenario = Base("operations { id: 181 client: 1 at_ms: 9450 put { key: 'b' } }");
  EXPECT_EQ(CheckScenario(scenario), "");
  const RunResult result = RunScenario(scenario, {});
  EXPECT_EQ(result.operations, 180u + 180u + 1u + 6u);  // and two probes of each member
}

TEST(ExpectationsTest, ShrinkingKeepsThemWithTheirMembersAndTimes) {
  Scenario scenario = Base("knobs { no_pre_vote_members: [2, 3] } expectations { from_ms: 6000 to_ms: 8000 member: 3 elections { max: 0 } }");
  MoveEarlier(scenario, 5'000, 1'000);
  EXPECT_EQ(scenario.expectations(0).from_ms(), 5'000u);
  EXPECT_EQ(scenario.expectations(0).to_ms(), 7'000u);
  RenumberMembers(scenario, {{1, 3}, {2, 2}, {3, 1}});
  EXPECT_EQ(scenario.expectations(0).member(), 1u);
  EXPECT_EQ(scenario.knobs().no_pre_vote_members(0), 1u);
  KeepMembers(scenario, 1);
  EXPECT_EQ(scenario.expectations_size(), 1);
  EXPECT_EQ(CheckScenario(scenario), "");
}

}  // namespace
}  // namespace detcd::scenario
