// The engine of shrinking on judges that need no world, and the reductions on scenarios of the swarm.
#include "scenarios/shrink.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "scenarios/runner.h"
#include "scenarios/scenario_text.h"
#include "scenarios/shrink_passes.h"
#include "scenarios/shrink_steps.h"
#include "scenarios/swarm.h"

namespace detcd::scenario {
namespace {

// A rule instead of a world: what fails, and under how many other seeds.
class RuleJudge final : public ShrinkJudge {
 public:
  using Fails = std::function<bool(const Scenario&)>;
  explicit RuleJudge(Fails fails) : fails_(std::move(fails)) {}

  std::optional<size_t> First(const std::vector<Scenario>& candidates) override {
    EXPECT_FALSE(candidates.empty());
    ++calls;
    for (size_t i = 0; i < candidates.size(); ++i) {
      ++runs;
      EXPECT_EQ(CheckScenario(candidates[i]), "");
      if (fails_(candidates[i])) return i;
    }
    return std::nullopt;
  }
  OtherSeeds Others(const Scenario& candidate, uint32_t enough) override {
    return {.failing = std::min(enough, others(candidate)), .runs = 0};
  }
  bool Interrupted() override { return interrupt_after != 0 && calls >= interrupt_after; }

  uint64_t calls = 0;
  uint64_t runs = 0;
  uint64_t interrupt_after = 0;
  std::function<uint32_t(const Scenario&)> others = [](const Scenario&) { return kOtherSeeds; };

 private:
  Fails fails_;
};

class KeepAll final : public ShrinkListener {
 public:
  void OnBetter(const Scenario& best, const ShrinkProgress&) override { taken.push_back(best); }
  void OnProgress(const Scenario&, const ShrinkProgress&) override {}

