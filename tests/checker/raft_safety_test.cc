#include "checker/raft_safety.h"

#include <gtest/gtest.h>

namespace detcd::checker {
namespace {

WorldObservation ThreeMembers() {
  return {.members = {MemberId(1), MemberId(2), MemberId(3)},
          .election_timeout = Millis(1000),
          .heartbeat_interval = Millis(100)};
}

EntryMark E(uint64_t term, uint64_t digest = 0) { return {Term(term), digest}; }

// A member by hand: change it, then Show() it to the judge.
struct Fake {
  MemberObservation state;
  std::vector<EntryMark> log;
  std::vector<EntryMark> changed;
};

class RaftSafetyTest : public testing::Test {
 protected:
  RaftSafetyTest() : judge_(world_, verdict_) {
    for (uint64_t id = 1; id <= 3; ++id) {
      members_[id].state.member = MemberId(id);
      Start(id);
    }
  }

  Fake& M(uint64_t id) { return members_.at(id); }

  void Show(uint64_t id) {
    Fake& member = M(id);
    member.state.last_index = LogIndex(member.log.size());
    member.state.changed = member.changed;
    judge_.OnMember(member.state, {.event = ++event_});
    member.changed.clear();
    member.state.started = false;
  }

  // Restarts with what is on its disk now.
  void Start(uint64_t id) {
    Fake& member = M(id);
    ++member.state.incarnation;
    member.state.started = true;
    member.state.role = Role::kFollower;
    member.state.commit_index = member.state.applied_index = LogIndex(0);
    member.state.durable_index = LogIndex(member.log.size());
    member.state.changed_from = LogIndex(1);
    member.changed = member.log;
    Show(id);
  }

  // The log from `from` on becomes `entries`, durable at once unless told otherwise.
  void Write(uint64_t id, uint64_t from, std::vector<EntryMark> entries, bool durable = true) {
    Fake& member = M(id);
    member.log.resize(from - 1);
    member.log.insert(member.log.end(), entries.begin(), entries.end());
    member.changed = entries;
    member.state.changed_from = LogIndex(from);
    member.state.durable_index = std::min(member.state.durable_index, LogIndex(from - 1));
    if (durable) member.state.durable_index = LogIndex(member.log.size());
    Show(id);
  }

  void Become(uint64_t id, Role role, uint64_t term, uint64_t vote = 0) {
    M(id).state.role = role;
    M(id).state.term = Term(term);
    M(id).state.voted_for = MemberId(role == Role::kFollower ? vote : id);
    Show(id);
  }

  void Commit(uint64_t id, uint64_t index) {
    M(id).state.commit_index = LogIndex(index);
    Show(id);
  }

  void Send(MessageKind kind, uint64_t from, uint64_t to, uint64_t term, uint64_t index = 0) {
    MessageObservation message{.kind = kind, .from = MemberId(from), .to = MemberId(to), .term = Term(term)};
    message.index = LogIndex(index);
    judge_.OnSent(message, {.event = ++event_});
  }

  std::string Broken() const { return verdict_.broken() ? verdict_.violation()->property : ""; }

