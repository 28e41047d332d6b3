#include "core/raft/election.h"

#include "tests/support/raft_harness.h"

namespace detcd::raft {
namespace {

template <class Body>
size_t CountOnTheWay(RaftHarness& cluster) {
  size_t count = 0;
  for (const Message& m : cluster.network()) count += std::holds_alternative<Body>(m.body) ? 1 : 0;
  return count;
}

Message VoteFor(uint64_t from, uint64_t to, uint64_t term, VoteRequest request) {
  return {.from = MemberId(from), .to = MemberId(to), .term = Term(term), .body = request};
}

// The one answer on its way from `from`.
Message OnlyMessage(RaftHarness& cluster) {
  cluster.Sync(1), cluster.Sync(2), cluster.Sync(3);
  EXPECT_EQ(cluster.network().size(), 1u);
  Message message = cluster.network().front();
  cluster.network().clear();
  return message;
}

TEST(ElectionTest, ASingleVoterLeadsOnceItsVoteIsDurableAndCommitsAfterItsSync) {
  RaftHarness cluster(1);
  cluster.member(1).slow_disk = true;
  cluster.Timeout(1);
  EXPECT_EQ(cluster.LeaderId(), 0u);
  cluster.Sync(1);
  EXPECT_EQ(cluster.LeaderId(), 1u);
  EXPECT_EQ(cluster.raft(1).commit_index, LogIndex(0));
  cluster.Sync(1);
  EXPECT_EQ(cluster.raft(1).commit_index, LogIndex(1));
  EXPECT_TRUE(cluster.network().empty());
}

TEST(ElectionTest, TimeoutsLieOnTheGridOfTicks) {
  std::set<int64_t> drawn;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    RaftHarness cluster(1, HarnessOptions(), seed);
    const Duration timeout = NextDeadline(cluster.raft(1)) - cluster.member(1).now;
    EXPECT_EQ((timeout - kElectionTimeout).nanos % kTick.nanos, 0);
    drawn.insert(timeout.nanos / kTick.nanos);
  }
  EXPECT_EQ(*drawn.begin(), 10);
  EXPECT_EQ(*drawn.rbegin(), 19);
  EXPECT_EQ(drawn.size(), 10u);
}

TEST(ElectionTest, APreVoteChangesNoTermAndNoVote) {
  RaftHarness cluster(3);
  cluster.Timeout(1);
  EXPECT_EQ(CountOnTheWay<VoteRequest>(cluster), 2u);
  cluster.Deliver(0);
  EXPECT_EQ(cluster.raft(1).term, Term(0));
  EXPECT_EQ(cluster.raft(2).term, Term(0));
  EXPECT_EQ(cluster.raft(2).voted_for, MemberId(0));
}

TEST(ElectionTest, AnIsolatedMemberNeverRaisesItsTerm) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Isolate(3);
  const Term term = cluster.raft(3).term;
  cluster.Run(kElectionTimeout * 10);
  EXPECT_EQ(cluster.raft(3).term, term);
  EXPECT_EQ(cluster.LeaderId(), 1u);
  cluster.Heal();
  cluster.Run(kElectionTimeout);
  EXPECT_EQ(cluster.raft(1).term, term);
  EXPECT_EQ(cluster.raft(3).LeaderId(), MemberId(1));
  EXPECT_EQ(cluster.violation(), "");
}

TEST(ElectionTest, WithoutPreVoteTheTermRisesAtOnce) {
  RaftOptions options = HarnessOptions();
  options.pre_vote = false;
  RaftHarness cluster(3, options);
  cluster.Elect(2);
  EXPECT_EQ(cluster.LeaderId(), 2u);
  EXPECT_EQ(cluster.raft(2).term, Term(1));
}

TEST(ElectionTest, AVoteRequestLeavesOnlyWhenTermAndVoteAreDurable) {
  RaftHarness cluster(3);
  cluster.member(1).slow_disk = true;
  cluster.Elect(1);  // pre-votes need no disk
  EXPECT_TRUE(std::holds_alternative<Candidate>(cluster.raft(1).role));
  EXPECT_EQ(cluster.raft(2).term, Term(0));
  cluster.member(1).slow_disk = false;
  cluster.Settle();
  EXPECT_EQ(cluster.LeaderId(), 1u);
}

TEST(ElectionTest, VotesAreIgnoredWhileALeaderIsHeardUnlessItIsATransfer) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  const VoteRequest good{.last_index = LogIndex(9), .last_term = Term(9)};
  cluster.Advance(2, kElectionTimeout - Nanos(1));
  cluster.Step(VoteFor(3, 2, 5, good));
  cluster.Step(VoteFor(3, 1, 5, good));  // the leader always hears itself
  EXPECT_TRUE(cluster.network().empty());
  EXPECT_EQ(cluster.raft(2).term, Term(1));
  VoteRequest transfer = good;
  transfer.transfer = true;
  cluster.Step(VoteFor(3, 2, 5, transfer));
  EXPECT_EQ(cluster.raft(2).voted_for, MemberId(3));
}

