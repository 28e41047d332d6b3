#include "scenarios/commands.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <functional>
#include <utility>

#include <google/protobuf/util/json_util.h>
#include <time.h>

#include "absl/strings/str_format.h"
#include "core/base/probe.h"
#include "scenarios/build_id.h"
#include "scenarios/command_files.h"
#include "scenarios/diverge.h"
#include "scenarios/runner.h"
#include "scenarios/scenario_text.h"
#include "scenarios/surroundings.h"
#include "scenarios/sweep.h"
#include "scenarios/sweep_screen.h"
#include "scenarios/sweep_totals.h"

namespace detcd::scenario {
namespace {

constexpr uint64_t kSeedMax = (uint64_t{1} << 63) - 1;
constexpr uint32_t kSchemaVersion = 3;
constexpr int kExitInterrupted = 128 + SIGINT;  // as a shell says it

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool IsTraced() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("TracerPid:", 0) == 0) return line.find_first_of("123456789") != std::string::npos;
  }
  return false;
}

// What to do about a failure: a run that was two runs is compared, any other is run again.
std::string ReplayOfFailure(const SweepCommand& sweep, const SeedReport& report) {
  if (report.property() != kDivergence) return ReplayOfSeed(sweep.program, report.seed(), sweep.fidelity, sweep.profile, sweep.sheet);
  std::string command = absl::StrFormat("%s diverge %s", Quoted(sweep.program), SeedOptions(report.seed(), sweep.fidelity, sweep.profile, sweep.sheet));
  if (report.equal_events() != 0) command += absl::StrFormat(" --after %d", report.equal_events());
  return command;
}

// The places of AllProbes that were reached since the last call in this process.
void AddNewProbes(SeedReport& report) {
  static std::vector<bool> told(AllProbes().size());
  for (size_t i = 0; i < told.size(); ++i) {
    if (told[i] || AllProbes()[i].hits == 0) continue;
    told[i] = true;
    report.add_probes(static_cast<uint32_t>(i));
  }
}

RunSeed SwarmRun(FidelityChoice fidelity, ProfileChoice profile, const KnobSheet& sheet) {
  return [fidelity, profile, sheet](uint64_t seed) {
    SeedReport report = RunOne(DrawScenario(seed, fidelity, profile, sheet), RunOptions());
    AddNewProbes(report);
    return report;
  };
}

int64_t ProcessCpuNanos() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Runs `times` times in this process. The first report, with the median of the CPU times; of two runs that differ, a
// divergence.
SeedReport Repeat(uint32_t times, const std::function<SeedReport()>& run) {
  SeedReport first;
  std::vector<int64_t> cpu_ns;
  for (uint32_t i = 0; i < times; ++i) {
    const int64_t began_ns = ProcessCpuNanos();
    SeedReport report = run();
    cpu_ns.push_back(ProcessCpuNanos() - began_ns);
    if (i == 0) {
      first = std::move(report);
    } else if (report.digest() != first.digest()) {
      first.set_verdict(static_cast<uint32_t>(Verdict::kUndetermined));
      first.set_property("divergence");
      first.set_story(absl::StrFormat("divergence: run %d in one process has the digest %016x, the first %016x", i + 1,
                                      report.digest(), first.digest()));
      break;
    }
  }
  std::nth_element(cpu_ns.begin(), cpu_ns.begin() + static_cast<ptrdiff_t>(cpu_ns.size() / 2), cpu_ns.end());
  first.set_cpu_ns(static_cast<uint64_t>(cpu_ns[cpu_ns.size() / 2]));
  return first;
}

void PrintRun(const SeedReport& report, bool stopped) {
  if (report.verdict() != 0 || stopped) std::printf("%s\n", report.story().c_str());
  std::printf("verdict: %s", std::string(VerdictName(static_cast<Verdict>(report.verdict()))).c_str());
  if (!report.property().empty()) std::printf(" (%s)", report.property().c_str());
  std::printf("\n");
  const char* why = report.profile() == CLOCKS ? "what clocks did to a lease, as it may" : "the loss, as it must";
  if (!report.reported().empty()) std::printf("a judge reports %s: %s\n", why, report.reported().c_str());
  if (report.verdict() == static_cast<uint32_t>(Verdict::kCrash)) return;
  std::printf("digest: %016llx\n", static_cast<unsigned long long>(report.digest()));
  std::printf("%s\n", CountsText(report.events(), report.virtual_ms(), report.operations(), report.answered(), report.refused(),
                                 report.unknown(), report.leader_changes()).c_str());
  std::printf("by kind    ");
  for (int i = 0; i < report.events_by_kind_size(); ++i) {
    if (report.events_by_kind(i) == 0) continue;
    std::printf(" %s %llu", std::string(sim::EventKindName(static_cast<sim::EventKind>(i))).c_str(),
                static_cast<unsigned long long>(report.events_by_kind(i)));
  }
  std::printf("\nCPU time    %.1f ms\n", static_cast<double>(report.cpu_ns()) / 1e6);
}

}  // namespace

