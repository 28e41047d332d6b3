// detcd-sim: seeded worlds of detcd clusters, broken and judged. See README.md beside this file.
#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>

#include "scenarios/build_id.h"
#include "scenarios/command_files.h"
#include "scenarios/commands.h"
#include "scenarios/runner.h"
#include "scenarios/zoo/zoo.h"
#include "scenarios/shrink_command.h"

namespace detcd::scenario {
namespace {

constexpr uint32_t kJobsMax = 1'024;
constexpr uint32_t kCheckpointIntervalMax = 1'000'000;  // all events of it are told in the second pass
constexpr uint32_t kRepeatMax = 1'000'000;

int Main(int argc, char** argv) {
  RunCommand run{.program = argv[0]};
  PrintCommand print;
  SweepCommand sweep{.program = argv[0]};
  DivergeCommand diverge{.program = argv[0]};
  EventsCommand events;
  ZooCommand zoo{.jobs = Processors()};
  ShrinkCommand shrink{.program = argv[0]};
  std::string served_file;
  std::string fidelity = "mixed";
  std::string seeds;
  std::string duration;
  std::string cpu_duration;
  uint64_t seed = 0;

  CLI::App app("Runs seeded worlds of detcd clusters, breaks them and judges them.\n"
               "Exit codes: 0 fine, 1 a property violated, 2 not live, 3 a crash or hang, 4 undetermined, divergent or a\n"
               "dead fault, 64 usage; of several the smallest, which is the gravest.");
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", ThisBuildText());

  CLI::App* run_app = app.add_subcommand("run", "Runs one scenario and tells its verdict and digest");
  CLI::Option* run_seed = run_app->add_option("--seed", seed, "The swarm's scenario of this seed");
  CLI::Option* run_file = run_app->add_option("FILE", run.scenario_file, "A scenario in protobuf text format");
  run_app->add_option("--fidelity", fidelity, "With --seed: direct, wire or mixed")->needs(run_seed);
  run_app->add_option("--trace", run.trace_file, "Write what happens to this file");
  run_app->add_option("--stop-at", run.stop_at_event,
                      "Stop before the event of this number: in a debugger with SIGTRAP, else for good, printing the state");
  run_app->add_option("--repeat", run.repeat, "Run so often in this process, as a profiler wants it; tells the median of CPU times")
      ->check(CLI::Range(1u, kRepeatMax));
  run_seed->excludes(run_file);

  CLI::App* print_app = app.add_subcommand("print", "Prints the swarm's scenario of a seed as text that run reads");
  print_app->add_option("--seed", print.seed)->required();
  print_app->add_option("--fidelity", fidelity, "direct, wire or mixed");

  CLI::App* sweep_app = app.add_subcommand("sweep", "Runs a range of seeds in worker processes");
  sweep_app->add_option("--seeds", seeds, "A..B, both inclusive")->required();
  sweep_app->add_option("--jobs", sweep.jobs, "Worker processes; default: the number of processors")->check(CLI::Range(1u, kJobsMax));
  sweep_app->add_option("--for", duration, "Begin no seed after this time: 90s, 10m, 2h");
  sweep_app->add_option("--cpu-for", cpu_duration, "Begin no seed after this much CPU time of all workers together");
  sweep_app->add_option("--fidelity", fidelity, "direct, wire or mixed (one seed in ten is wire)");
  sweep_app->add_option("--json", sweep.json_file, "Write the report to this file (SweepReport of sweep.proto)");
  sweep_app->add_option("--digests", sweep.digests_file, "Write `seed digest`, one a line, to this file");
  sweep_app->add_option("--failures-max", sweep.failures_max, "End at the seed with this failure; default: no bound");
  sweep_app->add_flag("--twice", sweep.twice, "Run every seed twice, under two surroundings; default: one seed in 64");

  CLI::App* diverge_app = app.add_subcommand("diverge", "Finds the first event in which two runs differ: of two files, by two\n"
                                                        "programs, or of one run under two surroundings. Exit: 0 equal, 4 not");
  CLI::Option* diverge_seed = diverge_app->add_option("--seed", seed, "The swarm's scenario of this seed");
  CLI::Option* diverge_files = diverge_app->add_option("FILES", diverge.files, "One or two scenarios in text format")->expected(1, 2);
  diverge_app->add_option("--fidelity", fidelity, "With --seed: direct, wire or mixed")->needs(diverge_seed);
  diverge_app->add_option("--binary-a", diverge.binary_a, "A detcd-sim that runs side A; default: this one");
  diverge_app->add_option("--binary-b", diverge.binary_b, "A detcd-sim that runs side B; default: this one");
  diverge_app->add_option("--every", diverge.checkpoint_interval, "Events between two checkpoints")->check(CLI::Range(1u, kCheckpointIntervalMax));
  diverge_seed->excludes(diverge_files);

  CLI::App* events_app = app.add_subcommand("events", "One side of diverge");
  events_app->group("");  // not for people
  CLI::Option* events_seed = events_app->add_option("--seed", seed);
  CLI::Option* events_file = events_app->add_option("FILE", events.scenario_file);
  events_app->add_option("--fidelity", fidelity)->needs(events_seed);
  events_app->add_option("--every", events.request.every);
  events_app->add_option("--first", events.request.first);
  events_app->add_option("--last", events.request.last);
  events_app->add_flag("--other-heap", events.other_heap);
  events_seed->excludes(events_file);

  CLI::App* zoo_app = app.add_subcommand("zoo", "Builds known bugs and measures how soon they are found; from a working tree");
  zoo_app->add_option("--only", zoo.only, "The mutant of this id");
  zoo_app->add_option("--seeds", zoo.seeds, "Give a mutant up after this many; default: 20000")->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40));
  zoo_app->add_option("--jobs", zoo.jobs, "Worker processes; default: the number of processors")->check(CLI::Range(1u, kJobsMax));
  zoo_app->add_option("--json", zoo.json_file, "Write the report to this file (ZooReport of zoo.proto), and go on from what it holds");
  zoo_app->add_option("--table", zoo.table_file, "Measure nothing: print what README.md shows of the report in this file");
  CLI::App* explain_app = app.add_subcommand("explain", "Runs one failing scenario and tells what led to the failure");
  CLI::Option* explain_seed = explain_app->add_option("--seed", seed, "The swarm's scenario of this seed");
  CLI::Option* explain_file = explain_app->add_option("FILE", run.scenario_file, "A scenario in protobuf text format");
  explain_app->add_option("--fidelity", fidelity, "With --seed: direct, wire or mixed")->needs(explain_seed);
  explain_seed->excludes(explain_file);

