#include "core/raft/read_index.h"

#include "tests/support/raft_harness.h"

namespace detcd::raft {
namespace {

bool IsHeartbeatResponse(const Message& m) { return std::holds_alternative<HeartbeatResponse>(m.body); }

std::vector<ReadId> ReadsOf(RaftHarness& cluster, uint64_t id) {
  std::vector<ReadId> reads;
  for (const ReadReady& read : cluster.member(id).reads) reads.push_back(read.read);
  return reads;
}

TEST(ReadIndexTest, TheLeaderAnswersAfterAMajorityConfirmed) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Read(1, 7);
  EXPECT_TRUE(cluster.member(1).reads.empty());
  cluster.Settle();
  ASSERT_EQ(cluster.member(1).reads.size(), 1u);
  EXPECT_EQ(cluster.member(1).reads[0].index, LogIndex(1));
}

TEST(ReadIndexTest, AFollowerIsAnsweredThroughTheLeader) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Propose(1, "a");
  cluster.Settle();
  cluster.Read(3, 7);
  cluster.Settle();
  ASSERT_EQ(cluster.member(3).reads.size(), 1u);
  EXPECT_EQ(cluster.member(3).reads[0].index, LogIndex(2));
  EXPECT_TRUE(cluster.member(1).reads.empty());
}

TEST(ReadIndexTest, ASingleVoterAnswersAtOnceOnceItCommittedInItsTerm) {
  RaftHarness cluster(1);
  cluster.member(1).slow_disk = true;
  cluster.Timeout(1);
  cluster.Sync(1);  // its vote
  cluster.Read(1, 7);
  EXPECT_TRUE(cluster.member(1).reads.empty());
  cluster.Sync(1);
  EXPECT_EQ(ReadsOf(cluster, 1), (std::vector<ReadId>{ReadId(7)}));
  cluster.Read(1, 8);
  EXPECT_EQ(cluster.member(1).reads.size(), 2u);
}

TEST(ReadIndexTest, AReadWaitsForTheFirstCommitOfTheTerm) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Propose(1, "a");
  cluster.Settle();
  cluster.member(2).slow_disk = cluster.member(3).slow_disk = false;
  for (uint64_t id = 1; id <= 3; ++id) cluster.Advance(id, kElectionTimeout * 2);
  cluster.Timeout(2);
  // Deliver votes only: the leader is elected, its empty entry is not acknowledged.
  for (int i = 0; i < 100 && !std::holds_alternative<Leader>(cluster.raft(2).role); ++i) {
    for (uint64_t id = 1; id <= 3; ++id) cluster.Sync(id);
    if (!cluster.network().empty()) cluster.Deliver(0);
  }
  cluster.Read(2, 7);
  EXPECT_EQ(std::get<Leader>(cluster.raft(2).role).reads.newest(), ReadId(0));
  cluster.Settle();
  ASSERT_EQ(cluster.member(2).reads.size(), 1u);
  EXPECT_EQ(cluster.member(2).reads[0].index, LogIndex(3));
}

TEST(ReadIndexTest, AnOldHeartbeatsAnswerConfirmsNoLaterRead) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Read(1, 7);
  while (!IsHeartbeatResponse(cluster.network().front())) cluster.Deliver(0);
  const std::vector<Message> old = cluster.Take(IsHeartbeatResponse);
  cluster.Isolate(1);
  cluster.Read(1, 8);
  for (const Message& m : old) cluster.Step(m);
  EXPECT_EQ(ReadsOf(cluster, 1), (std::vector<ReadId>{ReadId(7)}));
}

