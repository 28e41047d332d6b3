#include "core/raft/replication.h"

#include "tests/support/raft_harness.h"

namespace detcd::raft {
namespace {

using Texts = std::vector<std::string>;

bool IsAppend(const Message& m) { return std::holds_alternative<Append>(m.body); }

Progress& ProgressOf(RaftHarness& cluster, uint64_t leader, uint64_t id) {
  return std::get<Leader>(cluster.raft(leader).role).progress.at(MemberId(id));
}

TEST(ReplicationTest, AProposalReachesEveryMemberThatIsUp) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  EXPECT_EQ(cluster.Propose(1, "a"), ProposeResult::kAppended);
  EXPECT_EQ(cluster.Propose(2, "b"), ProposeResult::kForwarded);
  cluster.Settle();
  for (uint64_t id = 1; id <= 3; ++id) EXPECT_EQ(cluster.Applied(id), (Texts{"a", "b"})) << id;
  EXPECT_EQ(cluster.violation(), "");
}

// The leader's view of the members is fixed at its election: a change of them must not get into its log unseen.
TEST(ReplicationTest, AForwardedChangeOfTheMembersIsDropped) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  const LogIndex last = cluster.raft(1).log.last_index();
  Entry change;
  change.type = EntryType::kConfChange;
  cluster.Step({.from = MemberId(2), .to = MemberId(1), .term = Term(), .body = Proposal{.entries = {change}}});
  EXPECT_EQ(cluster.raft(1).log.last_index(), last);
}

TEST(ReplicationTest, WithoutALeaderAProposalIsNotTaken) {
  RaftHarness cluster(3);
  EXPECT_EQ(cluster.Propose(1, "a"), ProposeResult::kNoLeader);
  cluster.Timeout(1);
  EXPECT_EQ(cluster.Propose(1, "a"), ProposeResult::kNoLeader);
}

TEST(ReplicationTest, TheLeaderCountsItselfOnlyAfterItsOwnSync) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Isolate(3);
  cluster.member(1).slow_disk = true;
  cluster.Propose(1, "a");
  cluster.Settle();  // the append went out in parallel with our sync, and member 2 has it durable
  EXPECT_EQ(ProgressOf(cluster, 1, 2).match, LogIndex(2));
  EXPECT_EQ(cluster.raft(1).commit_index, LogIndex(1));
  cluster.Sync(1);
  EXPECT_EQ(cluster.raft(1).commit_index, LogIndex(2));
}

TEST(ReplicationTest, ACommitDoesNotWaitForTheLeadersDisk) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.member(1).slow_disk = true;
  cluster.Propose(1, "a");
  cluster.Settle();
  EXPECT_EQ(cluster.Applied(2), (Texts{"a"}));
  EXPECT_EQ(cluster.Applied(1), (Texts{"a"}));
  EXPECT_EQ(cluster.violation(), "");
}

TEST(ReplicationTest, AFollowerAnswersOnlyWhenItsLogIsDurable) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Isolate(3);
  cluster.member(2).slow_disk = true;
  cluster.Propose(1, "a");
  cluster.Settle();
  EXPECT_EQ(cluster.raft(2).log.last_index(), LogIndex(2));
  EXPECT_EQ(ProgressOf(cluster, 1, 2).match, LogIndex(1));
  cluster.member(2).slow_disk = false;
  cluster.Settle();
  EXPECT_EQ(ProgressOf(cluster, 1, 2).match, LogIndex(2));
}

TEST(ReplicationTest, FollowersHearOfACommitWithoutFurtherEntries) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Propose(1, "a");
  cluster.Settle();  // no timer ran
  EXPECT_EQ(cluster.raft(3).commit_index, LogIndex(2));
}

TEST(ReplicationTest, ACommitThatAFollowerKnowsIsNotSentAgain) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  EXPECT_EQ(ProgressOf(cluster, 1, 2).commit_sent, LogIndex(1));
  cluster.Step({MemberId(2), MemberId(1), Term(1), AppendResponse{.index = LogIndex(1)}});
  EXPECT_TRUE(cluster.network().empty());
}

TEST(ReplicationTest, AFollowerCommitsNothingBeyondTheEntriesOfTheMessage) {
  RaftHarness cluster(3);
  cluster.Step({MemberId(2), MemberId(1), Term(1),
                Append{.entries = {{.term = Term(1), .index = LogIndex(1)}}, .commit = LogIndex(9)}});
  EXPECT_EQ(cluster.raft(1).commit_index, LogIndex(1));
}

