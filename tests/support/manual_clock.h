// A clock that the test moves, and an event queue that the test runs.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <utility>

#include "core/io/clock.h"
#include "core/io/events.h"

namespace detcd {

class ManualClock final : public Clock {
 public:
  Instant Now() override { return now_; }
  WallTime Wall() override { return {now_.nanos}; }
  std::unique_ptr<Timer> NewTimer(TimerListener& listener, uint64_t token) override;

  // Moves on, then fires what is due, in the order of deadlines.
  void Advance(Duration by);
  // Armed timers.
  size_t armed() const { return armed_.size(); }

 private:
  class ManualTimer;

  Instant now_ = Instant{1'000'000'000};
  uint64_t last_number_ = 0;
  std::set<std::pair<std::pair<int64_t, uint64_t>, ManualTimer*>> armed_;  // deadline, order of arming
};

class ManualEvents final : public Events {
 public:
  void Post(PostListener& listener, uint64_t token) override { posted_.emplace_back(&listener, token); }
  void SetTurnListener(TurnListener&) override {}

  // Runs the first posted event; false when there is none.
  bool RunOne();

 private:
  std::deque<std::pair<PostListener*, uint64_t>> posted_;
};

}  // namespace detcd
