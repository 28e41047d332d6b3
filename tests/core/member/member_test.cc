#include "core/member/member.h"

#include "core/proto/raft_internal.pb.h"
#include "core/proto/rpc.pb.h"
#include "core/rpc/services.h"
#include "tests/support/fake_backend.h"
#include "tests/support/fake_carrier.h"
#include "tests/support/memory_host.h"

namespace detcd::member {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using rpc::ApiError;
using rpc::CallId;
using rpc::Method;

constexpr MemberId kSelf(1), kSecond(2), kThird(3);
constexpr Duration kTimeout = Seconds(7);  // 5 s and two election timeouts
const rpc::CallStatus kNoLeader{.code = rpc::StatusCode::kDeadlineExceeded, .message = "context deadline exceeded"};

// One incarnation of member 1 of a cluster of `size`, with its services; its peers are the test.
class MemberRun final : private MemberListener {
 public:
  MemberRun(testing::MemoryDisk& disk, size_t size) : MemberRun(disk, Options(size)) {}
  MemberRun(testing::MemoryDisk& disk, const MemberOptions& options) : host(disk), member(host, options, *this) {
    host.AtEndOfTurn([this] { member.EndTurn(); });
    member.Start();
    host.Run();
  }

  CallId Start(Method method, const google::protobuf::Message& request) {
    const CallId call = ++last_call_;
    services.Open(transport, call, {.method = method, .token = {}, .client_api_version = {}, .deadline = {}});
    services.Message(transport, call, request);
    services.HalfClose(transport, call);
    host.Run();
    return call;
  }
  CallId Put(std::string_view key, std::string_view value) {
    etcdserverpb::PutRequest request;
    request.set_key(std::string(key));
    request.set_value(std::string(value));
    return Start(Method::kPut, request);
  }
  CallId Range(std::string_view key) {
    etcdserverpb::RangeRequest request;
    request.set_key(std::string(key));
    return Start(Method::kRange, request);
  }
  CallId MoveLeader(MemberId target) {
    etcdserverpb::MoveLeaderRequest request;
    request.set_targetid(target.value);
    return Start(Method::kMoveLeader, request);
  }
  // Wins the next election with the vote of the third member.
  void TakeLead() {
    for (MemberId peer : {kSecond, kThird}) {
      if (!carrier.IsUp(peer, PeerChannel::kMessage)) ChannelsUp(peer);
    }
    const size_t asked = carrier.SentOf<raft::VoteRequest>().size();
    while (carrier.SentOf<raft::VoteRequest>().size() == asked) host.Advance(Millis(10));
    const uint64_t next = member.Status().term.value + 1;
    Receive(kThird, next, raft::VoteResponse{.pre_vote = true});
    Receive(kThird, next, raft::VoteResponse{});
    ASSERT_EQ(member.Status().leader, kSelf);
  }
  // Both others have all of our log.
  void AcknowledgeAll() {
    const raft::RaftState& raft = *member.raft();
    for (MemberId peer : {kSecond, kThird}) {
      Receive(peer, raft.term.value, raft::AppendResponse{.index = raft.log.last_index()});
    }
  }
  // Cluster versions in the log.
  std::vector<std::string> VersionsProposed() const {
    std::vector<std::string> versions;
    const raft::RaftLog& log = member.raft()->log;
    for (LogIndex i = log.first_in_memory(); i <= log.last_index(); ++i) {
      etcdserverpb::InternalRaftRequest request;
      const raft::Entry& entry = log.At(i);
      if (entry.type != raft::EntryType::kNormal) continue;
      EXPECT_TRUE(request.ParseFromArray(entry.data.data(), static_cast<int>(entry.data.size())));
      if (request.has_cluster_version_set()) versions.push_back(request.cluster_version_set().ver());
    }
    return versions;
  }
  bool Finished(CallId call) { return transport.calls[call].finished; }
  rpc::CallStatus StatusOf(CallId call) {
    EXPECT_TRUE(Finished(call));
    return transport.calls[call].status;
  }
  std::vector<std::string> Sent(CallId call) { return transport.calls[call].sent; }

