// detcd-sim: seeded worlds of detcd clusters, broken and judged. See README.md beside this file.
#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>

#include "scenarios/build_id.h"
#include "scenarios/commands.h"
#include "scenarios/runner.h"

namespace detcd::scenario {
namespace {

constexpr uint32_t kJobsMax = 1'024;
constexpr uint32_t kRepeatMax = 1'000'000;

int Main(int argc, char** argv) {
  RunCommand run{.program = argv[0]};
  PrintCommand print;
  SweepCommand sweep{.program = argv[0]};
  std::string fidelity = "mixed";
  std::string seeds;
  std::string duration;
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
  sweep_app->add_option("--fidelity", fidelity, "direct, wire or mixed (one seed in ten is wire)");
  sweep_app->add_option("--json", sweep.json_file, "Write the report to this file (SweepReport of sweep.proto)");
  sweep_app->add_option("--digests", sweep.digests_file, "Write `seed digest`, one a line, to this file");
  sweep_app->add_option("--failures-max", sweep.failures_max, "End at the seed with this failure; default: no bound");

  CLI::App* serve_app = app.add_subcommand("serve", "A worker of a sweep");
  serve_app->group("");  // not for people
  serve_app->add_option("--fidelity", fidelity);

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
  if (app.get_subcommands().empty()) throw UsageError{"want a command: run, print or sweep; --help tells more"};
  if (print_app->parsed()) {
    print.fidelity = choice;
    return Print(print);
  }
  if (serve_app->parsed()) ServeSwarm(choice);
  sweep.fidelity = choice;
  sweep.seeds = ParseSeedRange(seeds);
  if (!duration.empty()) sweep.wall_ns_max = ParseDuration(duration);
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
