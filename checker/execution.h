// One request run on one state: the whole of etcd's sequential rules for keys (semantics.md 3-7), used by the model, the
// kernel and the search, each with its own state. With an answer it says what is wrong with that.
//
// Transactions: all branches, of nested ones too, are chosen on the state before; then the chosen operations are checked,
// and if one must fail nothing is done; then they run in order, and later ones see what earlier ones did.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checker/history.h"
#include "checker/range_rules.h"

namespace detcd::checker {

// The state that a request meets. With kValues pairs have no create, mod and version.
class StateView {
 public:
  virtual int64_t revision() const = 0;
  virtual std::vector<ObservedKeyValue> Live(const std::string& key, const std::string& range_end) const = 0;
  // The pairs at a past revision, in [1, revision()]; nullopt: not known here, and nothing is held against it.
  virtual std::optional<std::vector<ObservedKeyValue>> LiveAt(const std::string& key, const std::string& range_end,
                                                              int64_t revision) const = 0;
  virtual int64_t compact_revision() const = 0;  // -1: nothing is known to be compacted
  virtual Evidence evidence() const = 0;

 protected:
  ~StateView() = default;
};

struct Change {
  std::string key;
  std::optional<ObservedKeyValue> now;  // nullopt: deleted
};

struct Execution {
  std::string error;                // it must fail with this: then there are no changes
  std::vector<Change> changes;      // in order of sub revisions, all of revision() + 1
  // With an answer: what is wrong with it, and which property that is. The header of the whole is the caller's.
  std::string trouble;
  std::string_view property;
};

// A request of any kind but compact and hash. `answer`: a successful one, or nullptr. `guess`: with kValues and without an
// answer, which branch transactions take whose comparisons say nothing: bit i set: the i-th of them (outer before inner,
// in order) succeeds.
Execution Execute(const Request& request, const StateView& state, const Answer* answer, uint32_t guess = 0);

// How many such transactions there may be: guesses are in [0, 2^n). 0 with kAll.
uint32_t GuessesNeeded(const Request& request, Evidence evidence);

// Whether some reading of `state` has the request fail with `error`: by which revisions were compacted meanwhile, and with
// kValues by the guesses.
bool MayFail(const Request& request, const StateView& state, std::string_view error);

// Whether the answer says that something was changed.
bool SaysItChanged(const Request& request, const Answer& answer);

// All pairs that the answer shows, those in responses of a transaction too; of ranges for keys only, without values.
struct ShownPair {
  const ObservedKeyValue* kv = nullptr;
  bool has_value = true;
};
std::vector<ShownPair> ShownPairs(const Request& request, const Answer& answer);

}  // namespace detcd::checker
