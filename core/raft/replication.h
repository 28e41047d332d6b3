// The log from leader to followers (Raft §5.3): appends on both sides, heartbeats, the commit rule.
#pragma once

#include <vector>

#include "core/base/time.h"
#include "core/raft/message.h"
#include "core/raft/output.h"
#include "core/raft/state.h"

namespace detcd::raft {

// --- leader --------------------------------------------------------------------------------------------------------
// The election is won: becomes leader, and appends and sends the empty entry of its term (Raft §5.4.2: former terms'
// entries are committed through it).
void TakeLead(RaftState& raft, Instant now, Output& output);
// Gives `entries` their term and index, appends and sends them. False: too many uncommitted bytes, nothing was done.
bool AppendAsLeader(RaftState& raft, std::vector<Entry> entries, Output& output);
// What `to` needs next, empty if need be, also while a probe to it waits for its answer.
void SendNextAppend(RaftState& raft, MemberId to, Output& output);
// To every follower: min(match, commit), the newest read that waits, and the lease's round. Does not move the timer.
void BroadcastHeartbeats(RaftState& raft, Output& output);
// Our own log is durable up to log.durable_index().
void OnOwnDurable(RaftState& raft, Output& output);
// The answer to the follower's fetch. Entries that are not what it needs next are not sent.
void OnFetched(RaftState& raft, MemberId follower, std::vector<Entry> entries, Output& output);

// Messages of the current term to the leader.
void OnAppendResponse(RaftState& raft, MemberId from, const AppendResponse& response, Output& output);
void OnHeartbeatResponse(RaftState& raft, MemberId from, const HeartbeatResponse& response, Output& output);

// --- follower ------------------------------------------------------------------------------------------------------
// Messages of the current term from the leader that we follow.
void OnAppend(RaftState& raft, MemberId from, Append& append, Output& output);
void OnHeartbeat(RaftState& raft, MemberId from, const Heartbeat& heartbeat, Instant now, Output& output);

}  // namespace detcd::raft
