// RaftState: every field with its invariant (checked by invariants.h after each step). Data that only one role has lives
// in that role.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "core/base/time.h"
#include "core/base/types.h"
#include "core/io/random.h"
#include "core/io/trace.h"
#include "core/raft/message.h"
#include "core/raft/progress.h"
#include "core/raft/quorum.h"
#include "core/raft/raft_log.h"
#include "core/raft/read_index.h"

namespace detcd::raft {

// Fixed for the life of an incarnation. Durations on the member's own clock.
struct RaftOptions {
  MemberId id;
  Duration heartbeat_interval;   // etcd's tick
  Duration election_timeout;     // T: a multiple of the heartbeat interval, at least 5 of them
  bool pre_vote = true;
  bool check_quorum = true;
  bool lease_reads = false;           // make the voters' promise, and answer reads by lease (leader_lease.h)
  int64_t clock_drift_ppm_max = 0;    // what leases assume of every member's clock
  uint64_t append_bytes_max = 0;      // entry bytes in one append
  uint64_t appends_in_flight_max = 0; // per follower in replicate state
  uint64_t append_bytes_in_flight_max = 0;  // and their entry bytes; the last append may pass it
  uint64_t uncommitted_bytes_max = 0;
  uint64_t log_entries_in_memory_max = 0;  // applied entries kept for followers
  uint64_t log_bytes_in_memory_max = 0;
};

struct Follower {
  MemberId leader;        // 0: not known
  Instant leader_contact; // when the leader was last heard; meaningless without one
  std::vector<ReadId> reads_forwarded;  // asked of that leader, not answered; at most kReadRoundsWaitingMax
};
// Asks whether an election could be won, without changing its term or vote (thesis 9.6).
struct PreCandidate {
  std::map<MemberId, bool> answers;  // granted or refused, our own included
};
struct Candidate {
  std::map<MemberId, bool> answers;
};
struct Leader {
  // Leadership on its way to another member (thesis 3.10).
  struct Transfer {
    MemberId target;  // a voter, and not us
    Instant give_up;  // from then on we lead as before: the target may be down, or have lost the election
  };

  std::map<MemberId, Progress> progress;  // every other member, and ourselves
  ReadQueue reads;
  LogIndex first_index_of_term;           // the empty entry: reads wait until it is committed (thesis 6.4)
  Instant heartbeat_due;
  Instant quorum_check_due;
  RoundId lease_round;                    // newest round of heartbeats, which later ones for reads carry as well; 0: none
  bool transfer_tried = false;            // in this term: no lease any more
  uint64_t uncommitted_bytes = 0;         // entry data in (commit_index, last_index] proposed in this term
  std::optional<Transfer> transfer;       // while set no proposal is taken: the target must catch up, and stay so
};

struct RaftState {
  RaftOptions options;
  Trace* trace = nullptr;

  Term term;                 // latest seen. Never falls. Durable before a message has it.
  MemberId voted_for;        // our vote in `term`; set at most once per term. Durable like `term`.
  LogIndex commit_index;     // applied_index <= commit_index <= last index. Never falls.
  LogIndex applied_index;
  RaftLog log;
  VoterSet voters;           // the configuration; changes only by applied entries
  std::variant<Follower, PreCandidate, Candidate, Leader> role;

  Instant election_due;      // when a follower or candidate campaigns (again)
  // No vote and no candidacy of ours before this time, but for a transfer: the promise that lets a leader answer reads by
  // its lease. Outlives terms, leaders and roles; never moves back.
  std::optional<Instant> promised_until;
  Duration election_timeout_drawn;  // in [T, 2T - tick], new for each term and role change
  KeyedRandom random;
  HardState collected;       // what Collect handed over last

  // Who leads as far as we know; 0: nobody.
  MemberId LeaderId() const;
  // To whom we are handing over our leadership; 0: to nobody, or we do not lead.
  MemberId TransferTarget() const;
};

// A raft after recovery or bootstrap: follower of nobody at `hard_state.term`, or at the term of the log's last entry where
// that is later, with the given log. It campaigns after one drawn election timeout from `now`.
RaftState MakeRaft(const RaftOptions& options, const HardState& hard_state, RaftLog log, LogIndex applied_index,
                   VoterSet voters, KeyedRandom random, Trace& trace, Instant now);

}  // namespace detcd::raft
