#include "checker/read_rounds.h"

#include <gtest/gtest.h>

namespace detcd::checker {
namespace {

constexpr uint64_t kLeader = 1;

// Three members; member 1 is elected in term 2, which its log has from index 5 on. A turn is one event and the one in
// which its messages leave, unless `turn_events_max` says more.
class ReadRoundsTest : public testing::Test {
 protected:
  explicit ReadRoundsTest(uint64_t turn_events_max = 1)
      : judge_({.members = {MemberId(1), MemberId(2), MemberId(3)}, .turn_events_max = turn_events_max}, verdict_) {
    for (uint64_t member : {1u, 2u, 3u}) {
      NextEvent();
      judge_.OnMember({.member = MemberId(member), .incarnation = 1, .term = Term(1), .started = true}, Now());
    }
    MemberObservation candidate = Leading();
    candidate.role = Role::kCandidate;
    candidate.leader = MemberId();
    judge_.OnMember(candidate, Now());
    NextEvent();
    Elect(kLeader);
  }

  Moment Now() const { return {.event = event_}; }
  void NextEvent() { ++event_; }

  // --- what happens in the event that the next look at the member ends ---
  void Arrives(MessageKind kind, uint64_t from, uint64_t to, uint64_t read, uint64_t term = 2) {
    judge_.OnDelivered(
        {.kind = kind, .from = MemberId(from), .to = MemberId(to), .term = Term(term), .read = read}, Now());
  }
  void Leaves(MessageKind kind, uint64_t from, uint64_t to, uint64_t read, uint64_t term = 2) {
    judge_.OnSent({.kind = kind, .from = MemberId(from), .to = MemberId(to), .term = Term(term), .read = read}, Now());
  }
  void ReadArrives(uint64_t from, uint64_t read) { Arrives(MessageKind::kReadIndex, from, kLeader, read, 0); }
  void RoundLeaves(uint64_t read) {
    for (uint64_t to : {2u, 3u}) Leaves(MessageKind::kHeartbeat, kLeader, to, read);
  }
  void ConfirmationArrives(uint64_t from, uint64_t read) {
    Arrives(MessageKind::kHeartbeatResponse, from, kLeader, read);
  }
  void AnswerLeaves(uint64_t to, uint64_t read) { Leaves(MessageKind::kReadIndexResponse, kLeader, to, read); }

  // --- looks at members: each ends an event ---
  void Elect(uint64_t leader) {
    const EntryMark first = {.term = Term(2)};
    MemberObservation seen = Leading();
    seen.member = seen.leader = MemberId(leader);
    seen.changed_from = LogIndex(5);
    seen.changed = {&first, 1};
    judge_.OnMember(seen, Now());
    NextEvent();
  }
  MemberObservation Leading() const {
    return {.member = MemberId(kLeader),
            .incarnation = 1,
            .term = Term(2),
            .voted_for = MemberId(kLeader),
            .role = Role::kLeader,
            .leader = MemberId(kLeader),
            .last_index = LogIndex(9),
            .commit_index = commit_};
  }
  void Lead() {
    judge_.OnMember(Leading(), Now());
    NextEvent();
  }
  void Follow(uint64_t voted_for = 1, Role role = Role::kFollower) {
    judge_.OnMember({.member = MemberId(2),
                     .incarnation = 1,
                     .term = Term(2),
                     .voted_for = MemberId(voted_for),
                     .role = role,
                     .leader = MemberId(role == Role::kFollower ? kLeader : 0)},
                    Now());
    NextEvent();
  }
  // Until everything is judged that could be due.
  std::string BrokenAtLeader() {
    for (int i = 0; i < 6; ++i) Lead();
    return verdict_.broken() ? verdict_.violation()->signature : "";
  }
  std::string BrokenAtFollower() {
    for (int i = 0; i < 6; ++i) Follow();
    return verdict_.broken() ? verdict_.violation()->signature : "";
  }
  // Of the leader, one turn each.
  void Ask(uint64_t from, uint64_t read) {
    ReadArrives(from, read);
    Lead();
    RoundLeaves(read);
    Lead();
  }