SeedRange ParseSeedRange(const std::string& text) {
  const size_t dots = text.find("..");
  if (dots != std::string::npos) {
    const auto first = ParseNumber(std::string_view(text).substr(0, dots));
    const auto last = ParseNumber(std::string_view(text).substr(dots + 2));
    if (first && last && *last > kSeedMax) throw UsageError{"--seeds " + text + ": seeds are below 2^63"};
    if (first && last && *first > *last) throw UsageError{"--seeds " + text + ": the first seed is above the last"};
    if (first && last) return {.first = *first, .last = *last};
  }
  throw UsageError{"--seeds " + text + ": want A..B, two decimal numbers"};
}

int64_t ParseDuration(const std::string& text, const std::string& option) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = ParseNumber(std::string_view(text).substr(0, digits));
  const std::string unit = text.substr(digits);
  const int64_t nanos = unit == "ms" ? 1'000'000 : unit == "s" ? 1'000'000'000 : unit == "m" ? 60'000'000'000 : unit == "h" ? 3'600'000'000'000 : 0;
  if (!number || *number == 0 || *number > 1'000'000 || nanos == 0) {
    throw UsageError{option + " " + text + ": want a number from 1 to 1000000 and a unit: ms, s, m or h"};
  }
  return static_cast<int64_t>(*number) * nanos;
}

FidelityChoice ParseFidelity(const std::string& text) {
  for (FidelityChoice choice : {FidelityChoice::kMixed, FidelityChoice::kDirect, FidelityChoice::kWire}) {
    if (text == FidelityText(choice)) return choice;
  }
  throw UsageError{"--fidelity " + text + ": want direct, wire or mixed"};
}

std::string FidelityText(FidelityChoice fidelity) {
  switch (fidelity) {
    case FidelityChoice::kMixed:
      return "mixed";
    case FidelityChoice::kDirect:
      return "direct";
    case FidelityChoice::kWire:
      return "wire";
  }
  return "unknown";
}

ProfileChoice ParseProfile(const std::string& text) {
  for (ProfileChoice choice : {ProfileChoice::kMixed, ProfileChoice::kTolerated, ProfileChoice::kBeyond, ProfileChoice::kNegative,
                               ProfileChoice::kClocks}) {
    if (text == ProfileText(choice)) return choice;
  }
  throw UsageError{"--profile " + text + ": want tolerated, beyond, negative, clocks or mixed"};
}

std::string ProfileText(ProfileChoice profile) {
  switch (profile) {
    case ProfileChoice::kMixed:
      return "mixed";
    case ProfileChoice::kTolerated:
      return "tolerated";
    case ProfileChoice::kBeyond:
      return "beyond";
    case ProfileChoice::kNegative:
      return "negative";
    case ProfileChoice::kClocks:
      return "clocks";
  }
  return "unknown";
}

std::string ChoiceText(FidelityChoice fidelity, ProfileChoice profile) {
  std::string text = " --fidelity " + FidelityText(fidelity);
  if (profile != ProfileChoice::kMixed) text += " --profile " + ProfileText(profile);
  return text;
}

