#include "scenarios/shrink_command.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <utility>

#include <time.h>
#include <unistd.h>

#include "absl/strings/str_format.h"
#include "core/base/digest.h"
#include "scenarios/command_files.h"
#include "scenarios/commands.h"
#include "scenarios/json_files.h"
#include "scenarios/scenario_text.h"
#include "scenarios/shrink.h"
#include "scenarios/shrink.pb.h"
#include "scenarios/shrink_steps.h"
#include "scenarios/sweep.h"

namespace detcd::scenario {
namespace {

constexpr uint32_t kShrinkSchemaVersion = 1;
constexpr int kExitInterrupted = 128 + SIGINT;
constexpr int64_t kSecond = 1'000'000'000;
// A candidate that takes much longer than the original is none. (A hang is worth no more than this either.)
constexpr int64_t kCandidateCpuMin = 10 * kSecond;
constexpr int64_t kCandidateCpuFactor = 30;

int64_t SteadyNanos() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * kSecond + time.tv_nsec;
}

// Reports in the order of the candidates, numbered from 1.
class Collect final : public SweepListener {
 public:
  void OnSeed(const SeedReport& report) override { reports.push_back(report); }
  void OnProgress(const SweepProgress&) override {}

  std::vector<SeedReport> reports;
};

// Runs candidates in worker processes: one that dies has a verdict like any other.
class WorkerJudge final : public ShrinkJudge {
 public:
  explicit WorkerJudge(uint32_t jobs) : jobs_(jobs) {}

  // What the original did, as the measure of all others.
  void SetOriginal(const SeedReport& report) {
    signature_ = report.signature();
    limits_.cpu_ns_max = std::max(kCandidateCpuMin, static_cast<int64_t>(report.cpu_ns()) * kCandidateCpuFactor);
    last_ = report;
  }

  SeedReport RunAlone(const Scenario& scenario) {
    const std::vector<SeedReport> reports = RunAll({scenario}, 0);
    return reports.empty() ? SeedReport() : reports[0];
  }

  bool IsSame(const SeedReport& report) const { return report.verdict() != 0 && report.signature() == signature_; }

  std::optional<size_t> First(const std::vector<Scenario>& candidates) override {
    const std::vector<SeedReport> reports = RunAll(candidates, 1);
    for (size_t i = 0; i < reports.size(); ++i) {
      if (!IsSame(reports[i])) continue;
      last_ = reports[i];
      return i;
    }
    return std::nullopt;
  }

  OtherSeeds Others(const Scenario& candidate, uint32_t enough) override {
    std::vector<Scenario> others(kOtherSeeds, candidate);
    for (uint32_t i = 0; i < kOtherSeeds; ++i) others[i].set_seed(candidate.seed() + 1 + i);
    OtherSeeds result;
    for (const SeedReport& report : RunAll(others, enough)) {
      result.failing += IsSame(report) ? 1 : 0;
      ++result.runs;
    }
    return result;
  }

  bool Interrupted() override { return interrupted_; }
  const SeedReport& last() const { return last_; }
  const std::string& signature() const { return signature_; }
  // Of the runs that counted.
  double CpuSeconds() const { return static_cast<double>(cpu_ns_) / 1e9; }
  const SeedLimits& limits() const { return limits_; }

 private:
  // The reports up to the one with which `enough` fail as the original does; 0: all.
  std::vector<SeedReport> RunAll(const std::vector<Scenario>& scenarios, uint32_t enough) {
    const SweepOptions options{.first = 1,
                               .last = scenarios.size(),
                               .jobs = jobs_,
                               .failures_max = enough,
                               .is_failure = [this](const SeedReport& report) { return IsSame(report); },
                               .twin_share = 0,
                               .twin_command = {},
                               .limits = limits_};
    Collect collect;
    // The signature is what counts here; a second opinion would cost more than the run.
    const auto run = [&](uint64_t number) { return RunOne(scenarios[number - 1], {.second_opinion = false}); };
    const SweepEnd end = Sweep(options, run, collect);
    interrupted_ |= end.interrupted;
    for (const SeedReport& report : collect.reports) cpu_ns_ += report.cpu_ns();
    return collect.reports;
  }

