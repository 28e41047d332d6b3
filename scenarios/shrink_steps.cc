#include "scenarios/shrink_steps.h"

#include "scenarios/shrink_passes.h"

namespace detcd::scenario {
namespace {

constexpr uint64_t kSecondSeeds = 3;
constexpr uint64_t kHardeningSeeds = 6;

}  // namespace

ShrinkPasses MakeShrinkPasses() {
  ShrinkPasses passes;
  passes.reductions = {
      {"byte streams", 1, Wire},
      {"expectations", 1, Expected},
      {"fault families", 1, Families},
      {"the end", 1, End},
      {"the last part", kPartLevels, LastPart},
      {"the last part of a steady load", kPartLevels, LastPartOfSteadyLoad},
      {"a steady load", 1, SteadyLoad},
      {"episodes", kListLevels, Episodes},
      {"operations", kListLevels, Operations},
      {"repeats", kRepeatsLevels, Repeats},
      {"the beginning", 1, Start},
      {"repetitions", kRepetitionsLevels, Repetitions},
      {"turns of operations", kTurnLevels, Turns},
      {"members", 1, Members},
      {"lost members", 1, LostMembers},
      {"clients", 1, Clients},
      {"losses and drifts", 1, Losses},
      {"settings", 1, Settings},
      {"tight limits", 1, TightLimits},
      {"larger values", kValueLevels, LargerValues},
      {"constant latencies", 1, Constants},
      {"members of faults", 1, Groups},
      {"idle spans", 1, Gaps},
      {"lengths of faults", 1, Lengths},
      {"moments", 1, Moments},
      {"options of calls", 2, CallFields},
      {"reads of one key", 1, OneKey},
  };
  passes.second_chances = {
      {"round numbers", kRoundingLevels, Rounding},
      Reseeded(ShrinkPass{"members that faults name", 1, NamedMembers}, kSecondSeeds),
      Reseeded(ShrinkPass{"fault families", 1, Families}, kSecondSeeds),
      Reseeded(ShrinkPass{"episodes", kListLevels, Episodes}, kSecondSeeds),
      Reseeded(ShrinkPass{"turns of operations", kTurnLevels, Turns}, kSecondSeeds),
      Reseeded(ShrinkPass{"operations", kListLevels, Operations}, kSecondSeeds),
      Reseeded(ShrinkPass{"clients", 1, Clients}, kSecondSeeds),
      Reseeded(ShrinkPass{"settings", 1, Settings}, kSecondSeeds),
      Reseeded(ShrinkPass{"constant latencies", 1, Constants}, kSecondSeeds),
      Reseeded(ShrinkPass{"losses and drifts", 1, Losses}, kSecondSeeds),
  };
  passes.hardenings = {
      {"stronger chances", 1, StrongerChances},
      {"slower laws", 1, SlowerLaws},
      {"a steady load again", 1, SteadyAgain},
      {"who leads first", 1, FirstLeader},
      {"at new leaders", 1, AtNewLeaders},
      {"more time", 1, Slower},
      {"longer faults", 1, LongerFaults},
      {"drifts", 1, StrongDrifts},
      {"wider faults", 1, WiderFaults},
      {"several of these", 1, Harder},
      {"all of it again", 1, Again},
      Reseeded(ShrinkPass{"stronger chances", 1, StrongerChances}, kHardeningSeeds),
      Reseeded(ShrinkPass{"slower laws", 1, SlowerLaws}, kHardeningSeeds),
      Reseeded(ShrinkPass{"a steady load again", 1, SteadyAgain}, kHardeningSeeds),
      Reseeded(ShrinkPass{"who leads first", 1, FirstLeader}, kHardeningSeeds),
      Reseeded(ShrinkPass{"at new leaders", 1, AtNewLeaders}, kHardeningSeeds),
      Reseeded(ShrinkPass{"more time", 1, Slower}, kHardeningSeeds),
      Reseeded(ShrinkPass{"longer faults", 1, LongerFaults}, kHardeningSeeds),
      Reseeded(ShrinkPass{"drifts", 1, StrongDrifts}, kHardeningSeeds),
      Reseeded(ShrinkPass{"wider faults", 1, WiderFaults}, kHardeningSeeds),
      Reseeded(ShrinkPass{"several of these", 1, Harder}, kSecondSeeds),
      Reseeded(ShrinkPass{"all of it again", 1, Again}, kHardeningSeeds),
  };
  return passes;
}

}  // namespace detcd::scenario
