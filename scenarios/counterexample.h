// A counterexample of checker/proofs as a scenario: the same faults at the same times, for a cluster of the real code.
// Weakened as the model was, the code is violated by it (for the seeds in which elections draw short timeouts); as it is, it holds.
#pragma once

#include <cstdint>

#include "checker/proofs/timeline.h"
#include "scenarios/scenario.pb.h"

namespace detcd::scenario {

struct CounterexampleKnobs {
  uint64_t seed = 1;
  uint32_t election_timeout_ms = 1000;  // what the model's unit of time becomes; a multiple of 10
};

Scenario ScenarioOf(const proofs::Timeline& timeline, const CounterexampleKnobs& knobs);

}  // namespace detcd::scenario