  uint32_t jobs_;
  std::string signature_;
  SeedLimits limits_;
  SeedReport last_;  // of the last candidate that failed
  uint64_t cpu_ns_ = 0;
  bool interrupted_ = false;
};

uint32_t MembersOf(const Scenario& scenario) { return scenario.members() != 0 ? scenario.members() : 3; }

std::string SizeText(const Scenario& scenario) {
  const ScenarioSize size = SizeOf(scenario);
  return absl::StrFormat("%d members, %d clients, %d lines of faults, %d operations, %d ms", MembersOf(scenario),
                         std::max(1u, scenario.clients()), size.fault_lines, size.operations, scenario.chaos_ms());
}

// Shows how far it is, and keeps the best so far in the file.
class Diary final : public ShrinkListener {
 public:
  Diary(std::string path, std::string origin, const WorkerJudge& judge, uint64_t runs_max)
      : path_(std::move(path)), origin_(std::move(origin)), judge_(judge), runs_max_(runs_max), began_ns_(SteadyNanos()),
        terminal_(isatty(STDOUT_FILENO) == 1) {}

  void OnBetter(const Scenario& best, const ShrinkProgress&) override { Save(best, judge_.last()); }

  void OnProgress(const Scenario& best, const ShrinkProgress& progress) override {
    const int64_t now = SteadyNanos();
    if (now - shown_at_ns_ < (terminal_ ? kSecond / 4 : 5 * kSecond)) return;
    shown_at_ns_ = now;
    std::printf("%s%d of %d runs, %d s: %s; trying %s%s", terminal_ ? "\r\033[K" : "", static_cast<int>(progress.runs),
                static_cast<int>(runs_max_), static_cast<int>((now - began_ns_) / kSecond), SizeText(best).c_str(),
                progress.pass.c_str(), terminal_ ? "" : "\n");
    std::fflush(stdout);
  }

  // The file is replaced at once: it always holds a whole scenario.
  void Save(Scenario scenario, const SeedReport& report) {
    scenario.set_note(absl::StrFormat("%s; %s; shrunk from %s", report.signature(), report.sentence(), origin_));
    const std::string fresh = path_ + ".new";
    OutputFile file(fresh);
    file.Write(ScenarioText(scenario));
    file.Close();
    std::error_code error;
    std::filesystem::rename(fresh, path_, error);
    if (error) throw UsageError{path_ + ": " + error.message()};
  }

  void EndLine() {
    if (terminal_) std::printf("\r\033[K");
  }
  double Seconds() const { return static_cast<double>(SteadyNanos() - began_ns_) / 1e9; }

 private:
  std::string path_;
  std::string origin_;
  const WorkerJudge& judge_;
  uint64_t runs_max_;
  int64_t began_ns_;
  int64_t shown_at_ns_ = 0;
  bool terminal_;
};

std::string OutFile(const ShrinkCommand& command) {
  if (!command.out_file.empty()) return command.out_file;
  if (command.seed) return absl::StrFormat("seed-%d.scenario", *command.seed);
  std::filesystem::path path = command.scenario_file;
  return path.replace_extension("shrunk.scenario").string();
}

// What is shrunk, as the note of its result names it.
std::string Origin(const ShrinkCommand& command, Scenario scenario) {
  if (command.seed) {
    return absl::StrFormat("seed %d,%s%s, of swarm %d", *command.seed, ChoiceText(command.fidelity, command.profile),
                           command.sheet.Options(), kSwarmVersion);
  }
  scenario.clear_note();
  return absl::StrFormat("a scenario with the digest %016x", DigestBytes(scenario.SerializeAsString()));
}

// What the result is; what it took is not in it yet.
ShrinkReport Report(const ShrinkResult& result, const SeedReport& last) {
  const ScenarioSize size = SizeOf(result.best);
  ShrinkReport report;
  report.set_schema_version(kShrinkSchemaVersion);
  report.set_signature(last.signature());
  report.set_sentence(last.sentence());
  report.set_members(MembersOf(result.best));
  report.set_clients(std::max(1u, result.best.clients()));
  report.set_fault_lines(static_cast<uint32_t>(size.fault_lines));
  report.set_operations(static_cast<uint32_t>(size.operations));
  report.set_chaos_ms(result.best.chaos_ms());
  report.set_runs(result.progress.runs);
  report.set_changes(result.progress.changes);
  report.set_minimal(result.minimal);
  report.set_other_seeds(kOtherSeeds);
  for (const ShrinkPassCost& cost : result.costs) {
    PassCost& pass = *report.add_passes();
    pass.set_name(cost.name);
    pass.set_runs(cost.runs);
    pass.set_changes(cost.changes);
  }
  return report;
}

// Two processes more: one forked with other bytes in its memory, one a program of its own with another address layout.
int FailsElsewhere(const ShrinkCommand& command, const std::string& path, const Scenario& scenario, const WorkerJudge& judge) {
  SweepOptions options{.first = 1,
                       .last = 1,
                       .jobs = 1,
                       .twin_share = 1,
                       .twin_command = {command.program, "serve", "--file", path},
                       .limits = judge.limits()};
  KeepLast keep;
  Sweep(options, [&](uint64_t) { return RunOne(scenario, RunOptions()); }, keep);
  if (judge.IsSame(keep.report())) return 0;
  std::printf("in two further processes it is another failure: %s\n", keep.report().sentence().c_str());
  return static_cast<int>(Verdict::kUndetermined);
}

}  // namespace

