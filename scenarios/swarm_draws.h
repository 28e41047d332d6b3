// The draws that all pieces of the swarm share, and the pieces that have a file of their own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "core/io/random.h"
#include "scenarios/scenario.pb.h"

namespace detcd::scenario {

template <size_t N>
uint64_t Pick(KeyedRandom& random, const uint64_t (&choices)[N]) {
  return choices[random.Below(N)];
}

// A span between `low` and `high` whose logarithm is about uniform: short and long ones are equally common.
inline uint64_t LogBetween(KeyedRandom& random, uint64_t low, uint64_t high) {
  uint64_t doublings = 0;
  while (low << (doublings + 1) <= high) ++doublings;
  uint64_t base = low << random.Below(doublings + 1);
  return std::min(high, base + random.Below(base + 1));
}

// Draws of one piece of the scenario, named so that another piece's draws do not move them.
inline KeyedRandom Piece(uint64_t seed, std::string_view label) { return KeyedRandom(seed, label); }

// The episodes, of the families that this seed turns on, over the whole of `chaos_ms`. Wants the shape of the cluster.
void DrawEpisodes(uint64_t seed, Scenario& scenario);

// The operations, over the whole of `chaos_ms`. Wants the episodes.
void DrawOperations(uint64_t seed, Scenario& scenario);

}  // namespace detcd::scenario
