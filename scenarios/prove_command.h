// detcd-sim prove: the proofs of checker/proofs and their weakened twins.
#pragma once

#include <cstdint>
#include <string>

namespace detcd::scenario {

struct ProveCommand {
  std::string name;           // a proof, or the rule of it and its twins; empty: all
  std::string json_file;      // empty: none
  std::string scenario_file;  // empty: none; else `name` is one twin, and its counterexample becomes a scenario there
  uint64_t seed = 1;          // of that scenario
  uint64_t rlimit = 0;        // of each proof, in Z3's units; 0: kRlimitDefault
};

// Prints a line for each proof when it is done, with its counterexample when one is named or it is not what is expected.
// The exit code: 0 all as expected; 1 a rule refuted, or a twin proved; 4 undetermined. Throws UsageError for a name that
// is none, or has no scenario.
int RunProve(const ProveCommand& command);

}  // namespace detcd::scenario