  // A message from a peer, as an event of its own.
  void Receive(MemberId from, uint64_t term, raft::Body body) {
    carrier.listener->OnPeerMessage({.from = from, .to = kSelf, .term = Term(term), .body = std::move(body)});
    host.Run();
  }
  void ChannelsUp(MemberId peer) {
    carrier.SetUp(peer, PeerChannel::kMessage);
    carrier.SetUp(peer, PeerChannel::kAppend);
    host.Run();
  }
  // `leader` leads `term` and shows it every 100 ms.
  void Follow(MemberId leader, uint64_t term, Duration duration) {
    for (; duration > Duration(); duration = duration - Millis(100)) {
      Receive(leader, term, raft::Heartbeat{.commit = LogIndex(1)});
      host.Advance(Millis(100));
    }
  }
  // The keys of puts in all proposals that were passed on.
  std::vector<std::string> KeysPassedOn() const {
    std::vector<std::string> keys;
    for (const raft::Proposal& proposal : carrier.SentOf<raft::Proposal>()) {
      for (const raft::Entry& entry : proposal.entries) {
        etcdserverpb::InternalRaftRequest request;
        EXPECT_TRUE(request.ParseFromArray(entry.data.data(), static_cast<int>(entry.data.size())));
        if (request.has_put()) keys.push_back(request.put().key());
      }
    }
    return keys;
  }

  testing::MemoryHost host;
  testing::FakeCarrier carrier;
  testing::FakeTransport transport;
  Member member;
  rpc::Services services{member, {}};
  int ready_calls = 0;

  static MemberOptions Options(size_t size) {
    MemberOptions options{.id = kSelf, .cluster = ClusterId(9)};
    for (uint64_t id = 1; id <= size; ++id) {
      const std::string name = "m" + std::to_string(id);
      options.initial_members.push_back({.id = MemberId(id), .name = name, .peer_urls = {"http://" + name}});
    }
    options.name = "m1";
    options.client_urls = {"http://client"};
    return options;
  }
 private:
  PeerCarrier& OnMemberRecovered(MemberId, ClusterId) override { return carrier; }
  void OnMemberReady() override { ++ready_calls; }

  CallId last_call_ = 0;
};

// One of three, which follows the second in term 2.
class FollowingMemberTest : public ::testing::Test {
 protected:
  FollowingMemberTest() {
    run.ChannelsUp(kSecond);
    run.Follow(kSecond, 2, Millis(100));
  }

