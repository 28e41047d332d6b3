// What can be made smaller in a scenario, in the order that pays best: whole families first, single lines last. Every
// edit takes away, shortens, rounds down, or puts a constant in the place of a draw; members keep their numbers, and
// operations and episodes their ids, which name their random choices.
#pragma once

#include "scenarios/shrink.h"

namespace detcd::scenario {

ShrinkPasses MakeShrinkPasses();

}  // namespace detcd::scenario
