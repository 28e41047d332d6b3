#include "checker/pre_vote.h"

#include <gtest/gtest.h>

namespace detcd::checker {
namespace {

// Three members with T = 1000 ms; member 1 is the one looked at. Its clock and true time are one here.
class PreVoteTest : public testing::Test {
 protected:
  explicit PreVoteTest(bool check_quorum = true)
      : judge_({.members = {MemberId(1), MemberId(2), MemberId(3)},
                .election_timeout = Millis(1000),
                .heartbeat_interval = Millis(100),
                .check_quorum = check_quorum},
               verdict_) {
    state_.member = MemberId(1);
    state_.incarnation = 1;
    state_.started = true;
    state_.term = Term(1);
    Show();
    state_.started = false;
  }

  Moment Now() { return {.event = ++event_, .true_time = Instant{now_.nanos}}; }
  void Show() {
    state_.local_time = Instant{now_.nanos};
    judge_.OnMember(state_, Now());
  }
  void ShowAs(Role role, uint64_t term, uint64_t leader = 0) {
    state_.role = role;
    state_.term = Term(term);
    state_.leader = MemberId(leader);
    Show();
  }
  static MessageObservation Message(MessageKind kind, uint64_t from, uint64_t to, uint64_t term, bool reject = false) {
    return {.kind = kind, .from = MemberId(from), .to = MemberId(to), .term = Term(term), .reject = reject};
  }
  void Deliver(MessageKind kind, uint64_t from, uint64_t term, bool reject = false) {
    judge_.OnDelivered(Message(kind, from, 1, term, reject), Now());
  }
  // Which leads term 1, and was heard just now.
  void FollowMember2() {
    Deliver(MessageKind::kHeartbeat, 2, 1);
    ShowAs(Role::kFollower, 1, 2);
  }
  void Send(MessageKind kind, uint64_t to, uint64_t term) { judge_.OnSent(Message(kind, 1, to, term), Now()); }
  std::string Broken() const { return verdict_.broken() ? verdict_.violation()->property : ""; }

