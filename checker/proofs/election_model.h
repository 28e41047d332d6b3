// Elections and the commit rule of Raft, as a transition system over unbounded terms and indexes.
//
// What is abstracted, and why that is sound:
//   - A log is named by the term and index of its last entry. By Log Matching (proved in log_matching.cc) that determines
//     the whole log: it is the prefix of that length of what the leader of that term had. So a member's log is two
//     integers, and what a leader ever had is a prefix that only grows (`base`, `length` of its term).
//   - One entry e = (index i, term t), both arbitrary, stands for all: what is proved of it holds of each.
//   - Messages are never removed: a vote request is the record of a candidacy, a vote or an acknowledgement counts from
//     when it was made durable on, and an append may bring any prefix of what the leader of its term ever had. So loss,
//     delay, duplication and reordering are in the model. That a message leaves only after what it tells is durable is
//     assumed (F3, F19: judged at run time).
//   - A crash forgets the role and any part of the log that was not acknowledged.
//   - What only takes away runs is left out: pre-vote, check-quorum, timers. Snapshots stand for the prefix they replace.
//     The configuration does not change (see quorum_proofs.cc for two at once).
#pragma once

#include <string>
#include <vector>

#include "checker/proofs/session.h"

namespace detcd::proofs {

// What is taken away from the rules.
struct ElectionRules {
  bool vote_checks_log = true;      // Raft 5.4.1
  bool commit_own_term_only = true; // Raft 5.4.2
  bool vote_is_durable = true;
  unsigned quorum = 2;              // members that elect and commit
};

struct ElectionMember {
  z3::expr term;
  z3::expr candidate;     // its role; neither of both: follower
  z3::expr leader;
  z3::expr last_term;     // names its log
  z3::expr last_index;
  z3::expr votes;         // term -> member (from 1) it voted for; 0: nobody
  z3::expr asked_term;    // term -> last_term of its vote request of that term
  z3::expr asked_index;
  z3::expr acknowledged;  // it ever acknowledged e in term t: ghost
};

struct ElectionState {
  std::vector<ElectionMember> members;
  // By term: whether it had a leader, which, its log when it was elected, how long its log ever was, and whether that
  // held e when it was elected.
  z3::expr led;
  z3::expr led_by;
  z3::expr base_term;
  z3::expr base_index;
  z3::expr length;
  z3::expr held;
  z3::expr two_leaders;   // a term got a second leader
};

// One thing that may happen: when it can, and what is then.
struct Transition {
  z3::expr possible;
  ElectionState next;
};

class ElectionModel {
 public:
  ElectionModel(Session& session, unsigned members, const ElectionRules& rules);

  unsigned size() const { return members_; }
  // An arbitrary state; its constants have this suffix.
  ElectionState Anything(const std::string& suffix);
  // All logs empty, all terms zero.
  ElectionState Beginning();

  // Members are numbered from 0 here. `term`, `index` and `named` are chosen by whoever asks.
  Transition Campaign(const ElectionState& state, unsigned member);
  Transition Vote(const ElectionState& state, unsigned voter, unsigned candidate, const z3::expr& term);
  Transition TakeLead(const ElectionState& state, unsigned member);
  Transition Propose(const ElectionState& state, unsigned member);
  // Learns of a term, or of its term's leader.
  Transition Follow(const ElectionState& state, unsigned member, const z3::expr& term);
  // The log becomes the prefix of length `index` of what the leader of `term` had; `named` is the last entry's term.
  Transition Append(const ElectionState& state, unsigned member, const z3::expr& term, const z3::expr& index,
                    const z3::expr& named);
  Transition Acknowledge(const ElectionState& state, unsigned member);
  Transition Crash(const ElectionState& state, unsigned member, const z3::expr& index, const z3::expr& named);

  // The invariant, as far as it is about one `term`; the part about members does not depend on it.
  z3::expr InvariantOf(const ElectionState& state, const z3::expr& term);
  z3::expr InvariantOfMembers(const ElectionState& state);
  // Terms at which InvariantOf is worth assuming for this state: those its members know, and those behind `terms`.
  std::vector<z3::expr> TermsToLookAt(const ElectionState& state, std::vector<z3::expr> terms);

  // Election Safety: no term has two leaders. Leader Completeness and State Machine Safety, for e and a later `term`:
  // once e is committed, its leader has e, below everything that it adds itself.
  z3::expr Safe(const ElectionState& state, const z3::expr& term);
  z3::expr Committed(const ElectionState& state);

  const z3::expr& entry_term() const { return entry_term_; }
  const z3::expr& entry_index() const { return entry_index_; }

 private:
  // Whether the log named (term, index) holds e.
  z3::expr Holds(const ElectionState& state, const z3::expr& term, const z3::expr& index);
  // Whether what the leader of `term` had held e, where it was long enough.
  z3::expr LeaderHolds(const ElectionState& state, const z3::expr& term);
  z3::expr IsLogName(const ElectionState& state, const z3::expr& term, const z3::expr& index);
  // (named, index) is the prefix of length `index` of what the leader of `term` had.
  z3::expr IsPrefix(const ElectionState& state, const z3::expr& term, const z3::expr& index, const z3::expr& named);
  // No log without e can win any more, or e cannot be committed: a quorum never acknowledged it and never will.
  z3::expr Blocked(const ElectionState& state);

  Session& session_;
  unsigned members_;
  ElectionRules rules_;
  z3::expr entry_term_;
  z3::expr entry_index_;
};

}  // namespace detcd::proofs
