#include "checker/leader_transfer.h"

#include <gtest/gtest.h>

namespace detcd::checker {
namespace {

// T = 1000 ms. Member 1 leads term 1 with a log of ten entries, which member 2 has and member 3 lacks.
class LeaderTransferTest : public testing::Test {
 protected:
  LeaderTransferTest()
      : judge_({.members = {MemberId(1), MemberId(2), MemberId(3)},
                .election_timeout = Millis(1000),
                .heartbeat_interval = Millis(100)},
               verdict_) {
    for (uint64_t member : {2u, 3u}) Show(member, member == 2 ? 10 : 9);
    Lead(10);
  }

  void Show(uint64_t member, uint64_t last_index, uint64_t term = 1, Role role = Role::kFollower) {
    judge_.OnMember({.member = MemberId(member),
                     .incarnation = 1,
                     .term = Term(term),
                     .role = role,
                     .last_index = LogIndex(last_index)},
                    Now());
  }
  void Lead(uint64_t last_index, uint64_t target = 0, int64_t give_up_ms = 1'000) {
    judge_.OnMember({.member = MemberId(1),
                     .incarnation = 1,
                     .local_time = Instant{} + Millis(local_ms_),
                     .term = Term(1),
                     .role = Role::kLeader,
                     .transfer_target = MemberId(target),
                     .transfer_give_up = Instant{} + Millis(give_up_ms),
                     .last_index = LogIndex(last_index)},
                    Now());
  }
  // Its state after that is to be shown.
  void TellToCampaign(uint64_t target, uint64_t term = 1) {
    judge_.OnDelivered({.kind = MessageKind::kTimeoutNow, .from = MemberId(1), .to = MemberId(target), .term = Term(term)});
  }
  Moment Now() { return {.event = ++event_, .true_time = Instant{} + Millis(true_ms_)}; }
  std::string Broken() const { return verdict_.broken() ? verdict_.violation()->signature : ""; }

  Verdict verdict_;
  LeaderTransfer judge_;
  int64_t local_ms_ = 0;
  int64_t true_ms_ = 0;
  uint64_t event_ = 0;
};

TEST_F(LeaderTransferTest, ATransferByTheRules) {
  Lead(12, 2);  // the proposals of the event in which it began
  TellToCampaign(2);
  Show(2, 12, 2, Role::kCandidate);
  local_ms_ = true_ms_ = 1'000;
  Lead(12, 2);
  Lead(13);
  EXPECT_EQ(Broken(), "");
}

TEST_F(LeaderTransferTest, AProposalDuringATransfer) {
  Lead(10, 2);
  Lead(11, 2);
  EXPECT_EQ(Broken(), "F16: a proposal during a transfer");
}

TEST_F(LeaderTransferTest, ProposalsBetweenTwoTransfers) {
  Lead(10, 2, 1'000);
  Lead(11, 2, 1'100);
  Lead(12, 3, 1'100);
  EXPECT_EQ(Broken(), "");
}

TEST_F(LeaderTransferTest, ATargetThatIsBehind) {
  Lead(10, 3);
  TellToCampaign(3);
  Show(3, 9, 2, Role::kCandidate);
  EXPECT_EQ(Broken(), "F16: a target that is behind");
}

// As a leader that does not know of the next one may tell a follower of it.
TEST_F(LeaderTransferTest, ATargetThatFollowsTheNextLeaderMayHaveLostItsLog) {
  Lead(10, 2);
  for (const Role role : {Role::kFollower, Role::kPreCandidate}) {  // it may be about to give the next one up too
    TellToCampaign(2);
    Show(2, 9, 2, role);
  }
  EXPECT_EQ(Broken(), "");
}

TEST_F(LeaderTransferTest, WordOfAnEarlierTransferMayComeLate) {
  Lead(10, 2);
  Lead(11);
  Lead(11, 2, 1'200);
  TellToCampaign(2);
  Show(2, 10, 2, Role::kCandidate);
  EXPECT_EQ(Broken(), "");
}

TEST_F(LeaderTransferTest, ATargetOfALaterTermMayHaveLostItsLog) {
  Lead(10, 2);
  TellToCampaign(2);
  Show(2, 5, 3, Role::kCandidate);
  EXPECT_EQ(Broken(), "");
}

TEST_F(LeaderTransferTest, ATransferWithoutEnd) {
  Lead(10, 2);
  local_ms_ = true_ms_ = 1'001;
  Lead(10, 2);
  local_ms_ = 1'102;
  true_ms_ = 1'101;  // a leap of its clock alone does not count
  Lead(10, 2);
  EXPECT_EQ(Broken(), "");
  true_ms_ = 1'102;
  Lead(10, 2);
  EXPECT_EQ(Broken(), "F16: a transfer without end");
}

TEST_F(LeaderTransferTest, AnEndInTimeAfterAPause) {
  Lead(10, 2);
  local_ms_ = true_ms_ = 9'000;
  Lead(10, 2);
  Lead(10);
  Lead(11);
  EXPECT_EQ(Broken(), "");
}

}  // namespace
}  // namespace detcd::checker
