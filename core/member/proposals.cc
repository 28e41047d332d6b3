#include "core/member/proposals.h"

#include <utility>

namespace detcd::member {

RequestIds::RequestIds(MemberId member, uint64_t random_start)
    : prefix_((member.value & 0xFFFF) << 48), suffix_(random_start & kSuffixMask) {}

uint64_t RequestIds::Next() {
  suffix_ = (suffix_ + 1) & kSuffixMask;
  return prefix_ | suffix_;
}

void Proposals::Add(uint64_t id, const Pending& pending) {
  pending_.emplace(id, pending);
  deadlines_.emplace_back(pending.deadline, id);
}

void Proposals::MarkReachedRaft(uint64_t id) {
  auto found = pending_.find(id);
  if (found != pending_.end()) found->second.reached_raft = true;
}

std::optional<Proposals::Pending> Proposals::Take(uint64_t id) {
  auto found = pending_.find(id);
  if (found == pending_.end()) return std::nullopt;
  Pending pending = found->second;
  pending_.erase(found);
  // Most proposals end in order; the queue of deadlines shrinks with them instead of waiting for the clock.
  while (!deadlines_.empty() && !pending_.contains(deadlines_.front().second)) deadlines_.pop_front();
  return pending;
}

std::optional<Proposals::Pending> Proposals::TakeCall(uint64_t id) {
  auto found = pending_.find(id);
  if (found == pending_.end() || found->second.waiter.transport == nullptr) return std::nullopt;
  return Take(id);
}

std::vector<Proposals::Expired> Proposals::TakeExpired(Instant now) {
  std::vector<Expired> expired;
  while (!deadlines_.empty() && deadlines_.front().first <= now) {
    uint64_t id = deadlines_.front().second;
    deadlines_.pop_front();
    auto found = pending_.find(id);
    if (found == pending_.end()) continue;
    expired.push_back({id, found->second});
    pending_.erase(found);
  }
  return expired;
}

std::optional<Instant> Proposals::NextDeadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.front().first;
}

}  // namespace detcd::member