int Run(const RunCommand& command) {
  const Scenario scenario = command.seed ? DrawScenario(*command.seed, command.fidelity, command.profile, command.sheet) : ReadScenario(command.scenario_file);
  const std::string replay = command.seed ? ReplayOfSeed(command.program, *command.seed, command.fidelity, command.profile, command.sheet)
                                          : Quoted(command.program) + " run " + Quoted(command.scenario_file);
  if (!command.trace_file.empty()) OutputFile(command.trace_file).Close();  // complains now, not in a worker
  // In the process that runs it, because that is where the file is open.
  const auto run = [&](std::function<void()> at_stop) {
    RunOptions options{
        .stop_at_event = command.stop_at_event, .at_stop = std::move(at_stop), .trace = {}, .story = command.story, .event = {}};
    if (command.trace_file.empty()) return RunOne(scenario, options);
    OutputFile trace(command.trace_file);
    options.trace = [&trace](std::string_view line) {
      trace.Write(line);
      trace.Write("\n");
    };
    SeedReport report = RunOne(scenario, options);
    trace.Close();
    return report;
  };
  SeedReport report;
  const bool traced = IsTraced();
  if (command.repeat > 0) {
    report = Repeat(command.repeat, [&] { return run({}); });
  } else if (traced) {
    // Here, where the debugger is.
    report = run([] { std::raise(SIGTRAP); });
  } else {
    // In another process, so that a crash or a hang of the run has a verdict too.
    const SweepOptions one{.first = 1, .last = 1, .jobs = 1, .twin_share = 0, .twin_command = {}, .limits = {}};
    KeepLast keep;
    const SweepEnd end = Sweep(one, [&](uint64_t) { return run({}); }, keep);
    if (end.interrupted) return kExitInterrupted;
    report = keep.report();
  }
  if (!traced && report.verdict() == 0 && command.stop_at_event != 0 && report.story().empty()) {
    std::printf("the run ends before event %llu\n", static_cast<unsigned long long>(command.stop_at_event));
  }
  PrintRun(report, command.stop_at_event != 0);
  const std::string which = command.seed ? SeedOptions(*command.seed, command.fidelity, command.profile, command.sheet)
                                         : Quoted(command.scenario_file);
  if (report.verdict() != 0 && command.story != StoryDepth::kCauses) {
    std::printf("what led to it:  %s explain %s\nmade small:      %s shrink %s\n", Quoted(command.program).c_str(), which.c_str(),
                Quoted(command.program).c_str(), which.c_str());
  }
  if (report.verdict() != 0) std::printf("%s\n", replay.c_str());
  return static_cast<int>(report.verdict());
}

int Print(const PrintCommand& command) {
  std::printf("%s", ScenarioText(DrawScenario(command.seed, command.fidelity, command.profile, command.sheet)).c_str());
  return 0;
}

namespace {

// Adds up, shows, and writes digests as the seeds come in.
class Campaign final : public SweepListener {
 public:
  Campaign(const SweepCommand& command, uint32_t jobs)
      : command_(command), screen_({.seeds = command.seeds.last - command.seeds.first + 1, .jobs = jobs, .wall_ns_max = command.wall_ns_max, .victims = command.victims}) {
    if (!command.digests_file.empty()) digests_.emplace(command.digests_file);
    if (!command.json_file.empty()) json_.emplace(command.json_file);
    report_.set_schema_version(kSchemaVersion);
    report_.set_swarm_version(kSwarmVersion);
    *report_.mutable_build() = ThisBuild();
    report_.set_seeds(absl::StrFormat("%d..%d", command.seeds.first, command.seeds.last));
    report_.set_fidelity(FidelityText(command.fidelity));
    report_.set_profile(ProfileText(command.profile));
    report_.mutable_cost()->set_jobs(jobs);
  }

  void OnSeed(const SeedReport& seed) override {
    totals_.Add(seed);
    const auto verdict = static_cast<Verdict>(seed.verdict());
    const std::string digest = verdict == Verdict::kCrash ? "none" : absl::StrFormat("%016x", seed.digest());
    if (digests_) digests_->Write(absl::StrFormat("%d %s\n", seed.seed(), digest));
    if (verdict == Verdict::kFine) return;
    Failure failure;
    failure.set_seed(seed.seed());
    failure.set_verdict(std::string(VerdictName(verdict)));
    failure.set_property(seed.property());
    failure.set_signature(seed.signature());
    failure.set_sentence(seed.sentence());
    failure.set_digest(digest);
    failure.set_replay(ReplayOfFailure(command_, seed));
    screen_.ShowFailure(failure);
    // What is kept does not grow with a sweep in which everything fails.
    if (report_.failures_size() >= kFailuresKeptMax) return;
    failure.set_story(seed.story());
    *report_.add_failures() = std::move(failure);
  }

  void OnProgress(const SweepProgress& progress) override { screen_.ShowProgress(progress, totals_.failures()); }

  int End(const SweepEnd& end) {
    totals_.FillIn(report_);
    report_.mutable_totals()->set_compared_seeds(end.seeds_compared);
    report_.mutable_cost()->set_wall_seconds(static_cast<double>(end.wall_ns) / 1e9);
    screen_.ShowSummary(report_, end.interrupted);
    if (digests_) digests_->Close();
    if (json_) WriteJson();
    return end.interrupted && report_.exit_code() == 0 ? kExitInterrupted : report_.exit_code();
  }

 private:
  static constexpr int kFailuresKeptMax = 1'000;