TEST(ReplicationTest, AFollowerThatFarBehindNeedsOneProbeForEachTerm) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Isolate(3);
  for (int i = 0; i < 50; ++i) cluster.Propose(1, "a" + std::to_string(i));
  cluster.Settle();
  cluster.Elect(2);
  cluster.Heal();
  size_t refusals = 0;
  cluster.Timeout(2);  // heartbeats: 3 answers, 2 probes
  for (int i = 0; i < 1000 && !cluster.network().empty(); ++i) {
    const auto* response = std::get_if<AppendResponse>(&cluster.network().front().body);
    refusals += response != nullptr && response->reject ? 1 : 0;
    cluster.Deliver(0);
    for (uint64_t id = 1; id <= 3; ++id) cluster.Sync(id);
  }
  EXPECT_EQ(cluster.raft(3).log.last_index(), cluster.raft(2).log.last_index());
  EXPECT_LE(refusals, 2u);
  EXPECT_EQ(cluster.violation(), "");
}

// Two logs that share nothing but index 1: each of five terms is skipped in one round, from whichever side names less.
TEST(ReplicationTest, LogsThatDifferInManyTermsMeetInOneRoundForEachTerm) {
  constexpr uint64_t kTerms = 5, kEntriesPerTerm = 30;
  RaftHarness cluster(3);
  const auto feed = [&](uint64_t from, uint64_t to, uint64_t first_term) {
    Append append{.entries = {{.term = Term(1), .index = LogIndex(1)}}};
    for (uint64_t i = 0; i < kTerms * kEntriesPerTerm; ++i) {
      append.entries.push_back({.term = Term(first_term + 2 * (i / kEntriesPerTerm)), .index = LogIndex(i + 2)});
    }
    cluster.Step({MemberId(from), MemberId(to), Term(20 + first_term), append});
    cluster.Sync(to);
    cluster.network().clear();
  };
  feed(1, 3, 2);  // terms 2, 4, ...
  feed(2, 1, 3);  // terms 3, 5, ...
  feed(1, 2, 3);
  cluster.Isolate(3);
  cluster.Elect(1);
  ASSERT_EQ(cluster.LeaderId(), 1u);
  cluster.Heal();
  cluster.Timeout(1);  // heartbeats: 3 answers, 1 probes
  size_t refusals = 0;
  for (int i = 0; i < 1000 && !cluster.network().empty(); ++i) {
    const auto* response = std::get_if<AppendResponse>(&cluster.network().front().body);
    refusals += response != nullptr && response->reject ? 1 : 0;
    cluster.Deliver(0);
    for (uint64_t id = 1; id <= 3; ++id) cluster.Sync(id);
  }
  EXPECT_EQ(cluster.raft(3).log.last_index(), cluster.raft(1).log.last_index());
  EXPECT_EQ(cluster.raft(3).log.last_term(), cluster.raft(1).log.last_term());
  EXPECT_LE(refusals, kTerms + 1);  // the first is of the probe beyond both logs
  EXPECT_EQ(cluster.violation(), "");
}

TEST(ReplicationTest, ARefusalNamesTheNewestEntryThatMayMatch) {
  RaftHarness cluster(3);
  Append append{.entries = {{.term = Term(1), .index = LogIndex(1)}, {.term = Term(3), .index = LogIndex(2)}}};
  cluster.Step({MemberId(2), MemberId(1), Term(3), append});
  cluster.Sync(1);
  cluster.network().clear();
  cluster.Step({MemberId(2), MemberId(1), Term(3), Append{.prev_index = LogIndex(7), .prev_term = Term(2)}});
  ASSERT_EQ(cluster.network().size(), 1u);
  const AppendResponse want{.index = LogIndex(7), .reject = true, .hint_index = LogIndex(1), .hint_term = Term(1)};
  EXPECT_EQ(cluster.network()[0].body, Body(want));
}

TEST(ReplicationTest, AnAppendBelowTheCommitIndexIsAnsweredWithIt) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Propose(1, "a");
  cluster.Settle();
  cluster.Step({MemberId(1), MemberId(2), Term(1), Append{.prev_index = LogIndex(0)}});
  ASSERT_EQ(cluster.network().size(), 1u);
  EXPECT_EQ(cluster.network()[0].body, Body(AppendResponse{.index = LogIndex(2)}));
}

