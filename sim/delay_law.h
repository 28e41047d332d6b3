// How long a thing takes, drawn with integers only.
#pragma once

#include <cstdint>

#include "core/base/time.h"
#include "core/io/random.h"

namespace detcd::sim {

enum class DelayShape : uint8_t {
  kUniform,      // [min, max]
  kExponential,  // min plus an exponential with mean `mean`, cut at max
  kBimodal,      // uniform in [min, mean]; with `slow_permille`, uniform in [mean, max]
};

// min <= mean <= max. The default takes no time.
struct DelayLaw {
  DelayShape shape = DelayShape::kUniform;
  Duration min;
  Duration mean;
  Duration max;
  uint32_t slow_permille = 0;

  static DelayLaw Constant(Duration d) { return {.min = d, .mean = d, .max = d}; }
  static DelayLaw Uniform(Duration min, Duration max) { return {.min = min, .mean = min, .max = max}; }
};

Duration DrawDelay(const DelayLaw& law, KeyedRandom& random);
// Whether `delay`, drawn from `law`, is of its slow mode.
inline bool IsSlowMode(const DelayLaw& law, Duration delay) {
  return law.shape == DelayShape::kBimodal && delay > law.mean;
}

}  // namespace detcd::sim