  std::vector<Scenario> taken;
};

bool HasOperation(const Scenario& scenario, uint32_t id) {
  return std::ranges::any_of(scenario.operations(), [&](const Operation& operation) { return operation.id() == id; });
}

std::multiset<uint32_t> Ids(const Scenario& scenario) {
  std::multiset<uint32_t> ids;
  for (const Operation& operation : scenario.operations()) ids.insert(operation.id());
  return ids;
}

// Fails while both operations are there.
RuleJudge::Fails NeedsOperations(uint32_t a, uint32_t b) {
  return [=](const Scenario& scenario) { return HasOperation(scenario, a) && HasOperation(scenario, b); };
}

Scenario Swarm() { return MakeSwarm(5, FidelityChoice::kDirect); }

ShrinkResult ShrinkBy(const RuleJudge::Fails& fails, ShrinkOptions options = {}) {
  RuleJudge judge(fails);
  KeepAll listener;
  return Shrink(Swarm(), MakeShrinkPasses(), options, judge, listener);
}

TEST(ShrinkTest, KeepsOnlyWhatTheFailureNeeds) {
  const ShrinkResult result = ShrinkBy(NeedsOperations(7, 90));
  EXPECT_TRUE(result.minimal);
  EXPECT_EQ(Ids(result.best), (std::multiset<uint32_t>{7, 90}));
  EXPECT_EQ(result.best.episodes_size(), 0);
  EXPECT_EQ(result.best.clocks_size(), 0);
  EXPECT_EQ(result.best.members(), 1u);
  EXPECT_EQ(result.best.clients(), 1u);
  EXPECT_FALSE(result.best.has_knobs());
  EXPECT_EQ(result.best.links().delay().min_us(), result.best.links().delay().max_us());
}

TEST(ShrinkTest, AFailureThatNeedsNothingLeavesNothing) {
  const ShrinkResult result = ShrinkBy([](const Scenario&) { return true; });
  EXPECT_EQ(result.best.operations_size() + result.best.episodes_size(), 0);
  EXPECT_EQ(result.best.members(), 1u);
}

TEST(ShrinkTest, AFailureThatNeedsEverythingIsLeftAlone) {
  const std::string all = Swarm().SerializeAsString();
  const ShrinkResult result = ShrinkBy([&](const Scenario& scenario) { return scenario.SerializeAsString() == all; }, {.runs_max = 100'000});
  EXPECT_EQ(result.best.SerializeAsString(), all);
  EXPECT_EQ(result.progress.changes, 0u);
}

TEST(ShrinkTest, DoesNotDependOnTheSizeOfBatches) {
  const auto fails = NeedsOperations(20, 100);
  const ShrinkResult one = ShrinkBy(fails, {.batch = 1});
  for (const uint32_t batch : {2u, 7u, 1'000u}) {
    const ShrinkResult other = ShrinkBy(fails, {.batch = batch});
    EXPECT_EQ(one.best.SerializeAsString(), other.best.SerializeAsString()) << batch;
    EXPECT_EQ(one.progress.runs, other.progress.runs) << batch;
  }
}

TEST(ShrinkTest, EndsAtTheBoundWithTheBestSoFar) {
  for (const uint64_t runs_max : {1u, 2u, 17u, 60u}) {
    RuleJudge judge(NeedsOperations(7, 90));
    KeepAll listener;
    const ShrinkResult result = Shrink(Swarm(), MakeShrinkPasses(), {.runs_max = runs_max}, judge, listener);
    EXPECT_LE(judge.runs, runs_max);
    EXPECT_FALSE(result.minimal);
    EXPECT_TRUE(HasOperation(result.best, 7) && HasOperation(result.best, 90));
    const Scenario last = listener.taken.empty() ? Swarm() : listener.taken.back();
    EXPECT_EQ(last.SerializeAsString(), result.best.SerializeAsString());
  }
}

TEST(ShrinkTest, GoesOnFromWhereItWasInterrupted) {
  RuleJudge first(NeedsOperations(7, 90));
  first.interrupt_after = 12;
  KeepAll listener;
  const ShrinkResult broken = Shrink(Swarm(), MakeShrinkPasses(), {}, first, listener);
  EXPECT_FALSE(broken.minimal);
  RuleJudge second(NeedsOperations(7, 90));
  const ShrinkResult result = Shrink(broken.best, MakeShrinkPasses(), {}, second, listener);
  EXPECT_EQ(Ids(result.best), (std::multiset<uint32_t>{7, 90}));
}

TEST(ShrinkTest, DoesNotTradeOtherSeedsForSize) {
  RuleJudge judge([](const Scenario&) { return true; });
  // With fewer than 30 operations it fails under its own seed only.
  judge.others = [](const Scenario& scenario) { return scenario.operations_size() >= 30 ? kOtherSeedsWanted : 0; };
  KeepAll listener;
  const ShrinkResult result = Shrink(Swarm(), MakeShrinkPasses(), {}, judge, listener);
  EXPECT_EQ(result.best.operations_size(), 30);
  EXPECT_EQ(result.progress.others, kOtherSeedsWanted);
}

TEST(ShrinkTest, IsNotKeptLargeByOtherSeeds) {
  // Large, it fails under many; small, under one.
  RuleJudge judge(NeedsOperations(7, 90));
  judge.others = [](const Scenario& scenario) { return scenario.operations_size() > 40 ? kOtherSeedsWanted : 1; };
  KeepAll listener;
  const ShrinkResult result = Shrink(Swarm(), MakeShrinkPasses(), {}, judge, listener);
  EXPECT_EQ(Ids(result.best), (std::multiset<uint32_t>{7, 90}));
}

TEST(ShrinkTest, TellsWhatItsRunsWentTo) {
  const ShrinkResult result = ShrinkBy(NeedsOperations(7, 90));
  uint64_t runs = 0;
  uint64_t changes = 0;
  for (const ShrinkPassCost& cost : result.costs) {
    runs += cost.runs;
    changes += cost.changes;
  }
  EXPECT_EQ(runs, result.progress.runs);
  EXPECT_EQ(changes, result.progress.changes);
}

TEST(ShrinkTest, KeepsTheLastPartOfALongScenario) {
  Scenario from;
  ASSERT_EQ(ParseScenarioText("format_version: 1 members: 3 clients: 1 chaos_ms: 60000 lost_members: [2]\n"
                              "episodes { id: 1 at_ms: 10 for_ms: 5 pause { members: [1] } }\n"
                              "episodes { id: 2 at_ms: 30000 for_ms: 29000 partition { group: [1] } }\n"
                              "operations { id: 1 client: 1 at_ms: 20000 put { key: 'k' } }\n"
                              "operations { id: 2 client: 1 at_ms: 58000 put { key: 'k' } }", from), "");
  // Needs luck: another member in the partition.
  const ShrinkPasses passes = {.reductions = {{"the last part", kPartLevels, LastPart}}, .second_chances = {}, .hardenings = {}};
  RuleJudge judge([](const Scenario& scenario) {
    return HasOperation(scenario, 2) && scenario.episodes_size() == 1 && scenario.episodes(0).partition().group(0) == 3 &&
           scenario.episodes(0).for_ms() > 2'700;
  });
  KeepAll listener;
  const Scenario best = Shrink(from, passes, {}, judge, listener).best;
  EXPECT_EQ(ScenarioText(best).substr(ScenarioText(best).find("members")),
            "members: 3\nchaos_ms: 6750\nepisodes { id: 2 at_ms: 3000 for_ms: 2750 partition { group: [3] } }\n"
            "operations { id: 2 client: 1 at_ms: 4750 put { key: \"k\" } }\nclients: 1\nlost_members: 1\n");
}

// Calls as the runner counts them.
uint64_t CallsOf(const Scenario& scenario) {
  uint64_t calls = 0;
  for (const Operation& operation : scenario.operations()) calls += std::max(1u, operation.times());
  return calls;
}

TEST(ShrinkTest, PutsASteadyLoadInThePlaceOfCallsOfWhichNoneCanGo) {
  const uint64_t all = CallsOf(Swarm());
  ASSERT_GT(all, 40u);
  const ShrinkResult result = ShrinkBy([&](const Scenario& scenario) { return CallsOf(scenario) >= all; });
  EXPECT_TRUE(result.minimal);
  EXPECT_LE(result.best.operations_size(), 2) << ScenarioText(result.best);
  EXPECT_GE(CallsOf(result.best), all);
}

TEST(ShrinkTest, PutsASteadyLoadInThePlaceOfCallsThatTakeLuck) {
  RuleJudge judge([](const Scenario& scenario) { return CallsOf(scenario) >= 2 && scenario.chaos_ms() >= 600; });
  judge.others = [](const Scenario& scenario) { return CallsOf(scenario) >= 20 ? kOtherSeedsWanted : 0; };
  KeepAll listener;
  Scenario from;
  ASSERT_EQ(ParseScenarioText("format_version: 1 chaos_ms: 1000 operations { id: 1 client: 1 at_ms: 500 put { key: \"a\" } } "
                              "operations { id: 2 client: 1 at_ms: 600 range { key: \"a\" } }", from), "");
  const ShrinkResult result = Shrink(from, MakeShrinkPasses(), {}, judge, listener);
  EXPECT_EQ(result.progress.others, kOtherSeedsWanted);
  EXPECT_LE(result.best.operations_size(), 2) << ScenarioText(result.best);
}

TEST(ShrinkTest, LuckDoesNotMakeAScenarioLarge) {
  RuleJudge judge([](const Scenario& scenario) { return scenario.episodes_size() >= 4; });
  judge.others = [](const Scenario& scenario) { return scenario.episodes_size() > static_cast<int>(kSmallFaultLines) ? 3u : 0u; };
  KeepAll listener;
  Scenario from;
  ASSERT_EQ(ParseScenarioText("format_version: 1 members: 3 chaos_ms: 1000\n"
                              "episodes { id: 1 at_ms: 10 for_ms: 5 crash { members: [1] } }\n"
                              "episodes { id: 2 at_ms: 20 for_ms: 5 crash { members: [1] } }\n"
                              "episodes { id: 3 at_ms: 30 for_ms: 5 crash { members: [1] } }\n"
                              "episodes { id: 4 at_ms: 40 for_ms: 5 crash { members: [1] } }\n", from), "");
  EXPECT_EQ(Shrink(from, MakeShrinkPasses(), {}, judge, listener).best.episodes_size(), 4);
}

TEST(ShrinkTest, FoldsTheCallsOfAClientIntoOneThatIsRepeated) {
  Scenario from;
  ASSERT_EQ(ParseScenarioText("format_version: 1 chaos_ms: 1000 clients: 2 "
                              "operations { id: 1 client: 1 at_ms: 100 put { key: \"a\" } } "
                              "operations { id: 2 client: 1 at_ms: 150 txn { } } "
                              "operations { id: 3 client: 2 at_ms: 160 range { key: \"b\" } } "
                              "operations { id: 4 client: 1 at_ms: 200 compact { } } "
                              "operations { id: 5 client: 1 at_ms: 300 times: 2 every_ms: 50 put { key: \"c\" } } "
                              "operations { id: 9 client: 1 at_ms: 400 delete { key: \"a\" } }", from), "");
  const auto left = [&](uint32_t level, size_t which) {
    Scenario candidate = from;
    Repeats(from, level).at(which)(candidate);
    EXPECT_EQ(CheckScenario(candidate), "");
    std::vector<std::string> lines;
    for (const Operation& operation : candidate.operations()) lines.push_back(operation.ShortDebugString());
    return lines;
  };
  const std::string read = "id: 3 client: 2 at_ms: 160 range { key: \"b\" }";
  const std::string compaction = "id: 4 client: 1 at_ms: 200 compact { }";
  // All five writes, before the compaction that follows the first; the ids are new.
  const std::vector<std::string> all = {"id: 10 client: 1 at_ms: 100 put { key: \"a\" } times: 5 every_ms: 25", read, compaction};
  EXPECT_EQ(left(0, 0), all);
  EXPECT_EQ(left(1, 0), all);
  // What a compaction parts stays apart.
  EXPECT_EQ(left(2, 0), (std::vector<std::string>{"id: 10 client: 1 at_ms: 100 put { key: \"a\" } times: 2 every_ms: 50", read, compaction,
                                                  from.operations(4).ShortDebugString(), from.operations(5).ShortDebugString()}));
  // And four times as often.
  EXPECT_EQ(left(1, 1)[0], "id: 10 client: 1 at_ms: 100 put { key: \"a\" } times: 20 every_ms: 5");
}

TEST(ShrinkTest, KeepsWhatCannotBeRepeatedBesideRepeatedCalls) {
  // Ten writes in this order, a compaction, a hash: no write can go, and a steady load has neither of the others.
  const auto fails = [](const Scenario& scenario) {
    uint64_t writes = 0;
    bool compacted = false;
    for (const Operation& operation : scenario.operations()) {
      if (operation.has_put() || operation.has_txn()) writes += std::max(1u, operation.times());
      if (operation.has_compact()) compacted = writes >= 10;
      if (operation.has_hash_kv() && compacted) return true;
    }
    return false;
  };
  Scenario from;
  ASSERT_EQ(ParseScenarioText("format_version: 1 chaos_ms: 1000", from), "");
  for (uint32_t id = 1; id <= 14; ++id) {
    Operation& operation = *from.add_operations();
    operation.set_id(id);
    operation.set_client(1);
    operation.set_at_ms(10 * id);
    if (id <= 12) operation.mutable_put()->set_key("k" + std::to_string(id));
    if (id == 13) operation.mutable_compact();
    if (id == 14) operation.mutable_hash_kv();
  }
  RuleJudge judge(fails);
  KeepAll listener;
  const ShrinkResult result = Shrink(from, MakeShrinkPasses(), {}, judge, listener);
  EXPECT_EQ(result.best.operations_size(), 3) << ScenarioText(result.best);
  EXPECT_EQ(CallsOf(result.best), 12u);
}

TEST(ShrinkTest, PutsFewReadersInThePlaceOfMany) {
  // Two that read at the same moment.
  const auto fails = [](const Scenario& scenario) {
    std::map<uint64_t, std::set<uint32_t>> readers;  // by time
    for (const Operation& operation : scenario.operations()) {
      if (operation.has_range() && operation.times() > 5) readers[operation.at_ms()].insert(operation.client());
    }
    return scenario.operations_size() > 12 || std::ranges::any_of(readers, [](const auto& entry) { return entry.second.size() >= 2; });
  };
  ASSERT_GE(Swarm().clients(), 2u);
  EXPECT_EQ(ShrinkBy(fails).best.operations_size(), 2);
}

TEST(ShrinkTest, WhatTookNothingRestsUntilTheOthersAreDone) {
  // One pass takes an operation a round, another nothing at all.
  uint64_t idle_rounds = 0;
  const ShrinkPass one{"one", 1, [](const Scenario& scenario, uint32_t) {
                         Edits edits;
                         if (scenario.operations_size() == 0) return edits;
                         const uint32_t id = scenario.operations(0).id();
                         edits.push_back([id](Scenario& candidate) { RemoveOperations(candidate, {id}); });
                         return edits;
                       }};
  const ShrinkPass idle{"idle", 1, [&](const Scenario&, uint32_t) {
                          ++idle_rounds;
                          return Edits{[](Scenario& candidate) { candidate.clear_episodes(); }};
                        }};
  RuleJudge judge([](const Scenario& scenario) { return scenario.episodes_size() > 0 && scenario.operations_size() >= 20; });
  KeepAll listener;
  const ShrinkPasses passes = {.reductions = {one, idle}, .second_chances = {}, .hardenings = {}};
  const ShrinkResult result = Shrink(Swarm(), passes, {}, judge, listener);
  EXPECT_TRUE(result.minimal);
  EXPECT_EQ(result.best.operations_size(), 20);
  EXPECT_EQ(idle_rounds, 2u);  // the first and the last
}

TEST(ShrinkTest, ARestedPassIsTriedOnTheResultOfTheOthers) {
  // The episodes can go only once few operations are left.
  const auto fails = [](const Scenario& scenario) {
    return scenario.operations_size() >= 20 && (scenario.episodes_size() > 0 || scenario.operations_size() == 20);
  };
  const ShrinkPass one{"one", 1, [](const Scenario& scenario, uint32_t) {
                         const uint32_t id = scenario.operations_size() > 0 ? scenario.operations(0).id() : 0;
                         return Edits{[id](Scenario& candidate) { RemoveOperations(candidate, {id}); }};
                       }};
  const ShrinkPass episodes{"episodes", 1, [](const Scenario&, uint32_t) {
                              return Edits{[](Scenario& candidate) { candidate.clear_episodes(); }};
                            }};
  RuleJudge judge(fails);
  KeepAll listener;
  const ShrinkPasses passes = {.reductions = {episodes, one}, .second_chances = {}, .hardenings = {}};
  const ShrinkResult result = Shrink(Swarm(), passes, {}, judge, listener);
  EXPECT_EQ(result.best.operations_size(), 20);
  EXPECT_EQ(result.best.episodes_size(), 0);
}

TEST(ShrinkTest, CallsOfARepeatedOperationGoWithTheirTime) {
  const auto repeated = [](const std::string& calls) {
    Scenario scenario;
    EXPECT_EQ(ParseScenarioText("format_version: 1 chaos_ms: 1000 operations { client: 1 put { key: 'k' } " + calls + " }", scenario), "");
    return scenario;
  };
  const auto left = [](const Scenario& scenario) {
    const std::string text = ScenarioText(scenario);
    return scenario.operations_size() == 0 ? "" : text.substr(text.find("operations"), text.find('\n', text.find("operations")) - text.find("operations"));
  };
  const std::string ten = "id: 5 at_ms: 100 times: 10 every_ms: 50";  // the last at 550
  for (const auto& [from_ms, rest] : {std::pair<uint32_t, std::string>{100, ten},
                                      {101, "id: 6 at_ms: 150 times: 9 every_ms: 50"},
                                      {150, "id: 6 at_ms: 150 times: 9 every_ms: 50"},
                                      {550, "id: 14 at_ms: 550"},
                                      {551, ""}}) {
    Scenario scenario = repeated(ten);
    RemoveCallsBefore(scenario, from_ms);
    EXPECT_EQ(left(scenario), rest.empty() ? "" : left(repeated(rest))) << from_ms;
  }
  for (const auto& [end_ms, rest] : {std::pair<uint32_t, std::string>{99, ""},
                                     {100, "id: 5 at_ms: 100"},
                                     {199, "id: 5 at_ms: 100 times: 2 every_ms: 50"},
                                     {549, "id: 5 at_ms: 100 times: 9 every_ms: 50"},
                                     {550, ten}}) {
    Scenario scenario = repeated(ten);
    CutEnd(scenario, end_ms);
    EXPECT_EQ(left(scenario), rest.empty() ? "" : left(repeated(rest))) << end_ms;
  }
  // All at once, and one alone.
  for (const std::string calls : {"id: 5 at_ms: 100 times: 10", "id: 5 at_ms: 100"}) {
    Scenario kept = repeated(calls);
    RemoveCallsBefore(kept, 100);
    CutEnd(kept, 100);
    EXPECT_EQ(left(kept), left(repeated(calls)));
    Scenario gone = repeated(calls);
    RemoveCallsBefore(gone, 101);
    EXPECT_EQ(gone.operations_size(), 0);
  }
}

TEST(ShrinkTest, HardensAFailureOfFewSeeds) {
  RuleJudge judge([](const Scenario& scenario) { return scenario.episodes_size() >= 1; });
  judge.others = [](const Scenario& scenario) { return scenario.episodes_size() > 0 && scenario.episodes(0).for_ms() >= 8 ? 3u : 1u; };
  KeepAll listener;
  Scenario from = Swarm();
  from.mutable_episodes()->DeleteSubrange(1, from.episodes_size() - 1);
  from.mutable_episodes(0)->set_for_ms(2);
  const ShrinkResult result = Shrink(from, MakeShrinkPasses(), {}, judge, listener);
  EXPECT_EQ(result.progress.others, kOtherSeedsWanted);
  EXPECT_EQ(result.best.episodes_size(), 1) << ScenarioText(result.best);
}

// What hardening makes of `text` when the rule is as lucky as `others` says.
ShrinkResult Hardened(const std::string& text, const std::function<uint32_t(const Scenario&)>& others) {
  Scenario from;
  EXPECT_EQ(ParseScenarioText(text, from), "");
  RuleJudge judge([](const Scenario&) { return true; });
  judge.others = others;
  KeepAll listener;
  ShrinkPasses passes = MakeShrinkPasses();
  passes.reductions.clear();
  passes.second_chances.clear();
  return Shrink(from, passes, {}, judge, listener);
}

TEST(ShrinkTest, HardensByChancesThatAreThere) {
  const auto others = [](const Scenario& scenario) { return scenario.links().loss_ppm() >= 200'000 ? kOtherSeedsWanted : 0; };
  EXPECT_EQ(Hardened("format_version: 1 chaos_ms: 1000 links { loss_ppm: 5 }", others).progress.others, kOtherSeedsWanted);
  // A fault that was not there would be a line more.
  EXPECT_EQ(Hardened("format_version: 1 chaos_ms: 1000 links { duplicate_ppm: 5 }", others).progress.others, 0u);
}

TEST(ShrinkTest, HardensByWhatTakesLonger) {
  const auto others = [](const Scenario& scenario) { return scenario.disks().sync().min_us() >= 10'000 ? kOtherSeedsWanted : 0; };
  EXPECT_EQ(Hardened("format_version: 1 chaos_ms: 1000 disks { sync { min_us: 1000 max_us: 2000 } }", others).progress.others,
            kOtherSeedsWanted);
}

TEST(ShrinkTest, HardensByATransferThatSettlesWhoLeads) {
  const ShrinkResult result = Hardened(
      "format_version: 1 members: 3 chaos_ms: 1000 episodes { id: 4 at_ms: 500 pause { members: [2] } } "
      "operations { id: 1 client: 1 at_ms: 600 put { key: \"a\" } }",
      [](const Scenario& scenario) {
        const bool led = scenario.episodes_size() == 2 && scenario.episodes(1).transfer().to_size() == 1;
        return led && scenario.episodes(1).transfer().to(0) == 2 && scenario.operations(0).times() == 0 ? kOtherSeedsWanted : 0;
      });
  // All that was planned keeps its order behind it.
  EXPECT_EQ(result.best.episodes(1).at_ms(), 3'000u);
  EXPECT_EQ(result.best.episodes(0).at_ms(), 4'000u);
  EXPECT_EQ(result.best.operations(0).at_ms(), 4'100u);
  EXPECT_EQ(result.best.chaos_ms(), 4'500u);
}

TEST(ShrinkTest, HardensByMomentsThatWaitForALeader) {
  const std::string text = "format_version: 1 chaos_ms: 1000 episodes { id: 1 at_ms: 500 blackout {} } "
                           "operations { id: 1 client: 1 at_ms: 600 put { key: \"a\" } }";
  const auto fault = [](const Scenario& scenario) { return scenario.episodes(0).at_new_leader() ? kOtherSeedsWanted : 0; };
  EXPECT_EQ(Hardened(text, fault).progress.others, kOtherSeedsWanted);
  const auto call = [](const Scenario& scenario) { return scenario.operations(0).at_new_leader() ? kOtherSeedsWanted : 0; };
  EXPECT_EQ(Hardened(text, call).progress.others, kOtherSeedsWanted);
}

TEST(ShrinkTest, WaitsForNoLeaderWithoutNeed) {
  Scenario from;
  ASSERT_EQ(ParseScenarioText("format_version: 1 members: 3 chaos_ms: 1000 "
                              "episodes { id: 1 at_new_leader: true for_ms: 50 until_new_leader: true pause { members: 1 } } "
                              "operations { id: 1 client: 1 at_new_leader: true later_ms: 5 put { key: \"a\" } }", from), "");
  RuleJudge judge([](const Scenario& scenario) { return scenario.episodes_size() == 1 && scenario.operations_size() == 1; });
  KeepAll listener;
  const Scenario best = Shrink(from, MakeShrinkPasses(), {}, judge, listener).best;
  EXPECT_FALSE(best.episodes(0).at_new_leader() || best.episodes(0).until_new_leader());
  EXPECT_FALSE(best.operations(0).at_new_leader() || best.operations(0).later_ms() != 0);
}

TEST(ShrinkTest, HardensBySeveralMeansAtOnce) {
  // Each member in turn, over slow links; neither alone.
  const ShrinkResult result = Hardened(
      "format_version: 1 members: 3 chaos_ms: 1000 links { delay { min_us: 500 max_us: 500 } } "
      "episodes { id: 1 at_ms: 500 for_ms: 100 pause { members: [2] } }",
      [](const Scenario& scenario) {
        std::set<uint32_t> hit;
        for (const Episode& episode : scenario.episodes()) {
          if (episode.pause().members_size() == 1) hit.insert(episode.pause().members(0));
        }
        return hit.size() == 3 && scenario.links().delay().min_us() >= 1'000 ? kOtherSeedsWanted : 0;
      });
  EXPECT_EQ(result.progress.others, kOtherSeedsWanted);
  EXPECT_LE(SizeOf(result.best).fault_lines, kSmallFaultLines);
}

TEST(ShrinkTest, HardensNoFurtherThanWanted) {
  RuleJudge judge([](const Scenario&) { return true; });
  judge.others = [](const Scenario& scenario) { return scenario.episodes_size() > 0 ? kOtherSeedsWanted : 0; };
  KeepAll listener;
  Scenario from;
  ASSERT_EQ(ParseScenarioText("format_version: 1 members: 3 chaos_ms: 1000", from), "");
  ShrinkPasses passes = MakeShrinkPasses();
  passes.reductions.clear();
  passes.second_chances.clear();
  const ShrinkResult result = Shrink(from, passes, {}, judge, listener);
  EXPECT_EQ(result.progress.changes, 1u);
  EXPECT_EQ(result.progress.others, kOtherSeedsWanted);
}

TEST(ShrinkTest, TriesNoScenarioTwice) {
  std::multiset<std::string> tried;
  ShrinkBy([&](const Scenario& scenario) {
    EXPECT_FALSE(tried.contains(scenario.SerializeAsString()));
    tried.insert(scenario.SerializeAsString());
    return HasOperation(scenario, 50);
  });
}

TEST(ShrinkTest, EndsForAnyFailure) {
  // Judges that answer at random, but the same for the same scenario.
  for (uint64_t salt = 1; salt <= 8; ++salt) {
    const ShrinkResult result = ShrinkBy(
        [salt](const Scenario& scenario) { return std::hash<std::string>()(scenario.SerializeAsString()) % 5 < salt % 5; },
        {.runs_max = 200'000});
    EXPECT_TRUE(result.minimal) << salt;
  }
}

TEST(ShrinkTest, FewerMembersLeaveNoTraceOfTheOthers) {
  Scenario from;
  ASSERT_EQ(ParseScenarioText("format_version: 1 members: 5 clients: 2 chaos_ms: 1000\n"
                              "clocks { member: 5 drift_ppm: 100 }\n"
                              "episodes { id: 1 at_ms: 10 for_ms: 5 partition { group: [1, 5] } }\n"
                              "episodes { id: 2 at_ms: 10 for_ms: 5 crash { members: [4] } }\n"
                              "operations { id: 1 client: 1 put { key: 'k' } }", from), "");
  RuleJudge judge([](const Scenario& scenario) {
    return scenario.members() >= 3 && std::ranges::any_of(scenario.episodes(), [](const Episode& e) { return e.has_partition(); });
  });
  KeepAll listener;
  const Scenario best = Shrink(from, MakeShrinkPasses(), {}, judge, listener).best;
  EXPECT_EQ(best.members(), 3u);
  EXPECT_EQ(best.clocks_size(), 0);
  ASSERT_EQ(best.episodes_size(), 1);
  EXPECT_THAT(best.episodes(0).partition().group(), ::testing::ElementsAre(1));
  EXPECT_EQ(best.operations_size(), 0);
}

TEST(ShrinkTest, LostMembersGoWithTheMembersAndByThemselves) {
  Scenario from;
  ASSERT_EQ(ParseScenarioText("format_version: 1 members: 5 chaos_ms: 1000 lost_members: [1, 5]", from), "");
  Scenario three = from;
  KeepMembers(three, 3);
  EXPECT_THAT(three.lost_members(), ::testing::ElementsAre(1));
  EXPECT_EQ(CheckScenario(three), "");
  Scenario both = from;
  both.set_lost_members(1, 2);
  KeepMembers(both, 3);
  EXPECT_THAT(both.lost_members(), ::testing::ElementsAre(1));
  KeepMembers(both, 1);
  EXPECT_EQ(both.lost_members_size(), 0);
  EXPECT_EQ(CheckScenario(both), "");

  RuleJudge judge([](const Scenario& scenario) { return scenario.lost_members_size() > 0; });
  KeepAll listener;
  const Scenario best = Shrink(from, MakeShrinkPasses(), {}, judge, listener).best;
  EXPECT_EQ(best.members(), 3u);
  EXPECT_EQ(best.lost_members_size(), 1);
}

TEST(ShrinkTest, HardeningsLeaveScenariosThatCanBeRun) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Scenario from = MakeSwarm(seed, FidelityChoice::kMixed);
    for (const ShrinkPass& pass : MakeShrinkPasses().hardenings) {
      for (const ShrinkEdit& edit : pass.edits(from, 0)) {
        Scenario candidate = from;
        edit(candidate);
        // What is more than a run may be is skipped; anything else is a mistake of the edit.
        const std::string trouble = CheckScenario(candidate);
        EXPECT_TRUE(trouble.empty() || trouble.find("_ms") != std::string::npos) << pass.name << ": " << trouble;
      }
    }
  }
}

TEST(ShrinkTest, HardeningsKnowThatAnOperationMayStandForMany) {
  Scenario from;
  const std::string text =
      "format_version: 1 chaos_ms: 3000 "
      "operations { id: 1 client: 1 at_ms: 500 times: 20 every_ms: 50 put { key: \"a\" } } "
      "operations { id: 21 client: 1 at_ms: 2000 put { key: \"a\" } }";
  ASSERT_EQ(ParseScenarioText(text, from), "");
  for (const ShrinkPass& pass : MakeShrinkPasses().hardenings) {
    for (const ShrinkEdit& edit : pass.edits(from, 0)) {
      Scenario candidate = from;
      edit(candidate);
      EXPECT_EQ(CheckScenario(candidate), "") << pass.name;
    }
  }
}

TEST(ScenarioTextTest, ReadsBackAsTheSameScenario) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const Scenario scenario = MakeSwarm(seed, FidelityChoice::kMixed);
    const std::string text = ScenarioText(scenario);
    Scenario again;
    ASSERT_EQ(ParseScenarioText(text, again), "");
    ASSERT_EQ(again.SerializeAsString(), scenario.SerializeAsString()) << text;
  }
}

TEST(ScenarioTextTest, HasALineForEachEpisodeAndOperation) {
  const Scenario scenario = Swarm();
  const std::string text = ScenarioText(scenario);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'),
            scenario.episodes_size() + scenario.operations_size() + scenario.clocks_size() + 13);
}

}  // namespace
}  // namespace detcd::scenario
