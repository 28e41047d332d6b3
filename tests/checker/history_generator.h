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

// The answer to `request`, of any kind but compact and hash, on `state` at `revision`; changes both when the request does.
// `past`: the states by revision, for ranges at a past one inside a transaction; nullptr: there are none.
Answer RunSpec(const Request& request, SpecState& state, int64_t& revision,
               const std::vector<SpecState>* past = nullptr);

// Whether the specification ever proposes it.
bool SpecProposes(const Request& request);
// Whether a read is of the member's own state.
bool SpecReadsLocally(const Request& request);
// Whether what the one writes, in any branch, may lie in what the other reads.
bool SpecMayTouch(const Request& writer, const Request& reader);
// Whether comparisons of a transaction can be told without create, mod and version.
bool SpecTellsByValues(const Request& request);

// An encoded InternalRaftRequest.
Bytes Encode(const Request& request);

struct HistoryOptions {
  size_t operations = 7;
  size_t clients = 3;
  size_t keys = 3;
  uint64_t unknown_percent = 20;
  size_t values = 0;  // how many different values puts draw from; 0: each has its own
  uint64_t txn_percent = 35;
  bool conditions_on_values = false;  // of transactions: only on what is told by values too
};
History GenerateHistory(uint64_t seed, const HistoryOptions& options);

// What RevisionOrder says of it.
std::optional<Violation> JudgeHistory(const History& history);

}  // namespace detcd::checker
