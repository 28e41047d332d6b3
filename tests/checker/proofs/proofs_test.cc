#include "checker/proofs/proof.h"

#include <algorithm>
#include <map>
#include <set>

#include "checker/proofs/session.h"

namespace detcd::proofs {
namespace {

using ::testing::HasSubstr;

// All of them run once, here: a test for each would repeat the names that AllProofs has.
const std::map<std::string, Outcome>& Outcomes() {
  static const auto* outcomes = [] {
    auto* all = new std::map<std::string, Outcome>;
    for (const Proof& proof : AllProofs()) (*all)[proof.name + " " + std::to_string(proof.voters)] = proofs::Run(proof, kRlimitDefault);
    return all;
  }();
  return *outcomes;
}

TEST(ProofsTest, EachRuleIsProvedAndEachWeakenedTwinRefuted) {
  uint64_t used_most = 0;
  for (const Proof& proof : AllProofs()) {
    const Outcome& outcome = Outcomes().at(proof.name + " " + std::to_string(proof.voters));
    EXPECT_EQ(outcome.answer, proof.expected) << proof.name << " " << proof.voters << ": "
                                              << (outcome.story.empty() ? "" : outcome.story.front());
    EXPECT_EQ(outcome.story.empty(), outcome.answer == Answer::kProved) << proof.name;
    used_most = std::max(used_most, outcome.rlimit_used);
  }
  EXPECT_LT(used_most, kRlimitDefault / 4) << "the budget has room for another version of Z3";
}

TEST(ProofsTest, EachRuleHasATwinAndEachNameIsOne) {
  std::set<std::pair<std::string, unsigned>> names;
  std::set<std::string> rules;
  std::set<std::string> weakened;
  for (const Proof& proof : AllProofs()) {
    EXPECT_TRUE(names.emplace(proof.name, proof.voters).second) << proof.name;
    const std::string rule = proof.name.substr(0, proof.name.find('/'));
    (proof.IsTwin() ? weakened : rules).insert(rule);
    EXPECT_EQ(proof.IsTwin(), proof.name != rule) << proof.name;
  }
  // The bound's own twins: one nanosecond more is refuted within the proof; joint-commit is by the same quorums.
  for (const char* without : {"lease-bound", "lease-bound-formula", "lease-bound-code", "joint-commit"}) rules.erase(without);
  EXPECT_EQ(rules, weakened);
}

TEST(ProofsTest, ASpentBudgetIsUndetermined) {
  for (const Proof& proof : AllProofs()) {
    if (proof.name != "election" || proof.voters != 5) continue;
    const Outcome outcome = proofs::Run(proof, 10'000);
    EXPECT_EQ(outcome.answer, Answer::kUndetermined);
    ASSERT_EQ(outcome.story.size(), 1u);
  }
}

TEST(ProofsTest, TheSameProofTakesTheSameUnits) {
  for (const Proof& proof : AllProofs()) {
    if (proof.name != "pre-vote" && proof.name != "lease") continue;
    EXPECT_EQ(proofs::Run(proof, kRlimitDefault).rlimit_used, Outcomes().at(proof.name + " " + std::to_string(proof.voters)).rlimit_used);
  }
}

TEST(ProofsTest, AStoryIsToldInWords) {
  EXPECT_THAT(Outcomes().at("election/old-term-committed-by-counting 3").story,
              ::testing::Contains(HasSubstr("acknowledges entry (index 1, term")));
  EXPECT_THAT(Outcomes().at("lease/no-wait-after-restart 3").story,
              ::testing::Contains(HasSubstr("starts again, and knows of no promise")));
}

TEST(SessionTest, TellsNumbersOfAModel) {
  Session session(1'000'000);
  const z3::expr third = session.Real("third");
  const z3::expr number = session.Int("number");
  const auto model = session.Find({third == session.Fraction(-1, 3), number == 7});
  ASSERT_TRUE(model.has_value());
  EXPECT_EQ(MillionthsOf(*model, third), -333'334);
  EXPECT_EQ(IntegerOf(*model, number), 7);
}

TEST(SessionTest, CountsWhatItUsesAndRefusesMore) {
  Session session(1);
  const z3::expr number = session.Int("number");
  EXPECT_THROW(
      {
        session.Find({number > 3});
        session.Find({number > 4});
      },
      Undetermined);
  EXPECT_GT(session.used(), 0u);
}

}  // namespace
}  // namespace detcd::proofs
