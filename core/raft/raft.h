// One member's Raft as pure step functions over RaftState: an event in, Output out. No I/O, no clock of its own, no
// randomness but the KeyedRandom in its state. etcd's rules (reference/peer.md 20; semantics.md 21, 22), thesis chapters
// 3 (3.10: leadership transfer), 6.4 (reads), 9.6 (pre-vote).
//
// Every function that takes `now` must be given the member's monotonic time, read after the event it handles arrived.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/base/time.h"
#include "core/raft/message.h"
#include "core/raft/output.h"
#include "core/raft/state.h"

namespace detcd::raft {

// Steps one message from a peer. Messages not for us, from strangers, or malformed for our state are ignored (traced).
void Step(RaftState& raft, Message message, Instant now, Output& output);

// When OnTimer must be called next. Moves with every event; a timer armed earlier may fire early without harm.
Instant NextDeadline(const RaftState& raft);
// Runs what is due: election, heartbeats, quorum check. Harmless when nothing is.
void OnTimer(RaftState& raft, Instant now, Output& output);

enum class ProposeResult : uint8_t {
  kAppended,   // we lead: the entries are in our log
  kForwarded,  // sent to the leader; may be lost on the way
  kNoLeader,   // nobody known leads: nothing was done
  kOverloaded, // too many uncommitted bytes: nothing was done
  kTransferring,  // we are handing over our leadership: nothing was done, ask again when TransferTarget() is 0
};
// Proposes entries of the given type and data (term and index are filled in here).
ProposeResult Propose(RaftState& raft, std::vector<Entry> entries, Instant now, Output& output);

// Asks for a read index under an id that was not used before (thesis 6.4). Answers arrive in output.reads or
// output.reads_dropped, of this call or of later ones; without a leader it is dropped at once.
void RequestRead(RaftState& raft, ReadId read, Instant now, Output& output);

// Hands our leadership to `target` (thesis 3.10, etcd's rules): no proposal is taken any more, the target is brought up to
// date and told to campaign at once, past what protects a live leader. It has succeeded when another member leads; after
// an election timeout we give up and lead as before. A second target takes the place of the first; ourselves as the
// target ends a transfer. Does nothing when we do not lead or `target` is no voter.
void TransferLeadership(RaftState& raft, MemberId target, Instant now, Output& output);

// Fills output.hard_state, entries and must_sync with what was not handed over yet. The member calls it when its log is
// ready for the next batch.
void Collect(RaftState& raft, Output& output);

// The batch whose last entry was (term, index) is durable. Ignored when our log has another entry there by now.
void AcknowledgeDurable(RaftState& raft, Term term, LogIndex index, Instant now, Output& output);

// Our vote for ourselves in `term` is durable. A single voter leads from here on, not before: a term that is not on the
// disk may be used again after a crash, for other entries.
void AcknowledgeVote(RaftState& raft, Term term, Instant now, Output& output);

// Entries up to `index` are applied; the log in memory may forget them (limits.h).
void AcknowledgeApplied(RaftState& raft, LogIndex index);

// The answer to a LogFetch: entries from its `first` on, possibly none (then it is asked again later).
void SupplyEntries(RaftState& raft, MemberId follower, std::vector<Entry> entries, Instant now, Output& output);

// A message to `peer` could not be delivered: stop pipelining to it until it answers.
void ReportUnreachable(RaftState& raft, MemberId peer, Output& output);

}  // namespace detcd::raft
