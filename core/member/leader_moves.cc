#include "core/member/leader_moves.h"

#include <algorithm>

namespace detcd::member {
namespace {

// Moves what `leaves` says so of out of `from`, in order.
template <class Leaves>
std::vector<LeaderMoves::Pending> TakeWhere(std::vector<LeaderMoves::Pending>& from, const Leaves& leaves) {
  std::vector<LeaderMoves::Pending> taken;
  const auto kept_end = std::stable_partition(from.begin(), from.end(),
                                              [&](const LeaderMoves::Pending& pending) { return !leaves(pending); });
  taken.assign(kept_end, from.end());
  from.erase(kept_end, from.end());
  return taken;
}

}  // namespace

std::vector<LeaderMoves::Pending> LeaderMoves::TakeDone(MemberId leader) {
  return TakeWhere(pending_, [&](const Pending& pending) { return pending.target == leader; });
}

std::vector<LeaderMoves::Pending> LeaderMoves::TakeExpired(Instant now) {
  return TakeWhere(pending_, [&](const Pending& pending) { return pending.deadline <= now; });
}

std::optional<Instant> LeaderMoves::NextDeadline() const {
  if (pending_.empty()) return std::nullopt;
  return pending_.front().deadline;
}

}  // namespace detcd::member
