// F14, leader leases from outside: what each member would answer reads by, on true time, and what voters promised by the
// messages that they sent.
//
//   Exclusive   While a member holds the lease of term t, nobody has become leader of a later term. Then no entry of a later
//               term is acknowledged to anybody, and what its holder answers is not stale.
//   Promise     A voter that acknowledged a round of the leader of t votes for no later term, and asks for no votes itself,
//               before one election timeout of its clock has passed since the round first arrived; over restarts too,
//               since its clock goes on. Votes for a campaign that a leader asked for are free.
//
// The second is broken in more runs than the first, and earlier: a broken promise makes a stale read possible, and then a
// write and a read must still meet. Why it is not too strong: a vote for a later term leaves after it was decided, which was
// after every acknowledgement of t; and the member counts from a reading that is not before the arrival.
//
// A lease that a crashed member held counts until its end: nobody could know of the crash.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "checker/observation.h"
#include "checker/verdict.h"

namespace detcd::checker {

class LeaderLease {
 public:
  LeaderLease(const WorldObservation& world, Verdict& verdict);

  void OnSent(const MessageObservation& message, Moment moment);
  void OnDelivered(const MessageObservation& message, Moment moment);
  void OnMember(const MemberObservation& seen, Moment moment);

  // Whether it is the first of the two that was broken: that one rests on clocks that neither leap nor stop.
  static bool IsOfExclusion(const Violation& violation);

 private:
  struct Member {
    MemberId id;
    Term term;                                // as last seen
    Role role = Role::kFollower;
    std::optional<Instant> lease_end;
    std::map<uint64_t, Instant> arrived;      // rounds, and its clock when each first came; the newest few
    std::map<Term, Instant> promised_until;   // on its clock, to the leader of a term
    std::set<std::pair<MemberId, Term>> transfers;  // who asked for its vote as the target of a transfer
  };

  Member& Of(MemberId id);
  void JudgeVote(const Member& voter, Term term, std::string_view trouble, Moment moment);
  void JudgeElection(MemberId leader, Term term, Moment moment);

  const WorldObservation world_;
  Verdict& verdict_;
  std::vector<Member> members_;
  Term led_term_;     // the highest that anybody was seen to lead, and who
  MemberId led_by_;
};

}  // namespace detcd::checker
