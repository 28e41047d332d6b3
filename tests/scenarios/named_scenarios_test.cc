// The scenarios of scenarios/election, each about a rule: it says in its note what is expected and why, and holds under
// several seeds, with messages and with bytes.
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "scenarios/runner.h"
#include "scenarios/scenario_text.h"

namespace detcd::scenario {
namespace {

constexpr uint64_t kSeeds = 5;
constexpr uint64_t kWireSeeds = 2;

std::vector<std::string> Files() {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(DETCD_SCENARIOS "/election")) {
    if (entry.path().extension() == ".scenario") files.insert(entry.path().string());
  }
  return {files.begin(), files.end()};
}

class NamedScenario : public testing::TestWithParam<std::string> {
 protected:
  Scenario Read() const {
    std::stringstream text;
    text << std::ifstream(GetParam()).rdbuf();
    Scenario scenario;
    EXPECT_EQ(ParseScenarioText(text.str(), scenario), "") << GetParam();
    return scenario;
  }
  void Expect(Scenario scenario, Fidelity fidelity, uint64_t seeds) const {
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      scenario.set_fidelity(fidelity);
      scenario.set_seed(seed);
      const RunResult result = RunScenario(scenario, {});
      EXPECT_EQ(result.verdict, Verdict::kFine) << GetParam() << ", seed " << seed << "\n" << result.story;
    }
  }
};

TEST_P(NamedScenario, SaysWhatItIsAboutAndHolds) {
  const Scenario scenario = Read();
  ASSERT_EQ(CheckScenario(scenario), "");
  EXPECT_FALSE(scenario.note().empty());
  EXPECT_GT(scenario.expectations_size(), 0);
  Expect(scenario, DIRECT, kSeeds);
}

TEST_P(NamedScenario, HoldsOverTheWire) { Expect(Read(), WIRE, kWireSeeds); }

INSTANTIATE_TEST_SUITE_P(Files, NamedScenario, testing::ValuesIn(Files()),
                         [](const auto& file) { return std::filesystem::path(file.param).stem().string(); });

TEST(NamedScenariosTest, ThereAreSome) { EXPECT_GE(Files().size(), 20u); }

}  // namespace
}  // namespace detcd::scenario
