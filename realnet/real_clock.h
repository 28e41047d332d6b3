// The system's clocks, and timers of the loop.
#pragma once

#include <memory>

#include "core/io/clock.h"
#include "realnet/loop.h"

namespace detcd::realnet {

class RealClock final : public Clock {
 public:
  explicit RealClock(Loop& loop) : loop_(loop) {}

  Instant Now() override { return Loop::Now(); }  // CLOCK_MONOTONIC
  WallTime Wall() override;                       // CLOCK_REALTIME
  std::unique_ptr<Timer> NewTimer(TimerListener& listener, uint64_t token) override;

 private:
  Loop& loop_;
};

}  // namespace detcd::realnet
