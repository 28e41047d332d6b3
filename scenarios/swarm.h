// The swarm: a whole scenario from a seed. Each seed turns families of faults, knobs and kinds of load on and off
// (swarm testing, Groce et al. 2012): a world in which everything happens a little finds less than many worlds in which
// a few things happen a lot.
#pragma once

#include <cstdint>

#include "scenarios/scenario.pb.h"

namespace detcd::scenario {

// Rises whenever the same seed would give another scenario: results of different versions are not comparable.
inline constexpr uint32_t kSwarmVersion = 8;

enum class FidelityChoice : uint8_t { kMixed, kDirect, kWire };  // mixed: one seed in ten is wire

// What a seed's faults may do (Profile of scenario.proto). Mixed: one seed in ten is beyond, the others are tolerated.
enum class ProfileChoice : uint8_t { kMixed, kTolerated, kBeyond, kNegative, kClocks };

// The scenario of `seed`: about a minute of virtual time, some hundred operations, several episodes. A pure function.
Scenario MakeSwarm(uint64_t seed, FidelityChoice fidelity, ProfileChoice profile = ProfileChoice::kMixed);

// Takes out the episodes that the knobs do not bear, when these are no longer the drawn ones: leader leases assume that
// clocks neither leap nor stop (which CLOCKS is about).
void DropWhatKnobsForbid(Scenario& scenario);

}  // namespace detcd::scenario