TEST(ElectionTest, VotesAreAnsweredOnceTheLeaderWasSilentForT) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Advance(2, kElectionTimeout);
  cluster.Step(VoteFor(3, 2, 5, {.last_index = LogIndex(9), .last_term = Term(9)}));
  const Message answer = OnlyMessage(cluster);
  EXPECT_EQ(answer.term, Term(5));
  EXPECT_EQ(answer.body, Body(VoteResponse{.pre_vote = false, .reject = false}));
}

TEST(ElectionTest, APreVoteGrantCarriesTheTermAskedForAndARefusalOurOwn) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Advance(2, kElectionTimeout);
  cluster.Step(VoteFor(3, 2, 2, {.pre_vote = true, .last_index = LogIndex(1), .last_term = Term(1)}));
  Message answer = OnlyMessage(cluster);
  EXPECT_EQ(answer.term, Term(2));
  EXPECT_EQ(answer.body, Body(VoteResponse{.pre_vote = true, .reject = false}));
  cluster.Step(VoteFor(3, 2, 7, {.pre_vote = true, .last_index = LogIndex(0), .last_term = Term(0)}));
  answer = OnlyMessage(cluster);
  EXPECT_EQ(answer.term, Term(1));
  EXPECT_EQ(answer.body, Body(VoteResponse{.pre_vote = true, .reject = true}));
  EXPECT_EQ(cluster.raft(2).term, Term(1));
}

TEST(ElectionTest, MessagesOfALowerTermAreAnsweredAsEtcdDoes) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Elect(2);
  ASSERT_EQ(cluster.raft(3).term, Term(2));
  cluster.Step({.from = MemberId(1), .to = MemberId(3), .term = Term(1), .body = Heartbeat{}});
  EXPECT_EQ(OnlyMessage(cluster), (Message{MemberId(3), MemberId(1), Term(2), AppendResponse{}}));
  cluster.Step(VoteFor(1, 3, 1, {.pre_vote = true}));
  EXPECT_EQ(OnlyMessage(cluster), (Message{MemberId(3), MemberId(1), Term(2), VoteResponse{true, true}}));
  cluster.Step(VoteFor(1, 3, 1, {}));
  cluster.Step({.from = MemberId(1), .to = MemberId(3), .term = Term(1), .body = AppendResponse{}});
  EXPECT_TRUE(cluster.network().empty());
}

TEST(ElectionTest, AStuckMemberOfAHigherTermPullsTheLeaderUp) {
  RaftOptions options = HarnessOptions();
  options.pre_vote = false;  // so that an isolated member's term rises
  RaftHarness cluster(3, options);
  cluster.Elect(1);
  cluster.Isolate(3);
  cluster.Timeout(3), cluster.Settle();
  cluster.Timeout(3), cluster.Settle();
  ASSERT_EQ(cluster.raft(3).term, Term(3));
  cluster.Heal();
  cluster.Run(kElectionTimeout * 4);
  ASSERT_NE(cluster.LeaderId(), 0u);
  EXPECT_GT(cluster.raft(cluster.LeaderId()).term, Term(3));
  EXPECT_EQ(cluster.raft(3).LeaderId(), MemberId(cluster.LeaderId()));
}

TEST(ElectionTest, AGrantForAnotherTermIsNoPreVote) {
  RaftHarness cluster(3);
  cluster.Timeout(1);
  cluster.Step({MemberId(2), MemberId(1), Term(5), VoteResponse{.pre_vote = true}});
  EXPECT_TRUE(std::holds_alternative<PreCandidate>(cluster.raft(1).role));
  cluster.Step({MemberId(2), MemberId(1), Term(1), VoteResponse{.pre_vote = true}});
  EXPECT_TRUE(std::holds_alternative<Candidate>(cluster.raft(1).role));
}

TEST(ElectionTest, RefusalsOfAMajorityEndTheElectionAndKeepTheVote) {
  RaftOptions options = HarnessOptions();
  options.pre_vote = false;
  RaftHarness cluster(3, options);
  cluster.Timeout(1);
  cluster.Step({MemberId(2), MemberId(1), Term(1), VoteResponse{.reject = true}});
  EXPECT_TRUE(std::holds_alternative<Candidate>(cluster.raft(1).role));
  cluster.Step({MemberId(3), MemberId(1), Term(1), VoteResponse{.reject = true}});
  EXPECT_TRUE(std::holds_alternative<Follower>(cluster.raft(1).role));
  EXPECT_EQ(cluster.raft(1).voted_for, MemberId(1));
}

TEST(ElectionTest, ACandidateFollowsTheLeaderOfItsTermAndKeepsItsVote) {
  RaftOptions options = HarnessOptions();
  options.pre_vote = false;
  RaftHarness cluster(3, options);
  cluster.Timeout(1);
  cluster.Step({MemberId(2), MemberId(1), Term(1), Heartbeat{}});
  EXPECT_EQ(cluster.raft(1).LeaderId(), MemberId(2));
  EXPECT_EQ(cluster.raft(1).voted_for, MemberId(1));
}

