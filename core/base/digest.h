// Fingerprints of runs and contents: 64-bit xxHash chains. Equal across machines, compilers and builds. Not for
// security and never on disk.
#pragma once

#include <cstdint>
#include <string_view>

namespace detcd {

// The fingerprint of `bytes` under `seed`.
uint64_t DigestBytes(std::string_view bytes, uint64_t seed = 0);

// A well-mixed function of one word (SplitMix64's finaliser).
constexpr uint64_t MixWord(uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9u;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// A chain of words; order matters.
class Digest {
 public:
  void Add(uint64_t word) { state_ = MixWord(state_ ^ (word + 0x9E3779B97F4A7C15u)) + 0x9E3779B97F4A7C15u; }
  void AddBytes(std::string_view bytes) { Add(DigestBytes(bytes, bytes.size())); }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0;
};

}  // namespace detcd
