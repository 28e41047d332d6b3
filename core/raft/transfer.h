// Leadership transfer (thesis §3.10), the leader's side: no more proposals, the target catches up, and is told to campaign
// at once. That the target wins is likely, not certain: after an election timeout the leader gives up and goes on.
// The target's side is an election like others (election.h, OnTimeoutNow).
#pragma once

#include <string_view>

#include "core/base/time.h"
#include "core/raft/output.h"
#include "core/raft/state.h"

namespace detcd::raft {

// We lead. Ignored: a target that is no voter, and the one that is being handed over to already. Another target, or
// ourselves, ends the transfer under way.
void StartTransfer(RaftState& raft, MemberId target, Instant now, Output& output);
// We lead as before.
void EndTransfer(RaftState& raft, Leader& leader, std::string_view why);
// A transfer is under way, and its target has acknowledged entries: tells it to campaign when it has all of ours. Sent
// again with every acknowledgement that says so; one that is lost is not: then the transfer takes too long.
void TellTargetIfCaughtUp(RaftState& raft, Leader& leader, Output& output);

}  // namespace detcd::raft