int RunShrink(const ShrinkCommand& command) {
  const Scenario original = command.seed ? DrawScenario(*command.seed, command.fidelity, command.profile, command.sheet) : ReadScenario(command.scenario_file);
  const std::string path = OutFile(command);
  const std::string origin = Origin(command, original);
  WorkerJudge judge(command.jobs != 0 ? command.jobs : Processors());

  const SeedReport report = judge.RunAlone(original);
  if (judge.Interrupted()) return kExitInterrupted;
  if (report.verdict() == 0) throw UsageError{origin + " does not fail: there is nothing to shrink"};
  judge.SetOriginal(report);
  std::printf("%s\n%s\n%s\n", report.signature().c_str(), report.sentence().c_str(), SizeText(original).c_str());

  Scenario from = original;
  from.clear_note();
  if (std::filesystem::exists(path)) {
    const Scenario found = ReadScenario(path);
    if (!found.note().ends_with("shrunk from " + origin)) {
      throw UsageError{path + " is there and was not shrunk from " + origin + ": remove it, or name another with --out"};
    }
    if (judge.IsSame(judge.RunAlone(found))) {
      from = found;
      from.clear_note();
      std::printf("going on from %s: %s\n", path.c_str(), SizeText(from).c_str());
    } else {
      std::printf("%s does not fail like this: beginning anew\n", path.c_str());
    }
  }
  if (judge.Interrupted()) return kExitInterrupted;

  Diary diary(path, origin, judge, command.runs_max);
  ShrinkResult result = Shrink(from, MakeShrinkPasses(), {.runs_max = command.runs_max}, judge, diary);
  diary.EndLine();
  if (judge.Interrupted()) {
    std::printf("interrupted; the best so far is in %s\n", path.c_str());
    return kExitInterrupted;
  }
  const SeedReport final_report = judge.RunAlone(result.best);
  diary.Save(result.best, final_report);
  const OtherSeeds others = judge.Others(result.best, kOtherSeeds);
  const int code = FailsElsewhere(command, path, result.best, judge);
  std::printf("%d runs in %.1f s (%.1f s of CPU time), %d changes%s\n%s\nfails under %d of %d other base seeds\n", static_cast<int>(result.progress.runs),
              diary.Seconds(), judge.CpuSeconds(), static_cast<int>(result.progress.changes),
              result.minimal ? "; nothing more can be taken away" : "; the bound on runs is reached: run it again to go on",
              SizeText(result.best).c_str(), static_cast<int>(others.failing), static_cast<int>(kOtherSeeds));
  if (!command.json_file.empty()) {
    ShrinkReport shrunk = Report(result, final_report);
    shrunk.set_wall_seconds(diary.Seconds());
    shrunk.set_cpu_seconds(judge.CpuSeconds());
    shrunk.set_confirmed(code == 0);
    shrunk.set_other_seeds_failing(others.failing);
    WriteJson(command.json_file, shrunk);
  }
  std::printf("%s\n%s run %s\n", final_report.sentence().c_str(), Quoted(command.program).c_str(), Quoted(path).c_str());
  return code;
}

void ServeScenario(const std::string& scenario_file) {
  const Scenario scenario = ReadScenario(scenario_file);
  ServeSeeds([&](uint64_t) { return RunOne(scenario, RunOptions()); });
}

}  // namespace detcd::scenario
