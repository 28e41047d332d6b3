// Runs one scenario: builds the world it describes, lets its episodes and operations happen, heals, and judges. A run is
// a function of the scenario and the build alone.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checker/observation.h"
#include "scenarios/metrics.h"
#include "scenarios/scenario.pb.h"
#include "sim/event_queue.h"
#include "sim/faults/effects.h"

namespace detcd::scenario {

// How much is told of a failure.
enum class StoryDepth : uint8_t {
  kShort,   // the sentence and the operations: costs nothing in a run that is fine
  kLanes,   // with members, faults and operations as lanes of time
  kCauses,  // and what it follows from
};

struct RunOptions {
  uint64_t stop_at_event = 0;                         // stop before the event of this number (a debugger's place); 0: never
  std::function<void()> at_stop;                      // called there, then the run goes on; empty: the run ends there
  std::function<void(std::string_view)> trace;        // hears each trace line; empty: none, at no cost
  StoryDepth story = StoryDepth::kShort;
  std::function<void(const sim::EventRecord&)> event; // hears each event before it is handled; empty: none, at no cost
  std::optional<Window> measure = {};                 // fills in RunResult::measured of this window
  // A judge's word ends the run only where `measure` or the chaos ends: what happens by then is counted, the first word stays.
  bool past_violation = false;
  bool second_opinion = true;                         // on a violation of linearizability; seconds at most (checker/triage.h)
};

// What became of a run; the numbers are the exit codes of the command line.
enum class Verdict : uint8_t {
  kFine = 0,
  kViolation = 1,      // a safety property
  kNotLive = 2,        // convergence
  kCrash = 3,          // the process died or hung: said by whoever watched it
  kUndetermined = 4,   // a judge gave up within its budget, digests differ, or a fault never bites
};

struct RunResult {
  Verdict verdict = Verdict::kFine;
  std::optional<checker::Violation> violation;
  std::string story;            // for people, several lines; empty when fine
  uint64_t digest = 0;          // of all events
  std::vector<uint64_t> checkpoints;  // digests after each sim::kCheckpointInterval of them
  uint64_t events = 0;
  sim::EventCounts events_by_kind{};
  uint64_t virtual_ms = 0;
  uint64_t operations = 0;      // begun by clients, and of those
  uint64_t answered = 0;
  uint64_t unknown = 0;
  uint64_t refused = 0;
  uint64_t leader_changes = 0;
  sim::EffectCounts effects;
  std::vector<uint64_t> measured;  // by Metric, when asked for
  Profile profile = TOLERATED;
  // NEGATIVE: what a judge said of data that went, as it must; none: nothing was lost that a member held to be durable.
  // CLOCKS: what a judge said of leases that clocks broke, as it may.
  std::optional<checker::Violation> reported;
};

// kInvalid scenarios (CheckScenario) must not get here.
RunResult RunScenario(const Scenario& scenario, const RunOptions& options);

// Why `scenario` cannot be run; empty when it can. Names the field.
std::string CheckScenario(const Scenario& scenario);

}  // namespace detcd::scenario
