// One test for each sentence of the Raft paper (extended version) and of the thesis that binds us, in our words, with
// its section.
#include "core/base/check.h"
#include "tests/support/raft_harness.h"

namespace detcd::raft {
namespace {

RaftOptions WithoutPreVote() {
  RaftOptions options = HarnessOptions();
  options.pre_vote = false;
  return options;
}

Entry At(uint64_t index, uint64_t term) { return {.term = Term(term), .index = LogIndex(index)}; }

// One member of a cluster of `members`, with a log of the given terms on its disk.
struct Alone {
  Alone(uint64_t term, const std::vector<uint64_t>& log_terms, size_t members = 3) {
    SetVerify(true);
    std::vector<Entry> entries;
    for (uint64_t entry_term : log_terms) entries.push_back(At(entries.size() + 1, entry_term));
    RaftLog log;
    log.Recover(std::move(entries));
    VoterSet voters;
    for (uint64_t id = 1; id <= members; ++id) voters.AddVoter(MemberId(id));
    const HardState hard_state{.term = Term(term)};
    raft.emplace(MakeRaft(WithoutPreVote(), hard_state, std::move(log), LogIndex(), voters, KeyedRandom(1, "raft"),
                          trace, Instant()));
  }

  void Hear(uint64_t from, uint64_t term, Body body) {
    output = Output();
    Step(*raft, {MemberId(from), MemberId(1), Term(term), std::move(body)}, Instant(), output);
  }
  void Lead() {
    output = Output();
    OnTimer(*raft, NextDeadline(*raft), output);
    for (uint64_t id : {2u, 3u}) Hear(id, raft->term.value, VoteResponse{});
    ASSERT_TRUE(std::holds_alternative<Leader>(raft->role));
  }
  void SyncOwn() {
    Output batch;
    Collect(*raft, batch);
    AcknowledgeDurable(*raft, batch.entries.back().term, batch.entries.back().index, Instant(), batch);
  }
  const Body& Answer() { return output.messages.at(0).message.body; }
  std::vector<uint64_t> Terms() {
    std::vector<uint64_t> terms;
    for (LogIndex i(1); i <= raft->log.last_index(); ++i) terms.push_back(raft->log.TermAt(i)->value);
    return terms;
  }

