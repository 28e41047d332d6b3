// Reads that the leader answers without asking anybody, and the promise of the voters that lets it: leader_lease.h has the
// rules by their numbers.
//
// A round of heartbeats carries the clock reading from before it was sent (RoundId). A voter with leases acknowledges it by
// the same number and promises; one without, a real etcd for instance, answers without a number, and so the leader knows.
// No lease while any voter is not known to promise: stricter than the proof needs, which asks for a quorum.
//
// Who turns leases off waits one election timeout between the stop of a member and its start without them: a member that
// knows nothing of promises does not wait by itself.
#pragma once

#include <optional>

#include "core/base/time.h"
#include "core/raft/message.h"
#include "core/raft/state.h"

namespace detcd::raft {

// --- voter ---------------------------------------------------------------------------------------------------------
// A heartbeat of the leader we follow has arrived before `now` was read: promises if it asks and we do (rule 2). Returns
// the round to acknowledge; 0: none.
RoundId PromiseFor(RaftState& raft, RoundId round, Instant now);
// Whether no vote may leave, nor a campaign begin, but for a transfer (rules 3, 4).
bool IsBoundByPromise(const RaftState& raft, Instant now);

// --- leader --------------------------------------------------------------------------------------------------------
// `from` is the progress of a voter whose answer to a heartbeat names `round`; 0: it promises nothing.
void OnRoundAcknowledged(const RaftState& raft, Progress& from, RoundId round);
// The lease lasts while our clock reads less than this (rules 1, 5); nullopt: there is none.
std::optional<Instant> LeaseEnd(const RaftState& raft, const Leader& leader);
// Whether a read whose question was there when `now` was read may be answered at once (rule 6). That an entry of the term
// is committed is the caller's to know (rule 7).
bool HoldsLease(const RaftState& raft, const Leader& leader, Instant now);

}  // namespace detcd::raft
