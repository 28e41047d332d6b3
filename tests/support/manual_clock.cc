#include "tests/support/manual_clock.h"

namespace detcd {

class ManualClock::ManualTimer final : public Timer {
 public:
  ManualTimer(ManualClock& clock, TimerListener& listener, uint64_t token)
      : clock_(clock), listener_(listener), token_(token) {}
  ~ManualTimer() override { Disarm(); }

  void Arm(Instant deadline) override {
    Disarm();
    key_ = {deadline.nanos, ++clock_.last_number_};
    clock_.armed_.insert({key_, this});
  }
  void Disarm() override { clock_.armed_.erase({key_, this}); }
  void Fire() { listener_.OnTimer(token_); }

 private:
  ManualClock& clock_;
  TimerListener& listener_;
  uint64_t token_;
  std::pair<int64_t, uint64_t> key_;
};

std::unique_ptr<Timer> ManualClock::NewTimer(TimerListener& listener, uint64_t token) {
  return std::make_unique<ManualTimer>(*this, listener, token);
}

void ManualClock::Advance(Duration by) {
  now_ = now_ + by;
  while (!armed_.empty() && armed_.begin()->first.first <= now_.nanos) {
    ManualTimer* timer = armed_.begin()->second;
    armed_.erase(armed_.begin());
    timer->Fire();
  }
}

bool ManualEvents::RunOne() {
  if (posted_.empty()) return false;
  const auto [listener, token] = posted_.front();
  posted_.pop_front();
  listener->OnPost(token);
  return true;
}

}  // namespace detcd
