// The rules at the head of leader_lease.h, one after the other: each test fails when its rule is taken away.
#include "core/raft/lease_reads.h"

#include "core/raft/leader_lease.h"
#include "tests/support/raft_harness.h"

namespace detcd::raft {
namespace {

constexpr int64_t kDriftPpm = 100'000;
constexpr Duration kLease = LeaseBound(kElectionTimeout, kDriftPpm);

RaftOptions LeaseOptions() {
  RaftOptions options = HarnessOptions();
  options.lease_reads = true;
  options.clock_drift_ppm_max = kDriftPpm;
  return options;
}

Message From(uint64_t from, uint64_t to, uint64_t term, Body body) {
  return {.from = MemberId(from), .to = MemberId(to), .term = Term(term), .body = std::move(body)};
}

// Member 1 leads, and all have acknowledged a round that it sent at the time that its clock still shows.
class Leased : public RaftHarness {
 public:
  explicit Leased(size_t members = 3) : RaftHarness(members, LeaseOptions()) {
    Elect(1);
    Round();
  }

  void SendRound() {
    for (uint64_t id = 1; id <= size(); ++id) Advance(id, kTick);
    FireTimer(1);
  }
  void Round() {
    SendRound();
    Settle();
  }
  std::optional<Instant> End(uint64_t id = 1) { return LeaseEnd(raft(id), std::get<Leader>(raft(id).role)); }
  bool ReadsAtOnce(uint64_t id = 1) {
    const size_t before = member(id).reads.size();
    Read(id, ++last_read_);
    return member(id).reads.size() > before;
  }
  Term TermOf(uint64_t id) { return raft(id).term; }
  // `from` asks `to` for its vote in `term`; whether it got it.
  bool Grants(uint64_t from, uint64_t to, uint64_t term, bool pre_vote = false, bool transfer = false) {
    Sync(to);
    network().clear();
    Step(From(from, to, term,
              VoteRequest{.pre_vote = pre_vote, .last_index = LogIndex(100), .last_term = Term(100), .transfer = transfer}));
    Sync(to);
    const std::vector<Message> answers = Take([](const Message& m) { return std::holds_alternative<VoteResponse>(m.body); });
    return answers.size() == 1 && !std::get<VoteResponse>(answers[0].body).reject;
  }
  // What makes raft forget its leader: the late refusal of a pre-vote by a member that is in a higher term.
  void ForgetLeader(uint64_t id, uint64_t term) {
    Step(From(3, id, term, VoteResponse{.pre_vote = true, .reject = true}));
    Sync(id);
  }

