// The reductions that shrink_steps.cc puts in an order. Each makes the edits of one level for the scenario there is.
#pragma once

#include <cstdint>

#include "scenarios/shrink.h"
#include "scenarios/shrink_edits.h"

namespace detcd::scenario {

// shrink_plan.cc: what happens, to whom, and how long.
inline constexpr uint32_t kListLevels = 13;
inline constexpr uint32_t kTurnLevels = 6;
Edits Families(const Scenario& scenario, uint32_t level);
Edits Episodes(const Scenario& scenario, uint32_t level);
Edits Operations(const Scenario& scenario, uint32_t level);
Edits Turns(const Scenario& scenario, uint32_t level);
Edits Members(const Scenario& scenario, uint32_t level);
Edits LostMembers(const Scenario& scenario, uint32_t level);
Edits Clients(const Scenario& scenario, uint32_t level);
Edits Groups(const Scenario& scenario, uint32_t level);
Edits End(const Scenario& scenario, uint32_t level);
Edits Start(const Scenario& scenario, uint32_t level);
Edits Gaps(const Scenario& scenario, uint32_t level);
Edits Lengths(const Scenario& scenario, uint32_t level);

// shrink_details.cc: settings, numbers, and the parts of calls.
inline constexpr uint32_t kRepetitionsLevels = 2;
inline constexpr uint32_t kRoundingLevels = 3;
inline constexpr uint32_t kValueLevels = 4;
Edits Expected(const Scenario& scenario, uint32_t level);
Edits Repetitions(const Scenario& scenario, uint32_t level);
Edits Moments(const Scenario& scenario, uint32_t level);
Edits Wire(const Scenario& scenario, uint32_t level);
Edits Rounding(const Scenario& scenario, uint32_t level);
Edits Constants(const Scenario& scenario, uint32_t level);
Edits Losses(const Scenario& scenario, uint32_t level);
Edits Settings(const Scenario& scenario, uint32_t level);
Edits TightLimits(const Scenario& scenario, uint32_t level);
Edits CallFields(const Scenario& scenario, uint32_t level);
Edits OneKey(const Scenario& scenario, uint32_t level);
Edits LargerValues(const Scenario& scenario, uint32_t level);

// shrink_loads.cc: few lines of operations in the place of many.
inline constexpr uint32_t kRepeatsLevels = 3;
Edits LastPartOfSteadyLoad(const Scenario& scenario, uint32_t level);
Edits SteadyLoad(const Scenario& scenario, uint32_t level);
Edits SteadyAgain(const Scenario& scenario, uint32_t level);
Edits Repeats(const Scenario& scenario, uint32_t level);

// shrink_luck.cc: what takes other draws, or makes draws matter less.
inline constexpr uint32_t kPartLevels = 4;
// Each edit under `seeds` other base seeds.
ShrinkPass Reseeded(const ShrinkPass& pass, uint64_t seeds);
Edits NamedMembers(const Scenario& scenario, uint32_t level);
Edits LastPart(const Scenario& scenario, uint32_t level);
Edits FirstLeader(const Scenario& scenario, uint32_t level);
Edits AtNewLeaders(const Scenario& scenario, uint32_t level);
Edits WiderFaults(const Scenario& scenario, uint32_t level);
Edits Again(const Scenario& scenario, uint32_t level);
Edits StrongDrifts(const Scenario& scenario, uint32_t level);
Edits StrongerChances(const Scenario& scenario, uint32_t level);
Edits SlowerLaws(const Scenario& scenario, uint32_t level);
Edits Harder(const Scenario& scenario, uint32_t level);
Edits Slower(const Scenario& scenario, uint32_t level);
Edits LongerFaults(const Scenario& scenario, uint32_t level);

}  // namespace detcd::scenario