TEST(ReplicationTest, MalformedAppendsAreIgnored) {
  RaftHarness cluster(3);
  const Entry first{.term = Term(1), .index = LogIndex(1)};
  const Entry gap{.term = Term(1), .index = LogIndex(3)};
  const Entry above{.term = Term(9), .index = LogIndex(1)};
  const Entry none{.term = Term(0), .index = LogIndex(1)};
  for (const Append& append : {Append{.entries = {first, gap}}, Append{.entries = {above}}, Append{.entries = {none}},
                               Append{.prev_index = LogIndex(~uint64_t{0}), .entries = {first}}}) {
    cluster.Step({MemberId(2), MemberId(1), Term(1), append});
  }
  cluster.Sync(1);
  EXPECT_TRUE(cluster.network().empty());
  EXPECT_EQ(cluster.raft(1).log.last_index(), LogIndex(0));
}

TEST(ReplicationTest, AcknowledgementsBeyondTheLogAreIgnored) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Step({MemberId(2), MemberId(1), Term(1), AppendResponse{.index = LogIndex(99)}});
  EXPECT_EQ(ProgressOf(cluster, 1, 2).match, LogIndex(1));
  cluster.Step({MemberId(2), MemberId(1), Term(1),
                AppendResponse{.index = LogIndex(1), .reject = true, .hint_index = LogIndex(~uint64_t{0})}});
  EXPECT_EQ(cluster.violation(), "");
}

TEST(ReplicationTest, AHeartbeatNeverCarriesMoreThanWhatMatches) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Isolate(3);
  cluster.Propose(1, "a");
  cluster.Settle();
  cluster.Heal();
  cluster.Timeout(1);
  for (const Message& m : cluster.network()) {
    if (const auto* heartbeat = std::get_if<Heartbeat>(&m.body)) {
      EXPECT_EQ(heartbeat->commit, m.to == MemberId(3) ? LogIndex(1) : LogIndex(2));
    }
  }
}

TEST(ReplicationTest, AHeartbeatBeyondTheLogCommitsNothing) {
  RaftHarness cluster(3);
  cluster.Step({MemberId(2), MemberId(1), Term(1), Heartbeat{.commit = LogIndex(5)}});
  EXPECT_EQ(cluster.raft(1).commit_index, LogIndex(0));
}

// However long the way, one append with entries at a time is on it while the follower's log is not known to match.
TEST(ReplicationTest, AnUnansweredProbeIsAskedAgainWithoutItsEntries) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Unreachable(1, 2);
  cluster.Propose(1, "a");
  const auto to_2 = [](const Message& m) { return IsAppend(m) && m.to == MemberId(2); };
  std::vector<Message> sent = cluster.Take(to_2);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(std::get<Append>(sent[0].body).entries.size(), 1u);
  for (int heartbeat = 0; heartbeat < 3; ++heartbeat) {
    cluster.Step({MemberId(2), MemberId(1), Term(1), HeartbeatResponse{}});
    sent = cluster.Take(to_2);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(std::get<Append>(sent[0].body).entries.size(), 0u);
    EXPECT_EQ(std::get<Append>(sent[0].body).prev_index, LogIndex(1));
  }
  cluster.Step(sent[0]);  // the first, with the entries, is lost
  cluster.Settle();
  EXPECT_EQ(cluster.Applied(2), (Texts{"a"}));
  EXPECT_EQ(cluster.violation(), "");
}

TEST(ReplicationTest, LostAppendsAreFoundByTheNextHeartbeat) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Propose(1, "a");
  cluster.Take(IsAppend);
  cluster.Settle();
  EXPECT_EQ(cluster.Applied(2), Texts{});
  cluster.Run(kTick);
  EXPECT_EQ(cluster.Applied(2), (Texts{"a"}));
}

TEST(ReplicationTest, TheWindowLimitsAppendsInFlight) {
  RaftOptions options = HarnessOptions();
  options.appends_in_flight_max = 3;
  RaftHarness cluster(3, options);
  cluster.Elect(1);
  for (int i = 0; i < 10; ++i) cluster.Propose(1, "a");
  EXPECT_EQ(cluster.Take(IsAppend).size(), 6u);
}

