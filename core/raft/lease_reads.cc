#include "core/raft/lease_reads.h"

#include <algorithm>

#include "core/base/probe.h"
#include "core/raft/leader_lease.h"

namespace detcd::raft {

RoundId PromiseFor(RaftState& raft, RoundId round, Instant now) {
  if (!raft.options.lease_reads || round.IsZero()) return RoundId();
  raft.promised_until = std::max(raft.promised_until, std::optional(now + raft.options.election_timeout));
  return round;
}

bool IsBoundByPromise(const RaftState& raft, Instant now) { return raft.promised_until && now < *raft.promised_until; }

void OnRoundAcknowledged(const RaftState& raft, Progress& from, RoundId round) {
  if (!raft.options.lease_reads) return;
  if (round.IsZero()) {
    // It has begun again without the promise, or never made it.
    from.lease_round_acked = RoundId();
    return;
  }
  // A round of ours is not younger than the newest, whatever the voter says.
  if (round > std::get<Leader>(raft.role).lease_round) {
    PROBE("raft.round_never_sent");
    return;
  }
  from.lease_round_acked = std::max(from.lease_round_acked, round);
}

std::optional<Instant> LeaseEnd(const RaftState& raft, const Leader& leader) {
  if (!raft.options.lease_reads || leader.transfer_tried) return std::nullopt;
  for (const auto& [id, progress] : leader.progress) {
    if (id != raft.options.id && progress.lease_round_acked.IsZero()) return std::nullopt;
  }
  // We ourselves vote for nobody while we lead: in every round.
  const RoundId start(raft.voters.ReachedByMajority([&](MemberId id) {
    return (id == raft.options.id ? leader.lease_round : leader.progress.at(id).lease_round_acked).value;
  }));
  if (start.IsZero()) return std::nullopt;  // a single voter before its first round
  return Instant{static_cast<int64_t>(start.value)} +
         LeaseBound(raft.options.election_timeout, raft.options.clock_drift_ppm_max);
}

bool HoldsLease(const RaftState& raft, const Leader& leader, Instant now) {
  const std::optional<Instant> end = LeaseEnd(raft, leader);
  return end && now < *end;
}

}  // namespace detcd::raft
