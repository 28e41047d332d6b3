// What the fields of a scenario mean to the simulator: pure functions, and the check that a scenario can be run.
#pragma once

#include "scenarios/scenario.pb.h"
#include "sim/world.h"

namespace detcd::scenario {

sim::WorldKnobs MakeWorldKnobs(const Scenario& scenario);
// The links' law without loss.
sim::LinkLaw MakeLink(const Scenario& scenario);
sim::DelayLaw MakeDelay(const Law& law);
// Parts per million as parts per thousand, what is not zero as at least one.
inline uint32_t Permille(uint32_t ppm) { return (ppm + 999) / 1'000; }

// The longest that anything sent, or synced, before the healing or after it may take.
Duration LongestDelay(const Scenario& scenario);
Duration LongestSync(const Scenario& scenario);

// Whether the end of the episode can come to be other than it was planned at its beginning (`until_new_leader`).
bool MayLastUntilLeader(const Episode& episode);

}  // namespace detcd::scenario
