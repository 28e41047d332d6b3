// Scenarios that once failed, each with a note of what was wrong, and counterexamples of weakened rules, which hold with
// the rules whole. A file keeps the whole scenario, so that it goes on meaning the same when the swarm changes.
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "scenarios/runner.h"

namespace detcd::scenario {
namespace {

std::set<std::string> ScenarioFiles() {
  std::set<std::string> files;
  for (const char* folder : {"/regressions", "/counterexamples", "/cost"}) {
    for (const auto& entry : std::filesystem::directory_iterator(std::string(DETCD_SCENARIOS) + folder)) {
      if (entry.path().extension() == ".scenario") files.insert(entry.path().string());
    }
  }
  return files;
}

TEST(RegressionsTest, EveryScenarioOnFileSaysWhatItIsAboutAndIsFine) {
  const std::set<std::string> files = ScenarioFiles();
  EXPECT_GE(files.size(), 7u);
  for (const std::string& file : files) {
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    Scenario scenario;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text.str(), &scenario)) << file;
    ASSERT_EQ(CheckScenario(scenario), "") << file;
    EXPECT_FALSE(scenario.note().empty()) << file;
    const RunResult result = RunScenario(scenario, {});
    EXPECT_EQ(result.verdict, Verdict::kFine) << file << "\n" << result.story;
  }
}

}  // namespace
}  // namespace detcd::scenario
