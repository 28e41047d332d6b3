// Leadership transfer (thesis §3.10), with etcd's rules (reference/peer.md 20).
#include "core/raft/transfer.h"

#include "tests/support/raft_harness.h"

namespace detcd::raft {
namespace {

using Texts = std::vector<std::string>;

bool IsTimeoutNow(const Message& m) { return std::holds_alternative<TimeoutNow>(m.body); }

size_t TimeoutNowsOnTheWay(RaftHarness& cluster) { return cluster.Take(IsTimeoutNow).size(); }

MemberId TargetOf(RaftHarness& cluster, uint64_t id) { return cluster.raft(id).TransferTarget(); }

Message From(uint64_t from, uint64_t to, uint64_t term, Body body) {
  return {.from = MemberId(from), .to = MemberId(to), .term = Term(term), .body = std::move(body)};
}

// Member 1 leads, and hands over to member 3, which nothing reaches.
class Transferring : public RaftHarness {
 public:
  Transferring() : RaftHarness(3) {
    Elect(1);
    Isolate(3);
    Transfer(1, 3);
  }
};

TEST(TransferTest, AFollowerWithTheWholeLogLeadsAtOnceAndCanGiveItBack) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Propose(1, "a");
  cluster.Settle();
  cluster.Transfer(1, 2);  // all have just heard the leader: the mark of the transfer passes that
  cluster.Settle();
  EXPECT_EQ(cluster.LeaderId(), 2u);
  EXPECT_EQ(cluster.raft(1).LeaderId(), MemberId(2));
  EXPECT_EQ(cluster.raft(2).term, Term(2));
  cluster.Transfer(2, 1);
  cluster.Settle();
  EXPECT_EQ(cluster.LeaderId(), 1u);
  EXPECT_EQ(cluster.raft(1).term, Term(3));
  EXPECT_EQ(cluster.violation(), "");
}

TEST(TransferTest, TheTargetAsksForVotesWithoutPreVoteAndWithTheMark) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Transfer(1, 3);
  for (const Message& message : cluster.Take(IsTimeoutNow)) cluster.Step(message);
  cluster.Sync(3);
  ASSERT_EQ(cluster.network().size(), 2u);
  for (const Message& message : cluster.network()) {
    const auto* request = std::get_if<VoteRequest>(&message.body);
    ASSERT_NE(request, nullptr);
    EXPECT_FALSE(request->pre_vote);
    EXPECT_TRUE(request->transfer);
  }
}

TEST(TransferTest, AnOrdinaryElectionCarriesNoMark) {
  RaftHarness cluster(3);
  cluster.Timeout(1);
  for (const Message& message : cluster.network()) EXPECT_FALSE(std::get<VoteRequest>(message.body).transfer);
  cluster.Deliver(0);
  cluster.Sync(2);
  cluster.Deliver(1);  // the pre-vote granted
  cluster.Sync(1);
  for (const Message& message : cluster.network()) {
    const auto* request = std::get_if<VoteRequest>(&message.body);
    if (request != nullptr) {
      EXPECT_FALSE(request->transfer);
    }
  }
}

TEST(TransferTest, AFollowerThatLagsIsBroughtUpToDateFirst) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Isolate(3);
  cluster.Propose(1, "a");
  cluster.Propose(1, "b");
  cluster.Settle();
  cluster.Heal();
  cluster.Transfer(1, 3);
  EXPECT_EQ(TimeoutNowsOnTheWay(cluster), 0u);
  EXPECT_EQ(TargetOf(cluster, 1), MemberId(3));
  cluster.Settle();
  EXPECT_EQ(cluster.LeaderId(), 3u);
  EXPECT_EQ(cluster.Applied(3), (Texts{"a", "b"}));
  EXPECT_EQ(cluster.violation(), "");
}

TEST(TransferTest, EntriesOnlyTheDiskHasReachTheTarget) {
  RaftOptions options = HarnessOptions();
  options.log_entries_in_memory_max = 1;
  RaftHarness cluster(3, options);
  cluster.Elect(1);
  cluster.Isolate(3);
  for (int i = 0; i < 20; ++i) cluster.Propose(1, std::string(1, static_cast<char>('a' + i)));
  cluster.Settle();
  cluster.Heal();
  cluster.Transfer(1, 3);
  cluster.Settle();
  EXPECT_EQ(cluster.LeaderId(), 3u);
  EXPECT_EQ(cluster.Applied(3).size(), 20u);
}

TEST(TransferTest, ToTheLeaderItselfToNoVoterAndByAFollowerNothingHappens) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Transfer(1, 1);
  cluster.Transfer(1, 9);
  cluster.Transfer(2, 3);
  EXPECT_TRUE(cluster.network().empty());
  EXPECT_EQ(TargetOf(cluster, 1), MemberId());
  EXPECT_EQ(cluster.Propose(1, "a"), ProposeResult::kAppended);
}

TEST(TransferTest, ATargetThatIsGoneIsGivenUpAfterAnElectionTimeout) {
  Transferring cluster;
  cluster.Run(kElectionTimeout - kTick);
  EXPECT_EQ(TargetOf(cluster, 1), MemberId(3));
  cluster.Run(kTick);
  EXPECT_EQ(TargetOf(cluster, 1), MemberId());
  EXPECT_EQ(cluster.LeaderId(), 1u);
  EXPECT_EQ(cluster.Propose(1, "a"), ProposeResult::kAppended);
  cluster.Settle();
  EXPECT_EQ(cluster.Applied(2), (Texts{"a"}));
}