TEST(ElectionTest, ALeaderWithoutAnActiveQuorumStepsDownWithinTwoT) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Run(kElectionTimeout);
  cluster.Isolate(1);
  const Instant cut = cluster.member(1).now;
  while (cluster.member(1).now - cut < kElectionTimeout * 2) {
    cluster.Advance(1, kTick);
    cluster.FireTimer(1);
  }
  EXPECT_FALSE(std::holds_alternative<Leader>(cluster.raft(1).role));
}

// What was heard before a pause proves nothing after it.
TEST(ElectionTest, ALeaderThatWokeUpLateDoesNotCountWhatItHeardBefore) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Settle();
  cluster.member(1).now = cluster.member(1).now + kElectionTimeout * 3;
  cluster.FireTimer(1);
  EXPECT_FALSE(std::holds_alternative<Leader>(cluster.raft(1).role));
}

TEST(ElectionTest, ALeaderWithAQuorumStays) {
  RaftHarness cluster(5);
  cluster.Elect(1);
  cluster.Isolate(4), cluster.Isolate(5);
  cluster.Run(kElectionTimeout * 10);
  EXPECT_EQ(cluster.LeaderId(), 1u);
  EXPECT_EQ(cluster.raft(1).term, Term(1));
}

TEST(ElectionTest, ARestartedMemberFollowsNobody) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Crash(1);
  cluster.Restart(1);
  EXPECT_EQ(cluster.raft(1).LeaderId(), MemberId(0));
  EXPECT_EQ(cluster.raft(1).term, Term(1));
  EXPECT_EQ(cluster.raft(1).voted_for, MemberId(1));
}

TEST(ElectionTest, ACommittedConfChangeMustBeAppliedBeforeACampaign) {
  NullTrace trace;
  RaftLog log;
  log.Recover({{.term = Term(1), .index = LogIndex(1), .type = EntryType::kConfChange}});
  RaftState raft = MakeRaft(HarnessOptions(), {.term = Term(1), .commit = LogIndex(1)}, std::move(log), LogIndex(0),
                            VoterSet({MemberId(1)}), KeyedRandom(1, "raft"), trace, Instant());
  Output output;
  OnTimer(raft, NextDeadline(raft), output);
  EXPECT_TRUE(std::holds_alternative<Follower>(raft.role));
  AcknowledgeApplied(raft, LogIndex(1));
  OnTimer(raft, NextDeadline(raft), output);
  EXPECT_TRUE(std::holds_alternative<Candidate>(raft.role));
  EXPECT_EQ(raft.term, Term(2));
}

// A crash kept the entry and took the hard state behind it.
TEST(ElectionTest, TheTermIsNeverBelowThatOfTheLog) {
  NullTrace trace;
  RaftLog log;
  log.Recover({{.term = Term(1), .index = LogIndex(1)}, {.term = Term(3), .index = LogIndex(2)}});
  const HardState durable{.term = Term(2), .vote = MemberId(2), .commit = LogIndex(1)};
  RaftState raft = MakeRaft(HarnessOptions(), durable, std::move(log), LogIndex(0),
                            VoterSet({MemberId(1), MemberId(2), MemberId(3)}), KeyedRandom(1, "raft"), trace, Instant());
  EXPECT_EQ(raft.term, Term(3));
  EXPECT_EQ(raft.voted_for, MemberId());
  Output output;
  Collect(raft, output);  // and the disk learns of it before anybody else does
  EXPECT_EQ(output.hard_state, (HardState{.term = Term(3), .commit = LogIndex(1)}));
  EXPECT_TRUE(output.must_sync);
}

TEST(ElectionTest, AMemberWithoutAVoteDoesNotCampaign) {
  NullTrace trace;
  RaftState raft = MakeRaft(HarnessOptions(), {}, RaftLog(), LogIndex(0), VoterSet({MemberId(2)}),
                            KeyedRandom(1, "raft"), trace, Instant());
  Output output;
  const Instant due = NextDeadline(raft);
  OnTimer(raft, due, output);
  EXPECT_TRUE(std::holds_alternative<Follower>(raft.role));
  EXPECT_TRUE(output.messages.empty());
  EXPECT_GT(NextDeadline(raft), due);
}

TEST(ElectionTest, StrangersAndMessagesForOthersAreIgnored) {
  RaftHarness cluster(3);
  const VoteRequest good{.last_index = LogIndex(9), .last_term = Term(9)};
  Message message = VoteFor(2, 3, 5, good);
  Output output;
  Step(cluster.raft(1), message, Instant(), output);
  message.to = MemberId(1), message.from = MemberId(9);
  Step(cluster.raft(1), message, Instant(), output);
  message.from = MemberId(1);
  Step(cluster.raft(1), message, Instant(), output);
  message.from = MemberId(2), message.term = Term(0);
  Step(cluster.raft(1), message, Instant(), output);
  EXPECT_TRUE(output.messages.empty());
  EXPECT_EQ(cluster.raft(1).term, Term(0));
}

}  // namespace
}  // namespace detcd::raft
