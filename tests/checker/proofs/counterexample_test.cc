// Counterexamples as scenarios, and the command.
#include "scenarios/counterexample.h"

#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "absl/strings/str_format.h"
#include "checker/proofs/proof.h"
#include "scenarios/runner.h"
#include "scenarios/scenario_text.h"

namespace detcd::scenario {
namespace {

using ::testing::HasSubstr;
using proofs::Happening;
using proofs::Proof;
using proofs::Timeline;

std::vector<std::pair<std::string, Timeline>> Timelines() {
  std::vector<std::pair<std::string, Timeline>> timelines;
  for (const Proof& proof : proofs::AllProofs()) {
    if (!proof.IsTwin() || (proof.name.rfind("lease/", 0) != 0 && proof.name.rfind("pre-vote/", 0) != 0)) continue;
    const proofs::Outcome outcome = proofs::Run(proof, proofs::kRlimitDefault);
    if (outcome.timeline.has_value()) timelines.emplace_back(proof.name, *outcome.timeline);
  }
  return timelines;
}

TEST(CounterexampleTest, EachScenarioCanBeRunAndSaysWhatItIsAbout) {
  const auto timelines = Timelines();
  EXPECT_GE(timelines.size(), 4u);
  for (const auto& [name, timeline] : timelines) {
    for (const uint32_t election_timeout_ms : {100u, 1000u, 5000u}) {
      const Scenario scenario = ScenarioOf(timeline, {.seed = 3, .election_timeout_ms = election_timeout_ms});
      EXPECT_EQ(CheckScenario(scenario), "") << name;
      EXPECT_FALSE(scenario.note().empty()) << name;
      Scenario read;
      EXPECT_EQ(ParseScenarioText(ScenarioText(scenario), read), "") << name;
    }
  }
}

// Where the model is about leases, the code as it is answers reads by them, within its rules: each is fine.
TEST(CounterexampleTest, OnTheRealCodeEachHolds) {
  for (const auto& [name, timeline] : Timelines()) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const RunResult result = RunScenario(ScenarioOf(timeline, {.seed = seed}), {});
      EXPECT_EQ(result.verdict, Verdict::kFine) << name << " " << seed << "\n" << result.story;
    }
  }
}

TEST(CounterexampleTest, TimesAreTheModelsTimesTheElectionTimeout) {
  const Timeline timeline{.weakness = proofs::Weakness::kNoWaitAfterRestart,
                          .members = 3,
                          .old_leader = 1,
                          .new_leader = 3,
                          .lease = 538'461,
                          .drift_ppm_max = 300'000,
                          .drift_ppm = {-300'000, 300'000, 300'000},
                          .events = {{Happening::kRoundSent, 1, 0},
                                     {Happening::kRoundAcknowledged, 2, 20'000},
                                     {Happening::kCrash, 2, 30'000},
                                     {Happening::kStart, 2, 90'000},
                                     {Happening::kWriteAcknowledged, 3, 120'000},
                                     {Happening::kReadInvoked, 1, 130'000},
                                     {Happening::kLeaseChecked, 1, 700'000}}};
  const Scenario scenario = ScenarioOf(timeline, {.seed = 1, .election_timeout_ms = 1000});
  std::vector<std::string> told;
  for (const Episode& episode : scenario.episodes()) {
    if (episode.has_crash()) told.push_back(absl::StrFormat("crash at %d for %d", episode.at_ms(), episode.for_ms()));
    if (episode.has_partition()) {
      told.push_back(absl::StrFormat("cut %d at %d for %d", episode.partition().group(0), episode.at_ms(), episode.for_ms()));
    }
  }
  EXPECT_THAT(told, ::testing::ElementsAre("cut 3 at 4000 for 3020", "cut 1 at 7020 for 1680", "crash at 7030 for 60"));
}

struct Ended {
  int code = 0;
  std::string text;
};

Ended Prove(const std::string& arguments) {
  std::FILE* pipe = popen(absl::StrFormat("%s prove %s 2>&1", DETCD_SIM, arguments).c_str(), "r");
  Ended ended;
  char buffer[4096];
  for (size_t size = 0; (size = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) ended.text.append(buffer, size);
  const int status = pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

TEST(ProveCommandTest, WritesTheScenarioThatRunReads) {
  const std::string file = testing::TempDir() + "detcd_counterexample.scenario";
  const Ended ended = Prove("lease/without-drift --seed 9 --scenario " + file);
  EXPECT_EQ(ended.code, 0) << ended.text;
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  Scenario scenario;
  ASSERT_EQ(ParseScenarioText(text.str(), scenario), "");
  EXPECT_EQ(scenario.seed(), 9u);
}

TEST(ProveCommandTest, TellsARulesTwinsAndWritesTheReport) {
  const std::string file = testing::TempDir() + "detcd_prove.json";
  const Ended ended = Prove("pre-vote --json " + file);
  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("the leader of term 1 steps down"));
  EXPECT_THAT(ended.text, HasSubstr("5 proofs and weakened twins: each proved, each refuted"));
  std::stringstream json;
  json << std::ifstream(file).rdbuf();
  EXPECT_THAT(json.str(), HasSubstr("\"as_expected\": true"));
}

TEST(ProveCommandTest, ExitCodesTellUndeterminedAndUsage) {
  EXPECT_EQ(Prove("election --rlimit 1000").code, 4);
  const Ended unknown = Prove("leese");
  EXPECT_EQ(unknown.code, 64);
  EXPECT_THAT(unknown.text, HasSubstr("lease/without-drift"));
  EXPECT_EQ(Prove("lease --scenario " + testing::TempDir() + "x").code, 64);
  EXPECT_EQ(Prove("majority/off-by-one --scenario " + testing::TempDir() + "x").code, 64);
}

}  // namespace
}  // namespace detcd::scenario