  void WriteJson() {
    google::protobuf::util::JsonPrintOptions options;
    options.add_whitespace = true;
    options.always_print_primitive_fields = true;
    options.preserve_proto_field_names = true;
    std::string text;
    // Fails for text that is not UTF-8 only.
    const auto status = google::protobuf::util::MessageToJsonString(report_, &text, options);
    if (!status.ok()) throw UsageError{command_.json_file + ": " + status.ToString()};
    json_->Write(text);
    json_->Close();
  }

  const SweepCommand& command_;
  SweepScreen screen_;
  SweepTotals totals_;
  SweepReport report_;
  std::optional<OutputFile> digests_;
  std::optional<OutputFile> json_;
};

}  // namespace

int RunSweep(const SweepCommand& command) {
  const uint32_t jobs = command.jobs != 0 ? command.jobs : Processors();
  std::vector<std::string> twin = {command.program, "serve", "--fidelity", FidelityText(command.fidelity), "--profile",
                                   ProfileText(command.profile)};
  const std::vector<std::string> settings = command.sheet.Arguments();
  twin.insert(twin.end(), settings.begin(), settings.end());
  const SweepOptions options{.first = command.seeds.first,
                             .last = command.seeds.last,
                             .jobs = jobs,
                             .wall_ns_max = command.wall_ns_max,
                             .cpu_ns_max = static_cast<uint64_t>(command.cpu_ns_max),
                             .failures_max = command.failures_max,
                             .twin_share = command.twice ? 1u : kTwinShare,
                             .twin_command = std::move(twin)};
  if (const std::string trouble = LayoutTrouble(); !trouble.empty()) {
    std::printf("second runs get the same addresses as the first, but for their heap: %s\n", trouble.c_str());
  }
  Campaign campaign(command, jobs);
  return campaign.End(Sweep(options, SwarmRun(command.fidelity, command.profile, command.sheet), campaign));
}

int RunDiverge(const DivergeCommand& command) {
  constexpr const char* kThisProgram = "/proc/self/exe";
  const bool two_files = command.files.size() == 2;
  const bool two_programs = command.binary_a != command.binary_b;
  const auto side = [&](const char* letter, const std::string& binary, const std::string& file) {
    RunSide made;
    made.command = {binary.empty() ? kThisProgram : binary, "events"};
    if (command.seed) {
      made.command.insert(made.command.end(),
                          {"--seed", absl::StrFormat("%d", *command.seed), "--fidelity", FidelityText(command.fidelity), "--profile",
                           ProfileText(command.profile)});
      const std::vector<std::string> settings = command.sheet.Arguments();
      made.command.insert(made.command.end(), settings.begin(), settings.end());
    } else {
      made.command.push_back(file);
    }
    made.name = absl::StrFormat("%s: %s, %s", letter, binary.empty() ? command.program : binary,
                                command.seed ? absl::StrFormat("seed %d", *command.seed) : file);
    return made;
  };
  const RunSide a = side("A", command.binary_a, command.seed ? "" : command.files.front());
  RunSide b = side("B", command.binary_b, command.seed ? "" : command.files.back());
  // A difference has one reason only: surroundings differ where nothing else does.
  if (!two_files && !two_programs) {
    b.other_surroundings = true;
    b.name += ", under other surroundings";
    if (const std::string trouble = LayoutTrouble(); !trouble.empty()) {
      std::printf("both sides get the same addresses, but for their heap: %s\n", trouble.c_str());
    }
  }
  DivergeOptions options;
  if (command.checkpoint_interval != 0) options.checkpoint_interval = command.checkpoint_interval;
  options.after = command.after;
  const Comparison comparison = Diverge(a, b, options);
  if (comparison.likeness == Likeness::kUnknown) throw UsageError{"diverge: " + comparison.story};
  std::printf("%s", comparison.story.c_str());
  return comparison.likeness == Likeness::kEqual ? 0 : static_cast<int>(Verdict::kUndetermined);
}

int Events(const EventsCommand& command) {
  const Scenario scenario = command.seed ? DrawScenario(*command.seed, command.fidelity, command.profile, command.sheet) : ReadScenario(command.scenario_file);
  if (command.other_heap) DisturbHeap(scenario.seed());
  PrintEvents(scenario, command.request);
  return 0;
}

void ServeSwarm(FidelityChoice fidelity, ProfileChoice profile, const KnobSheet& sheet) {
  ServeSeeds(SwarmRun(fidelity, profile, sheet));
}

}  // namespace detcd::scenario
