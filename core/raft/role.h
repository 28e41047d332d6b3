// The transitions between roles: the only code that assigns RaftState::role, term, or election timeout. Each ends what
// the former role had under way (reads are dropped) and draws a new election timeout.
//
//                  times out                 majority of pre-votes           majority of votes
//     follower ----------------> pre-candidate ----------------> candidate ----------------> leader
//        ^  (without pre-vote, straight to candidate)  |             |                          |
//        +---------------------------------------------+-------------+--------------------------+
//                a leader or a higher term is heard, the election is lost, no quorum is active
//
// A pre-candidate or candidate that times out begins again from pre-candidate.
#pragma once

#include "core/base/time.h"
#include "core/raft/output.h"
#include "core/raft/state.h"

namespace detcd::raft {

// Follower in `term` (not below ours; the vote of the current term stays) of `leader`, 0 for nobody yet.
void BecomeFollower(RaftState& raft, Term term, MemberId leader, Instant now, Output& output);
// Keeps term and vote.
void BecomePreCandidate(RaftState& raft, Instant now, Output& output);
// Moves to the next term, with our vote for ourselves.
void BecomeCandidate(RaftState& raft, Instant now, Output& output);
// Takes over with every follower in probe; the caller appends the term's empty entry next.
void BecomeLeader(RaftState& raft, Instant now, Output& output);

// A follower of nobody hears its leader of the term.
void LearnLeader(RaftState& raft, MemberId leader);
// The election timer starts over with the timeout already drawn: the leader was heard, or a vote was granted.
void RestartElectionTimer(RaftState& raft, Instant now);
// Draws a timeout in [T, 2T - tick]; etcd's grid of ticks, so that members of both kinds are alike.
void DrawElectionTimeout(RaftState& raft, Instant now);

}  // namespace detcd::raft
