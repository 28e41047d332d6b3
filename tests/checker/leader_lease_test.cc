#include "checker/leader_lease.h"

#include <gtest/gtest.h>

namespace detcd::checker {
namespace {

// Three members with T = 1000 ms. Member 1 leads term 1 with a lease; the clocks of all are set by the tests.
class LeaderLeaseTest : public testing::Test, public MemberClocks {
 protected:
  LeaderLeaseTest()
      : judge_({.members = {MemberId(1), MemberId(2), MemberId(3)},
                .election_timeout = Millis(1000),
                .heartbeat_interval = Millis(100),
                .clocks = this},
               verdict_) {
    Lead(1, 1, At(500));
  }

  static Instant At(int64_t ms) { return Instant{} + Millis(ms); }
  Instant Local(MemberId member) const override { return clocks_[member.value]; }
  void SetClock(uint64_t member, int64_t ms) { clocks_[member] = At(ms); }
  Moment Now() { return {.event = ++event_}; }

  void Show(uint64_t member, uint64_t term, Role role, std::optional<Instant> lease_end = std::nullopt) {
    judge_.OnMember({.member = MemberId(member),
                     .incarnation = 1,
                     .local_time = clocks_[member],
                     .term = Term(term),
                     .role = role,
                     .lease_end = lease_end},
                    Now());
  }
  void Lead(uint64_t member, uint64_t term, std::optional<Instant> lease_end = std::nullopt) {
    Show(member, term, Role::kLeader, lease_end);
  }
  static MessageObservation Of(MessageKind kind, uint64_t from, uint64_t to, uint64_t term) {
    return {.kind = kind, .from = MemberId(from), .to = MemberId(to), .term = Term(term)};
  }
  // A round reaches `voter` and its acknowledgement leaves.
  void Deliver(uint64_t voter, uint64_t round, uint64_t term = 1) {
    MessageObservation message = Of(MessageKind::kHeartbeat, 1, voter, term);
    message.round = round;
    judge_.OnDelivered(message, Now());
  }
  void Acknowledge(uint64_t voter, uint64_t round, uint64_t term = 1) {
    MessageObservation message = Of(MessageKind::kHeartbeatResponse, voter, 1, term);
    message.round = round;
    judge_.OnSent(message, Now());
  }
  void Grant(uint64_t voter, uint64_t to, uint64_t term, bool reject = false) {
    MessageObservation message = Of(MessageKind::kVoteResponse, voter, to, term);
    message.reject = reject;
    judge_.OnSent(message, Now());
  }
  void Ask(uint64_t candidate, uint64_t of, uint64_t term, bool transfer) {
    MessageObservation message = Of(MessageKind::kVote, candidate, of, term);
    message.transfer = transfer;
    judge_.OnSent(message, Now());
    judge_.OnDelivered(message, Now());
  }
  std::string Broken() const { return verdict_.broken() ? verdict_.violation()->signature : ""; }

