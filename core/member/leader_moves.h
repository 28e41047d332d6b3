// Calls that wait until another member leads (reference/semantics.md 16, MoveLeader).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/base/time.h"
#include "core/base/types.h"
#include "core/rpc/backend.h"

namespace detcd::member {

class LeaderMoves {
 public:
  struct Pending {
    rpc::Waiter waiter;
    MemberId target;
    Instant deadline;
  };

  // All have the same timeout, so deadlines are in the order of the calls. Bounded by the caller.
  void Add(const Pending& pending) { pending_.push_back(pending); }
  // Removes and returns those whose target is `leader`.
  std::vector<Pending> TakeDone(MemberId leader);
  // Removes and returns those that are overdue, oldest first.
  std::vector<Pending> TakeExpired(Instant now);
  std::optional<Instant> NextDeadline() const;
  size_t size() const { return pending_.size(); }

 private:
  std::vector<Pending> pending_;  // in the order of Add
};

}  // namespace detcd::member
