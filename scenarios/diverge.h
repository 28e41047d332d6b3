// Compares two runs that should be one, and finds where they part: the first event that differs, on either side, and
// what it follows from. Each side is a program that tells its run as an event stream (event_stream.h), so that two
// builds, two scenarios, or one run under two surroundings are compared alike.
//
// The first pass, left out where a sweep already knows the interval, takes a digest every so many events; digests roll, so the runs part between the last equal checkpoint
// and the first different one. The second pass tells that interval event by event. A third follows the causes
// backwards. Each pass runs each side anew: what does not repeat itself, even on one side, is seen, tried again, and
// then said.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/event_stream.h"

namespace detcd::scenario {

struct RunSide {
  std::string name;                  // for people
  std::vector<std::string> command;  // the program, found as execvp does, and arguments before those of EventArguments
  bool other_surroundings = false;   // surroundings.h
};

struct DivergeOptions {
  uint64_t checkpoint_interval = 1'024;  // events
  std::optional<uint64_t> after;         // the first look is at the sim::kCheckpointInterval events after this one
  uint32_t parents_max = 3;              // causes told of each side, backwards
  uint32_t attempts = 4;                 // at an interval that differs once and then does not
};

enum class Likeness : uint8_t {
  kEqual,      // same events, same end
  kDivergent,
  kUnknown,    // a side cannot be run, or does not speak as it should
};

struct Comparison {
  Likeness likeness = Likeness::kUnknown;
  std::string story;  // several lines
};

// Runs both sides as child processes, one at a time. Throws std::system_error where no process can be made.
Comparison Diverge(const RunSide& a, const RunSide& b, const DivergeOptions& options);

// `request` on a command line: --every K, --first N --last N; and --other-heap where asked.
std::vector<std::string> EventArguments(const EventRequest& request, bool other_heap);

}  // namespace detcd::scenario
