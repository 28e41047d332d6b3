// The commands of detcd-sim: run, print, sweep, diverge. main.cc reads the command line and calls one of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/event_stream.h"
#include "scenarios/runner.h"
#include "scenarios/swarm.h"

namespace detcd::scenario {

// sysexits.h, EX_USAGE: the command line, or a file that it names, is wrong.
inline constexpr int kExitUsage = 64;

// What to say to a person, and exit with kExitUsage.
struct UsageError {
  std::string message;
};

struct SeedRange {
  uint64_t first = 1;
  uint64_t last = 1;  // inclusive
};

// `A..B` with A <= B < 2^63. Throws UsageError.
SeedRange ParseSeedRange(const std::string& text);
// `90s`, `10m`, `2h`, `500ms`, in nanoseconds. Throws UsageError, which names the option.
int64_t ParseDuration(const std::string& text, const std::string& option = "--for");
// direct, wire, mixed. Throws UsageError.
FidelityChoice ParseFidelity(const std::string& text);
std::string FidelityText(FidelityChoice fidelity);
// tolerated, beyond, negative, mixed. Throws UsageError.
ProfileChoice ParseProfile(const std::string& text);
std::string ProfileText(ProfileChoice profile);
// ` --fidelity F`, with ` --profile P` where it is not the usual one: what names a seed's scenario besides the seed.
std::string ChoiceText(FidelityChoice fidelity, ProfileChoice profile);

struct RunCommand {
  std::string program;             // as invoked
  std::optional<uint64_t> seed;    // one of these two
  std::string scenario_file;
  FidelityChoice fidelity = FidelityChoice::kMixed;
  ProfileChoice profile = ProfileChoice::kMixed;
  StoryDepth story = StoryDepth::kLanes;  // kCauses: explain
  std::string trace_file;          // empty: none
  uint64_t stop_at_event = 0;      // 0: never
  uint32_t repeat = 0;             // run so often in this process, under a profiler say; 0: once, in a process of its own
};

struct PrintCommand {
  uint64_t seed = 0;
  FidelityChoice fidelity = FidelityChoice::kMixed;
  ProfileChoice profile = ProfileChoice::kMixed;
};

struct SweepCommand {
  std::string program;
  SeedRange seeds;
  uint32_t jobs = 0;               // 0: as many as there are processors
  int64_t wall_ns_max = 0;         // 0: no bound
  int64_t cpu_ns_max = 0;          // of all workers together; 0: no bound
  FidelityChoice fidelity = FidelityChoice::kMixed;
  ProfileChoice profile = ProfileChoice::kMixed;
  std::string json_file;           // empty: none
  std::string digests_file;
  uint64_t failures_max = 0;       // 0: no bound
  bool victims = false;            // tells whom each kind of fault hit
  bool twice = false;              // every seed is run twice, not a share of them
};

// Compares two runs: of the same seed or file by two programs; of two files; of the same by the same program, the second
// time under other surroundings.
struct DivergeCommand {
  std::string program;
  std::optional<uint64_t> seed;    // this, or one or two files
  std::vector<std::string> files;
  FidelityChoice fidelity = FidelityChoice::kMixed;
  ProfileChoice profile = ProfileChoice::kMixed;
  std::string binary_a;            // empty: this program
  std::string binary_b;
  uint64_t checkpoint_interval = 0;
  std::optional<uint64_t> after;   // both are known to be equal up to this event
};

// One side of a comparison, told to the process that compares.
struct EventsCommand {
  std::optional<uint64_t> seed;
  std::string scenario_file;
  FidelityChoice fidelity = FidelityChoice::kMixed;
  ProfileChoice profile = ProfileChoice::kMixed;
  EventRequest request;
  bool other_heap = false;
};

// Each writes to standard output and returns the exit code. They throw UsageError, and std::system_error where the
// machine refuses.
int Run(const RunCommand& command);
int Print(const PrintCommand& command);
int RunSweep(const SweepCommand& command);
// 0 equal, 4 divergent.
int RunDiverge(const DivergeCommand& command);
int Events(const EventsCommand& command);

// The life of a sweep's worker that was started as a program.
[[noreturn]] void ServeSwarm(FidelityChoice fidelity, ProfileChoice profile);

}  // namespace detcd::scenario
