// The named scenarios of scenarios/leader_lease: each is fine, but for the two whose clocks leave what leases assume, and
// each really has the leases it is about.
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "core/base/probe.h"
#include "scenarios/runner.h"
#include "scenarios/settings.h"

namespace detcd::scenario {
namespace {

const std::string kFolder = std::string(DETCD_SCENARIOS) + "/leader_lease";

Scenario Load(const std::string& name) {
  std::stringstream text;
  text << std::ifstream(kFolder + "/" + name + ".scenario").rdbuf();
  Scenario scenario;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text.str(), &scenario)) << name;
  EXPECT_EQ(CheckScenario(scenario), "") << name;
  EXPECT_FALSE(scenario.note().empty()) << name;
  return scenario;
}

uint64_t Hits(std::string_view probe) {
  for (const ProbeCounter& counter : AllProbes()) {
    if (counter.name == probe) return counter.hits;
  }
  return 0;
}

// The signature of what is broken, and how many reads were answered by lease.
struct Outcome {
  std::string signature;
  uint64_t lease_reads = 0;
  std::string story;
};

Outcome RunIt(const Scenario& scenario) {
  const uint64_t before = Hits("raft.read_by_lease");
  const RunResult result = RunScenario(scenario, {});
  return {result.violation ? result.violation->signature : "", Hits("raft.read_by_lease") - before, result.story};
}

TEST(LeaderLeaseScenariosTest, EachIsFineAndReadsByLease) {
  size_t scenarios = 0;
  for (const auto& file : std::filesystem::directory_iterator(kFolder)) {
    const std::string name = file.path().stem();
    ++scenarios;
    if (name == "drift_beyond_the_bound" || name == "frozen_clock" || name == "mixed") continue;
    const Outcome outcome = RunIt(Load(name));
    EXPECT_EQ(outcome.signature, "") << name << "\n" << outcome.story;
    EXPECT_GT(outcome.lease_reads, 0u) << name;
  }
  EXPECT_EQ(scenarios, 12u);
}

TEST(LeaderLeaseScenariosTest, BeyondTheBoundALeaderIsElectedDuringALease) {
  EXPECT_EQ(RunIt(Load("drift_beyond_the_bound")).signature, "F14: a leader elected during another's lease");
  Scenario inside = Load("drift_beyond_the_bound");
  inside.mutable_knobs()->clear_lease_drift_ppm();  // as much as its clocks drift
  EXPECT_EQ(RunIt(inside).signature, "");
}

TEST(LeaderLeaseScenariosTest, WhereAClockStopsALeaderIsElectedDuringALease) {
  Scenario frozen = Load("frozen_clock");
  EXPECT_EQ(RunIt(frozen).signature, "F14: a leader elected during another's lease");
  frozen.mutable_knobs()->set_lease_reads(false);
  EXPECT_EQ(RunIt(frozen).signature, "");
}

// What the profile is about is reported, and nothing else is.
TEST(LeaderLeaseScenariosTest, InTheProfileOfClocksAnElectionDuringALeaseIsReportedOnceAClockStopped) {
  Scenario frozen = Load("frozen_clock");
  frozen.set_profile(CLOCKS);
  const RunResult reported = RunScenario(frozen, {});
  EXPECT_EQ(reported.verdict, Verdict::kFine) << reported.story;
  ASSERT_TRUE(reported.reported.has_value());
  EXPECT_EQ(reported.reported->signature, "F14: a leader elected during another's lease");
  Scenario drifting = Load("drift_beyond_the_bound");
  drifting.set_profile(CLOCKS);
  EXPECT_EQ(RunScenario(drifting, {}).verdict, Verdict::kViolation);
  Scenario calm = Load("calm");
  calm.set_profile(CLOCKS);
  const RunResult silent = RunScenario(calm, {});
  EXPECT_EQ(silent.verdict, Verdict::kFine) << silent.story;
  EXPECT_FALSE(silent.reported.has_value());
}

TEST(LeaderLeaseScenariosTest, OneVoterWithoutThePromiseMeansReadIndexForAll) {
  Scenario mixed = Load("mixed");
  const Outcome outcome = RunIt(mixed);
  EXPECT_EQ(outcome.signature, "") << outcome.story;
  EXPECT_EQ(outcome.lease_reads, 0u);
  mixed.mutable_knobs()->clear_no_lease_reads();
  EXPECT_GT(RunIt(mixed).lease_reads, 0u);
}

TEST(LeaderLeaseScenariosTest, SettingsThatMakeLeasesUselessAreRefusedByName) {
  Scenario scenario = Load("calm");
  scenario.mutable_knobs()->set_lease_drift_ppm(900'000);
  EXPECT_EQ(CheckScenario(scenario),
            "knobs.lease_reads: leader leases: with an election timeout of 1000000 us and a clock drift of 900000 ppm a "
            "lease lasts 52631 us, which is not longer than the heartbeat interval of 100000 us");
  scenario.mutable_knobs()->set_lease_reads(false);
  EXPECT_EQ(CheckScenario(scenario), "");
  scenario.mutable_knobs()->add_no_lease_reads(4);
  EXPECT_EQ(CheckScenario(scenario), "knobs.no_lease_reads: want 1 to 3, got 4");
}

}  // namespace
}  // namespace detcd::scenario
