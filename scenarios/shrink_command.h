// detcd-sim shrink: a failing scenario made small, as a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "scenarios/swarm.h"

namespace detcd::scenario {

struct ShrinkCommand {
  std::string program;             // as invoked
  std::optional<uint64_t> seed;    // one of these two
  std::string scenario_file;
  FidelityChoice fidelity = FidelityChoice::kMixed;
  ProfileChoice profile = ProfileChoice::kMixed;
  std::string out_file;            // empty: a name made of the seed or of the file's name
  std::string json_file;           // ShrinkReport; empty: none
  uint64_t runs_max = 5'000;
  uint32_t jobs = 0;               // 0: as many as there are processors; changes the time it takes, not the result
};

// Shrinks and writes the result. The best so far is in the file after each step: begun again with the same file, it goes
// on from there. Returns 0 when the result fails in two further processes as the original does, 4 when it does not, 130
// when interrupted. Throws UsageError, also when there is no failure to shrink or the file holds something else.
int RunShrink(const ShrinkCommand& command);

// The life of a worker that was started as a program and runs one scenario.
[[noreturn]] void ServeScenario(const std::string& scenario_file);

}  // namespace detcd::scenario
