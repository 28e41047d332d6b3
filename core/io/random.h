// Randomness by name: every choice is H(seed, label, ordinal), so that a new draw in one place disturbs no other.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/digest.h"
#include "core/base/time.h"

namespace detcd {

// The draws of one label, numbered from 0. Integer-only, our own distributions, equal on every machine. Two draws never
// stand in one expression: compilers evaluate arguments in different orders.
class KeyedRandom {
 public:
  KeyedRandom(uint64_t seed, std::string_view label) : key_(DigestBytes(label, seed)) {}
  // A stream below this one, named by a number (a member, a client, an episode).
  KeyedRandom Sub(uint64_t number) const { return KeyedRandom(MixWord(key_ ^ MixWord(number + 0x632BE59BD9B4E019u))); }

  uint64_t Next() { return MixWord(key_ + 0x9E3779B97F4A7C15u * ++ordinal_); }
  // Uniform in [0, bound); bound > 0.
  uint64_t Below(uint64_t bound) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(Next()) * bound >> 64);
  }
  // Uniform in [first, last].
  uint64_t Between(uint64_t first, uint64_t last) { return first + Below(last - first + 1); }
  Duration Between(Duration first, Duration last) {
    return {first.nanos + static_cast<int64_t>(Below(static_cast<uint64_t>(last.nanos - first.nanos) + 1))};
  }
  // True in `numerator` of `denominator` cases.
  bool Chance(uint64_t numerator, uint64_t denominator) { return Below(denominator) < numerator; }

 private:
  explicit KeyedRandom(uint64_t key) : key_(key) {}

  uint64_t key_;
  uint64_t ordinal_ = 0;
};

}  // namespace detcd
