// Armed timers as a binary heap that knows where each timer stands, so that arming again and disarming cost O(log n)
// and no allocation. Ties go to the one armed first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/time.h"

namespace detcd::realnet {

// A timer's place in the heap; kept inside the timer.
class TimerNode {
 public:
  virtual void Fire() = 0;

 protected:
  ~TimerNode() = default;

 private:
  friend class TimerHeap;
  static constexpr size_t kNowhere = ~size_t{0};

  Instant deadline_;
  uint64_t order_ = 0;        // number of the Arm: ties, and what was armed after a round began
  size_t place_ = kNowhere;  // index in the heap
};

class TimerHeap {
 public:
  // Puts `node` at `deadline`, wherever it was.
  void Arm(TimerNode& node, Instant deadline);
  void Disarm(TimerNode& node);

  // The earliest deadline; nothing when no timer is armed.
  std::optional<Instant> Next() const;
  // The number of the next Arm: marks the beginning of a round.
  uint64_t next_order() const { return next_order_; }
  // Takes out the first timer that is due at `now` and was armed before the round `order` began; null when there is
  // none. (A timer that arms itself for the past waits for the next round, so that rounds end.)
  TimerNode* PopDue(Instant now, uint64_t order);

  // Disarms all.
  void Clear();

 private:
  static bool Before(const TimerNode& a, const TimerNode& b);
  void Put(size_t place, TimerNode* node);
  void Up(size_t place);
  void Down(size_t place);

  std::vector<TimerNode*> heap_;  // heap_[i] is not after its children heap_[2i+1], heap_[2i+2]
  uint64_t next_order_ = 1;
};

}  // namespace detcd::realnet