  CLI::App* shrink_app = app.add_subcommand("shrink", "Makes a failing scenario small and writes it to a file");
  CLI::Option* shrink_seed = shrink_app->add_option("--seed", seed, "The swarm's scenario of this seed");
  CLI::Option* shrink_file = shrink_app->add_option("FILE", shrink.scenario_file, "A scenario in protobuf text format");
  shrink_app->add_option("--fidelity", fidelity, "With --seed: direct, wire or mixed")->needs(shrink_seed);
  shrink_app->add_option("--out", shrink.out_file, "Where the best so far is; goes on from there. Default: seed-N.scenario");
  shrink_app->add_option("--json", shrink.json_file, "Write what it took and what is left to this file (ShrinkReport of shrink.proto)");
  shrink_app->add_option("--runs-max", shrink.runs_max, "End after so many runs; default 5000")->check(CLI::PositiveNumber);
  shrink_app->add_option("--jobs", shrink.jobs, "Worker processes; default: the number of processors")->check(CLI::Range(1u, kJobsMax));
  shrink_seed->excludes(shrink_file);

  CLI::App* serve_app = app.add_subcommand("serve", "A worker of a sweep");
  serve_app->group("");  // not for people
  serve_app->add_option("--fidelity", fidelity);
  serve_app->add_option("--file", served_file);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    throw UsageError{error.what()};
  }
  const FidelityChoice choice = ParseFidelity(fidelity);
  if (run_app->parsed()) {
    if (run_seed->count() + run_file->count() == 0) throw UsageError{"run: want --seed N or a scenario file"};
    if (run_seed->count() > 0) run.seed = seed;
    run.fidelity = choice;
    return Run(run);
  }
  if (explain_app->parsed()) {
    if (explain_seed->count() + explain_file->count() == 0) throw UsageError{"explain: want --seed N or a scenario file"};
    if (explain_seed->count() > 0) run.seed = seed;
    run.fidelity = choice;
    run.story = StoryDepth::kCauses;
    return Run(run);
  }
  if (app.get_subcommands().empty()) throw UsageError{"want a command: run, print, sweep, shrink, explain, diverge or zoo; --help tells more"};
  if (print_app->parsed()) {
    print.fidelity = choice;
    return Print(print);
  }
  if (serve_app->parsed() && !served_file.empty()) ServeScenario(served_file);
  if (serve_app->parsed()) ServeSwarm(choice);
  if (diverge_app->parsed()) {
    if (diverge_seed->count() + diverge_files->count() == 0) throw UsageError{"diverge: want --seed N, or one or two scenario files"};
    if (diverge_seed->count() > 0) diverge.seed = seed;
    diverge.fidelity = choice;
    return RunDiverge(diverge);
  }
  if (events_app->parsed()) {
    if (events_seed->count() + events_file->count() == 0) throw UsageError{"events: want --seed N or a scenario file"};
    if (events_seed->count() > 0) events.seed = seed;
    events.fidelity = choice;
    return Events(events);
  }
  if (zoo_app->parsed()) return RunZoo(zoo);
  if (shrink_app->parsed()) {
    if (shrink_seed->count() + shrink_file->count() == 0) throw UsageError{"shrink: want --seed N or a scenario file"};
    if (shrink_seed->count() > 0) shrink.seed = seed;
    shrink.fidelity = choice;
    return RunShrink(shrink);
  }
  sweep.fidelity = choice;
  sweep.seeds = ParseSeedRange(seeds);
  if (!duration.empty()) sweep.wall_ns_max = ParseDuration(duration);
  if (!cpu_duration.empty()) sweep.cpu_ns_max = ParseDuration(cpu_duration, "--cpu-for");
  return RunSweep(sweep);
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
