// Proposals in flight on this member: who waits for which request id, until when, and what a timeout is called
// (reference/errors.md 4, P1-P4; semantics.md 21). A proposal that timed out may still be applied later: its outcome is
// unknown to the caller, never a failure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/bytes.h"
#include "core/base/time.h"
#include "core/base/types.h"
#include "core/rpc/backend.h"

namespace detcd::member {

// Request ids in etcd's layout (semantics.md 1): 16 bits of the member id, then 48 bits that count up. etcd starts the
// count from the wall clock; a clock set back over a restart could then make an entry of the last life answer a call of
// this one, so ours starts at a random number.
class RequestIds {
 public:
  RequestIds(MemberId member, uint64_t random_start);
  uint64_t Next();

 private:
  static constexpr uint64_t kSuffixMask = (uint64_t{1} << 48) - 1;
  uint64_t prefix_;
  uint64_t suffix_;
};

class Proposals {
 public:
  struct Pending {
    rpc::Waiter waiter;
    Instant start;
    Instant deadline;
    bool reached_raft = false;  // false while no leader is known: then it was never in any log
  };
  struct Expired {
    uint64_t id;
    Pending pending;
  };

  // Remembers a proposal. All have the same timeout, so deadlines are in the order of the calls.
  void Add(uint64_t id, const Pending& pending);
  // Whether somebody still waits for `id`.
  bool Contains(uint64_t id) const { return pending_.contains(id); }
  void MarkReachedRaft(uint64_t id);
  // Applied: removes it. nullopt when nobody waits for `id` here. A call that died meanwhile is still here: its
  // transport ignores the answer, and the deadline frees the place.
  std::optional<Pending> Take(uint64_t id);
  // As Take, where a caller waits; a proposal of the member's own stays.
  std::optional<Pending> TakeCall(uint64_t id);
  // Removes and returns what is overdue, oldest first.
  std::vector<Expired> TakeExpired(Instant now);
  std::optional<Instant> NextDeadline() const;
  size_t size() const { return pending_.size(); }

 private:
  absl::flat_hash_map<uint64_t, Pending> pending_;  // looked up only, never walked
  std::deque<std::pair<Instant, uint64_t>> deadlines_;  // ascending; may name proposals that are gone
};

}  // namespace detcd::member
