// Events and turns. A member is driven by events (a timer, bytes, a completion), one at a time, each run to the end. A
// turn is 1..k events and then OnEndTurn, where batches leave: one log batch, one write per connection.
//
// No seam call ever calls back from inside itself: every completion is an event of its own. When the incarnation ends,
// everything pending is dropped first, then the objects are destroyed; their destructors call nothing of the seam.
#pragma once

#include <cstdint>

namespace detcd {

// Hears posted events.
class PostListener {
 public:
  virtual void OnPost(uint64_t token) = 0;

 protected:
  ~PostListener() = default;
};

// Hears the end of each turn. Work that it starts (writes, posts) belongs to later events.
class TurnListener {
 public:
  virtual void OnEndTurn() = 0;

 protected:
  ~TurnListener() = default;
};

// The event queue of one incarnation.
class Events {
 public:
  virtual ~Events() = default;

  // Has `listener` hear OnPost(token) as an event of its own, in the order of the calls. `listener` must live as long as
  // the incarnation.
  virtual void Post(PostListener& listener, uint64_t token) = 0;

  // Exactly one listener hears the ends of turns; it is set once, before the first event.
  virtual void SetTurnListener(TurnListener& listener) = 0;
};

}  // namespace detcd
