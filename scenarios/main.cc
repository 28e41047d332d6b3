// detcd-sim: seeded worlds of detcd clusters, broken and judged. See README.md beside this file.
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "scenarios/build_id.h"
#include "scenarios/check_command.h"
#include "scenarios/command_files.h"
#include "scenarios/commands.h"
#include "scenarios/prove_command.h"
#include "scenarios/runner.h"
#include "scenarios/shrink_command.h"
#include "scenarios/study/study.h"
#include "scenarios/zoo/zoo.h"

namespace detcd::scenario {
namespace {

constexpr uint32_t kJobsMax = 1'024;
constexpr uint32_t kCheckpointIntervalMax = 1'000'000;  // all events of it are told in the second pass
constexpr uint32_t kRepeatMax = 1'000'000;
constexpr uint64_t kRlimitMax = 4'000'000'000;  // Z3 counts in 32 bits

// What a command does once its line is parsed. Holds what its options were written to.
using Action = std::function<int()>;

CLI::Option* AddSettings(CLI::App& app, std::vector<std::string>& settings) {
  return app.add_option("--set", settings, "KEY=VALUE instead of what the swarm draws: election_timeout=500, pre_vote=off, drift=1000")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

KnobSheet MakeSheet(const std::vector<std::string>& settings) {
  KnobSheet sheet;
  for (const std::string& setting : settings) {
    if (const std::string trouble = sheet.Add(setting); !trouble.empty()) throw UsageError{"--set " + trouble};
  }
  return sheet;
}

// The choice that most commands begin with: the swarm's scenario of a seed, or a file.
struct Subject {
  std::string wanted = "want --seed N or a scenario file";
  std::string command;
  uint64_t seed = 0;
  std::string fidelity = "mixed";
  std::string profile = "mixed";
  std::vector<std::string> settings;
  CLI::Option* seed_option = nullptr;
  CLI::Option* file_option = nullptr;

  void Add(CLI::App& app, CLI::Option* file) {
    command = app.get_name();
    file_option = file;
    seed_option = app.add_option("--seed", seed, "The swarm's scenario of this seed")->excludes(file);
    app.add_option("--fidelity", fidelity, "With --seed: direct, wire or mixed")->needs(seed_option);
    app.add_option("--profile", profile, "With --seed: tolerated, beyond, negative, clocks or mixed")->needs(seed_option);
    AddSettings(app, settings)->needs(seed_option);
  }
  // Sets the seed and the fidelity of a command; throws when neither a seed nor a file is named.
  template <class Command>
  void Fill(Command& filled) const {
    filled.fidelity = ParseFidelity(fidelity);
    filled.profile = ParseProfile(profile);
    filled.sheet = MakeSheet(settings);
    if (seed_option->count() > 0) filled.seed = seed;
    if (seed_option->count() + file_option->count() == 0) throw UsageError{command + ": " + wanted};
  }
};

void AddJobs(CLI::App& app, uint32_t& jobs) {
  app.add_option("--jobs", jobs, "Worker processes; default: the number of processors")->check(CLI::Range(1u, kJobsMax));
}

CLI::Option* AddFile(CLI::App& app, std::string& file) { return app.add_option("FILE", file, "A scenario in protobuf text format"); }

Action AddRun(CLI::App& app, const std::string& program) {
  auto command = std::make_shared<RunCommand>(RunCommand{.program = program});
  auto subject = std::make_shared<Subject>();
  subject->Add(app, AddFile(app, command->scenario_file));
  app.add_option("--trace", command->trace_file, "Write what happens to this file");
  app.add_option("--stop-at", command->stop_at_event,
                 "Stop before the event of this number: in a debugger with SIGTRAP, else for good, printing the state");
  app.add_option("--repeat", command->repeat, "Run so often in this process, as a profiler wants it; tells the median of CPU times")
      ->check(CLI::Range(1u, kRepeatMax));
  return [=] {
    subject->Fill(*command);
    return Run(*command);
  };
}

Action AddExplain(CLI::App& app, const std::string& program) {
  auto command = std::make_shared<RunCommand>(RunCommand{.program = program, .story = StoryDepth::kCauses});
  auto subject = std::make_shared<Subject>();
  subject->Add(app, AddFile(app, command->scenario_file));
  return [=] {
    subject->Fill(*command);
    return Run(*command);
  };
}

Action AddPrint(CLI::App& app, const std::string&) {
  auto command = std::make_shared<PrintCommand>();
  auto fidelity = std::make_shared<std::string>("mixed");
  auto profile = std::make_shared<std::string>("mixed");
  auto settings = std::make_shared<std::vector<std::string>>();
  app.add_option("--seed", command->seed)->required();
  app.add_option("--fidelity", *fidelity, "direct, wire or mixed");
  app.add_option("--profile", *profile, "tolerated, beyond, negative, clocks or mixed");
  AddSettings(app, *settings);
  return [=] {
    command->fidelity = ParseFidelity(*fidelity);
    command->profile = ParseProfile(*profile);
    command->sheet = MakeSheet(*settings);
    return Print(*command);
  };
}

Action AddSweep(CLI::App& app, const std::string& program) {
  struct Texts {
    std::string seeds;
    std::string duration;
    std::string cpu_duration;
    std::string fidelity = "mixed";
    std::string profile = "mixed";
    std::vector<std::string> settings;
  };
  auto command = std::make_shared<SweepCommand>(SweepCommand{.program = program});
  auto texts = std::make_shared<Texts>();
  app.add_option("--seeds", texts->seeds, "A..B, both inclusive")->required();
  AddJobs(app, command->jobs);
  app.add_option("--for", texts->duration, "Begin no seed after this time: 90s, 10m, 2h");
  app.add_option("--cpu-for", texts->cpu_duration, "Begin no seed after this much CPU time of all workers together");
  app.add_option("--fidelity", texts->fidelity, "direct, wire or mixed (one seed in ten is wire)");
  app.add_option("--profile", texts->profile,
                 "tolerated: faults that a cluster survives. beyond: disks altered too, refusal is right. negative: disks that lie;\n"
                 "a loss that no judge reports is the failure. clocks: leaps and stops beside leader leases; stale reads are reported.\n"
                 "mixed: one seed in ten is beyond, the others tolerated");
  AddSettings(app, texts->settings);
  app.add_option("--json", command->json_file, "Write the report to this file (SweepReport of sweep.proto)");
  app.add_option("--digests", command->digests_file, "Write `seed digest`, one a line, to this file");
  app.add_option("--failures-max", command->failures_max, "End at the seed with this failure; default: no bound");
  app.add_flag("--victims", command->victims, "Tell whom each kind of fault hit, by role and phase; the JSON always does");
  app.add_flag("--twice", command->twice, "Run every seed twice, under two surroundings; default: one seed in 64");
  return [=] {
    command->fidelity = ParseFidelity(texts->fidelity);
    command->profile = ParseProfile(texts->profile);
    command->sheet = MakeSheet(texts->settings);
    command->seeds = ParseSeedRange(texts->seeds);
    if (!texts->duration.empty()) command->wall_ns_max = ParseDuration(texts->duration);
    if (!texts->cpu_duration.empty()) command->cpu_ns_max = ParseDuration(texts->cpu_duration, "--cpu-for");
    return RunSweep(*command);
  };
}

Action AddDiverge(CLI::App& app, const std::string& program) {
  auto command = std::make_shared<DivergeCommand>(DivergeCommand{.program = program});
  auto subject = std::make_shared<Subject>();
  subject->wanted = "want --seed N, or one or two scenario files";
  subject->Add(app, app.add_option("FILES", command->files, "One or two scenarios in text format")->expected(1, 2));
  app.add_option("--binary-a", command->binary_a, "A detcd-sim that runs side A; default: this one");
  app.add_option("--binary-b", command->binary_b, "A detcd-sim that runs side B; default: this one");
  app.add_option("--every", command->checkpoint_interval, "Events between two checkpoints")
      ->check(CLI::Range(1u, kCheckpointIntervalMax));
  app.add_option("--after", command->after, "Look first right after this event, up to which a sweep found them equal");
  return [=] {
    subject->Fill(*command);
    return RunDiverge(*command);
  };
}

Action AddEvents(CLI::App& app, const std::string&) {
  auto command = std::make_shared<EventsCommand>();
  auto subject = std::make_shared<Subject>();
  subject->Add(app, AddFile(app, command->scenario_file));
  app.add_option("--every", command->request.every);
  app.add_option("--first", command->request.first);
  app.add_option("--last", command->request.last);
  app.add_flag("--other-heap", command->other_heap);
  return [=] {
    subject->Fill(*command);
    return Events(*command);
  };
}

Action AddShrink(CLI::App& app, const std::string& program) {
  auto command = std::make_shared<ShrinkCommand>(ShrinkCommand{.program = program});
  auto subject = std::make_shared<Subject>();
  subject->Add(app, AddFile(app, command->scenario_file));
  app.add_option("--out", command->out_file, "Where the best so far is; goes on from there. Default: seed-N.scenario");
  app.add_option("--json", command->json_file, "Write what it took and what is left to this file (ShrinkReport of shrink.proto)");
  app.add_option("--runs-max", command->runs_max, "End after so many runs; default 5000")->check(CLI::PositiveNumber);
  AddJobs(app, command->jobs);
  return [=] {
    subject->Fill(*command);
    return RunShrink(*command);
  };
}

Action AddZoo(CLI::App& app, const std::string&) {
  auto command = std::make_shared<ZooCommand>(ZooCommand{.jobs = Processors()});
  app.add_option("--only", command->only, "The mutant of this id");
  app.add_option("--seeds", command->seeds, "Give a mutant up after this many; default: 20000")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40));
  AddJobs(app, command->jobs);
  app.add_option("--json", command->json_file, "Write the report to this file (ZooReport of zoo.proto), and go on from what it holds");
  app.add_option("--table", command->table_file, "Measure nothing: print what README.md shows of the report in this file");
  return [=] { return RunZoo(*command); };
}

Action AddProve(CLI::App& app, const std::string&) {
  auto command = std::make_shared<ProveCommand>();
  app.add_option("NAME", command->name, "A rule with its weakened twins, or one of them; default: all");
  app.add_option("--json", command->json_file, "Write the report to this file (ProveReport of prove.proto)");
  app.add_option("--scenario", command->scenario_file, "Write the counterexample of the twin NAME to this file, as a scenario");
  app.add_option("--seed", command->seed, "The scenario's; default: 1");
  app.add_option("--rlimit", command->rlimit, "Give each up after so many of Z3's units")
      ->check(CLI::Range(uint64_t{1}, kRlimitMax));
  return [=] { return RunProve(*command); };
}

Action AddStudy(CLI::App& app, const std::string&) {
  auto command = std::make_shared<StudyCommand>();
  app.add_option("FILE", command->study_file, "A study in protobuf text format (study/study.proto)")->required();
  app.add_option("--seeds", command->seeds, "Of each cell; default: as the study says")->check(CLI::PositiveNumber);
  AddJobs(app, command->jobs);
  app.add_option("--csv", command->csv_file, "Write all numbers to this file");
  app.add_option("--json", command->json_file, "Write the report to this file (StudyReport of study.proto)");
  app.add_option("--svg", command->svg_file, "Write the chart to this file");
  return [=] { return RunStudy(*command); };
}

Action AddCheck(CLI::App& app, const std::string&) {
  auto command = std::make_shared<CheckCommand>();
  app.add_option("FILES", command->files, "Histories in the format of checker/history.proto")->required();
  return [=] { return RunCheck(*command); };
}

Action AddServe(CLI::App& app, const std::string&) {
  auto file = std::make_shared<std::string>();
  auto fidelity = std::make_shared<std::string>("mixed");
  auto profile = std::make_shared<std::string>("mixed");
  auto settings = std::make_shared<std::vector<std::string>>();
  app.add_option("--fidelity", *fidelity);
  app.add_option("--profile", *profile);
  AddSettings(app, *settings);
  app.add_option("--file", *file);
  return [=]() -> int {
    if (!file->empty()) ServeScenario(*file);
    ServeSwarm(ParseFidelity(*fidelity), ParseProfile(*profile), MakeSheet(*settings));
  };
}

struct CommandRow {
  const char* name;
  const char* help;  // nullptr: not for people
  Action (*add)(CLI::App& app, const std::string& program);
};

constexpr CommandRow kCommands[] = {
    {"run", "Runs one scenario and tells its verdict and digest", AddRun},
    {"print", "Prints the swarm's scenario of a seed as text that run reads", AddPrint},
    {"sweep", "Runs a range of seeds in worker processes", AddSweep},
    {"diverge",
     "Finds the first event in which two runs differ: of two files, by two\n"
     "programs, or of one run under two surroundings. Exit: 0 equal, 4 not",
     AddDiverge},
    {"events", nullptr, AddEvents},
    {"zoo", "Builds known bugs and measures how soon they are found; from a working tree", AddZoo},
    {"explain", "Runs one failing scenario and tells what led to the failure", AddExplain},
    {"prove", "Proves the rules of elections, leases and quorums, and refutes each when weakened", AddProve},
    {"check", "Judges histories that clients of real clusters recorded", AddCheck},
    {"shrink", "Makes a failing scenario small and writes it to a file", AddShrink},
    {"study", "Runs a grid of settings and measures each cell: a table and a chart", AddStudy},
    {"serve", nullptr, AddServe},
};

int Main(int argc, char** argv) {
  CLI::App app("Runs seeded worlds of detcd clusters, breaks them and judges them.\n"
               "Exit codes: 0 fine, 1 a property violated (or, in the negative profile, a loss unreported), 2 not live, 3 a crash or hang, 4 undetermined, divergent or a\n"
               "dead fault, 64 usage, 130 interrupted and nothing found until then; of several the smallest, which is the\n"
               "gravest.");
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", ThisBuildText());
  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const CommandRow& row : kCommands) {
    CLI::App* command = app.add_subcommand(row.name, row.help == nullptr ? "" : row.help);
    if (row.help == nullptr) command->group("");
    actions.emplace_back(command, row.add(*command, argv[0]));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    throw UsageError{error.what()};
  }
  for (const auto& [command, action] : actions) {
    if (command->parsed()) return action();
  }
  throw UsageError{"want a command: run, print, sweep, shrink, explain, diverge, check, prove, study or zoo; --help tells more"};
}

}  // namespace
}  // namespace detcd::scenario

int main(int argc, char** argv) {
  using detcd::scenario::UsageError;
  try {
    return detcd::scenario::Main(argc, argv);
  } catch (const UsageError& error) {
    std::fprintf(stderr, "detcd-sim: %s\n", error.message.c_str());
    return detcd::scenario::kExitUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "detcd-sim: %s\n", error.what());
    return static_cast<int>(detcd::scenario::Verdict::kCrash);
  }
}
