// Histories for the judges' own tests: a specification run with random linearisation points. Nothing here shares code
// with the judges.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checker/history.h"
#include "checker/observation.h"

namespace detcd::checker {

// Draws from a seed; integer-only.
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}
  uint64_t Below(uint64_t limit);  // limit > 0
  bool Chance(uint64_t percent) { return Below(100) < percent; }

 private:
  uint64_t state_;
};

struct HistoryEvent {
  enum class Kind : uint8_t { kCall, kCommit, kEnd };
  Kind kind = Kind::kCall;
  size_t operation = 0;  // call, end: its place in `operations`
  Request committed;     // commit: what the entry holds
};

struct History {
  std::vector<Operation> operations;  // ids are 1 and on, in order of call
  std::vector<HistoryEvent> events;

  // Gives each call and end its event number.
  void Number();
};

// The specification, in the fewest words: the live pairs, by key.
using SpecState = std::map<std::string, ObservedKeyValue>;

bool SpecWithin(const std::string& key, const Request& request);

// The answer to `request` on `state` at `revision`; changes both when the request does.
Answer RunSpec(const Request& request, SpecState& state, int64_t& revision);

// An encoded InternalRaftRequest.
Bytes Encode(const Request& request);

struct HistoryOptions {
  size_t operations = 7;
  size_t clients = 3;
  size_t keys = 3;
  uint64_t unknown_percent = 20;
  size_t values = 0;  // how many different values puts draw from; 0: each has its own
};
History GenerateHistory(uint64_t seed, const HistoryOptions& options);

// What RevisionOrder says of it.
std::optional<Violation> JudgeHistory(const History& history);

}  // namespace detcd::checker
