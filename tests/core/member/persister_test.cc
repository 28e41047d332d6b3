#include "core/member/persister.h"

#include "tests/support/memory_host.h"

namespace detcd::member {
namespace {

constexpr MemberId kSelf(1), kSecond(2), kThird(3);

raft::Entry MakeEntry(uint64_t term, uint64_t index) {
  return {.term = Term(term), .index = LogIndex(index), .data = Bytes::Copy("x")};
}

// A member of three whose log has one committed entry of term 1, its log on a disk in memory, and what it let go.
class PersisterTest : public ::testing::Test, protected wal::WalListener {
 protected:
  PersisterTest() {
    host.disk_files.on_call = [this](std::string_view call) { calls.emplace_back(call); };
    wal.Open(wal::WalBootstrap{.metadata = {.member = kSelf, .cluster = ClusterId(9)},
                               .entries = {MakeEntry(1, 1)},
                               .hard_state = {.term = Term(1), .commit = LogIndex(1)}});
    host.Run();
    calls.clear();
  }

  void OnWalMetadata(const wal::WalMetadata&) override {}
  void OnWalCommitted(std::vector<raft::Entry> entries) override { log.Recover(std::move(entries)); }
  void OnWalOpened(raft::HardState hard_state, std::vector<raft::Entry>) override {
    raft::VoterSet voters;
    for (MemberId id : {kSelf, kSecond, kThird}) voters.AddVoter(id);
    raft.emplace(raft::MakeRaft({.id = kSelf,
                                 .heartbeat_interval = Millis(100),
                                 .election_timeout = Millis(1000),
                                 .pre_vote = false,
                                 .check_quorum = true,
                                 .append_bytes_max = 1 << 20,
                                 .appends_in_flight_max = 8,
                                 .append_bytes_in_flight_max = 16 << 20,
                                 .uncommitted_bytes_max = 1 << 20,
                                 .log_entries_in_memory_max = 100,
                                 .log_bytes_in_memory_max = 1 << 20},
                                hard_state, std::move(log), hard_state.commit, std::move(voters), host.Random("raft"),
                                host.trace(), Now()));
    persister.emplace(wal, hard_state);
  }
  void OnWalAppended(uint64_t sequence) override {
    batches = sequence;
    Note(persister->OnAppended(*raft, sequence, Now(), output));
  }
  void OnWalRead(uint64_t, std::vector<raft::Entry>) override {}
  void OnWalFailed(std::string reason) override { FAIL() << reason; }

  Instant Now() { return host.clock().Now(); }
  void Note(std::vector<raft::Message> messages) {
    for (raft::Message& message : messages) left.push_back(std::move(message));
  }
  void EndTurn() { Note(persister->EndTurn(*raft, output)); }
  void Step(MemberId from, uint64_t term, raft::Body body) {
    raft::Step(*raft, {.from = from, .to = kSelf, .term = Term(term), .body = std::move(body)}, Now(), output);
  }
  void StepAppend(MemberId from, uint64_t term, uint64_t prev_term, std::vector<raft::Entry> entries, uint64_t commit = 1) {
    const LogIndex prev = entries.front().index - 1;
    Step(from, term,
         raft::Append{.prev_index = prev, .prev_term = Term(prev_term), .entries = std::move(entries), .commit = LogIndex(commit)});
  }
  // Runs the disk until the batch in flight is complete.
  void FinishBatch() {
    const uint64_t before = batches;
    while (batches == before) ASSERT_TRUE(host.StepFiles());
  }
  // `KIND to TERM [INDEX]` of what has left since the last call.
  std::vector<std::string> Left() {
    std::vector<std::string> texts;
    for (const raft::Message& message : std::exchange(left, {})) {
      std::string text = std::string(raft::KindName(message)) + " to " + std::to_string(message.to.value) + " in " +
                         std::to_string(message.term.value);
      if (const auto* response = std::get_if<raft::AppendResponse>(&message.body)) {
        text += " at " + std::to_string(response->index.value);
      }
      texts.push_back(text);
    }
    return texts;
  }
  using Texts = std::vector<std::string>;

