// Elections (Raft §5.2, §5.4.1) with pre-vote (thesis §9.6): who asks, who grants, and when it is decided.
#pragma once

#include "core/base/time.h"
#include "core/raft/message.h"
#include "core/raft/output.h"
#include "core/raft/state.h"

namespace detcd::raft {

// The election timer ran out: asks for pre-votes, or for votes where pre-vote is off. A single voter leads
// once its own vote is durable. Without a vote, or with a committed configuration change not applied yet, only the timer
// starts over; while a promise binds us (lease_reads.h), it waits for the end of that.
void Campaign(RaftState& raft, Instant now, Output& output);

// `leader` hands its leadership to us: campaigns at once, without pre-vote, since it agrees; its lease does not protect it.
// Ignored by a member that campaigns already, and where Campaign would not.
void OnTimeoutNow(RaftState& raft, MemberId leader, Instant now, Output& output);

// Our vote for ourselves in `term` is durable: it may decide now. That of a candidate among others is durable before it
// asks anybody, so that only a single voter waits for this.
void OnOwnVoteDurable(RaftState& raft, Term term, Instant now, Output& output);

// Whether a leader was heard so recently that requests for votes of a higher term are not even answered (thesis §4.2.3,
// §9.6); with check-quorum only, because otherwise a leader cut off from its quorum would be protected for ever.
bool HearsLeader(const RaftState& raft, Instant now);

// A request of our own term, or a pre-vote of a higher one.
void OnVoteRequest(RaftState& raft, const Message& message, const VoteRequest& request, Instant now, Output& output);
// An answer of our own term, or a granted pre-vote of the next.
void OnVoteResponse(RaftState& raft, const Message& message, const VoteResponse& response, Instant now, Output& output);

}  // namespace detcd::raft
