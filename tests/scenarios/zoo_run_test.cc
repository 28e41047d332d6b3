// `detcd-sim zoo` from end to end, on a tree in which the simulator is a script: what a patch does to it is one line.
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_format.h"
#include "scenarios/json_files.h"
#include "scenarios/zoo/zoo.pb.h"
#include "scenarios/zoo/zoo_table.h"

namespace detcd::scenario {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

// Answers as detcd-sim would that fails by the judge named in `core/judge`, and writes down what it was asked.
constexpr char kFakeSimulator[] = R"sh(#!/bin/sh
tree=$(dirname "$0")/../../..
judge=$(tail -1 "$tree/core/judge")
command=$1
echo "$*" >>"$tree/../asked"
while [ $# -gt 0 ]; do [ "$1" = --json ] && json=$2; shift; done
[ "$judge" = shy ] && [ "$command" = run ] && exit 0
case $command in
  sweep)
    failure='{"seed": "3", "property": "'$judge'", "signature": "'$judge': a thing", "digest": "00000000000000aa"}'
    [ "$judge" = none ] && failure=
    echo '{"totals": {"seeds": "20"}, "cost": {"cpu_seconds": 0.5}, "failures": ['$failure']}' >"$json" ;;
  run) echo "verdict: violation ($judge)"; echo "digest: 00000000000000aa"; exit 1 ;;
  shrink)
    confirmed=true; [ "$judge" = K5 ] && confirmed=false
    echo '{"fault_lines": 2, "operations": 3, "wall_seconds": 1.5, "confirmed": '$confirmed', "minimal": true, "other_seeds_failing": 4, "other_seeds": 10}' >"$json" ;;
esac
)sh";
constexpr char kCMakeLists[] =
    "cmake_minimum_required(VERSION 3.20)\nproject(fake NONE)\nenable_testing()\n"
    "add_custom_target(detcd-sim COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/fake bin/detcd-sim)\n"
    "add_custom_target(good_test)\nadd_test(NAME good_test COMMAND sh -c \"tail -1 ${CMAKE_SOURCE_DIR}/core/judge | grep -q none\")\n"
    "add_custom_target(bad_test)\nadd_test(NAME bad_test COMMAND false)\n";
constexpr char kPresets[] =
    R"({"version": 3, "configurePresets": [{"name": "sim", "generator": "Ninja", "binaryDir": "${sourceDir}/build/sim"}],
        "buildPresets": [{"name": "sim", "configurePreset": "sim"}]})";

class ZooRunTest : public testing::Test {
 protected:
  ZooRunTest() : root_(fs::path(testing::TempDir()) / absl::StrFormat("zoo_run_%d", getpid())) {
    fs::remove_all(root_);
    Write("core/judge", "a line\nnone\n");
    Write("fake", kFakeSimulator);
    fs::permissions(root_ / "fake", fs::perms::owner_all);
    Write("CMakeLists.txt", kCMakeLists);
    Write("CMakePresets.json", kPresets);
    Write(".gitignore", "/build/\n/zoo.json\n");
    Run("git init -q .");
  }
  ~ZooRunTest() override { fs::remove_all(root_); }