  testing::MemoryDisk disk;
  MemberRun run{disk, 3};
};

TEST(MemberTest, ASingleMemberElectsItselfPublishesAndIsReady) {
  testing::MemoryDisk disk;
  MemberRun run(disk, 1);
  EXPECT_FALSE(run.member.ready());
  run.host.Advance(Millis(200));
  EXPECT_EQ(run.ready_calls, 1);
  const rpc::MemberStatus status = run.member.Status();
  EXPECT_EQ(status.leader, kSelf);
  EXPECT_EQ(status.term, Term(2));
  EXPECT_EQ(run.member.ClusterVersion(), "3.7.0");
  EXPECT_THAT(run.member.Members(),
              ElementsAre(rpc::MemberRow{.id = kSelf, .name = "m1", .peer_urls = {"http://m1"}, .client_urls = {"http://client"}}));
}

TEST(MemberTest, AnswersPutsAndLinearizableReads) {
  testing::MemoryDisk disk;
  MemberRun run(disk, 1);
  run.host.Advance(Millis(200));
  const CallId put = run.Put("a", "1");
  EXPECT_TRUE(run.StatusOf(put).ok());
  EXPECT_THAT(run.Sent(put), ElementsAre("header { cluster_id: 9 member_id: 1 revision: 2 raft_term: 2 }"));
  const CallId range = run.Range("a");
  EXPECT_TRUE(run.StatusOf(range).ok());
  EXPECT_THAT(run.Sent(range),
              ElementsAre("header { cluster_id: 9 member_id: 1 revision: 2 raft_term: 2 } kvs { key: \"a\" create_revision: 2 "
                          "mod_revision: 2 version: 1 value: \"1\" } count: 1"));
}

TEST(MemberTest, ManyPutsOfOneTurnAreAllAnswered) {
  testing::MemoryDisk disk;
  MemberRun run(disk, 1);
  run.host.Advance(Millis(200));
  constexpr CallId kPuts = 3000;  // more than one turn applies
  etcdserverpb::PutRequest request;
  request.set_key("a");
  for (CallId call = 1; call <= kPuts; ++call) {
    run.services.Open(run.transport, call, {.method = Method::kPut, .token = {}, .client_api_version = {}, .deadline = {}});
    run.services.Message(run.transport, call, request);
    run.services.HalfClose(run.transport, call);
  }
  run.host.Run();  // no time passes: nothing but the events themselves may carry it on
  EXPECT_EQ(run.transport.finishes, static_cast<int>(kPuts));
  EXPECT_EQ(run.member.store().revision(), Revision(1 + static_cast<int64_t>(kPuts)));
}

TEST(MemberTest, ARestartRecoversWhatWasAcknowledged) {
  testing::MemoryDisk disk;
  {
    MemberRun run(disk, 1);
    run.host.Advance(Millis(200));
    EXPECT_TRUE(run.StatusOf(run.Put("a", "1")).ok());
  }
  disk.Crash([](size_t) { return size_t{0}; });  // nothing of what was not synced
  MemberRun run(disk, 1);
  run.host.Advance(Millis(200));
  EXPECT_EQ(run.ready_calls, 1);
  EXPECT_EQ(run.member.Status().term, Term(3));
  const CallId range = run.Range("a");
  ASSERT_TRUE(run.StatusOf(range).ok());
  EXPECT_THAT(run.Sent(range), ElementsAre(HasSubstr("value: \"1\"")));
}

TEST(MemberTest, AReadIsServedBeforeAnythingElseHappens) {
  testing::MemoryDisk disk;
  MemberRun run(disk, 1);
  run.host.Advance(Millis(200));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(run.StatusOf(run.Range("absent")).ok());
}

TEST(MemberTest, AProposalWithoutALeaderEndsAsADeadlineAndNeverReachesALog) {
  testing::MemoryDisk disk;
  MemberRun run(disk, 3);
  run.ChannelsUp(kSecond);
  const CallId put = run.Put("a", "1");
  run.host.Advance(kTimeout - Millis(10));
  EXPECT_FALSE(run.Finished(put));
  run.host.Advance(Millis(10));
  EXPECT_EQ(run.StatusOf(put), kNoLeader);
  const CallId later = run.Put("b", "2");
  EXPECT_THAT(run.KeysPassedOn(), IsEmpty());
  const uint64_t term = run.member.Status().term.value + 1;
  run.Receive(kSecond, term, raft::Heartbeat{.commit = LogIndex(1)});
  EXPECT_THAT(run.KeysPassedOn(), ElementsAre("b"));
  EXPECT_FALSE(run.Finished(later));
}

TEST_F(FollowingMemberTest, AProposalTheLeaderDoesNotAnswerTimesOut) {
  const CallId put = run.Put("a", "1");
  run.Follow(kSecond, 2, kTimeout);
  EXPECT_EQ(run.StatusOf(put), rpc::ToCallStatus(ApiError::kTimeout));
}

TEST_F(FollowingMemberTest, ALinkNewerThanTheProposalIsNamedAsTheCause) {
  const CallId put = run.Put("a", "1");
  run.carrier.SetDown(kSecond, PeerChannel::kMessage);
  run.Follow(kSecond, 2, Millis(100));
  run.ChannelsUp(kSecond);
  run.Follow(kSecond, 2, kTimeout - Millis(100));
  EXPECT_EQ(run.StatusOf(put), rpc::ToCallStatus(ApiError::kTimeoutDueToConnectionLost));
}

// The former leader takes the proposal and falls silent; this member wins the next election.
TEST(MemberTest, AFailedLeaderIsNamedAsTheCause) {
  testing::MemoryDisk disk;
  MemberRun run(disk, 3);
  run.ChannelsUp(kSecond);
  run.ChannelsUp(kThird);
  run.Follow(kSecond, 2, Millis(100));
  run.host.Advance(Millis(500));
  const CallId put = run.Put("a", "1");
  while (run.carrier.SentOf<raft::VoteRequest>().empty()) run.host.Advance(Millis(10));
  run.Receive(kThird, 3, raft::VoteResponse{.pre_vote = true});
  run.Receive(kThird, 3, raft::VoteResponse{});
  ASSERT_EQ(run.member.Status().leader, kSelf);
  run.host.Advance(kTimeout);
  EXPECT_EQ(run.StatusOf(put), rpc::ToCallStatus(ApiError::kTimeoutDueToLeaderFail));
}

TEST_F(FollowingMemberTest, AnUnansweredReadIsAskedAgainAndTimesOut) {
  const CallId range = run.Range("a");
  run.Follow(kSecond, 2, Millis(1100));
  const std::vector<raft::ReadIndexRequest> asked = run.carrier.SentOf<raft::ReadIndexRequest>();
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_NE(asked[0].read, asked[1].read);
  run.Follow(kSecond, 2, kTimeout);
  EXPECT_EQ(run.StatusOf(range), rpc::ToCallStatus(ApiError::kTimeout));
}

// Where the leader's confirmation takes longer than the retry, every answer is one to an earlier ask.
TEST_F(FollowingMemberTest, AnAnswerThatComesAfterTheRetryServesTheRead) {
  const CallId range = run.Range("a");
  run.Follow(kSecond, 2, Millis(600));
  const std::vector<raft::ReadIndexRequest> asked = run.carrier.SentOf<raft::ReadIndexRequest>();
  ASSERT_EQ(asked.size(), 2u);
  run.Receive(kSecond, 2, raft::ReadIndexResponse{.read = asked[0].read, .index = LogIndex(1)});
  EXPECT_EQ(run.StatusOf(range), rpc::CallStatus());
}

TEST_F(FollowingMemberTest, AChangeOfLeaderFailsReadsThatWait) {
  const CallId range = run.Range("a");
  EXPECT_FALSE(run.Finished(range));
  run.Receive(kThird, 3, raft::Heartbeat{.commit = LogIndex(1)});
  EXPECT_EQ(run.StatusOf(range), rpc::ToCallStatus(ApiError::kLeaderChanged));
}

TEST_F(FollowingMemberTest, AReadWaitsUntilItsIndexIsApplied) {
  const CallId range = run.Range("a");
  const raft::ReadId read = run.carrier.SentOf<raft::ReadIndexRequest>().at(0).read;
  run.Receive(kSecond, 2, raft::ReadIndexResponse{.read = read, .index = LogIndex(4)});
  EXPECT_FALSE(run.Finished(range));
  raft::Append append{.prev_index = LogIndex(3), .prev_term = Term(1), .entries = {}, .commit = LogIndex(4)};
  append.entries.push_back({.term = Term(2), .index = LogIndex(4), .data = Bytes()});
  run.Receive(kSecond, 2, append);
  EXPECT_TRUE(run.StatusOf(range).ok());
}

TEST(MemberTest, AnEntryOfAKindItDoesNotKnowStopsTheMember) {
  testing::MemoryDisk disk;
  MemberRun run(disk, 3);
  run.ChannelsUp(kSecond);
  etcdserverpb::InternalRaftRequest request;
  request.mutable_header()->set_id(5);
  request.mutable_lease_grant()->set_id(77);
  raft::Append append{.prev_index = LogIndex(3), .prev_term = Term(1), .entries = {}, .commit = LogIndex(3)};
  append.entries.push_back({.term = Term(2), .index = LogIndex(4), .data = Bytes::Copy(request.SerializeAsString())});
  run.Receive(kSecond, 2, append);
  EXPECT_FALSE(run.host.stopped());
  run.Receive(kSecond, 2, raft::Heartbeat{.commit = LogIndex(4)});
  ASSERT_TRUE(run.host.stopped());
  EXPECT_FALSE(run.host.stopped_well);
  EXPECT_THAT(*run.host.stop_reason, HasSubstr("entry 4: operation lease_grant"));

  // And again after a restart, once it hears that the entry is committed.
  disk.Crash([](size_t) { return size_t{0}; });
  MemberRun again(disk, 3);
  again.Receive(kSecond, 2, raft::Heartbeat{.commit = LogIndex(4)});
  ASSERT_TRUE(again.host.stopped());
  EXPECT_THAT(*again.host.stop_reason, HasSubstr("entry 4: operation lease_grant"));
}

TEST(MemberTest, AFailedSyncStopsTheHostAndAnswersNobody) {
  testing::MemoryDisk disk;
  MemberRun run(disk, 1);
  run.host.Advance(Millis(200));
  const uint64_t write = run.host.disk_files.calls_run() + 1;
  run.host.disk_files.FailCall(write + 1, IoError::kDevice, false);
  const CallId put = run.Put("a", "1");
  ASSERT_TRUE(run.host.stopped());
  EXPECT_FALSE(run.host.stopped_well);
  EXPECT_THAT(*run.host.stop_reason, HasSubstr("sync of member/wal/"));
  EXPECT_FALSE(run.Finished(put));
}

TEST(MemberTest, TooLargeRequestsAreRefusedAtOnce) {
  testing::MemoryDisk disk;
  MemberRun run(disk, 1);
  run.host.Advance(Millis(200));
  EXPECT_EQ(run.StatusOf(run.Put("a", std::string(kRequestBytesMax, 'x'))), rpc::ToCallStatus(ApiError::kRequestTooLarge));
  EXPECT_TRUE(run.StatusOf(run.Put("a", std::string(kRequestBytesMax - 100, 'x'))).ok());
}

// --- compaction and hashes ---------------------------------------------------------------------------------------------

etcdserverpb::CompactionRequest CompactionTo(int64_t revision, bool physical) {
  etcdserverpb::CompactionRequest request;
  request.set_revision(revision);
  request.set_physical(physical);
  return request;
}

TEST(MemberTest, PhysicalCompactionAnswersAfterTheRemoval) {
  testing::MemoryDisk disk;
  MemberRun run(disk, 1);
  run.host.Advance(Millis(200));
  for (int i = 0; i < 3; ++i) run.Put("a", "1");
  const CallId plain = run.Start(Method::kCompact, CompactionTo(2, false));
  EXPECT_THAT(run.Sent(plain), ElementsAre("header { cluster_id: 9 member_id: 1 revision: 4 raft_term: 2 }"));
  const CallId physical = run.Start(Method::kCompact, CompactionTo(4, true));
  EXPECT_EQ(run.Sent(physical), run.Sent(plain));
  EXPECT_TRUE(run.StatusOf(physical).ok());
  EXPECT_EQ(run.member.store().removed_revision(), Revision(4));
  EXPECT_EQ(run.StatusOf(run.Start(Method::kCompact, CompactionTo(4, true))), rpc::ToCallStatus(ApiError::kCompacted));
  EXPECT_EQ(run.StatusOf(run.Start(Method::kCompact, CompactionTo(5, true))), rpc::ToCallStatus(ApiError::kFutureRev));
}

// The values of an etcd 3.7.3 after the same calls.
TEST(MemberTest, HashKvIsEtcdsAlsoAfterARestart) {
  testing::MemoryDisk disk;
  etcdserverpb::HashKVRequest request;
  {
    MemberRun run(disk, 1);
    run.host.Advance(Millis(200));
    run.Put("a", "1");
    run.Put("b", "");
    run.Put("a", "2");
    EXPECT_THAT(run.Sent(run.Start(Method::kHashKV, request)),
                ElementsAre("header { cluster_id: 9 member_id: 1 revision: 4 raft_term: 2 } hash: 1543627925 "
                            "compact_revision: -1 hash_revision: 4"));
    run.Start(Method::kCompact, CompactionTo(3, false));
  }
  MemberRun run(disk, 1);
  run.host.Advance(Millis(200));
  request.set_revision(3);
  EXPECT_THAT(run.Sent(run.Start(Method::kHashKV, request)),
              ElementsAre("header { cluster_id: 9 member_id: 1 revision: 4 raft_term: 3 } hash: 2496657716 "
                          "compact_revision: -1 hash_revision: 3"));
  request.set_revision(2);
  EXPECT_EQ(run.StatusOf(run.Start(Method::kHashKV, request)), rpc::ToCallStatus(ApiError::kCompacted));
  request.set_revision(5);
  EXPECT_EQ(run.StatusOf(run.Start(Method::kHashKV, request)), rpc::ToCallStatus(ApiError::kFutureRev));
}

TEST(MemberTest, TxnReadsItsOwnWritesAndIsOneRevision) {
  testing::MemoryDisk disk;
  MemberRun run(disk, 1);
  run.host.Advance(Millis(200));
  etcdserverpb::TxnRequest txn;
  txn.add_success()->mutable_request_put()->set_key("a");
  txn.add_success()->mutable_request_put()->set_key("b");
  txn.add_success()->mutable_request_range()->set_key("a");
  EXPECT_THAT(run.Sent(run.Start(Method::kTxn, txn)),
              ElementsAre("header { cluster_id: 9 member_id: 1 revision: 2 raft_term: 2 } succeeded: true"
                          " responses { response_put { header { revision: 2 } } }"
                          " responses { response_put { header { revision: 2 } } }"
                          " responses { response_range { header { revision: 2 } kvs { key: \"a\" create_revision: 2"
                          " mod_revision: 2 version: 1 } count: 1 } }"));
}

TEST(MemberTest, LeadershipMovesWhereTheCallerWantsIt) {
  testing::MemoryDisk disk;
  MemberRun run(disk, 3);
  run.TakeLead();
  run.AcknowledgeAll();
  const CallId move = run.MoveLeader(kSecond);
  EXPECT_EQ(run.carrier.SentOf<raft::TimeoutNow>().size(), 1u);
  EXPECT_FALSE(run.Finished(move));
  const CallId put = run.Put("a", "1");
  EXPECT_THAT(run.KeysPassedOn(), IsEmpty());
  const uint64_t term = run.member.Status().term.value;
  const LogIndex last = run.member.raft()->log.last_index();
  run.Receive(kSecond, term + 1, raft::VoteRequest{.last_index = last, .last_term = Term(term), .transfer = true});
  EXPECT_FALSE(run.Finished(move));  // nobody leads yet
  run.Receive(kSecond, term + 1, raft::Heartbeat{});
  EXPECT_TRUE(run.StatusOf(move).ok());
  EXPECT_THAT(run.Sent(move), ElementsAre(""));
  EXPECT_THAT(run.KeysPassedOn(), ElementsAre("a"));  // what came meanwhile goes to the new leader
  EXPECT_FALSE(run.Finished(put));
}

TEST_F(FollowingMemberTest, LeadershipMovesOnlyFromTheLeaderToAVoter) {
  EXPECT_EQ(run.StatusOf(run.MoveLeader(kThird)), rpc::ToCallStatus(ApiError::kNotLeader));
  run.TakeLead();
  EXPECT_EQ(run.StatusOf(run.MoveLeader(MemberId(9))), rpc::ToCallStatus(ApiError::kBadLeaderTransferee));
  EXPECT_EQ(run.StatusOf(run.MoveLeader(MemberId(0))), rpc::ToCallStatus(ApiError::kBadLeaderTransferee));
  EXPECT_TRUE(run.StatusOf(run.MoveLeader(kSelf)).ok());
}

TEST(MemberTest, AMoveThatDoesNotHappenTimesOutAndProposalsGoOn) {
  testing::MemoryDisk disk;
  MemberRun run(disk, 3);
  run.TakeLead();
  run.AcknowledgeAll();
  const CallId move = run.MoveLeader(kSecond);
  const LogIndex last = run.member.raft()->log.last_index();
  run.Put("a", "1");
  EXPECT_EQ(run.member.raft()->log.last_index(), last);
  for (Duration left = Seconds(1); left > Duration(); left = left - Millis(100)) {
    run.Receive(kThird, run.member.Status().term.value, raft::HeartbeatResponse{});
    run.host.Advance(Millis(100));
  }
  EXPECT_GT(run.member.raft()->log.last_index(), last);
  EXPECT_FALSE(run.Finished(move));
  run.host.Advance(kTimeout);
  EXPECT_EQ(run.StatusOf(move), rpc::ToCallStatus(ApiError::kLeaderTransferTimeout));
}

TEST(MemberTest, BeforeAStopLeadershipGoesToWhoWasConnectedLongest) {
  testing::MemoryDisk disk;
  MemberRun run(disk, 3);
  EXPECT_EQ(run.member.HandOverLeadership(), MemberId());  // does not lead
  run.ChannelsUp(kThird);
  run.host.Advance(Millis(10));
  run.TakeLead();
  run.AcknowledgeAll();
  EXPECT_EQ(run.member.HandOverLeadership(), kThird);
  run.host.Run();
  ASSERT_EQ(run.carrier.SentOf<raft::TimeoutNow>().size(), 1u);
  EXPECT_EQ(run.carrier.sent.back().message.to, kThird);
}

TEST(MemberTest, WithoutConnectedMembersNothingIsHandedOver) {
  testing::MemoryDisk disk;
  MemberRun run(disk, 3);
  run.TakeLead();
  run.AcknowledgeAll();
  for (MemberId peer : {kSecond, kThird}) {
    run.carrier.SetDown(peer, PeerChannel::kMessage);
    run.carrier.SetDown(peer, PeerChannel::kAppend);
  }
  EXPECT_EQ(run.member.HandOverLeadership(), MemberId());
  EXPECT_EQ(run.member.raft()->TransferTarget(), MemberId());
}

// What is not committed keeps its bytes in memory; beyond the limit proposals are refused in etcd's words, and what was
// taken is not lost.
TEST(MemberTest, TooManyUncommittedBytesRefuseProposals) {
  testing::MemoryDisk disk;
  MemberOptions options = MemberRun::Options(3);
  options.uncommitted_bytes_max = 1000;
  MemberRun run(disk, options);
  run.TakeLead();
  run.AcknowledgeAll();
  run.AcknowledgeAll();
  const CallId taken = run.Put("a", std::string(900, 'x'));
  const CallId refused = run.Put("b", std::string(900, 'x'));
  EXPECT_EQ(run.StatusOf(refused), rpc::ToCallStatus(ApiError::kTooManyRequests));
  EXPECT_FALSE(run.Finished(taken));
  run.AcknowledgeAll();
  EXPECT_TRUE(run.StatusOf(taken).ok());
  const CallId after = run.Put("c", std::string(900, 'x'));
  run.AcknowledgeAll();
  EXPECT_TRUE(run.StatusOf(after).ok());
}

TEST(MemberTest, ALeaderAsksTheMembersForTheirVersionsAndProposesTheLowest) {
  testing::MemoryDisk disk;
  MemberRun run(disk, 3);
  run.TakeLead();
  EXPECT_THAT(run.carrier.asked_versions, IsEmpty());  // nothing is committed in its term yet
  run.AcknowledgeAll();
  EXPECT_THAT(run.carrier.asked_versions, ElementsAre(kSecond, kThird));
  run.carrier.listener->OnPeerVersion(kSecond, "3.7.1");
  run.carrier.listener->OnPeerVersion(kThird, "3.6.5");
  run.host.Run();
  EXPECT_THAT(run.VersionsProposed(), ElementsAre("3.6.0"));
  run.AcknowledgeAll();
  EXPECT_EQ(run.member.ClusterVersion(), "3.6.0");
}

TEST(MemberTest, AMemberWhoseVersionIsNotKnownKeepsTheClusterAtTheLowest) {
  testing::MemoryDisk disk;
  MemberRun run(disk, 3);
  run.TakeLead();
  run.AcknowledgeAll();
  const auto live_on = [&](Duration time) {
    for (; time > Duration(); time = time - Millis(100)) {
      run.AcknowledgeAll();
      run.host.Advance(Millis(100));
    }
  };
  run.carrier.listener->OnPeerVersion(kSecond, "3.7.1");
  live_on(kClusterVersionAnswerTimeout + Millis(200));
  EXPECT_THAT(run.VersionsProposed(), ElementsAre("3.0.0"));
  live_on(kClusterVersionInterval - kClusterVersionAnswerTimeout);  // asked again
  run.carrier.listener->OnPeerVersion(kSecond, "3.7.1");
  run.carrier.listener->OnPeerVersion(kThird, "3.7.3");
  live_on(Millis(300));
  EXPECT_EQ(run.member.ClusterVersion(), "3.7.0");
}

// Each proposal keeps its bytes until a log has it or its time is over, whichever comes first.
TEST(MemberTest, WhatWaitsForALeaderIsBounded) {
  testing::MemoryDisk disk;
  MemberRun run(disk, 3);
  run.Put("a", "1");
  EXPECT_EQ(run.member.unproposed_count(), 2u);  // and its own attributes
  run.host.Advance(kTimeout);
  EXPECT_EQ(run.member.unproposed_count(), 1u);  // the attributes again
  run.host.Advance(kTimeout);
  EXPECT_EQ(run.member.unproposed_count(), 1u);
}

}  // namespace
}  // namespace detcd::member