  NullTrace trace;
  std::optional<RaftState> raft;
  Output output;
};

// §5.1: a server that meets a larger term takes it over.
TEST(RaftPaperTest, ASmallerTermIsUpdatedToTheLarger) {
  Alone member(2, {});
  member.Hear(2, 5, Heartbeat{});
  EXPECT_EQ(member.raft->term, Term(5));
}

// §5.1: a leader or candidate whose term is out of date is a follower at once.
TEST(RaftPaperTest, ALeaderOfAnOldTermRevertsToFollower) {
  Alone member(2, {});
  member.Lead();
  member.Hear(2, 9, AppendResponse{});
  EXPECT_TRUE(std::holds_alternative<Follower>(member.raft->role));
  EXPECT_EQ(member.raft->LeaderId(), MemberId(0));
}

// §5.1: a request of a stale term is refused.
TEST(RaftPaperTest, AStaleAppendChangesNothing) {
  Alone member(5, {1});
  member.Hear(2, 4, Append{.entries = {At(1, 4)}, .commit = LogIndex(1)});
  EXPECT_EQ(member.Terms(), (std::vector<uint64_t>{1}));
  EXPECT_EQ(member.raft->commit_index, LogIndex(0));
}

// §5.2: servers start as followers.
TEST(RaftPaperTest, ServersBeginAsFollowers) {
  Alone member(3, {1, 2});
  EXPECT_TRUE(std::holds_alternative<Follower>(member.raft->role));
}

// §5.2: a candidate raises its term, votes for itself, and asks all others at the same time.
TEST(RaftPaperTest, AnElectionIncrementsTheTermVotesForItselfAndAsksAll) {
  Alone member(3, {1, 2}, 5);
  OnTimer(*member.raft, NextDeadline(*member.raft), member.output);
  EXPECT_EQ(member.raft->term, Term(4));
  EXPECT_EQ(member.raft->voted_for, MemberId(1));
  ASSERT_EQ(member.output.messages.size(), 4u);
  for (const Outgoing& out : member.output.messages) {
    EXPECT_EQ(out.message.term, Term(4));
    EXPECT_EQ(out.message.body, Body(VoteRequest{.last_index = LogIndex(2), .last_term = Term(2)}));
  }
}

// §5.2: at most one vote in a term, for the first who asks.
TEST(RaftPaperTest, OneVoteInATermToTheFirstWhoAsks) {
  Alone member(0, {});
  member.Hear(2, 1, VoteRequest{});
  EXPECT_EQ(member.Answer(), Body(VoteResponse{.reject = false}));
  member.Hear(3, 1, VoteRequest{});
  EXPECT_EQ(member.Answer(), Body(VoteResponse{.reject = true}));
  member.Hear(2, 1, VoteRequest{});  // a repeated request gets the same answer
  EXPECT_EQ(member.Answer(), Body(VoteResponse{.reject = false}));
}

// Figure 2: the vote is persistent state, on stable storage before it is answered.
TEST(RaftPaperTest, AVoteOutlivesRestartsAndRoleChangesInItsTerm) {
  Alone member(0, {});
  member.Hear(2, 1, VoteRequest{});
  EXPECT_EQ(member.output.messages.at(0).dependency, Dependency::kTermAndVote);
  Collect(*member.raft, member.output);
  EXPECT_EQ(member.output.hard_state, (HardState{Term(1), MemberId(2), LogIndex(0)}));
  EXPECT_TRUE(member.output.must_sync);
  member.Hear(3, 1, Heartbeat{});
  EXPECT_EQ(member.raft->voted_for, MemberId(2));
}

// §5.2: votes of a majority of the full cluster, for one term, win.
TEST(RaftPaperTest, AMajorityOfTheFullClusterElects) {
  Alone member(0, {}, 5);
  OnTimer(*member.raft, NextDeadline(*member.raft), member.output);
  member.Hear(2, 1, VoteResponse{});
  member.Hear(2, 1, VoteResponse{});  // the same voice twice
  EXPECT_TRUE(std::holds_alternative<Candidate>(member.raft->role));
  member.Hear(3, 1, VoteResponse{});
  EXPECT_TRUE(std::holds_alternative<Leader>(member.raft->role));
}

// §5.2: a candidate that hears a leader of its term or a later one follows it.
TEST(RaftPaperTest, ACandidateRecognizesTheLeaderOfItsTerm) {
  Alone member(0, {});
  OnTimer(*member.raft, NextDeadline(*member.raft), member.output);
  member.Hear(3, 1, Append{});
  EXPECT_EQ(member.raft->LeaderId(), MemberId(3));
}

// §5.2: election timeouts are random, and drawn anew for each election.
TEST(RaftPaperTest, EveryElectionDrawsANewTimeout) {
  Alone member(0, {});
  std::set<Duration> drawn;
  for (int i = 0; i < 100; ++i) {
    OnTimer(*member.raft, NextDeadline(*member.raft), member.output);
    drawn.insert(member.raft->election_timeout_drawn);
  }
  EXPECT_EQ(drawn.size(), 10u);
}

// §5.3: without an entry of the same index and term before them, new entries are refused.
TEST(RaftPaperTest, AnAppendWithoutItsPredecessorIsRefused) {
  Alone member(2, {1, 2});
  for (const Append& append : {Append{LogIndex(2), Term(1), {At(3, 2)}, LogIndex(0)},
                               Append{LogIndex(3), Term(2), {At(4, 2)}, LogIndex(0)}}) {
    member.Hear(2, 2, append);
    EXPECT_TRUE(std::get<AppendResponse>(member.Answer()).reject);
  }
  EXPECT_EQ(member.Terms(), (std::vector<uint64_t>{1, 2}));
}

// Figure 2, AppendEntries 3 and 4: an entry of another term goes, with all behind it; then what is missing is added.
TEST(RaftPaperTest, ConflictingEntriesAreDeletedWithAllThatFollow) {
  Alone member(2, {1, 2, 2, 2});
  member.Hear(2, 3, Append{LogIndex(1), Term(1), {At(2, 3)}, LogIndex(0)});
  EXPECT_EQ(member.Terms(), (std::vector<uint64_t>{1, 3}));
  EXPECT_EQ(member.output.messages.at(0).dependency, Dependency::kLog);
}

// Figure 2, AppendEntries 5: the commit index follows the leader's, up to the last entry of the message.
TEST(RaftPaperTest, AFollowersCommitStopsAtTheLastNewEntry) {
  Alone member(2, {1, 1, 1});  // entry 3 may not be the leader's
  member.Hear(2, 2, Append{LogIndex(1), Term(1), {At(2, 1)}, LogIndex(3)});
  EXPECT_EQ(member.raft->commit_index, LogIndex(2));
}

// §5.3: a leader only ever appends to its log.
TEST(RaftPaperTest, ALeaderIgnoresAppendsOfItsOwnTerm) {
  Alone member(2, {1, 2});
  member.Lead();
  member.Hear(2, 3, Append{LogIndex(1), Term(1), {At(2, 3)}, LogIndex(2)});
  EXPECT_EQ(member.Terms(), (std::vector<uint64_t>{1, 2, 3}));
}

// §5.3, figure 7: the leader's log wins over every log that a follower may have.
TEST(RaftPaperTest, EveryLogOfFigure7BecomesTheLeaders) {
  const std::vector<uint64_t> leader_log{1, 1, 1, 4, 4, 5, 5, 6, 6, 6};
  const std::vector<std::vector<uint64_t>> followers{
      {1, 1, 1, 4, 4, 5, 5, 6, 6},          {1, 1, 1, 4},
      {1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 6},    {1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 7, 7},
      {1, 1, 1, 4, 4, 4, 4},                {1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3}};
  for (const std::vector<uint64_t>& log : followers) {
    Alone leader(7, leader_log);
    leader.Lead();
    Alone follower(7, log);
    follower.raft->options.id = MemberId(2);
    std::deque<Message> wire;
    const auto carry = [&](Output& output) {
      for (Outgoing& out : output.messages) {
        const auto to = out.message.to;
        if ((to == MemberId(2)) != (out.message.from == MemberId(2))) wire.push_back(std::move(out.message));
      }
      output = Output();
    };
    leader.output = Output();
    OnTimer(*leader.raft, NextDeadline(*leader.raft), leader.output);
    carry(leader.output);
    for (int i = 0; i < 40 && !wire.empty(); ++i) {
      const Message message = wire.front();
      wire.pop_front();
      Alone& receiver = message.to == MemberId(2) ? follower : leader;
      Step(*receiver.raft, message, Instant(), receiver.output);
      carry(receiver.output);
    }
    std::vector<uint64_t> want = leader_log;
    want.push_back(8);
    EXPECT_EQ(follower.Terms(), want);
  }
}

// §5.4.1: a voter whose log is more up to date refuses.
TEST(RaftPaperTest, AVoteIsDeniedToAnOlderLog) {
  const std::vector<std::pair<VoteRequest, bool>> cases{
      {{.last_index = LogIndex(3), .last_term = Term(2)}, true},
      {{.last_index = LogIndex(2), .last_term = Term(2)}, false},
      {{.last_index = LogIndex(1), .last_term = Term(3)}, true},
      {{.last_index = LogIndex(9), .last_term = Term(1)}, false}};
  for (const auto& [request, granted] : cases) {
    Alone member(3, {1, 2, 2});
    member.Hear(2, 4, request);
    EXPECT_EQ(member.Answer(), Body(VoteResponse{.reject = !granted}));
  }
}

// §5.4.2, figure 8: copies of entries of former terms are not counted; they are committed with one of the current term.
TEST(RaftPaperTest, EntriesOfFormerTermsAreNotCommittedByCounting) {
  Alone member(2, {1, 2});
  member.Lead();
  member.SyncOwn();
  member.Hear(2, 3, AppendResponse{.index = LogIndex(2)});
  EXPECT_EQ(member.raft->commit_index, LogIndex(0));
  member.Hear(2, 3, AppendResponse{.index = LogIndex(3)});
  EXPECT_EQ(member.raft->commit_index, LogIndex(3));
}

// §8: a leader commits an empty entry at the start of its term.
TEST(RaftPaperTest, ALeaderBeginsWithAnEmptyEntry) {
  Alone member(2, {1, 2});
  member.Lead();
  EXPECT_EQ(member.Terms(), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(member.raft->log.At(LogIndex(3)), At(3, 3));
}

// Thesis §10.2.1: a leader may commit what a majority of others has on disk before it has it itself.
TEST(RaftPaperTest, ALeaderMayCommitBeforeItsOwnDiskButDoesNotCountIt) {
  Alone member(0, {});
  member.Lead();
  member.Hear(2, 1, AppendResponse{.index = LogIndex(1)});
  EXPECT_EQ(member.raft->commit_index, LogIndex(0));
  member.Hear(3, 1, AppendResponse{.index = LogIndex(1)});
  EXPECT_EQ(member.raft->commit_index, LogIndex(1));
}

// Thesis §4.2.3: soon after a leader was heard, a request for votes changes neither term nor vote.
TEST(RaftPaperTest, AVoteRequestIsDisregardedWhileALeaderIsHeard) {
  Alone member(1, {});
  member.Hear(2, 1, Heartbeat{});
  member.Hear(3, 9, VoteRequest{});
  EXPECT_TRUE(member.output.messages.empty());
  EXPECT_EQ(member.raft->term, Term(1));
}

// Thesis §6.2: a leader that reaches no majority for an election timeout steps down.
TEST(RaftPaperTest, ALeaderStepsDownWithoutAMajority) {
  Alone member(0, {});
  member.Lead();
  const Term term = member.raft->term;
  const Instant end = NextDeadline(*member.raft) + kElectionTimeout * 2;
  while (std::holds_alternative<Leader>(member.raft->role) && NextDeadline(*member.raft) < end) {
    OnTimer(*member.raft, NextDeadline(*member.raft), member.output);
  }
  EXPECT_TRUE(std::holds_alternative<Follower>(member.raft->role));
  EXPECT_EQ(member.raft->term, term);
}

// Thesis §9.6: the term rises only after a majority said that it would vote.
TEST(RaftPaperTest, ThePreVoteComesBeforeTheTerm) {
  RaftHarness cluster(3);
  cluster.Timeout(1);
  EXPECT_EQ(cluster.raft(1).term, Term(0));
  cluster.Step({MemberId(2), MemberId(1), Term(1), VoteResponse{.pre_vote = true}});
  EXPECT_EQ(cluster.raft(1).term, Term(1));
}

}  // namespace
}  // namespace detcd::raft