  void Write(const std::string& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  std::string Read(const std::string& file) const {
    std::stringstream text;
    text << std::ifstream(root_ / file).rdbuf();
    return text.str();
  }

  // A mutant that has the script fail by `judge`, from what `before` says the file holds.
  void AddMutant(const std::string& id, const std::string& judge, const std::string& header, const std::string& before = "none") const {
    Write("scenarios/zoo/" + id + ".patch",
          absl::StrFormat("Id: %s\nSource: s\nMechanism: the %s way\nTrigger: t\n%s\n\n"
                          "diff --git a/core/judge b/core/judge\n--- a/core/judge\n+++ b/core/judge\n@@ -1,2 +1,2 @@\n a line\n-%s\n+%s\n",
                          id.substr(id.rfind('/') + 1), judge, header, before, judge));
  }

  int Run(const std::string& command) {
    std::FILE* pipe = popen(absl::StrFormat("cd '%s' && %s 2>&1", root_.string(), command).c_str(), "r");
    said_.clear();
    char buffer[4096];
    for (size_t size = 0; (size = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) said_.append(buffer, size);
    const int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  int Zoo(const std::string& arguments = "") { return Run(absl::StrFormat("%s zoo --jobs 1 --json zoo.json %s", DETCD_SIM, arguments)); }

  long Asked(const std::string& word) const {
    std::istringstream lines(Read("build/zoo/asked"));
    long count = 0;
    for (std::string line; std::getline(lines, line);) count += line.rfind(word, 0) == 0 ? 1 : 0;
    return count;
  }

  fs::path root_;
  std::string said_;
};

TEST_F(ZooRunTest, MeasuresShrinksAndGoesOnFromItsReport) {
  AddMutant("zoo-1", "K4", "Expected: K4");
  ASSERT_EQ(Zoo(), 0) << said_;
  EXPECT_THAT(said_, HasSubstr("| zoo-1 | the K4 way | K4 | 3 | 0.05 [0.0089, 0.24] | 0.50 s | 2 / 3, 1.5 s, 4 of 10 |\n"));
  EXPECT_THAT(Read("build/zoo/asked"), HasSubstr("--cpu-for 600s"));
  EXPECT_EQ(Asked("sweep") + Asked("shrink"), 2);

  AddMutant("zoo-2", "F8", "Expected: F7, F8");
  ASSERT_EQ(Zoo(), 0) << said_;
  EXPECT_EQ(Asked("sweep") + Asked("shrink"), 4);
  ZooReport report;
  ASSERT_TRUE(ReadJson((root_ / "zoo.json").string(), report));
  EXPECT_EQ(report.mutants_size(), 2);

  // What the script was given changes what is measured; documents do not.
  Write("README.md", "text\n");
  ASSERT_EQ(Zoo(), 0) << said_;
  EXPECT_EQ(Asked("sweep"), 2);
  Write("core/other", "text\n");
  ASSERT_EQ(Zoo(), 0) << said_;
  EXPECT_EQ(Asked("sweep"), 4);
  EXPECT_EQ(Run(absl::StrFormat("%s zoo --table zoo.json", DETCD_SIM)), 0);
  EXPECT_EQ(said_, ZooTable(report));
}

TEST_F(ZooRunTest, KeepsTheResultsOfOthersWithOnly) {
  AddMutant("zoo-1", "K4", "Expected: K4");
  AddMutant("zoo-2", "F8", "Expected: F8");
  ASSERT_EQ(Zoo("--only zoo-2"), 0) << said_;
  ASSERT_EQ(Zoo("--only zoo-1"), 0) << said_;
  ZooReport report;
  ASSERT_TRUE(ReadJson((root_ / "zoo.json").string(), report));
  ASSERT_EQ(report.mutants_size(), 2);
  EXPECT_EQ(report.mutants(0).id(), "zoo-1");
  EXPECT_EQ(Zoo("--only zoo-3"), 64);
}

TEST_F(ZooRunTest, FailsOnAJudgeThatTheHeaderDoesNotList) {
  AddMutant("zoo-1", "K4", "Expected: F8, crash");
  EXPECT_EQ(Zoo(), 1);
  EXPECT_THAT(said_, HasSubstr("its header does not list `K4` (seed 3: K4: a thing)"));
  // Trouble is no result: it is measured again.
  EXPECT_EQ(Zoo(), 1);
  EXPECT_EQ(Asked("sweep"), 2);
}

TEST_F(ZooRunTest, FailsOnAPatchThatNoLongerApplies) {
  AddMutant("zoo-1", "K4", "Expected: K4", /*before=*/"what was there once");
  EXPECT_EQ(Zoo(), 1);
  EXPECT_THAT(said_, HasSubstr("does not apply: error: patch failed: core/judge:1"));
}

TEST_F(ZooRunTest, FailsOnASurvivorUnlessItsHeaderShowsItToBeEquivalent) {
  Write("core/judge", "a line\nnone \n");
  AddMutant("zoo-1", "none", "Expected: K4", /*before=*/"none ");
  EXPECT_EQ(Zoo(), 1);
  EXPECT_THAT(said_, HasSubstr("survived !"));
  AddMutant("zoo-1", "none", "Equivalent: a blank", /*before=*/"none ");
  EXPECT_EQ(Zoo(), 0) << said_;
  AddMutant("zoo-1", "K4", "Equivalent: a blank", /*before=*/"none ");
  EXPECT_EQ(Zoo(), 1);
  EXPECT_THAT(said_, HasSubstr("its header shows it to be equivalent, yet it was killed"));
}

TEST_F(ZooRunTest, FailsOnWhatDoesNotRepeatOrIsNotConfirmed) {
  AddMutant("zoo-1", "shy", "Expected: shy");
  AddMutant("zoo-2", "K5", "Expected: K5");
  EXPECT_EQ(Zoo(), 1);
  EXPECT_THAT(said_, HasSubstr("the replay of seed 3 does not repeat it: exit code 0"));
  EXPECT_THAT(said_, HasSubstr("what seed 3 was shrunk to fails otherwise in further processes"));
}

TEST_F(ZooRunTest, ATestKillsAnInstrumentOnlyIfItPassesWithoutThePatch) {
  AddMutant("instrument/sim-1", "K4", "Killed-by: ctest -R good_test");
  AddMutant("instrument/sim-2", "K4", "Killed-by: ctest -R bad_test");
  AddMutant("instrument/sim-3", "K4", "Expected: K4");
  EXPECT_EQ(Zoo(), 1);
  EXPECT_THAT(said_, HasSubstr("| sim-1 | the K4 way | good_test | – | – | – | – |\n"));
  EXPECT_THAT(said_, HasSubstr("bad_test fails, or is not there, without the mutant"));
  EXPECT_THAT(said_, HasSubstr("| sim-3 | the K4 way | K4 | 3 |"));
  EXPECT_EQ(Asked("shrink"), 0);
}

TEST(ZooTableTest, MediansAreOfTheShrunkAlone) {
  ZooReport report;
  for (const uint32_t lines : {1u, 4u, 10u, 3u}) {
    MutantResult& result = *report.add_mutants();
    result.mutable_shrunk()->set_fault_lines(lines);
    result.mutable_shrunk()->set_operations(2 * lines);
    result.mutable_shrunk()->set_wall_seconds(lines);
    result.mutable_shrunk()->set_confirmed(lines != 1);
    result.mutable_shrunk()->set_other_seeds_failing(lines);
  }
  report.add_mutants();
  EXPECT_THAT(ZooTable(report), HasSubstr("over the 4 mutants"));
  EXPECT_THAT(ZooTable(report), HasSubstr("shrunk to 3.5 lines of faults and\n7 operations in 3.5 s"));
  EXPECT_THAT(ZooTable(report), HasSubstr("3 fail alike in two further processes, 3 under at least 3 of 10 other seeds"));
  EXPECT_THAT(ZooTable(ZooReport()), HasSubstr("over the 0 mutants"));
}

// The document is made of a report, so a mutant that came or went since shows.
TEST(ZooTableTest, TheReadmeHasARowForEachPatch) {
  std::stringstream text;
  text << std::ifstream(std::string(DETCD_SCENARIOS) + "/zoo/README.md").rdbuf();
  std::istringstream lines(text.str());
  std::vector<std::string> rows;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("| ", 0) == 0 && line.rfind("| id |", 0) != 0) rows.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  std::vector<std::string> patches;
  for (const auto& entry : fs::recursive_directory_iterator(std::string(DETCD_SCENARIOS) + "/zoo")) {
    if (entry.path().extension() == ".patch") patches.push_back(entry.path().stem().string());
  }
  EXPECT_THAT(rows, testing::UnorderedElementsAreArray(patches));
}

}  // namespace
}  // namespace detcd::scenario
