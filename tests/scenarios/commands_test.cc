// The command line as a program: exit codes, messages, and that printing and running agree.
#include "scenarios/commands.h"

#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <regex>
#include <sstream>

#include "absl/strings/str_format.h"
#include "checker/history_file.h"

namespace detcd::scenario {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Ended {
  int code = 0;
  std::string text;  // both outputs
};

Ended Sim(const std::string& arguments) {
  // Elsewhere than in a working tree, in which `zoo` would begin to measure.
  std::FILE* pipe = popen(absl::StrFormat("cd '%s' && %s %s 2>&1", testing::TempDir(), DETCD_SIM, arguments).c_str(), "r");
  Ended ended;
  char buffer[4096];
  for (size_t size = 0; (size = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) ended.text.append(buffer, size);
  const int status = pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

std::string TempFile(const std::string& name, const std::string& content) {
  const std::string path = testing::TempDir() + "detcd_commands_test_" + name;
  std::ofstream(path) << content;
  return path;
}

std::string Content(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string LineWith(const std::string& text, const std::string& word) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(word) != std::string::npos) return line;
  }
  return "";
}

TEST(ParseSeedRangeTest, TakesTwoNumbers) {
  EXPECT_EQ(ParseSeedRange("0..0").last, 0u);
  EXPECT_EQ(ParseSeedRange("3..9").first, 3u);
  EXPECT_EQ(ParseSeedRange("3..9223372036854775807").last, 9223372036854775807u);
}

TEST(ParseSeedRangeTest, RefusesEverythingElse) {
  for (const char* text : {"", "1", "..", "1..", "..2", "2..1", "1..x", "-1..2", "1...2", " 1..2", "1..2 ", "0x1..2",
                           "1..9223372036854775808", "1..99999999999999999999"}) {
    EXPECT_THROW(ParseSeedRange(text), UsageError) << text;
  }
}

TEST(ParseDurationTest, TakesANumberAndAUnit) {
  EXPECT_EQ(ParseDuration("500ms"), 500'000'000);
  EXPECT_EQ(ParseDuration("90s"), 90'000'000'000);
  EXPECT_EQ(ParseDuration("2h"), 7'200'000'000'000);
  for (const char* text : {"", "s", "5", "0s", "-1s", "1.5s", "1d", "1000001s", "1s1s"}) {
    EXPECT_THROW(ParseDuration(text), UsageError) << text;
  }
}

TEST(DetcdSimTest, UsageErrorsSayWhatIsWrong) {
  const std::string not_text = TempFile("not_text", "members: 3\nmembrs: 3\n");
  const std::string invalid = TempFile("invalid", "format_version: 1\nmembers: 1000\n");
  const std::pair<std::string, std::string> cases[] = {
      {"", "want a command"},
      {"frobnicate", "frobnicate"},
      {"run", "--seed N or a scenario file"},
      {"run --seed 1 file", "excludes"},
      {"run --seed x", "x"},
      {"run --seed 1 --fidelity both", "--fidelity both"},
      {"run file --fidelity wire", "--fidelity"},
      {"run /no/such/file", "/no/such/file: No such file or directory"},
      {"run /", "/: "},
      {"run " + not_text, "line 2, column 7"},
      {"run " + invalid, "members"},
      {"run --seed 1 --trace /no/such/folder/x", "/no/such/folder/x: No such file or directory"},
      {"print", "--seed"},
      {"sweep", "--seeds"},
      {"shrink", "--seed N or a scenario file"},
      {"shrink --seed 1", "does not fail: there is nothing to shrink"},
      {"shrink --seed 1 --runs-max 0", "--runs-max"},
      {"shrink /no/such/file", "/no/such/file: No such file or directory"},
      {"explain", "--seed N or a scenario file"},
      {"sweep --seeds 2..1", "--seeds 2..1"},
      {"sweep --seeds 1..2 --jobs 0", "--jobs"},
      {"sweep --seeds 1..2 --for never", "--for never"},
      {"sweep --seeds 1..2 --cpu-for never", "--cpu-for never"},
      {"sweep --seeds 1..2 --bogus", "--bogus"},
      {"diverge", "--seed N, or one or two scenario files"},
      {"diverge --seed 1 file", "excludes"},
      {"diverge --seed 1 --every 0", "--every"},
      {"diverge --seed 1 --binary-b /no/such/program", "B: /no/such/program, seed 1: /no/such/program: No such file or directory"},
      {"diverge /no/such/file", "diverge: A: "},
      {"diverge /no/such/file", "/no/such/file: No such file or directory"},
      {"events", "--seed N or a scenario file"},
      {"check", "FILES"},
      {"check /no/such/file", "/no/such/file: No such file or directory"},
      {"check /", "/: "},
      {"check " + not_text, not_text + ": at byte 0: "},
      {"zoo --seeds 0", "--seeds"},
      {"zoo --table /no/such/file", "/no/such/file: is no report of zoo"},
      {"zoo", "no git working tree of detcd"},
      {"sweep --seeds 1..2 --json /no/such/folder/x", "/no/such/folder/x: No such file or directory"},
  };
  for (const auto& [arguments, want] : cases) {
    const Ended ended = Sim(arguments);
    EXPECT_EQ(ended.code, kExitUsage) << arguments;
    EXPECT_THAT(ended.text, AllOf(StartsWith("detcd-sim: "), HasSubstr(want))) << arguments;
  }
}

TEST(DetcdSimTest, RunOfWhatPrintPrintsHasTheSameDigest) {
  for (const char* which : {"--seed 1 --fidelity direct", "--seed 1 --fidelity wire", "--seed 5", "--seed 6"}) {
    const Ended printed = Sim(std::string("print ") + which);
    EXPECT_EQ(printed.code, 0);
    const Ended from_seed = Sim(std::string("run ") + which);
    const Ended from_file = Sim("run " + TempFile("printed", printed.text));
    EXPECT_EQ(from_seed.code, from_file.code);
    EXPECT_THAT(LineWith(from_seed.text, "digest:"), StartsWith("digest: "));
    EXPECT_EQ(LineWith(from_seed.text, "digest:"), LineWith(from_file.text, "digest:")) << which;
  }
}

TEST(DetcdSimTest, ATraceChangesNothing) {
  const std::string trace = TempFile("trace", "");
  const Ended with = Sim("run --seed 2 --trace " + trace);
  EXPECT_EQ(LineWith(with.text, "digest:"), LineWith(Sim("run --seed 2").text, "digest:"));
  EXPECT_THAT(Content(trace), HasSubstr("\n"));
}

TEST(DetcdSimTest, ASeedDoesNotDivergeUnderOtherSurroundings) {
  for (const char* which : {"--seed 3 --fidelity direct", "--seed 3 --fidelity wire"}) {
    const Ended ended = Sim(std::string("diverge ") + which);
    EXPECT_EQ(ended.code, 0) << ended.text;
    const std::string digest = LineWith(Sim(std::string("run ") + which).text, "digest:");
    EXPECT_THAT(ended.text, HasSubstr("digest " + digest.substr(digest.find(' ') + 1))) << which;
  }
}

TEST(DetcdSimTest, TwoScenariosDivergeAtTheirFirstDifferentEvent) {
  const std::string text = Sim("print --seed 3").text;
  const std::string one = TempFile("diverge_one", text);
  const std::string other = TempFile("diverge_other", std::regex_replace(text, std::regex("chaos_ms: \\d+"), "chaos_ms: 900"));
  const Ended ended = Sim("diverge " + one + " " + other);
  EXPECT_EQ(ended.code, 4);
  EXPECT_THAT(ended.text, AllOf(HasSubstr("divergent: "), HasSubstr("A: "), HasSubstr("B: "), HasSubstr("because of #")));
  EXPECT_EQ(Sim("diverge " + one + " " + one).code, 0);
}

TEST(DetcdSimTest, ASweepMayRunEverySeedTwice) {
  EXPECT_THAT(Sim("sweep --seeds 1..4 --twice").text, HasSubstr("4 seeds run twice and compared"));
}

TEST(DetcdSimTest, StopsBeforeAnEventAndPrintsTheState) {
  const Ended ended = Sim("run --seed 2 --stop-at 50");
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.text, AllOf(HasSubstr("stopped before event 50"), HasSubstr("member 1 ("), HasSubstr("events      49 ")));
}

TEST(DetcdSimTest, SweepsDoNotDependOnJobs) {
  const auto sweep = [](const std::string& jobs) {
    const std::string digests = TempFile("digests" + jobs, "");
    const std::string json = TempFile("json" + jobs, "");
    Sim("sweep --seeds 3..12 --jobs " + jobs + " --digests " + digests + " --json " + json);
    const std::string report = Content(json);
    return Content(digests) + report.substr(0, report.find("\"cost\""));
  };
  const std::string one = sweep("1");
  EXPECT_EQ(one, sweep("3"));
  EXPECT_THAT(one, StartsWith("3 "));
  EXPECT_THAT(one, HasSubstr("\"schema_version\": 2"));
}

// A put of a=v1 and a read that shows `shown`, as a file.
std::string RecordedFile(const std::string& name, const std::string& shown) {
  checker::Operation put{.id = 1, .client = 1, .member = MemberId(1), .outcome = checker::Outcome::kAnswered};
  put.request = {.kind = checker::OperationKind::kPut, .key = "a", .value = "v1"};
  put.answer.header_revision = 2;
  put.end.true_time = Instant{10};
  checker::Operation get{.id = 2, .client = 2, .member = MemberId(1), .outcome = checker::Outcome::kAnswered};
  get.request = {.kind = checker::OperationKind::kRange, .key = "a"};
  get.call.true_time = Instant{20};
  get.end.true_time = Instant{30};
  get.answer = {.header_revision = 2, .kvs = {{"a", shown, 2, 2, 1}}, .count = 1};
  return TempFile(name, checker::EncodeHeader({"127.0.0.1:2379"}, "by hand") + checker::EncodeOperation(put) +
                            checker::EncodeOperation(get) + checker::EncodeEnd(2, 0));
}

TEST(DetcdSimTest, CheckJudgesRecordedHistories) {
  const std::string fine = RecordedFile("fine", "v1");
  const std::string wrong = RecordedFile("wrong", "v7");
  const Ended good = Sim("check " + fine);
  EXPECT_EQ(good.code, 0) << good.text;
  EXPECT_THAT(good.text, HasSubstr("fine: 2 operations of 2 clients on 1 members: 2 answered"));
  const Ended bad = Sim("check " + fine + " " + wrong);
  EXPECT_EQ(bad.code, 1) << bad.text;
  EXPECT_THAT(bad.text, AllOf(HasSubstr("VIOLATION"), HasSubstr("K5: a wrong answer to a read"), HasSubstr("recorded: by hand"),
                              HasSubstr("|------|  operation 2 (client 2: range a)"), HasSubstr("data anomaly")));
}

}  // namespace
}  // namespace detcd::scenario
