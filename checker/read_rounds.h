// F20: nobody sits on a read. The time that a linearizable read takes is that of its ways: from the member that is
// asked to its leader, from the leader to a quorum and back (thesis 6.4), and back to the member. At each end of a
// way it goes on in the turn in which it arrives: no disk and no timer has a part in it, whatever the log is doing
// just then.
//
//   Asked       A leader that has committed an entry of its term asks all others to confirm it, or answers, in the
//               turn in which a read index is asked of it. What was asked before that commit goes on with it: it is
//               not forgotten.
//   Confirmed   A follower answers each heartbeat of its leader in the turn in which it arrives, unless its term or
//               vote may not be on its disk yet.
//   Answered    A leader answers in the turn in which a quorum, itself included, has confirmed a round that began
//               after the read was asked.
//
// So this is a judge of latency without a bound: what is late though nothing was lost was late somewhere for no
// reason, and that is found at any speed of links and disks, during faults too. How long a follower then waits to
// have applied what it was told is not judged here, nor what happens between a client and its member.
//
// Rounds are told apart by the read that a heartbeat carries: each is the newest that its leader knows, and its
// confirmation confirms all before it. A read that was asked in the event in which its leader was elected is not
// looked at: it may have come too early. Nor one of so many that the leader may have no room for more.
//
// A turn is up to `turn_events_max` events and the one in which what they made leaves. A member that stops in between
// owes nothing. An event is judged when its member runs again.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <vector>

#include "checker/observation.h"
#include "checker/verdict.h"

namespace detcd::checker {

class ReadRounds {
 public:
  // Wants world.turn_events_max > 0 to be told anything.
  ReadRounds(const WorldObservation& world, Verdict& verdict);

  // Both may come before or after the member is observed after the same event.
  void OnSent(const MessageObservation& message, Moment moment);
  void OnDelivered(const MessageObservation& message, Moment moment);
  void OnMember(const MemberObservation& seen, Moment moment);

 private:
  struct State {
    Term term;
    MemberId voted_for;
    Role role = Role::kFollower;
    MemberId leader;
    LogIndex commit_index;
  };
  // One event of a member: what reached it and what left it, of the messages that matter here, and what it was then.
  struct Event {
    uint64_t number = 0;  // of the member's, from 1
    Moment moment;
    std::vector<MessageObservation> arrived;
    std::vector<MessageObservation> left;
    State after;
    LogIndex first_of_term;  // the first entry of after.term among those that are new in the log; 0: none
  };
  // A read index that was asked of a leader and not answered.
  struct Ask {
    MemberId asker;
    uint64_t read = 0;
    uint64_t round = 0;  // whose confirmation confirms it; 0: nobody was asked to
    uint64_t due = 0;    // the member's event by which it must go on; 0: it waits for others
  };
  struct Round {
    uint64_t number = 0;  // from 1, of all of the leadership
    uint64_t read = 0;
    std::set<MemberId> confirmed;
  };
  struct Member {
    MemberId id;
    State state;          // before `last`
    Event last;           // seen, and not judged yet; number 0: none
    Event now;            // not seen yet
    // Of a leader, in state.term.
    LogIndex first_of_term;
    std::vector<Ask> asks;
    std::deque<Round> rounds;  // not confirmed
    uint64_t rounds_begun = 0;
    // Of a follower: the events of the heartbeats of state.term that have no answer yet; whether one came, and
    // whether all were answered, since its term, vote, leader and role are what they are. If so these are durable,
    // for else no answer had left (F3).
    std::deque<uint64_t> owed;
    bool heard = false;
    bool prompt = false;
  };

  Member& Of(MemberId id);
  static Event& EventOf(Member& member, Moment moment);
  uint64_t DueOf(const Event& event) const { return event.number + world_.turn_events_max; }
  void Judge(Member& member, const Event& event);
  void JudgeFollower(Member& member, const Event& event);
  void JudgeLeader(Member& member, const Event& event);
  void TakeConfirmations(Member& member, const Event& event);
  void TakeAsks(Member& member, const Event& event);
  void TakeSent(Member& member, const Event& event);
  void JudgeAsks(Member& member, const Event& event);
  bool WereAllAsked(const Member& member, const Event& event, uint64_t read) const;

  const WorldObservation world_;
  Verdict& verdict_;
  std::vector<Member> members_;
};

}  // namespace detcd::checker