  Instant clocks_[4];
  Verdict verdict_;
  LeaderLease judge_;
  uint64_t event_ = 0;
};

TEST_F(LeaderLeaseTest, ALeaderAfterTheLeasesEndIsFine) {
  SetClock(1, 500);
  Lead(2, 2);
  EXPECT_EQ(Broken(), "");
}

TEST_F(LeaderLeaseTest, ALeaderOfALaterTermBeforeItsEnd) {
  SetClock(1, 499);  // what its clock shows, whatever the others' do
  SetClock(2, 5'000);
  Lead(2, 2);
  EXPECT_EQ(Broken(), "F14: a leader elected during another's lease");
  EXPECT_TRUE(LeaderLease::IsOfExclusion(*verdict_.violation()));
}

TEST_F(LeaderLeaseTest, WhoLeadsWithoutALeaseExcludesNobody) {
  Lead(1, 1);
  Lead(2, 2, At(500));
  EXPECT_EQ(Broken(), "");
}

TEST_F(LeaderLeaseTest, WhoFollowsHoldsNoLease) {
  Show(1, 2, Role::kFollower, At(500));
  Lead(2, 2);
  EXPECT_EQ(Broken(), "");
}

TEST_F(LeaderLeaseTest, ALeaseThatGrowsInTheTimeOfALaterLeader) {
  SetClock(1, 600);
  Lead(1, 1, At(500));
  Lead(2, 2);
  Lead(1, 1, At(600));  // over as soon as it is known
  EXPECT_EQ(Broken(), "");
  Lead(1, 1, At(601));
  EXPECT_EQ(Broken(), "F14: a lease in the time of a later leader");
}

TEST_F(LeaderLeaseTest, AVoteAfterThePromiseIsFine) {
  SetClock(2, 100);
  Deliver(2, 7);
  SetClock(2, 300);
  Acknowledge(2, 7);
  SetClock(2, 1'100);  // counted from the arrival
  Grant(2, 3, 2);
  Ask(2, 3, 3, false);
  EXPECT_EQ(Broken(), "");
}

TEST_F(LeaderLeaseTest, AVoteAgainstAPromise) {
  SetClock(2, 100);
  Deliver(2, 7);
  Acknowledge(2, 7);
  SetClock(2, 1'099);
  Grant(2, 3, 2, true);
  EXPECT_EQ(Broken(), "");
  Grant(2, 3, 2);
  EXPECT_EQ(Broken(), "F14: a vote against a promise");
  EXPECT_FALSE(LeaderLease::IsOfExclusion(*verdict_.violation()));
}

TEST_F(LeaderLeaseTest, ACandidacyAgainstAPromise) {
  Deliver(2, 7);
  Acknowledge(2, 7);
  SetClock(2, 999);
  Ask(2, 3, 2, false);
  EXPECT_EQ(Broken(), "F14: a candidacy against a promise");
}

TEST_F(LeaderLeaseTest, AStartDoesNotEndAPromise) {
  Deliver(2, 7);
  Acknowledge(2, 7);
  judge_.OnMember({.member = MemberId(2), .incarnation = 2, .term = Term(1), .started = true}, Now());
  SetClock(2, 500);
  Grant(2, 3, 2);
  EXPECT_EQ(Broken(), "F14: a vote against a promise");
}

TEST_F(LeaderLeaseTest, AHigherTermDoesNotEndAPromise) {
  Deliver(2, 7);
  Acknowledge(2, 7);
  SetClock(2, 500);
  Show(2, 9, Role::kFollower);
  Grant(2, 3, 9);
  EXPECT_EQ(Broken(), "F14: a vote against a promise");
}

TEST_F(LeaderLeaseTest, WhatWasNotAcknowledgedIsNotPromised) {
  Deliver(2, 7);
  Acknowledge(2, 0);
  Grant(2, 3, 2);
  EXPECT_EQ(Broken(), "");
}

TEST_F(LeaderLeaseTest, TheVoteForTheLeaderItselfMayLeaveLate) {
  Deliver(2, 7, 2);
  Acknowledge(2, 7, 2);
  Grant(2, 3, 2);
  EXPECT_EQ(Broken(), "");
}

TEST_F(LeaderLeaseTest, ATransfersVotesAreFree) {
  for (uint64_t voter : {2u, 3u}) Deliver(voter, 7), Acknowledge(voter, 7);
  Ask(3, 2, 2, true);
  Grant(2, 3, 2);
  Show(2, 4, Role::kFollower);
  Grant(2, 3, 2);  // it left late
  EXPECT_EQ(Broken(), "");
  Grant(2, 3, 3);  // another term was not asked for so
  EXPECT_EQ(Broken(), "F14: a vote against a promise");
}

TEST(LeaderLeaseWithoutClocksTest, NothingIsJudged) {
  Verdict verdict;
  LeaderLease judge({.members = {MemberId(1), MemberId(2)}, .election_timeout = Millis(1000)}, verdict);
  judge.OnMember({.member = MemberId(1), .term = Term(1), .role = Role::kLeader, .lease_end = Instant{} + Seconds(9)}, {});
  judge.OnMember({.member = MemberId(2), .term = Term(2), .role = Role::kLeader}, {});
  EXPECT_FALSE(verdict.broken());
}

}  // namespace
}  // namespace detcd::checker