TEST(ReplicationTest, TheWindowLimitsBytesInFlightAndABrokenStreamEmptiesIt) {
  RaftOptions options = HarnessOptions();
  options.append_bytes_in_flight_max = 10;
  RaftHarness cluster(3, options);
  cluster.Elect(1);
  cluster.Isolate(3);
  for (int i = 0; i < 5; ++i) cluster.Propose(1, "123456");
  // Two appends pass the limit; nothing is lost yet as far as we know.
  EXPECT_EQ(ProgressOf(cluster, 1, 3).in_flight.size(), 2u);
  EXPECT_EQ(ProgressOf(cluster, 1, 3).bytes_in_flight, 12u);
  cluster.Settle();
  cluster.Unreachable(1, 3);
  EXPECT_EQ(ProgressOf(cluster, 1, 3).bytes_in_flight, 0u);
  cluster.Heal();
  cluster.Run(kTick * 3);
  EXPECT_EQ(cluster.Applied(3).size(), 5u);
}

TEST(ReplicationTest, AnUnreachableFollowerIsProbed) {
  RaftHarness cluster(3);
  cluster.Elect(1);
  cluster.Propose(1, "a");
  cluster.Unreachable(1, 2);
  EXPECT_EQ(ProgressOf(cluster, 1, 2).mode, Progress::Mode::kProbe);
  EXPECT_EQ(ProgressOf(cluster, 1, 2).next, LogIndex(2));
  cluster.Take(IsAppend);
  cluster.Propose(1, "b");
  cluster.Propose(1, "c");
  size_t to_two = 0;
  for (const Message& m : cluster.Take(IsAppend)) to_two += m.to == MemberId(2) ? 1 : 0;
  EXPECT_EQ(to_two, 1u);
}

TEST(ReplicationTest, EntriesThatLeftMemoryAreFetchedOneRequestAtATime) {
  RaftOptions options = HarnessOptions();
  options.log_entries_in_memory_max = 1;
  options.append_bytes_max = 2;
  RaftHarness cluster(3, options);
  cluster.Elect(1);
  cluster.Isolate(3);
  for (int i = 0; i < 9; ++i) cluster.Propose(1, "v" + std::to_string(i));
  cluster.Settle();
  EXPECT_GT(cluster.raft(1).log.first_in_memory(), LogIndex(5));
  cluster.Heal();
  cluster.Run(kTick * 3);
  EXPECT_EQ(cluster.Applied(3), cluster.Applied(1));
  EXPECT_EQ(cluster.Applied(3).size(), 9u);
  EXPECT_EQ(cluster.violation(), "");
}

TEST(ReplicationTest, TheUncommittedLimitLetsTheFirstAndEmptyProposalsPass) {
  RaftOptions options = HarnessOptions();
  options.uncommitted_bytes_max = 10;
  RaftHarness cluster(3, options);
  cluster.Elect(1);
  EXPECT_EQ(cluster.Propose(1, std::string(100, 'x')), ProposeResult::kAppended);
  EXPECT_EQ(cluster.Propose(1, "y"), ProposeResult::kOverloaded);
  EXPECT_EQ(cluster.Propose(1, ""), ProposeResult::kAppended);
  cluster.Settle();
  EXPECT_EQ(std::get<Leader>(cluster.raft(1).role).uncommitted_bytes, 0u);
  EXPECT_EQ(cluster.Propose(1, std::string(10, 'x')), ProposeResult::kAppended);
}

TEST(ReplicationTest, HardStateIsCollectedOnceAndACommitAloneNeedsNoSync) {
  RaftHarness cluster(1);
  RaftState& raft = cluster.raft(1);
  Output output;
  OnTimer(raft, NextDeadline(raft), output);
  Collect(raft, output);
  EXPECT_EQ(output.hard_state, (HardState{Term(1), MemberId(1), LogIndex(0)}));
  EXPECT_TRUE(output.must_sync);
  Output again;
  Collect(raft, again);
  EXPECT_FALSE(again.hard_state.has_value() || again.must_sync);
  AcknowledgeVote(raft, Term(1), Instant(), again);
  Output entry;
  Collect(raft, entry);
  EXPECT_TRUE(!entry.hard_state.has_value() && entry.entries.size() == 1 && entry.must_sync);
  again = Output();
  AcknowledgeDurable(raft, Term(1), LogIndex(1), Instant(), again);
  Collect(raft, again);
  EXPECT_EQ(again.hard_state, (HardState{Term(1), MemberId(1), LogIndex(1)}));
  EXPECT_FALSE(again.must_sync);
}

}  // namespace
}  // namespace detcd::raft
