// A leader's lease and the vote that ends it, on true time with clocks that drift (core/raft/leader_lease.h has the rules).
//
// Model: the leader of term t, one read that it answers by its lease, and the first leader of a later term with the first
// write that it acknowledges. All times are real numbers. A clock's rate may change all the time within its bounds. Any
// true time may lie between any two steps of any member: a pause is nothing special. Each voter
// may have acknowledged a round or not, voted for the new leader or not, crashed and started in between or not, and lost
// its knowledge of the leader by a higher term or not: Z3 chooses.
//
// Why one read and one write are enough: a read is stale when a write was acknowledged before it was invoked and is not in
// its answer. Writes of terms up to t are in it, as in every linearizable read of a leader (the read waits for the commit
// index of the check; an entry of t is committed). Writes of later terms are acknowledged only after the first leader of
// a later term was elected; none of them is in the answer.
//
// Assumed: the election proof (a later leader has a quorum's votes); one configuration throughout; that a campaign
// asked for by a leader (transfer) for a term after t was asked for by the leader of t, or comes later than a leader of
// such a term; that a member acknowledges no round of t after it voted in a later term.
#pragma once

#include <string>
#include <vector>

#include "checker/proofs/session.h"
#include "checker/proofs/timeline.h"

namespace detcd::proofs {

struct LeaseRules {
  bool from_sending = true;            // 1 of leader_lease.h; else from the arrival of the acknowledgements
  bool promise_read_after_round = true;  // 2
  bool promise_outlives_term = true;   // 3
  bool waits_after_start = true;       // 4
  bool ends_with_transfer = true;      // 5
  bool checked_after_request = true;   // 6
};

// What a cluster's settings come to in true time, which is all the model needs of clocks (ClocksComeToThat in
// lease_proofs.cc): a lease that its holder's clock still shows as valid is younger than `lease_lasts`; an election timeout
// that a voter's clock shows as over took at least `promise_lasts`.
struct LeaseTimes {
  z3::expr lease_lasts;
  z3::expr promise_lasts;
};

// True times of what a voter did.
struct LeaseVoter {
  z3::expr acknowledges;  // it is in the quorum that the lease rests on
  z3::expr sent;          // its round leaves the leader
  z3::expr arrives;
  z3::expr promise_read;  // the clock reading that its promise counts from
  z3::expr answered;      // its acknowledgement is at the leader
  z3::expr votes;         // it is in the quorum that elects the new leader
  z3::expr vote_read;     // the clock reading at which it looked whether it may
  z3::expr voted;
  z3::expr restarts;      // between the two
  z3::expr crash;
  z3::expr start;
  z3::expr forgets;       // a higher term made it forget its leader, between the two
  z3::expr vote_for_transfer;
};

class LeaseModel {
 public:
  LeaseModel(Session& session, unsigned voters, const LeaseRules& rules, const LeaseTimes& times);

  // What may happen, and that the read is stale.
  std::vector<z3::expr> StaleRead() const;
  // In addition, so that a run is one that people and a simulator can follow: `gap` of true time for whatever takes time,
  // and no coincidences.
  std::vector<z3::expr> Unhurried(const z3::expr& gap) const;

  const std::vector<LeaseVoter>& voters() const { return voters_; }
  const z3::expr& round() const { return round_; }
  const z3::expr& transfers() const { return transfers_; }
  const z3::expr& elected() const { return elected_; }
  const z3::expr& written() const { return written_; }
  const z3::expr& invoked() const { return invoked_; }
  const z3::expr& received() const { return received_; }
  const z3::expr& checked() const { return checked_; }
  const z3::expr& looked() const { return looked_; }

  // One sentence for each step, in order of time, where times are in election timeouts.
  std::vector<std::string> Story(const z3::model& run) const;
  // As `timeline`, with the events of the run.
  Timeline WithEvents(const z3::model& run, Timeline timeline) const;

 private:
  z3::expr MayVote(const LeaseVoter& voter) const;

  Session& session_;
  LeaseRules rules_;
  LeaseTimes times_;
  std::vector<LeaseVoter> voters_;  // 0: the leader
  z3::expr round_;     // the leader's clock reading that the lease counts from
  z3::expr transfer_;  // it tries a transfer
  z3::expr transfers_; // whether it does
  z3::expr elected_;
  z3::expr written_;   // the new leader acknowledges a write
  z3::expr invoked_;   // a client of the old leader asks to read
  z3::expr received_;  // the request's bytes have been read
  z3::expr checked_;   // the clock reading of the lease's check
  z3::expr looked_;    // the state is looked at; the old leader has led until here
};

}  // namespace detcd::proofs
