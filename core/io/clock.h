// Time. Now() is read live, never cached for a turn: in the simulator any seam call may be a pause point.
#pragma once

#include <cstdint>
#include <memory>

#include "core/base/time.h"

namespace detcd {

// Hears a timer that came due.
class TimerListener {
 public:
  virtual void OnTimer(uint64_t token) = 0;

 protected:
  ~TimerListener() = default;
};

// One timer. It fires once for each Arm; never early on the member's own clock, late by any amount.
// Destroying it disarms it.
class Timer {
 public:
  virtual ~Timer() = default;
  // Fires once at `deadline` (at once, as a new event, when that is past). Replaces an earlier deadline.
  virtual void Arm(Instant deadline) = 0;
  // After this no OnTimer of an earlier Arm arrives.
  virtual void Disarm() = 0;
};

class Clock {
 public:
  virtual ~Clock() = default;
  // Monotonic: may drift, leap forward and freeze, never falls within an incarnation. The origin is arbitrary.
  virtual Instant Now() = 0;
  // Civil time: may do anything. Only where etcd's formats need it.
  virtual WallTime Wall() = 0;
  // A disarmed timer whose events `listener` hears with `token`. `listener` outlives the timer.
  virtual std::unique_ptr<Timer> NewTimer(TimerListener& listener, uint64_t token) = 0;
};

}  // namespace detcd
