// What the zoo reads and reckons; that it builds and measures is shown by running it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_format.h"
#include "scenarios/zoo/mutant.h"

namespace detcd::scenario {
namespace {

using testing::HasSubstr;

constexpr char kHeader[] =
    "Id: zoo-X1\nSource: somewhere\nMechanism: a thing\n that is wrong\nTrigger: rain\nExpected: K4, crash\n";
constexpr char kDiff[] =
    "\ndiff --git a/core/a.cc b/core/a.cc\nindex 1..2 100644\n--- a/core/a.cc\n+++ b/core/a.cc\n@@ -1,2 +1,2 @@\n-old\n+new\n";

std::string Trouble(const std::string& text) {
  std::string trouble;
  EXPECT_FALSE(ParseMutant("scenarios/zoo/zoo-X1.patch", text, trouble).has_value()) << text;
  return trouble;
}

TEST(MutantTest, ReadsHeaderAndDiff) {
  std::string trouble;
  const auto mutant = ParseMutant("scenarios/zoo/zoo-X1.patch", absl::StrFormat("%s%s", kHeader, kDiff), trouble);
  ASSERT_TRUE(mutant.has_value()) << trouble;
  EXPECT_EQ(mutant->id, "zoo-X1");
  EXPECT_EQ(mutant->mechanism, "a thing that is wrong");
  EXPECT_EQ(mutant->expected, (std::vector<std::string>{"K4", "crash"}));
  EXPECT_EQ(mutant->touched, (std::vector<std::string>{"core/a.cc"}));
  EXPECT_EQ(mutant->killed_by, "");
  EXPECT_FALSE(mutant->OfInstrument());
}

TEST(MutantTest, OfAnInstrumentNamesTheTestThatKillsIt) {
  std::string trouble;
  const std::string text = "Id: sim-x\nSource: ours\nMechanism: m\nTrigger: t\nKilled-by: ctest -R sim_test\n";
  const auto mutant = ParseMutant("scenarios/zoo/instrument/sim-x.patch", absl::StrFormat("%s%s", text, kDiff), trouble);
  ASSERT_TRUE(mutant.has_value()) << trouble;
  EXPECT_EQ(mutant->killed_by, "sim_test");
  EXPECT_TRUE(mutant->OfInstrument());
}

TEST(MutantTest, NamesScenariosThatItMustBreak) {
  std::string trouble;
  const std::string more = "Scenario: election/ring, election/bridge\nKilled-by: scenario\n";
  const auto mutant = ParseMutant("scenarios/zoo/zoo-X1.patch", absl::StrFormat("%s%s%s", kHeader, more, kDiff), trouble);
  ASSERT_TRUE(mutant.has_value()) << trouble;
  EXPECT_EQ(mutant->scenarios, (std::vector<std::string>{"election/ring", "election/bridge"}));
  EXPECT_TRUE(mutant->by_scenario);
}

TEST(MutantTest, SaysWhatIsWrong) {
  const std::string header = kHeader;
  const auto with = [](std::string_view head, std::string_view diff) { return absl::StrFormat("%s%s", std::string(head), std::string(diff)); };
  const auto until = [&](std::string_view key) { return std::string_view(header).substr(0, header.find(key)); };
  EXPECT_THAT(Trouble(header), HasSubstr("no diff"));
  EXPECT_THAT(Trouble(with(with("Id: zoo-X2", header.substr(header.find('\n'))), kDiff)), HasSubstr("want `Id: zoo-X1`, found `zoo-X2`"));
  EXPECT_THAT(Trouble(with(until("Expected"), kDiff)), HasSubstr("no `Expected:`"));
  EXPECT_THAT(Trouble(with(with(until("Trigger"), "Expected: K4\n"), kDiff)), HasSubstr("no `Trigger:`"));
  EXPECT_THAT(Trouble(with(with(header, "Killed-by: luck\n"), kDiff)), HasSubstr("`luck`"));
  EXPECT_THAT(Trouble(with(with(header, "Killed-by: scenario\n"), kDiff)), HasSubstr("wants a `Scenario:`"));
  EXPECT_THAT(Trouble(with("nonsense\n", with(header, kDiff))), HasSubstr("`nonsense`"));
  std::string long_diff = kDiff;
  for (int i = 0; i < 9; ++i) long_diff += "+more\n";
  EXPECT_THAT(Trouble(with(header, long_diff)), HasSubstr("11 changed lines"));
}

TEST(WilsonIntervalTest, KnownValues) {
  EXPECT_EQ(WilsonInterval(0, 0).low, 0);
  EXPECT_EQ(WilsonInterval(0, 0).high, 1);
  EXPECT_NEAR(WilsonInterval(0, 100).high, 0.0370, 0.0001);
  EXPECT_NEAR(WilsonInterval(10, 10).low, 0.7225, 0.0001);
  EXPECT_NEAR(WilsonInterval(50, 100).low, 0.4038, 0.0001);
  EXPECT_NEAR(WilsonInterval(50, 100).high, 0.5962, 0.0001);
}

}  // namespace
}  // namespace detcd::scenario
