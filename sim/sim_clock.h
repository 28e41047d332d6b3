// The clocks of one endpoint, as functions of true time. They belong to the machine and outlive incarnations.
//
// Monotonic: local = base + (true - base_true) * (1 + drift). Drift in parts per million; -1,000,000 is frozen. Leaps
// go forward only, so local time never falls. Wall: monotonic plus an offset that may jump either way.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "core/base/time.h"

namespace detcd::sim {

inline constexpr int64_t kFrozenPpm = -1'000'000;

class SimClock {
 public:
  explicit SimClock(int64_t true_now = 0) : base_true_(true_now) {}

  Instant Local(int64_t true_now) const;
  WallTime Wall(int64_t true_now) const { return {Local(true_now).nanos + wall_offset_}; }
  // The first true time at which Local reaches `deadline`, as the clock runs now; none when it is frozen short of it.
  std::optional<int64_t> TrueTimeOf(Instant deadline) const;

  // From true time `now` on. `ppm` >= kFrozenPpm.
  void SetDrift(int64_t true_now, int64_t ppm);
  // `by` >= 0.
  void Leap(int64_t true_now, Duration by);
  void JumpWall(Duration by) {
    wall_offset_ += by.nanos;
    wall_jumped_ |= by.nanos != 0;
  }
  // Whether the wall clock jumped since the last call.
  bool TakeWallJumped() { return std::exchange(wall_jumped_, false); }

  int64_t drift_ppm() const { return ppm_; }

 private:
  void Rebase(int64_t true_now);

  int64_t base_true_ = 0;
  int64_t base_local_ = 1'000'000'000;  // an arbitrary origin: nobody may take it for 1970 or for zero
  int64_t ppm_ = 0;
  int64_t wall_offset_ = 1'767'225'600'000'000'000;  // 2026-01-01
  bool wall_jumped_ = false;
};

}  // namespace detcd::sim