  testing::MemoryDisk disk;
  testing::MemoryHost host{disk};
  wal::Wal wal{host, {.segment_bytes = 1 << 20, .read_bytes = 4096}, *this};
  raft::RaftLog log;
  std::optional<raft::RaftState> raft;
  std::optional<Persister> persister;
  raft::Output output;
  std::vector<raft::Message> left;
  std::vector<std::string> calls;  // on files since the start
  uint64_t batches = 0;            // complete
};

TEST_F(PersisterTest, AcknowledgementLeavesWhenItsEntriesAreDurable) {
  StepAppend(kSecond, 1, 1, {MakeEntry(1, 2)});
  EndTurn();
  EXPECT_EQ(Left(), Texts{});
  FinishBatch();
  EXPECT_EQ(Left(), (Texts{"MsgAppResp to 2 in 1 at 2"}));
  EXPECT_EQ(raft->log.durable_index(), LogIndex(2));
}

TEST_F(PersisterTest, WithNothingToWriteMessagesLeaveAtOnce) {
  Step(kSecond, 1, raft::Heartbeat{.commit = LogIndex(1)});
  EndTurn();
  EXPECT_EQ(Left(), (Texts{"MsgHeartbeatResp to 2 in 1"}));
  EXPECT_TRUE(calls.empty());
}

TEST_F(PersisterTest, VoteLeavesWhenTermAndVoteAreDurable) {
  Step(kSecond, 2, raft::VoteRequest{.last_index = LogIndex(1), .last_term = Term(1)});
  EndTurn();
  EXPECT_EQ(Left(), Texts{});
  FinishBatch();
  EXPECT_EQ(Left(), (Texts{"MsgVoteResp to 2 in 2"}));
}

TEST_F(PersisterTest, ATermLearntWhileABatchIsSyncedWaitsForTheNextBatch) {
  StepAppend(kSecond, 1, 1, {MakeEntry(1, 2)});
  EndTurn();
  host.world.Advance(Seconds(2));  // the leader is silent for longer than its lease
  Step(kThird, 2, raft::VoteRequest{.last_index = LogIndex(2), .last_term = Term(1)});
  EndTurn();
  FinishBatch();
  // Term 2 is not on the disk, and what was acknowledged to the leader of term 1 is of a former term.
  EXPECT_EQ(Left(), Texts{});
  EndTurn();
  FinishBatch();
  EXPECT_EQ(Left(), (Texts{"MsgVoteResp to 3 in 2"}));
}

TEST_F(PersisterTest, WhatComesDuringASyncIsOneBatch) {
  StepAppend(kSecond, 1, 1, {MakeEntry(1, 2)});
  EndTurn();
  StepAppend(kSecond, 1, 1, {MakeEntry(1, 3)});
  EndTurn();
  StepAppend(kSecond, 1, 1, {MakeEntry(1, 4)});
  EndTurn();
  FinishBatch();
  EXPECT_EQ(Left(), (Texts{"MsgAppResp to 2 in 1 at 2"}));
  EXPECT_EQ(batches, 1u);
  EndTurn();
  FinishBatch();
  EXPECT_EQ(Left(), (Texts{"MsgAppResp to 2 in 1 at 3", "MsgAppResp to 2 in 1 at 4"}));
  EXPECT_EQ(batches, 2u);
  EXPECT_EQ(host.disk_files.pending(), 0u);
}

TEST_F(PersisterTest, AnAcknowledgementToAFormerLeaderIsDropped) {
  StepAppend(kSecond, 2, 1, {MakeEntry(2, 2)});
  EndTurn();
  StepAppend(kThird, 3, 1, {MakeEntry(3, 2)});  // replaces entry 2 while it is being synced
  EndTurn();
  FinishBatch();
  EXPECT_EQ(Left(), Texts{});
  EXPECT_EQ(raft->log.durable_index(), LogIndex(1));
  EndTurn();
  FinishBatch();
  EXPECT_EQ(Left(), (Texts{"MsgAppResp to 3 in 3 at 2"}));
  EXPECT_EQ(raft->log.durable_index(), LogIndex(2));
}

TEST_F(PersisterTest, ADuplicateDuringTheSyncOfItsEntriesWaitsForThatBatch) {
  StepAppend(kSecond, 1, 1, {MakeEntry(1, 2)});
  EndTurn();
  StepAppend(kSecond, 1, 1, {MakeEntry(1, 2)});
  Step(kSecond, 1, raft::Heartbeat{.commit = LogIndex(1)});
  EndTurn();
  EXPECT_EQ(Left(), (Texts{"MsgHeartbeatResp to 2 in 1"}));  // depends on term and vote only
  FinishBatch();
  EXPECT_EQ(Left(), (Texts{"MsgAppResp to 2 in 1 at 2", "MsgAppResp to 2 in 1 at 2"}));
}

TEST_F(PersisterTest, ACommitIndexAloneIsWrittenWithoutASync) {
  StepAppend(kSecond, 1, 1, {MakeEntry(1, 2)});
  EndTurn();
  FinishBatch();
  calls.clear();
  Step(kSecond, 1, raft::Heartbeat{.commit = LogIndex(2)});
  EndTurn();
  FinishBatch();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_NE(calls[0].find("write"), std::string::npos) << calls[0];
}

// Thesis §10.2.1: a leader's appends go in parallel with its own sync; its votes have made the term durable before.
TEST_F(PersisterTest, ALeadersAppendsDoNotWaitForItsOwnSync) {
  host.world.Advance(Seconds(3));
  raft::OnTimer(*raft, Now(), output);
  EndTurn();
  EXPECT_EQ(Left(), Texts{});  // a candidate's own vote first
  FinishBatch();
  EXPECT_EQ(Left(), (Texts{"MsgVote to 2 in 2", "MsgVote to 3 in 2"}));
  Step(kSecond, 2, raft::VoteResponse{});
  EndTurn();
  EXPECT_EQ(Left(), (Texts{"MsgApp to 2 in 2", "MsgApp to 3 in 2"}));
  EXPECT_EQ(raft->log.durable_index(), LogIndex(1));
}

}  // namespace
}  // namespace detcd::member
