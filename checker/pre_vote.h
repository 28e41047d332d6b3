// Who may start an election, who must give up leadership, and what a read index may be: properties about messages and
// members' own clocks.
//
//   F12 A member that was started with pre-vote, whatever the others were, moves to term t as candidate only after a
//       quorum (itself included) granted it a pre-vote for t, or in the event in which the leader of t-1 told it to
//       campaign (thesis 3.10): such a message only a leader of its term sends, and a vote with the mark of a transfer is
//       asked for only by who got one. No member grants a pre-vote, or a vote without that mark that would raise its term,
//       while it heard from a live leader less than T ago on its own clock (with check-quorum); a term rises otherwise
//       only by a message of that term. So the term of an isolated member with pre-vote never rises: no grant and no
//       message reaches it.
//   F13 With check-quorum, a leader without contact to a quorum steps down within 2T of its own clock and one event.
//   F15 A read index answered to a follower covers all that was committed anywhere when the follower asked, and comes
//       from a member that led the term it names.
//
// Why F15 is not too strong: the leader answers after a quorum confirmed its term, later than the question. Had a later
// leader committed before the question, a quorum would have left that term by then, and the two quorums intersect.
//
// Clocks are read at the end of each event. Members count T in heartbeat intervals, so F12 grants one interval; F13
// waits until one interval, both of the member's and of true time, passed after the deadline was seen to be over, since
// a pause or leap may queue other events before the timer.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "checker/observation.h"
#include "checker/verdict.h"

namespace detcd::checker {

class PreVote {
 public:
  PreVote(const WorldObservation& world, Verdict& verdict);

  // Both may come before the member is observed after the same event.
  void OnSent(const MessageObservation& message, Moment moment);
  void OnDelivered(const MessageObservation& message, Moment moment);
  void OnMember(const MemberObservation& seen, Moment moment);

 private:
  // A vote or pre-vote asked of a member, and whether it heard from its leader too recently to grant it.
  struct Asked {
    MemberId candidate;
    Term term;
    bool pre_vote = false;
    bool leader_live = false;
    bool raises_term = false;
    Duration silence;  // of the leader
  };
  struct Member {
    MemberId id;
    bool seen = false;
    uint32_t incarnation = 0;
    Term term;
    Role role = Role::kFollower;
    MemberId leader;
    Instant local_time;
    Instant leader_contact;                         // meaningful while `leader` is known
    std::vector<MessageObservation> arrived;        // in the current event
    std::vector<MessageObservation> granted;        // left in the current event
    Term term_in_event;                             // `term` and `leader` as the messages of the current event,
    MemberId leader_in_event;                       // of which wire fidelity delivers several, have moved them
    std::vector<Asked> asked;                       // newest terms only
    std::map<Term, std::set<MemberId>> grants;      // pre-votes granted to it
    Term told_term;                                 // highest that a leader told it to campaign against
    Term told_in_event;                             // the same, of the current event alone
    Term heard_term;                                // highest that a message of this incarnation brought
    std::set<Term> led;
    std::map<MemberId, Instant> contact;            // leader: last message of its term from each peer
    bool overdue = false;                           // leader: seen beyond 2T
    Instant overdue_local;
    Instant overdue_true;
  };

  Member& Of(MemberId id);
  void TakeArrived(Member& member, const MemberObservation& seen, const MessageObservation& message);
  void JudgeTransfer(const MessageObservation& message, Moment moment);
  void JudgeGrant(const Member& member, const MessageObservation& grant, Moment moment);
  void JudgeTerm(Member& member, const MemberObservation& seen, Moment moment);
  void JudgeLeader(Member& member, const MemberObservation& seen, Moment moment);
  size_t quorum() const { return members_.size() / 2 + 1; }

  const WorldObservation world_;
  Verdict& verdict_;
  std::vector<Member> members_;
  LogIndex committed_;                                            // highest that any member held to be committed
  std::map<std::pair<MemberId, uint64_t>, LogIndex> reads_;       // (asker, read) -> committed_ when it was first asked
};

}  // namespace detcd::checker