TEST(ReadIndexTest, ALaterConfirmationAnswersAllBeforeIt) {
  RaftHarness cluster(5);
  cluster.Elect(1);
  for (uint64_t read = 7; read < 10; ++read) cluster.Read(1, read);
  cluster.Take([](const Message&) { return true; });
  // Different members confirm different rounds: two have 8, so 7 and 8 are decided.
  cluster.Step({MemberId(2), MemberId(1), Term(1), HeartbeatResponse{ReadId(9)}});
  EXPECT_TRUE(cluster.member(1).reads.empty());
  cluster.Step({MemberId(3), MemberId(1), Term(1), HeartbeatResponse{ReadId(8)}});
  EXPECT_EQ(ReadsOf(cluster, 1), (std::vector<ReadId>{ReadId(7), ReadId(8)}));
  cluster.Step({MemberId(2), MemberId(1), Term(1), HeartbeatResponse{ReadId(9)}});  // no second voice
  EXPECT_EQ(cluster.member(1).reads.size(), 2u);
  cluster.Step({MemberId(3), MemberId(1), Term(1), HeartbeatResponse{ReadId(9)}});
  EXPECT_EQ(cluster.member(1).reads.size(), 3u);
}

TEST(ReadIndexTest, ADeposedLeaderAnswersNoRead) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Isolate(1);
  cluster.Read(1, 7);
  cluster.Elect(2);
  cluster.Propose(2, "a");
  cluster.Settle();
  cluster.Heal();
  cluster.Run(kElectionTimeout * 2);
  EXPECT_TRUE(cluster.member(1).reads.empty());
  EXPECT_EQ(cluster.member(1).reads_dropped, (std::vector<ReadId>{ReadId(7)}));
}

TEST(ReadIndexTest, AFollowersReadsAreDroppedWhenItsLeaderChanges) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Read(3, 7);
  cluster.network().clear();
  cluster.Elect(2);
  EXPECT_EQ(cluster.member(3).reads_dropped, (std::vector<ReadId>{ReadId(7)}));
  EXPECT_TRUE(cluster.member(3).reads.empty());
}

TEST(ReadIndexTest, WithoutALeaderAReadIsDroppedAtOnce) {
  RaftHarness cluster(3);
  cluster.Read(1, 7);
  cluster.Timeout(1);
  cluster.Read(1, 8);
  EXPECT_EQ(cluster.member(1).reads_dropped, (std::vector<ReadId>{ReadId(7), ReadId(8)}));
}

TEST(ReadIndexTest, AnAnswerIsGivenOnce) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Read(3, 7);
  cluster.network().clear();
  const Message answer{MemberId(1), MemberId(3), Term(1), ReadIndexResponse{ReadId(7), LogIndex(1)}};
  cluster.Step(answer);
  cluster.Step(answer);
  cluster.Step({MemberId(1), MemberId(3), Term(1), ReadIndexResponse{ReadId(8), LogIndex(1)}});
  EXPECT_EQ(cluster.member(3).reads.size(), 1u);
}

TEST(ReadIndexTest, AHeartbeatCarriesTheNewestWaitingRead) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Read(1, 7);
  cluster.Read(1, 8);
  cluster.network().clear();
  cluster.Timeout(1);
  EXPECT_EQ(std::get<Heartbeat>(cluster.network().front().body).read, ReadId(8));
  cluster.Settle();
  cluster.Timeout(1);
  EXPECT_EQ(std::get<Heartbeat>(cluster.network().front().body).read, ReadId(0));
}

TEST(ReadIndexTest, ReadsThatWaitAreBounded) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  NullTrace trace;
  Output output;
  for (uint64_t read = 1; read <= 1025; ++read) RequestRead(cluster.raft(1), ReadId(read), Instant(), output);
  EXPECT_EQ(output.reads_dropped, (std::vector<ReadId>{ReadId(1025)}));
  Output follower;
  for (uint64_t read = 1; read <= 1025; ++read) RequestRead(cluster.raft(2), ReadId(read), Instant(), follower);
  EXPECT_EQ(follower.reads_dropped, (std::vector<ReadId>{ReadId(1)}));
}

}  // namespace
}  // namespace detcd::raft