 private:
  uint64_t last_read_ = 1000;
};

// --- rule 1 --------------------------------------------------------------------------------------------------------

TEST(LeaseReadsTest, TheLeaseCountsFromTheSendingOfTheRound) {
  Leased cluster;
  cluster.SendRound();
  const Instant sent = cluster.member(1).now;
  cluster.Advance(1, Millis(300));
  cluster.Settle();
  EXPECT_EQ(cluster.End(), sent + kLease);
}

TEST(LeaseReadsTest, ARoundThatAMajorityHasNotAcknowledgedDoesNotCount) {
  Leased cluster(5);
  const Instant first = cluster.member(1).now;
  cluster.Isolate(2), cluster.Isolate(3), cluster.Isolate(4);
  cluster.Round();
  EXPECT_EQ(cluster.End(), first + kLease);
  cluster.Heal();
  cluster.Isolate(2), cluster.Isolate(3);
  cluster.Round();
  EXPECT_EQ(cluster.End(), cluster.member(1).now + kLease);
}

TEST(LeaseReadsTest, HeartbeatsOfReadsCarryTheRoundThatBeganBefore) {
  Leased cluster;
  const Instant sent = cluster.member(1).now;
  cluster.Advance(1, kLease);
  EXPECT_FALSE(cluster.ReadsAtOnce());
  for (const Message& message : cluster.network()) {
    EXPECT_EQ(std::get<Heartbeat>(message.body).round.value, static_cast<uint64_t>(sent.nanos));
  }
  cluster.Settle();
  EXPECT_EQ(cluster.End(), sent + kLease);
}

TEST(LeaseReadsTest, AnAcknowledgementCountsForItsOwnRound) {
  Leased cluster;
  const Instant sent = cluster.member(1).now;
  cluster.SendRound();
  cluster.network().clear();
  for (uint64_t from : {2u, 3u}) {
    cluster.Step(From(from, 1, 1, HeartbeatResponse{.round = RoundId(static_cast<uint64_t>(sent.nanos))}));
  }
  EXPECT_EQ(cluster.End(), sent + kLease);
}

TEST(LeaseReadsTest, ASingleVoterHasNoLeaseBeforeItsFirstRound) {
  RaftHarness cluster(1, LeaseOptions());
  cluster.Elect(1);
  const auto end = [&] { return LeaseEnd(cluster.raft(1), std::get<Leader>(cluster.raft(1).role)); };
  EXPECT_EQ(end(), std::nullopt);
  cluster.Advance(1, kTick);
  cluster.FireTimer(1);
  EXPECT_EQ(end(), cluster.member(1).now + kLease);
}

TEST(LeaseReadsTest, ARoundThatWasNeverSentIsNoRound) {
  Leased cluster;
  const auto end = cluster.End();
  const uint64_t later = static_cast<uint64_t>(cluster.member(1).now.nanos) + 1;
  for (uint64_t from : {2u, 3u}) cluster.Step(From(from, 1, 1, HeartbeatResponse{.round = RoundId(later)}));
  EXPECT_EQ(cluster.End(), end);
  for (uint64_t from : {2u, 3u}) cluster.Step(From(from, 1, 1, HeartbeatResponse{.round = RoundId(~uint64_t{0})}));
  EXPECT_EQ(cluster.End(), end);
}

TEST(LeaseReadsTest, AnOldAcknowledgementTakesNothingBack) {
  Leased cluster;
  const auto end = cluster.End();
  for (uint64_t from : {2u, 3u}) cluster.Step(From(from, 1, 1, HeartbeatResponse{.round = RoundId(1)}));
  EXPECT_EQ(cluster.End(), end);
}

// --- rule 2 --------------------------------------------------------------------------------------------------------

TEST(LeaseReadsTest, APromiseCountsFromAReadingAfterTheRoundArrived) {
  Leased cluster;
  cluster.SendRound();
  cluster.Advance(2, Millis(300));  // between the sending and the arrival
  const Instant arrived = cluster.member(2).now;
  cluster.Settle();
  EXPECT_EQ(cluster.raft(2).promised_until, arrived + kElectionTimeout);
}

TEST(LeaseReadsTest, APromiseKeepsVotesBackForAnElectionTimeoutAndNoLonger) {
  Leased cluster;
  cluster.ForgetLeader(2, 9);
  cluster.Advance(2, kElectionTimeout - Nanos(1));
  EXPECT_FALSE(cluster.Grants(3, 2, 10));
  EXPECT_EQ(cluster.TermOf(2), Term(9));  // the request was not even looked at
  cluster.Advance(2, Nanos(1));
  EXPECT_TRUE(cluster.Grants(3, 2, 10));
}

TEST(LeaseReadsTest, AnAppendPromisesNothing) {
  Leased cluster;
  const auto before = cluster.raft(2).promised_until;
  for (uint64_t id = 1; id <= 3; ++id) cluster.Advance(id, Millis(10));
  cluster.Propose(1, "a");
  cluster.Settle();
  EXPECT_EQ(cluster.raft(2).promised_until, before);
}

// --- rule 3 --------------------------------------------------------------------------------------------------------

TEST(LeaseReadsTest, APromiseBindsInTheVotersOwnTerm) {
  Leased cluster;
  cluster.ForgetLeader(2, 9);
  EXPECT_EQ(cluster.raft(2).LeaderId(), MemberId());
  EXPECT_FALSE(cluster.Grants(3, 2, 9));
  cluster.Advance(2, kElectionTimeout);
  EXPECT_TRUE(cluster.Grants(3, 2, 9));
}

TEST(LeaseReadsTest, APromiseBindsPreVotes) {
  Leased cluster;
  cluster.ForgetLeader(2, 9);
  EXPECT_FALSE(cluster.Grants(3, 2, 10, true));
  cluster.Advance(2, kElectionTimeout);
  EXPECT_TRUE(cluster.Grants(3, 2, 10, true));
}

TEST(LeaseReadsTest, APromiseBindsTheVotersOwnCandidacy) {
  Leased cluster;
  cluster.ForgetLeader(2, 9);
  const Instant until = *cluster.raft(2).promised_until;
  cluster.raft(2).election_due = cluster.member(2).now;
  cluster.FireTimer(2);
  EXPECT_TRUE(std::holds_alternative<Follower>(cluster.raft(2).role));
  EXPECT_EQ(NextDeadline(cluster.raft(2)), until);
  cluster.Timeout(2);
  EXPECT_TRUE(std::holds_alternative<PreCandidate>(cluster.raft(2).role));
}

TEST(LeaseReadsTest, APromiseOutlivesALaterLeader) {
  Leased cluster;
  const Instant until = *cluster.raft(2).promised_until;
  cluster.Step(From(3, 2, 9, Heartbeat{}));  // of a leader that asks for no promise
  EXPECT_EQ(cluster.raft(2).LeaderId(), MemberId(3));
  EXPECT_EQ(cluster.raft(2).promised_until, until);
  cluster.ForgetLeader(2, 10);
  cluster.Step(From(3, 2, 10, Heartbeat{}));  // now it knew of no leader before
  EXPECT_EQ(cluster.raft(2).LeaderId(), MemberId(3));
  EXPECT_EQ(cluster.raft(2).promised_until, until);
}

// --- rule 4 --------------------------------------------------------------------------------------------------------

TEST(LeaseReadsTest, AVoterThatStartsVotesForNobodyForAnElectionTimeout) {
  Leased cluster;
  cluster.Crash(2);
  cluster.Restart(2);
  cluster.Advance(2, kElectionTimeout - Nanos(1));
  EXPECT_FALSE(cluster.Grants(3, 2, 2));
  cluster.raft(2).election_due = cluster.member(2).now;
  cluster.FireTimer(2);
  EXPECT_TRUE(std::holds_alternative<Follower>(cluster.raft(2).role));
  cluster.Advance(2, Nanos(1));
  EXPECT_TRUE(cluster.Grants(3, 2, 2));
}

TEST(LeaseReadsTest, ASingleVoterThatStartsOwesNobodyAPromise) {
  RaftHarness cluster(1, LeaseOptions());
  EXPECT_FALSE(cluster.raft(1).promised_until.has_value());
}

// --- rule 5 --------------------------------------------------------------------------------------------------------

TEST(LeaseReadsTest, ATransferIsPastThePromise) {
  Leased cluster;
  EXPECT_TRUE(cluster.Grants(3, 2, 2, false, true));
  Leased whole;
  whole.Transfer(1, 2);
  whole.Settle();
  EXPECT_EQ(whole.LeaderId(), 2u);
}

TEST(LeaseReadsTest, ATransferThatWasTriedEndsLeasesForTheTerm) {
  Leased cluster;
  cluster.Transfer(1, 2);
  EXPECT_EQ(cluster.End(), std::nullopt);
  EXPECT_FALSE(cluster.ReadsAtOnce());
  cluster.Take([](const Message& m) { return std::holds_alternative<TimeoutNow>(m.body); });  // lost, or only late
  for (int i = 0; i < 15; ++i) cluster.Round();
  EXPECT_EQ(cluster.LeaderId(), 1u);
  EXPECT_EQ(cluster.raft(1).TransferTarget(), MemberId());
  EXPECT_EQ(cluster.End(), std::nullopt);
  EXPECT_FALSE(cluster.ReadsAtOnce());
  cluster.Settle();
  cluster.Elect(2);
  for (uint64_t id = 1; id <= 3; ++id) cluster.Advance(id, kTick);
  cluster.FireTimer(2);
  cluster.Settle();
  EXPECT_TRUE(cluster.ReadsAtOnce(2));
}

TEST(LeaseReadsTest, ATransferToNobodyEndsNothing) {
  Leased cluster;
  cluster.Transfer(1, 1);
  cluster.Transfer(1, 9);
  EXPECT_TRUE(cluster.ReadsAtOnce());
}

// --- rule 6 --------------------------------------------------------------------------------------------------------

TEST(LeaseReadsTest, TheLeaseIsOverAtItsBound) {
  Leased cluster;
  cluster.Advance(1, kLease - Nanos(1));
  EXPECT_TRUE(cluster.ReadsAtOnce());
  cluster.Advance(1, Nanos(1));
  EXPECT_FALSE(cluster.ReadsAtOnce());
  cluster.Settle();
  EXPECT_EQ(cluster.member(1).reads.size(), 2u);  // by ReadIndex
}

TEST(LeaseReadsTest, AFollowersReadIsCheckedWhenItsRequestHasArrived) {
  Leased cluster;
  cluster.Read(3, 7);
  cluster.Advance(1, kLease);  // between the question and its arrival
  cluster.Deliver(0);
  EXPECT_FALSE(cluster.network().empty());
  for (const Message& message : cluster.network()) EXPECT_TRUE(std::holds_alternative<Heartbeat>(message.body));
}

TEST(LeaseReadsTest, AFollowersReadIsAnsweredWithoutARound) {
  Leased cluster;
  cluster.Read(3, 7);
  cluster.Deliver(0);
  ASSERT_EQ(cluster.network().size(), 1u);
  EXPECT_TRUE(std::holds_alternative<ReadIndexResponse>(cluster.network()[0].body));
  cluster.Settle();
  EXPECT_EQ(cluster.member(3).reads.size(), 1u);
}

// --- rule 7 --------------------------------------------------------------------------------------------------------

TEST(LeaseReadsTest, AReadWaitsForTheFirstCommitOfTheTermAllTheSame) {
  RaftHarness cluster(3, LeaseOptions());
  for (uint64_t id = 1; id <= 3; ++id) cluster.Advance(id, kElectionTimeout * 2);
  cluster.Timeout(1);
  for (int i = 0; i < 100 && !std::holds_alternative<Leader>(cluster.raft(1).role); ++i) {
    for (uint64_t id = 1; id <= 3; ++id) cluster.Sync(id);
    if (!cluster.network().empty()) cluster.Deliver(0);
  }
  cluster.member(2).slow_disk = cluster.member(3).slow_disk = true;
  cluster.Advance(1, kTick);
  cluster.FireTimer(1);
  for (int i = 0; i < 100 && !cluster.network().empty(); ++i) cluster.Deliver(0);
  ASSERT_TRUE(HoldsLease(cluster.raft(1), std::get<Leader>(cluster.raft(1).role), cluster.member(1).now));
  cluster.Read(1, 7);
  EXPECT_TRUE(cluster.member(1).reads.empty());
  cluster.member(2).slow_disk = cluster.member(3).slow_disk = false;
  cluster.Settle();
  ASSERT_EQ(cluster.member(1).reads.size(), 1u);
  EXPECT_EQ(cluster.member(1).reads[0].index, LogIndex(1));
}

// --- who takes part ------------------------------------------------------------------------------------------------

TEST(LeaseReadsTest, NoLeaseUntilEveryVoterHasPromised) {
  RaftHarness cluster(3, LeaseOptions());
  cluster.Isolate(3);
  cluster.Elect(1);
  cluster.Run(kTick * 3);
  const auto holds = [&] {
    return HoldsLease(cluster.raft(1), std::get<Leader>(cluster.raft(1).role), cluster.member(1).now);
  };
  EXPECT_FALSE(holds());
  cluster.Heal();
  cluster.Run(kTick * 2);
  EXPECT_TRUE(holds());
}

TEST(LeaseReadsTest, OneVoterWithoutThePromiseIsEnoughForNone) {
  Leased cluster;
  EXPECT_TRUE(cluster.ReadsAtOnce());
  cluster.raft(3).promised_until.reset();
  cluster.raft(3).options.lease_reads = false;  // it has begun again without
  cluster.Round();
  EXPECT_EQ(cluster.End(), std::nullopt);
  EXPECT_FALSE(cluster.raft(3).promised_until.has_value());
}

TEST(LeaseReadsTest, WithoutTheOptionNothingIsAskedAndNothingPromised) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Advance(1, kTick);
  cluster.FireTimer(1);
  for (const Message& message : cluster.network()) EXPECT_EQ(std::get<Heartbeat>(message.body).round, RoundId());
  // Of a leader that asks all the same:
  cluster.network().clear();
  cluster.Step(From(1, 2, 1, Heartbeat{.round = RoundId(5)}));
  cluster.Sync(2);
  ASSERT_EQ(cluster.network().size(), 1u);
  EXPECT_EQ(std::get<HeartbeatResponse>(cluster.network()[0].body).round, RoundId());
  EXPECT_FALSE(cluster.raft(2).promised_until.has_value());
}

TEST(LeaseReadsTest, AVoterWithLeasesPromisesNothingToALeaderWithout) {
  Leased cluster;
  const auto before = cluster.raft(2).promised_until;
  cluster.Advance(2, kTick);
  cluster.Step(From(1, 2, 1, Heartbeat{}));
  EXPECT_EQ(cluster.raft(2).promised_until, before);
}

TEST(LeaseReadsDeathTest, SettingsThatMakeLeasesUselessAreNamed) {
  EXPECT_EQ(LeaseTrouble(Millis(1000), Millis(100), kClockDriftPpmMax), "");
  EXPECT_EQ(LeaseTrouble(Millis(500), Millis(100), 0), "");
  EXPECT_EQ(LeaseTrouble(Millis(500), LeaseBound(Millis(500), 0) - Nanos(1), 0), "");
  EXPECT_NE(LeaseTrouble(Millis(500), LeaseBound(Millis(500), 0), 0), "");
  EXPECT_EQ(LeaseTrouble(Millis(500), Millis(100), 700'000),
            "leader leases: with an election timeout of 500000 us and a clock drift of 700000 ppm a lease lasts 88235 us, "
            "which is not longer than the heartbeat interval of 100000 us");
  EXPECT_EQ(LeaseTrouble(Millis(500), Millis(100), 1'000'000),
            "leader leases: want a clock drift of 0 to 999999 ppm, got 1000000");
  EXPECT_EQ(LeaseTrouble(Millis(500), Millis(100), -1), "leader leases: want a clock drift of 0 to 999999 ppm, got -1");
  RaftOptions useless = LeaseOptions();
  useless.clock_drift_ppm_max = 900'000;
  EXPECT_DEATH(RaftHarness(3, useless), "which is not longer than the heartbeat interval");
}

}  // namespace
}  // namespace detcd::raft
