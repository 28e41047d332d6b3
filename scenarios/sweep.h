// The engine of sweeps: runs a function of a seed over a range of seeds in worker processes, one seed at a time each.
// Whatever a run does to its process (an abort, a fault, an endless loop, all memory) is a verdict about its seed: the
// worker is replaced and the sweep goes on. A share of the seeds is run twice, the second time in a process with
// other surroundings (surroundings.h), and the two digests must be equal.
//
// What is told does not depend on the number of workers: reports are handed on in the order of the seeds, and the sweep
// ends at a seed, not at a moment (but for `wall_ns_max` and an interrupt).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/sweep.pb.h"

namespace detcd::scenario {

// What one seed may take before it is given up.
struct SeedLimits {
  int64_t cpu_ns_max = 120'000'000'000;     // a usual seed takes 20 ms; builds with sanitizers a hundred times that
  int64_t stall_ns_max = 60'000'000'000;    // of real time in which its process used no CPU time
  uint64_t memory_bytes_max = 2ull << 30;   // RLIMIT_AS of a worker; not in builds with address sanitizer
};

inline constexpr uint32_t kTwinShare = 64;
// The property of a seed whose two runs differ.
inline constexpr std::string_view kDivergence = "divergence";
inline constexpr size_t kStoryBytesMax = 64 * 1024;
// Seeds that are done, but must wait for an earlier one to be told.
inline constexpr uint64_t kSeedsAheadMax = 100'000;

struct SweepOptions {
  uint64_t first = 1;
  uint64_t last = 1;                    // inclusive; below 2^63
  uint32_t jobs = 1;
  int64_t wall_ns_max = 0;              // no seed is begun after this; 0: no bound
  uint64_t cpu_ns_max = 0;              // no seed is begun once those told took this much CPU time; 0: no bound
  uint64_t failures_max = 0;            // ends at the seed with failure number this; 0: no bound
  std::function<bool(const SeedReport&)> is_failure = {};  // what counts towards it; empty: every verdict but fine
  uint32_t twin_share = kTwinShare;     // one seed in this many is run twice; 0: none
  // Arguments for this program, with its name, that have it call ServeSeeds. Empty: a fork, which differs in its heap only.
  std::vector<std::string> twin_command;
  SeedLimits limits;
};

struct SweepProgress {
  uint64_t seeds_done = 0;   // told to the listener
  uint64_t seeds_begun = 0;
  int64_t wall_ns = 0;
};

class SweepListener {
 public:
  // Each seed once, in order, without a gap.
  virtual void OnSeed(const SeedReport& report) = 0;
  // Several times a second.
  virtual void OnProgress(const SweepProgress& progress) = 0;

 protected:
  ~SweepListener() = default;
};

struct SweepEnd {
  int64_t wall_ns = 0;
  uint64_t seeds_compared = 0;
  bool interrupted = false;
};

// Runs in a worker process. The report's `seed` and `cpu_ns` are filled in by the engine.
using RunSeed = std::function<SeedReport(uint64_t seed)>;

// Throws std::system_error where no worker process can be made. While it runs, SIGINT and SIGTERM end the sweep after
// the seeds under way.
SweepEnd Sweep(const SweepOptions& options, const RunSeed& run, SweepListener& listener);

// Whether `seed` is one of those that are run twice.
bool HasTwin(uint64_t seed, uint32_t twin_share);

// The life of a worker that was started as a program: serves the sweep at the other end of the inherited descriptors.
[[noreturn]] void ServeSeeds(const RunSeed& run);

}  // namespace detcd::scenario
