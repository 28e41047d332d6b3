// A difference made small and told.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/interop/differential/comparison.h"

namespace detcd::differential {

// Replays calls on servers that hold the same, and says how they first differed; nullopt when they did not.
using Replay = std::function<std::optional<Difference>(const std::vector<testing::ApiCall>& calls)>;

struct Story {
  std::vector<testing::ApiCall> calls;  // the last is the one that differs
  Difference difference;
};

// Drops calls, then parts of requests, while there is still a call that is answered differently. nullopt: there is none
// when `calls` itself is tried again.
std::optional<Story> Shrink(std::vector<testing::ApiCall> calls, const Replay& replay);

// The calls, numbered, then both answers.
std::string Tell(const std::vector<testing::ApiCall>& calls, const Difference& difference);

}  // namespace detcd::differential