TEST(TransferTest, GivingUpIsADeadlineOfItsOwn) {
  Transferring cluster;
  // A member whose heartbeats would all be late still gives up in time.
  std::get<Leader>(cluster.raft(1).role).heartbeat_due = cluster.member(1).now + Seconds(60);
  std::get<Leader>(cluster.raft(1).role).quorum_check_due = cluster.member(1).now + Seconds(60);
  EXPECT_EQ(NextDeadline(cluster.raft(1)), cluster.member(1).now + kElectionTimeout);
}

TEST(TransferTest, ALostTimeoutNowCostsNoMoreThanTheAttempt) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Transfer(1, 2);
  EXPECT_EQ(TimeoutNowsOnTheWay(cluster), 1u);
  cluster.Run(kElectionTimeout);
  EXPECT_EQ(cluster.LeaderId(), 1u);
  EXPECT_EQ(cluster.raft(1).term, Term(1));
  cluster.Transfer(1, 2);
  cluster.Settle();
  EXPECT_EQ(cluster.LeaderId(), 2u);
}

TEST(TransferTest, NoProposalIsTakenMeanwhile) {
  Transferring cluster;
  const LogIndex last = cluster.raft(1).log.last_index();
  EXPECT_EQ(cluster.Propose(1, "a"), ProposeResult::kTransferring);
  EXPECT_EQ(cluster.Propose(2, "b"), ProposeResult::kForwarded);
  cluster.Settle();
  EXPECT_EQ(cluster.raft(1).log.last_index(), last);
}

TEST(TransferTest, ReadsAreServedMeanwhile) {
  Transferring cluster;
  cluster.Read(1, 7);
  cluster.Settle();
  EXPECT_EQ(cluster.member(1).reads.size(), 1u);
}

TEST(TransferTest, AnotherTargetTakesThePlaceOfTheFirst) {
  Transferring cluster;
  cluster.Transfer(1, 2);
  EXPECT_EQ(TargetOf(cluster, 1), MemberId(2));
  cluster.Settle();
  EXPECT_EQ(cluster.LeaderId(), 2u);
}

TEST(TransferTest, NamingTheLeaderEndsATransfer) {
  Transferring cluster;
  cluster.Transfer(1, 1);
  EXPECT_EQ(TargetOf(cluster, 1), MemberId());
  EXPECT_EQ(cluster.Propose(1, "a"), ProposeResult::kAppended);
}

TEST(TransferTest, TheSameTargetAgainDoesNotBuyTime) {
  Transferring cluster;
  cluster.Run(kElectionTimeout - kTick);
  cluster.Transfer(1, 3);
  cluster.Run(kTick);
  EXPECT_EQ(TargetOf(cluster, 1), MemberId());
}

TEST(TransferTest, AHigherTermEndsATransferWithTheLeadership) {
  Transferring cluster;
  cluster.Step(From(2, 1, 5, Heartbeat{}));
  EXPECT_EQ(cluster.raft(1).LeaderId(), MemberId(2));
  EXPECT_EQ(TargetOf(cluster, 1), MemberId());
}

TEST(TransferTest, APeersRequestNamesTheTargetAsItsSender) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Step(From(3, 2, 1, TransferRequest{}));  // not the leader: dropped
  EXPECT_TRUE(cluster.network().empty());
  cluster.Step(From(3, 1, 1, TransferRequest{}));
  cluster.Settle();
  EXPECT_EQ(cluster.LeaderId(), 3u);
}

TEST(TransferTest, OnlyAFollowerOfThatTermObeysTimeoutNow) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Step(From(2, 1, 1, TimeoutNow{}));  // a leader
  EXPECT_EQ(cluster.LeaderId(), 1u);
  cluster.Step(From(1, 2, 1, TimeoutNow{}));
  const Term asked = cluster.raft(2).term;
  EXPECT_EQ(asked, Term(2));
  cluster.Step(From(1, 2, 1, TimeoutNow{}));  // again: of a lower term by now
  cluster.Step(From(1, 2, 2, TimeoutNow{}));  // a candidate
  EXPECT_EQ(cluster.raft(2).term, asked);
  cluster.Timeout(3);  // a pre-candidate, since it does not hear of anybody
  cluster.Step(From(1, 3, 1, TimeoutNow{}));
  EXPECT_EQ(cluster.raft(3).term, Term(1));
}

TEST(TransferTest, ATargetThatLacksCommittedEntriesIsNotElected) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Isolate(3);
  cluster.Propose(1, "a");
  cluster.Settle();
  cluster.Heal();
  cluster.Step(From(1, 3, 1, TimeoutNow{}));  // as a leader that does not wait would send it
  cluster.Settle();
  EXPECT_NE(cluster.LeaderId(), 3u);
  cluster.Run(kElectionTimeout * 3);
  EXPECT_NE(cluster.LeaderId(), 0u);
  EXPECT_EQ(cluster.violation(), "");
}

TEST(TransferTest, ATargetThatIsThrottledStillCatchesUp) {
  RaftOptions options = HarnessOptions();
  options.appends_in_flight_max = 1;
  options.append_bytes_max = 1;
  RaftHarness cluster(3, options);
  cluster.Elect(1);
  cluster.Isolate(2);
  for (int i = 0; i < 5; ++i) cluster.Propose(1, "a");
  cluster.Settle();
  cluster.Heal();
  cluster.Transfer(1, 2);
  cluster.Settle();
  EXPECT_EQ(cluster.LeaderId(), 2u);
}

TEST(TransferTest, OfTwoVotersEitherCanLead) {
  RaftHarness cluster(2);
  cluster.Elect(1);
  cluster.Transfer(1, 2);
  cluster.Settle();
  EXPECT_EQ(cluster.LeaderId(), 2u);
  EXPECT_EQ(cluster.violation(), "");
}

}  // namespace
}  // namespace detcd::raft
