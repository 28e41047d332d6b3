#include "realnet/real_clock.h"

#include <time.h>

namespace detcd::realnet {
namespace {

class RealTimer final : public Timer, public TimerNode {
 public:
  RealTimer(TimerHeap& heap, TimerListener& listener, uint64_t token)
      : heap_(heap), listener_(listener), token_(token) {}
  ~RealTimer() { heap_.Disarm(*this); }

  void Arm(Instant deadline) override { heap_.Arm(*this, deadline); }
  void Disarm() override { heap_.Disarm(*this); }
  void Fire() override { listener_.OnTimer(token_); }

 private:
  TimerHeap& heap_;
  TimerListener& listener_;
  const uint64_t token_;
};

}  // namespace

WallTime RealClock::Wall() {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return {int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec};
}

std::unique_ptr<Timer> RealClock::NewTimer(TimerListener& listener, uint64_t token) {
  return std::make_unique<RealTimer>(loop_.timers(), listener, token);
}

}  // namespace detcd::realnet