  Verdict verdict_;
  ReadRounds judge_;
  LogIndex commit_ = LogIndex(5);
  uint64_t event_ = 1;
};

TEST_F(ReadRoundsTest, AReadThatIsConfirmedAndAnswered) {
  Ask(2, 70);
  ConfirmationArrives(3, 70);
  Lead();
  AnswerLeaves(2, 70);
  Lead();
  EXPECT_EQ(BrokenAtLeader(), "");
}

TEST_F(ReadRoundsTest, AReadThatIsAnsweredAtOnce) {
  ReadArrives(2, 70);
  Lead();
  AnswerLeaves(2, 70);
  EXPECT_EQ(BrokenAtLeader(), "");
}

TEST_F(ReadRoundsTest, AReadThatNobodyIsAskedToConfirm) {
  ReadArrives(2, 70);
  EXPECT_EQ(BrokenAtLeader(), "F20: a read that nobody was asked to confirm");
}

TEST_F(ReadRoundsTest, ARoundOneTurnLate) {
  ReadArrives(2, 70);
  Lead();
  Lead();
  RoundLeaves(70);
  EXPECT_EQ(BrokenAtLeader(), "F20: a read that nobody was asked to confirm");
}

TEST_F(ReadRoundsTest, ARoundThatLeavesForSomeOnly) {
  ReadArrives(2, 70);
  Lead();
  Leaves(MessageKind::kHeartbeat, kLeader, 2, 70);
  EXPECT_EQ(BrokenAtLeader(), "F20: a read that nobody was asked to confirm");
}

TEST_F(ReadRoundsTest, ARoundFromBeforeTheQuestionConfirmsNothing) {
  Ask(3, 60);
  ReadArrives(2, 70);
  Lead();
  RoundLeaves(60);
  EXPECT_EQ(BrokenAtLeader(), "F20: a read that nobody was asked to confirm");
}

TEST_F(ReadRoundsTest, ARoundForALaterReadIsEnough) {
  ReadArrives(2, 70);
  ReadArrives(3, 71);
  Lead();
  RoundLeaves(71);
  Lead();
  ConfirmationArrives(3, 71);
  Lead();
  AnswerLeaves(2, 70);
  AnswerLeaves(3, 71);
  EXPECT_EQ(BrokenAtLeader(), "");
}

TEST_F(ReadRoundsTest, AReadThatIsPassedOverByALaterOne) {
  ReadArrives(2, 70);
  ReadArrives(3, 71);
  Lead();
  RoundLeaves(71);
  Lead();
  ConfirmationArrives(3, 71);
  Lead();
  AnswerLeaves(3, 71);
  EXPECT_EQ(BrokenAtLeader(), "F20: a confirmed read without an answer");
}

TEST_F(ReadRoundsTest, AnAnswerOneTurnLate) {
  Ask(2, 70);
  ConfirmationArrives(3, 70);
  Lead();
  Lead();
  AnswerLeaves(2, 70);
  EXPECT_EQ(BrokenAtLeader(), "F20: a confirmed read without an answer");
}

TEST_F(ReadRoundsTest, AConfirmationOfALaterRoundConfirmsTheEarlierOne) {
  Ask(2, 70);
  Ask(3, 71);
  ConfirmationArrives(3, 71);
  Lead();
  AnswerLeaves(3, 71);
  EXPECT_EQ(BrokenAtLeader(), "F20: a confirmed read without an answer");
}

TEST_F(ReadRoundsTest, AConfirmationOfTheEarlierRoundDoesNotConfirmTheLaterOne) {
  Ask(2, 70);
  Ask(3, 71);
  ConfirmationArrives(3, 70);
  Lead();
  AnswerLeaves(2, 70);
  EXPECT_EQ(BrokenAtLeader(), "");
}

TEST_F(ReadRoundsTest, AConfirmationOfAnotherTermIsNone) {
  Ask(2, 70);
  Arrives(MessageKind::kHeartbeatResponse, 3, kLeader, 70, 1);
  EXPECT_EQ(BrokenAtLeader(), "");
}

TEST_F(ReadRoundsTest, AReadWaitsForTheFirstCommitOfTheTerm) {
  commit_ = LogIndex(4);
  ReadArrives(2, 70);
  EXPECT_EQ(BrokenAtLeader(), "");
  commit_ = LogIndex(5);
  Lead();
  RoundLeaves(70);
  EXPECT_EQ(BrokenAtLeader(), "");
}

TEST_F(ReadRoundsTest, AReadThatIsForgottenBeforeTheFirstCommitOfTheTerm) {
  commit_ = LogIndex(4);
  ReadArrives(2, 70);
  EXPECT_EQ(BrokenAtLeader(), "");
  commit_ = LogIndex(5);
  EXPECT_EQ(BrokenAtLeader(), "F20: a read that nobody was asked to confirm");
}

TEST_F(ReadRoundsTest, AReadThatArrivesTwiceIsAskedAboutOnce) {
  Ask(2, 70);
  ReadArrives(2, 70);
  EXPECT_EQ(BrokenAtLeader(), "");
}

TEST_F(ReadRoundsTest, AReadThatArrivesAgainAfterItsAnswerIsAskedAboutAgain) {
  Ask(2, 70);
  ConfirmationArrives(3, 70);
  Lead();
  AnswerLeaves(2, 70);
  Lead();
  ReadArrives(2, 70);
  EXPECT_EQ(BrokenAtLeader(), "F20: a read that nobody was asked to confirm");
}

TEST_F(ReadRoundsTest, WhoLeadsNoMoreOwesNoAnswer) {
  ReadArrives(2, 70);
  Lead();
  MemberObservation seen = Leading();
  seen.role = Role::kFollower;
  judge_.OnMember(seen, Now());
  NextEvent();
  EXPECT_EQ(BrokenAtLeader(), "");
}

TEST_F(ReadRoundsTest, WhoStopsOwesNoAnswer) {
  ReadArrives(2, 70);
  Lead();
  judge_.OnMember({.member = MemberId(kLeader), .incarnation = 2, .term = Term(2), .started = true}, Now());
  NextEvent();
  EXPECT_EQ(BrokenAtLeader(), "");
}

TEST_F(ReadRoundsTest, AReadInTheEventOfTheElectionMayHaveComeTooEarly) {
  MemberObservation seen = Leading();
  seen.role = Role::kFollower;
  judge_.OnMember(seen, Now());
  NextEvent();
  ReadArrives(2, 70);
  Elect(kLeader);
  EXPECT_EQ(BrokenAtLeader(), "");
}

TEST_F(ReadRoundsTest, AMessageMayBeToldAfterItsSender) {
  ReadArrives(2, 70);
  Lead();
  judge_.OnMember(Leading(), Now());
  RoundLeaves(70);
  NextEvent();
  EXPECT_EQ(BrokenAtLeader(), "");
}

TEST_F(ReadRoundsTest, AHeartbeatWithoutAnAnswer) {
  Follow();
  Arrives(MessageKind::kHeartbeat, kLeader, 2, 0);
  Follow();
  Leaves(MessageKind::kHeartbeatResponse, 2, kLeader, 0);
  Follow();
  Arrives(MessageKind::kHeartbeat, kLeader, 2, 70);
  Follow();
  EXPECT_EQ(BrokenAtFollower(), "F20: a heartbeat without an answer");
}

TEST_F(ReadRoundsTest, AHeartbeatThatIsAnsweredInItsTurn) {
  Follow();
  for (uint64_t read : {0u, 70u, 70u}) {
    Arrives(MessageKind::kHeartbeat, kLeader, 2, read);
    Follow();
    Leaves(MessageKind::kHeartbeatResponse, 2, kLeader, read);
    Follow();
  }
  EXPECT_EQ(BrokenAtFollower(), "");
}

TEST_F(ReadRoundsTest, ATermThatMayNotBeDurableKeepsTheFirstAnswersBack) {
  Follow();
  Arrives(MessageKind::kHeartbeat, kLeader, 2, 0);
  EXPECT_EQ(BrokenAtFollower(), "");
}

TEST_F(ReadRoundsTest, AVoteThatMayNotBeDurableKeepsAnswersBack) {
  Follow(0);
  Arrives(MessageKind::kHeartbeat, kLeader, 2, 0);
  Follow(0);
  Leaves(MessageKind::kHeartbeatResponse, 2, kLeader, 0);
  Follow(0);
  Follow(3, Role::kPreCandidate);
  Arrives(MessageKind::kHeartbeat, kLeader, 2, 0);
  for (int i = 0; i < 6; ++i) Follow(3);
  EXPECT_FALSE(verdict_.broken());
}

TEST_F(ReadRoundsTest, ANewVoteKeepsAnswersBackWhoeverLeads) {
  Follow(0);
  Arrives(MessageKind::kHeartbeat, kLeader, 2, 0);
  Follow(0);
  Leaves(MessageKind::kHeartbeatResponse, 2, kLeader, 0);
  Follow(0);
  Arrives(MessageKind::kHeartbeat, kLeader, 2, 0);
  for (int i = 0; i < 6; ++i) Follow(3);
  EXPECT_FALSE(verdict_.broken());
}

TEST_F(ReadRoundsTest, AnAnswerFromBeforeAVoteSaysNothingOfItsDurability) {
  Follow(0);
  Arrives(MessageKind::kHeartbeat, kLeader, 2, 0);
  Follow(0);
  Follow(3);  // the vote; its heartbeat is not answered yet
  Arrives(MessageKind::kHeartbeat, kLeader, 2, 0);
  Follow(3);
  Leaves(MessageKind::kHeartbeatResponse, 2, kLeader, 0);  // the first one's
  for (int i = 0; i < 6; ++i) Follow(3);
  EXPECT_FALSE(verdict_.broken());
}

class ReadRoundsOfLongTurnsTest : public ReadRoundsTest {
 protected:
  ReadRoundsOfLongTurnsTest() : ReadRoundsTest(4) {}
};

TEST_F(ReadRoundsOfLongTurnsTest, ATurnMayTakeSomeEvents) {
  ReadArrives(2, 70);
  for (int i = 0; i < 4; ++i) Lead();
  RoundLeaves(70);
  EXPECT_EQ(BrokenAtLeader(), "");
}

TEST_F(ReadRoundsOfLongTurnsTest, ATurnTakesNoMoreEventsThanThat) {
  ReadArrives(2, 70);
  for (int i = 0; i < 5; ++i) Lead();
  RoundLeaves(70);
  EXPECT_EQ(BrokenAtLeader(), "F20: a read that nobody was asked to confirm");
}

}  // namespace
}  // namespace detcd::checker