  Verdict verdict_;
  PreVote judge_;
  MemberObservation state_;
  Duration now_ = Seconds(10);
  uint64_t event_ = 0;
};

TEST_F(PreVoteTest, CandidateWithAQuorumOfPreVotes) {
  ShowAs(Role::kPreCandidate, 1);
  Deliver(MessageKind::kPreVoteResponse, 2, 2);
  ShowAs(Role::kCandidate, 2);
  EXPECT_EQ(Broken(), "");
}

TEST_F(PreVoteTest, ATargetOfATransferNeedsNoPreVotes) {
  FollowMember2();
  Deliver(MessageKind::kTimeoutNow, 2, 1);
  ShowAs(Role::kCandidate, 2);
  Send(MessageKind::kVote, 3, 2);
  EXPECT_EQ(Broken(), "");
}

TEST_F(PreVoteTest, ATransferIsGoodForOneEventAndOneTerm) {
  Deliver(MessageKind::kTimeoutNow, 2, 1);
  ShowAs(Role::kFollower, 1, 2);
  ShowAs(Role::kCandidate, 2);
  EXPECT_EQ(Broken(), "F12");
}

TEST_F(PreVoteTest, ATransferIsGoodForTheNextTermOnly) {
  Deliver(MessageKind::kTimeoutNow, 2, 1);
  ShowAs(Role::kCandidate, 3);
  EXPECT_EQ(Broken(), "F12");
}

TEST_F(PreVoteTest, TheMarkOfATransferPassesALiveLeader) {
  FollowMember2();
  MessageObservation vote = Message(MessageKind::kVote, 3, 1, 2);
  vote.transfer = true;
  judge_.OnDelivered(vote, Now());
  state_.voted_for = MemberId(3);
  Send(MessageKind::kVoteResponse, 3, 2);
  ShowAs(Role::kFollower, 2);
  EXPECT_EQ(Broken(), "");
}

TEST_F(PreVoteTest, TheMarkNeedsAWordOfTheLeader) {
  MessageObservation vote = Message(MessageKind::kVote, 1, 3, 2);
  vote.transfer = true;
  judge_.OnSent(vote, Now());
  EXPECT_EQ(Broken(), "F12");
}

TEST_F(PreVoteTest, TheMarkIsForTheTermAfterTheLeaders) {
  Deliver(MessageKind::kTimeoutNow, 2, 1);
  ShowAs(Role::kFollower, 1, 2);
  MessageObservation vote = Message(MessageKind::kVote, 1, 3, 3);
  vote.transfer = true;
  judge_.OnSent(vote, Now());
  EXPECT_EQ(Broken(), "F12");
}

TEST_F(PreVoteTest, OnlyALeaderTellsOthersToCampaign) {
  Send(MessageKind::kTimeoutNow, 3, 1);
  EXPECT_EQ(Broken(), "F12");
}

TEST_F(PreVoteTest, IsolatedMemberRaisesItsTerm) {
  ShowAs(Role::kPreCandidate, 1);
  ShowAs(Role::kCandidate, 2);
  EXPECT_EQ(Broken(), "F12");
}

TEST_F(PreVoteTest, WhoWasStartedWithoutItAsksNobodyAndTheOthersDo) {
  state_.pre_vote = false;
  ShowAs(Role::kCandidate, 2);
  ShowAs(Role::kCandidate, 3);
  EXPECT_EQ(Broken(), "");
  state_.incarnation = 2;
  state_.started = true;
  state_.pre_vote = true;
  ShowAs(Role::kFollower, 3);
  state_.started = false;
  ShowAs(Role::kCandidate, 4);
  EXPECT_EQ(Broken(), "F12");
}

TEST_F(PreVoteTest, WhoWasStartedWithoutItTakesATermFromNowhereNeither) {
  state_.pre_vote = false;
  ShowAs(Role::kFollower, 2);
  EXPECT_EQ(Broken(), "F12");
}

TEST_F(PreVoteTest, WhoWasStartedWithoutItProtectsALiveLeaderAllTheSame) {
  state_.pre_vote = false;
  FollowMember2();
  now_ = now_ + Millis(500);
  Deliver(MessageKind::kPreVote, 3, 2);
  Send(MessageKind::kPreVoteResponse, 3, 2);
  Show();
  EXPECT_EQ(Broken(), "F12");
}

TEST_F(PreVoteTest, RefusalsAndGrantsOfOtherTermsAreNoPreVotes) {
  ShowAs(Role::kPreCandidate, 1);
  Deliver(MessageKind::kPreVoteResponse, 2, 1, true);
  Deliver(MessageKind::kPreVoteResponse, 3, 3);
  ShowAs(Role::kCandidate, 2);
  EXPECT_EQ(Broken(), "F12");
}

TEST_F(PreVoteTest, ARefusalOfTheTermAskedForIsNoPreVote) {
  ShowAs(Role::kPreCandidate, 1);
  Deliver(MessageKind::kPreVoteResponse, 2, 2, true);
  ShowAs(Role::kCandidate, 2);
  EXPECT_EQ(Broken(), "F12");
}

TEST_F(PreVoteTest, WhoCampaignsMayLeadAtTheEndOfTheEvent) {
  ShowAs(Role::kPreCandidate, 1);
  Deliver(MessageKind::kPreVoteResponse, 2, 2);
  ShowAs(Role::kLeader, 2, 1);
  EXPECT_EQ(Broken(), "");
}

TEST_F(PreVoteTest, AGrantedPreVoteBringsNoTerm) {
  ShowAs(Role::kPreCandidate, 1);
  Deliver(MessageKind::kPreVoteResponse, 2, 2);
  ShowAs(Role::kFollower, 2);
  EXPECT_EQ(Broken(), "F12");
}

TEST_F(PreVoteTest, GrantsDoNotOutliveARestart) {
  ShowAs(Role::kPreCandidate, 1);
  Deliver(MessageKind::kPreVoteResponse, 2, 2);
  Show();
  state_.incarnation = 2;
  state_.started = true;
  ShowAs(Role::kFollower, 1);
  state_.started = false;
  ShowAs(Role::kCandidate, 2);
  EXPECT_EQ(Broken(), "F12");
}

TEST_F(PreVoteTest, TermRisesByAMessageOnly) {
  Deliver(MessageKind::kHeartbeat, 2, 3);
  ShowAs(Role::kFollower, 3, 2);
  EXPECT_EQ(Broken(), "");
  Deliver(MessageKind::kPreVote, 3, 4);
  ShowAs(Role::kFollower, 4);
  EXPECT_EQ(Broken(), "F12");
}

TEST_F(PreVoteTest, GrantWhileTheLeaderIsHeard) {
  FollowMember2();
  now_ = now_ + Millis(500);
  Deliver(MessageKind::kPreVote, 3, 2);
  Send(MessageKind::kPreVoteResponse, 3, 2);
  Show();
  EXPECT_EQ(Broken(), "F12");
}

TEST_F(PreVoteTest, VoteWhileTheLeaderIsHeard) {
  FollowMember2();
  now_ = now_ + Millis(500);
  Deliver(MessageKind::kVote, 3, 2);
  Send(MessageKind::kVoteResponse, 3, 2);
  ShowAs(Role::kFollower, 2);
  EXPECT_EQ(Broken(), "F12");
}

TEST_F(PreVoteTest, AVoteInTheLeadersOwnTermIsNotAgainstIt) {
  FollowMember2();
  Deliver(MessageKind::kVote, 3, 1);
  Send(MessageKind::kVoteResponse, 3, 1);
  Show();
  EXPECT_EQ(Broken(), "");
}

TEST_F(PreVoteTest, GrantAfterTheLeaderWasSilent) {
  FollowMember2();
  now_ = now_ + Millis(1000);
  Deliver(MessageKind::kPreVote, 3, 2);
  Show();
  Deliver(MessageKind::kHeartbeat, 2, 1);  // heard again before the grant left
  Send(MessageKind::kPreVoteResponse, 3, 2);
  Show();
  EXPECT_EQ(Broken(), "");
}

// Bytes of a stream may bring several messages in one event: each finds the member as those before it left it.
TEST_F(PreVoteTest, GrantAfterATermThatCameInTheSameEvent) {
  FollowMember2();
  now_ = now_ + Millis(500);
  Deliver(MessageKind::kPreVoteResponse, 3, 2, true);  // of term 2, which has no leader yet
  Deliver(MessageKind::kPreVote, 3, 3);
  Send(MessageKind::kPreVoteResponse, 3, 3);
  ShowAs(Role::kFollower, 2);
  EXPECT_EQ(Broken(), "");
}

TEST_F(PreVoteTest, GrantBeforeATermThatCameInTheSameEvent) {
  FollowMember2();
  now_ = now_ + Millis(500);
  Deliver(MessageKind::kPreVote, 3, 3);
  Deliver(MessageKind::kPreVoteResponse, 3, 2, true);
  Send(MessageKind::kPreVoteResponse, 3, 3);
  ShowAs(Role::kFollower, 2);
  EXPECT_EQ(Broken(), "F12");
}

TEST_F(PreVoteTest, GrantAgainstALeaderThatCameInTheSameEvent) {
  now_ = now_ + Millis(5000);
  Deliver(MessageKind::kHeartbeat, 2, 2);
  Deliver(MessageKind::kPreVote, 3, 3);
  Send(MessageKind::kPreVoteResponse, 3, 3);
  ShowAs(Role::kFollower, 2, 2);
  EXPECT_EQ(Broken(), "F12");
}

TEST_F(PreVoteTest, AnIgnoredVoteRequestLeavesTheLeaderInPlace) {
  FollowMember2();
  now_ = now_ + Millis(500);
  Deliver(MessageKind::kVote, 3, 2);
  Deliver(MessageKind::kPreVote, 3, 3);
  Send(MessageKind::kPreVoteResponse, 3, 3);
  Show();
  EXPECT_EQ(Broken(), "F12");
}

TEST_F(PreVoteTest, GrantThatNobodyAskedFor) {
  Send(MessageKind::kPreVoteResponse, 3, 2);
  Show();
  EXPECT_EQ(Broken(), "F12");
}

class WithoutCheckQuorumTest : public PreVoteTest {
 protected:
  WithoutCheckQuorumTest() : PreVoteTest(false) {}
};

TEST_F(WithoutCheckQuorumTest, NobodyIsProtected) {
  FollowMember2();
  Deliver(MessageKind::kPreVote, 3, 2);
  Send(MessageKind::kPreVoteResponse, 3, 2);
  Show();
  EXPECT_EQ(Broken(), "");
}

TEST_F(WithoutCheckQuorumTest, ALeaderStaysWithoutContact) {
  ShowAs(Role::kPreCandidate, 1);
  Deliver(MessageKind::kPreVoteResponse, 2, 2);
  ShowAs(Role::kCandidate, 2);
  for (int i = 0; i < 40; ++i) {
    now_ = now_ + Millis(100);
    ShowAs(Role::kLeader, 2, 1);
  }
  EXPECT_EQ(Broken(), "");
}

class CheckQuorumTest : public PreVoteTest {
 protected:
  CheckQuorumTest() {
    ShowAs(Role::kPreCandidate, 1);
    Deliver(MessageKind::kPreVoteResponse, 2, 2);
    ShowAs(Role::kCandidate, 2);
    ShowAs(Role::kLeader, 2, 1);
  }
};

TEST_F(CheckQuorumTest, LeaderInContactStays) {
  for (int i = 0; i < 50; ++i) {
    now_ = now_ + Millis(200);
    Deliver(MessageKind::kHeartbeatResponse, 3, 2);
    Show();
  }
  EXPECT_EQ(Broken(), "");
}

TEST_F(CheckQuorumTest, LeaderWithoutContactMustGo) {
  for (int i = 0; i < 20; ++i) {
    now_ = now_ + Millis(100);
    Show();
  }
  EXPECT_EQ(Broken(), "");
  for (int i = 0; i < 3; ++i) {
    now_ = now_ + Millis(100);
    Show();
  }
  EXPECT_EQ(Broken(), "F13");
}

TEST_F(CheckQuorumTest, MessagesOfOtherTermsAreNoContact) {
  for (int i = 0; i < 24; ++i) {
    now_ = now_ + Millis(100);
    Deliver(MessageKind::kHeartbeatResponse, 3, 1);
    Show();
  }
  EXPECT_EQ(Broken(), "F13");
}

TEST_F(CheckQuorumTest, EventsQueuedBehindALongPauseAreForgiven) {
  now_ = now_ + Seconds(60);
  for (int i = 0; i < 20; ++i) Show();
  ShowAs(Role::kFollower, 2);
  EXPECT_EQ(Broken(), "");
}

TEST_F(CheckQuorumTest, IsNotJudgedWhileEventsWaitForASlowProcessor) {
  state_.behind = true;
  for (int i = 0; i < 40; ++i) {
    now_ = now_ + Millis(100);
    Show();
  }
  EXPECT_EQ(Broken(), "");
  state_.behind = false;
  Show();
  EXPECT_EQ(Broken(), "F13");
}

class ReadIndexTest : public CheckQuorumTest {
 protected:
  void Ask(uint64_t from, uint64_t read) {
    MessageObservation message = Message(MessageKind::kReadIndex, from, 1, 0);
    message.read = read;
    judge_.OnSent(message, Now());
  }
  void Answer(uint64_t to, uint64_t read, uint64_t index, uint64_t term = 2) {
    MessageObservation message = Message(MessageKind::kReadIndexResponse, 1, to, term);
    message.read = read;
    message.index = LogIndex(index);
    judge_.OnSent(message, Now());
  }
  void Commit(uint64_t index) {
    state_.commit_index = LogIndex(index);
    Show();
  }
};

TEST_F(ReadIndexTest, CoversWhatWasCommittedBeforeTheQuestion) {
  Commit(5);
  Ask(3, 77);
  Commit(6);
  Answer(3, 77, 5);
  EXPECT_EQ(Broken(), "");
}

TEST_F(ReadIndexTest, StaleIndex) {
  Commit(5);
  Ask(3, 77);
  Answer(3, 77, 4);
  EXPECT_EQ(Broken(), "F15");
}

TEST_F(ReadIndexTest, AnswerInATermItNeverLed) {
  Ask(3, 77);
  Answer(3, 77, 4, 3);
  EXPECT_EQ(Broken(), "F15");
}

}  // namespace
}  // namespace detcd::checker