  WorldObservation world_ = ThreeMembers();
  Verdict verdict_;
  RaftSafety judge_;
  std::map<uint64_t, Fake> members_;
  uint64_t event_ = 0;
};

TEST_F(RaftSafetyTest, AcceptsAnOrdinaryCommit) {
  Become(1, Role::kLeader, 1);
  Write(1, 1, {E(1), E(1, 5)});
  Become(2, Role::kFollower, 1, 1);
  Write(2, 1, {E(1), E(1, 5)});
  Send(MessageKind::kAppendResponse, 2, 1, 1, 2);
  Show(2);
  Commit(1, 2);
  Commit(2, 2);
  EXPECT_EQ(Broken(), "");
  EXPECT_EQ(judge_.committed(), LogIndex(2));
}

TEST_F(RaftSafetyTest, TwoLeadersInATerm) {
  Become(1, Role::kLeader, 3);
  Become(1, Role::kFollower, 4);
  Become(2, Role::kLeader, 3);
  EXPECT_EQ(Broken(), "F1");
}

TEST_F(RaftSafetyTest, LeadersOfDifferentTermsMayOverlap) {
  Become(1, Role::kLeader, 3);
  Become(2, Role::kLeader, 4);
  EXPECT_EQ(Broken(), "");
}

TEST_F(RaftSafetyTest, VoteChangedInMemory) {
  Become(1, Role::kFollower, 3, 2);
  Become(1, Role::kFollower, 3, 3);
  EXPECT_EQ(Broken(), "F2");
}

TEST_F(RaftSafetyTest, TwoVotesLeave) {
  Become(1, Role::kFollower, 3, 2);
  Send(MessageKind::kVoteResponse, 1, 2, 3);
  Send(MessageKind::kVoteResponse, 1, 2, 3);
  EXPECT_EQ(Broken(), "");
  Send(MessageKind::kVoteResponse, 1, 3, 3);
  EXPECT_EQ(Broken(), "F2");
}

TEST_F(RaftSafetyTest, VoteForgottenOverRestart) {
  Become(1, Role::kFollower, 3, 2);
  Send(MessageKind::kVoteResponse, 1, 2, 3);
  Start(1);
  EXPECT_EQ(Broken(), "");
  M(1).state.voted_for = MemberId(0);
  Start(1);
  EXPECT_EQ(Broken(), "F2");
}

TEST_F(RaftSafetyTest, VoteThatNeverLeftMayBeForgotten) {
  Become(1, Role::kFollower, 3, 2);
  M(1).state.voted_for = MemberId(0);
  Start(1);
  EXPECT_EQ(Broken(), "");
}

TEST_F(RaftSafetyTest, TermForgottenOverRestart) {
  Become(1, Role::kFollower, 3);
  Send(MessageKind::kHeartbeatResponse, 1, 2, 3);
  M(1).state.term = Term(2);
  Start(1);
  EXPECT_EQ(Broken(), "F3");
}

TEST_F(RaftSafetyTest, PreVoteAsksForATermWithoutTakingIt) {
  Become(1, Role::kPreCandidate, 3);
  Send(MessageKind::kPreVote, 1, 2, 4);
  Send(MessageKind::kPreVoteResponse, 1, 2, 4);
  Start(1);
  EXPECT_EQ(Broken(), "");
}

TEST_F(RaftSafetyTest, LeaderCutsItsLog) {
  Become(1, Role::kLeader, 1);
  Write(1, 1, {E(1), E(1, 5)});
  Write(1, 2, {E(1, 6)});
  EXPECT_EQ(Broken(), "F4");
}

TEST_F(RaftSafetyTest, EntriesShownAgainAreNoChange) {
  Become(1, Role::kLeader, 1);
  Write(1, 1, {E(1), E(1, 5)});
  Write(1, 1, {E(1), E(1, 5), E(1, 6)});
  EXPECT_EQ(Broken(), "");
}

TEST_F(RaftSafetyTest, TwoContentsOfOneEntry) {
  Become(1, Role::kLeader, 1);
  Write(1, 1, {E(1), E(1, 5)});
  Become(2, Role::kFollower, 1);
  Write(2, 1, {E(1), E(1, 6)});
  EXPECT_EQ(Broken(), "F5");
}

TEST_F(RaftSafetyTest, SameEntryAfterDifferentPrefixes) {
  Become(1, Role::kFollower, 2);
  Write(1, 1, {E(1), E(2)});
  Become(2, Role::kFollower, 2);
  Write(2, 1, {E(2, 1), E(2)});
  EXPECT_EQ(Broken(), "F5");
}

TEST_F(RaftSafetyTest, LeaderWithoutACommittedEntry) {
  Become(1, Role::kLeader, 1);
  Write(1, 1, {E(1)});
  Become(2, Role::kFollower, 1);
  Write(2, 1, {E(1)});
  Commit(1, 1);
  Become(3, Role::kLeader, 2);
  EXPECT_EQ(Broken(), "F6");
}

// A candidate whose votes were late leads a term that is over: it need not have what later terms committed.
TEST_F(RaftSafetyTest, LateLeaderOfAFormerTermNeedsNoLaterCommit) {
  Become(1, Role::kLeader, 3);
  Write(1, 1, {E(3)});
  Become(2, Role::kFollower, 3);
  Write(2, 1, {E(3)});
  Commit(1, 1);
  Become(3, Role::kLeader, 2);
  EXPECT_EQ(Broken(), "");
}

TEST_F(RaftSafetyTest, DifferentCommitsAtOneIndex) {
  Become(1, Role::kLeader, 1);
  Write(1, 1, {E(1)});
  Become(2, Role::kFollower, 1);
  Write(2, 1, {E(1)});
  Commit(1, 1);
  Become(3, Role::kFollower, 2);
  Write(3, 1, {E(2)});
  Commit(3, 1);
  EXPECT_EQ(Broken(), "F7");
}

TEST_F(RaftSafetyTest, CommittedEntryOverwritten) {
  Become(1, Role::kLeader, 1);
  Write(1, 1, {E(1)});
  Become(2, Role::kFollower, 1);
  Write(2, 1, {E(1)});
  Commit(1, 1);
  Commit(2, 1);
  Become(2, Role::kFollower, 2);
  Write(2, 1, {E(2)});
  EXPECT_EQ(Broken(), "F7");
}

// Raft, figure 8: leader 1 of term 4 counts replicas of its old entry of term 2.
TEST_F(RaftSafetyTest, CommitByCountingReplicasOfAFormerTerm) {
  Become(1, Role::kLeader, 2);
  Write(1, 1, {E(1), E(2)});
  Become(2, Role::kFollower, 2);
  Write(2, 1, {E(1), E(2)});
  Become(3, Role::kLeader, 3);
  Write(3, 1, {E(1), E(3)});
  Become(1, Role::kLeader, 4);
  Commit(1, 2);
  EXPECT_EQ(Broken(), "F8");
}

TEST_F(RaftSafetyTest, CommitBeforeAQuorumIsDurable) {
  Become(1, Role::kLeader, 1);
  Write(1, 1, {E(1)});
  Become(2, Role::kFollower, 1);
  Write(2, 1, {E(1)}, false);
  Commit(1, 1);
  EXPECT_EQ(Broken(), "F8");
}

TEST_F(RaftSafetyTest, CommitWithoutTheLeadersOwnDisk) {
  Become(1, Role::kLeader, 1);
  Write(1, 1, {E(1)}, false);
  for (uint64_t id : {2u, 3u}) {
    Become(id, Role::kFollower, 1);
    Write(id, 1, {E(1)});
  }
  Commit(1, 1);
  EXPECT_EQ(Broken(), "");
}

TEST_F(RaftSafetyTest, AcknowledgedEntryLostInACrash) {
  Become(1, Role::kFollower, 1);
  Write(1, 1, {E(1), E(1, 2)});
  Send(MessageKind::kAppendResponse, 1, 2, 1, 2);
  Show(1);
  Start(1);
  EXPECT_EQ(Broken(), "");
  M(1).log.pop_back();
  Start(1);
  EXPECT_EQ(Broken(), "F19");
}

TEST_F(RaftSafetyTest, DurableEntryLostInACrash) {
  Become(1, Role::kFollower, 1);
  Write(1, 1, {E(1), E(1, 2)});
  M(1).log.pop_back();
  Start(1);
  EXPECT_EQ(Broken(), "F19");
}

TEST_F(RaftSafetyTest, EntryNotYetDurableMayBeLostInACrash) {
  Become(1, Role::kFollower, 1);
  Write(1, 1, {E(1)});
  Write(1, 2, {E(1, 2)}, false);
  Send(MessageKind::kAppendResponse, 1, 2, 1, 1);
  Show(1);
  M(1).log.pop_back();
  Start(1);
  EXPECT_EQ(Broken(), "");
}

// An acknowledgement in term 2 below an old entry of term 1 does not protect that entry.
TEST_F(RaftSafetyTest, OldEntryBehindANewAcknowledgementMayBeOverwritten) {
  Become(1, Role::kFollower, 1);
  Write(1, 1, {E(1), E(1, 2)});
  Send(MessageKind::kAppendResponse, 1, 2, 1, 2);
  Show(1);
  Become(1, Role::kFollower, 2);
  Send(MessageKind::kAppendResponse, 1, 3, 2, 1);
  Show(1);
  Write(1, 2, {E(2)});
  EXPECT_EQ(Broken(), "");
}

// A member takes back that an entry is on its disk, and too few are left.
TEST_F(RaftSafetyTest, CommittedEntryOnTooFewDisks) {
  Become(1, Role::kLeader, 1);
  Write(1, 1, {E(1)});
  Become(2, Role::kFollower, 1);
  Write(2, 1, {E(1)});
  Commit(1, 1);
  M(1).state.durable_index = LogIndex(0);
  Show(1);
  EXPECT_EQ(Broken(), "F9");
}

TEST_F(RaftSafetyTest, AcknowledgementBeforeTheDisk) {
  Become(1, Role::kFollower, 1);
  Write(1, 1, {E(1)}, false);
  Send(MessageKind::kAppendResponse, 1, 2, 1, 1);
  Show(1);
  EXPECT_EQ(Broken(), "F19");
}

TEST_F(RaftSafetyTest, AcknowledgedEntryCutInItsTerm) {
  Become(1, Role::kFollower, 2);
  Write(1, 1, {E(1), E(1, 2)});
  Send(MessageKind::kAppendResponse, 1, 2, 2, 2);
  Show(1);
  Write(1, 2, {E(2)});
  EXPECT_EQ(Broken(), "F19");
}

class RaftOverwriteTest : public RaftSafetyTest {
 protected:
  // Member 1 has on disk two entries of term 3 after one of term 1; a leader of term 4 overwrites them with an older
  // entry of term 2, which is not on the disk yet.
  RaftOverwriteTest() {
    Become(1, Role::kFollower, 3);
    Write(1, 1, {E(1), E(3), E(3, 1)});
    Send(MessageKind::kAppendResponse, 1, 2, 3, 3);
    Show(1);
    Become(1, Role::kFollower, 4);
    Write(1, 2, {E(2), E(4)}, false);
  }
  void Recover(std::vector<EntryMark> log) {
    M(1).log = std::move(log);
    Start(1);
  }
};

TEST_F(RaftOverwriteTest, OldEntriesMayStillBeThere) {
  Recover({E(1), E(3), E(3, 1)});
  EXPECT_EQ(Broken(), "");
}

TEST_F(RaftOverwriteTest, FirstNewEntryMayBeThere) {
  Recover({E(1), E(2)});
  EXPECT_EQ(Broken(), "");
}

TEST_F(RaftOverwriteTest, ALogThatMerelyEndsHasLostThem) {
  Recover({E(1), E(3)});
  EXPECT_EQ(Broken(), "F19");
}

TEST_F(RaftOverwriteTest, ALogBeforeTheCutHasLostThem) {
  Recover({E(1)});
  EXPECT_EQ(Broken(), "F19");
}

TEST_F(RaftOverwriteTest, AnotherOverwritingFromBelowTakesBothAway) {
  Become(1, Role::kFollower, 5);
  Write(1, 1, {E(5)}, false);
  Recover({E(5)});
  EXPECT_EQ(Broken(), "");
}

TEST_F(RaftOverwriteTest, NewEntriesThatAreDurableMustStay) {
  M(1).state.durable_index = LogIndex(3);
  Send(MessageKind::kAppendResponse, 1, 2, 4, 3);
  Show(1);
  EXPECT_EQ(Broken(), "");
  Recover({E(1), E(3), E(3, 1)});
  EXPECT_EQ(Broken(), "F19");
}

TEST_F(RaftSafetyTest, CommitIndexFalls) {
  Become(1, Role::kLeader, 1);
  Write(1, 1, {E(1), E(1, 1)});
  Become(2, Role::kFollower, 1);
  Write(2, 1, {E(1), E(1, 1)});
  Commit(1, 2);
  Commit(1, 1);
  EXPECT_EQ(Broken(), "F10");
}

TEST_F(RaftSafetyTest, AppliedBeyondCommitted) {
  Become(1, Role::kFollower, 1);
  M(1).state.applied_index = LogIndex(1);
  Write(1, 1, {E(1)});
  EXPECT_EQ(Broken(), "F10");
}

}  // namespace
}  // namespace detcd::checker
