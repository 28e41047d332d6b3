#include "sim/sim_clock.h"

#include <algorithm>

#include "core/base/check.h"

namespace detcd::sim {
namespace {

constexpr __int128 kMillion = 1'000'000;

}  // namespace

Instant SimClock::Local(int64_t true_now) const {
  CHECK(true_now >= base_true_);
  const __int128 passed = true_now - base_true_;
  return {base_local_ + static_cast<int64_t>(passed * (kMillion + ppm_) / kMillion)};
}

std::optional<int64_t> SimClock::TrueTimeOf(Instant deadline) const {
  if (deadline.nanos <= base_local_) return base_true_;
  const __int128 rate = kMillion + ppm_;
  if (rate == 0) return std::nullopt;
  // Local rounds down, so this rounds up: passed * rate / million >= wanted.
  const __int128 wanted = static_cast<__int128>(deadline.nanos) - base_local_;
  const __int128 passed = (wanted * kMillion + rate - 1) / rate;
  constexpr __int128 kNever = INT64_MAX / 2;
  if (passed > kNever) return std::nullopt;
  return base_true_ + static_cast<int64_t>(passed);
}

void SimClock::SetDrift(int64_t true_now, int64_t ppm) {
  CHECK(ppm >= kFrozenPpm);
  Rebase(true_now);
  ppm_ = ppm;
}

void SimClock::Leap(int64_t true_now, Duration by) {
  CHECK(by.nanos >= 0);
  Rebase(true_now);
  base_local_ += by.nanos;
}

void SimClock::Rebase(int64_t true_now) {
  base_local_ = Local(true_now).nanos;
  base_true_ = true_now;
}

}  // namespace detcd::sim
