#include "core/rpc/services.h"

#include "core/base/limits.h"
#include "core/proto/health.pb.h"
#include "core/proto/rpc.pb.h"
#include "core/rpc/messages.h"
#include "tests/support/fake_backend.h"

namespace detcd::rpc {
namespace {

using etcdserverpb::RangeRequest;

class ServicesTest : public ::testing::Test, protected testing::ServicesHarness {
 protected:
  CallStatus StatusOf(CallId call) { return transport.calls[call].status; }
  std::vector<std::string> Sent(CallId call) { return transport.calls[call].sent; }
  bool Finished(CallId call) { return transport.calls[call].finished; }

  static RangeRequest RangeOf(std::string_view key) {
    RangeRequest request;
    request.set_key(std::string(key));
    return request;
  }
};

constexpr char kHeader[] = "header { cluster_id: 10 member_id: 11 revision: 2 raft_term: 4 }";

TEST_F(ServicesTest, RangeWaitsForItsReadIndexAndKeepsItsRequest) {
  backend.Put("a", "1");
  CallId call = 0;
  {
    auto request = std::make_unique<RangeRequest>(RangeOf("a"));
    call = Start(Method::kRange, *request);
  }
  EXPECT_FALSE(Finished(call));
  backend.FinishRead(ApiError::kOk);
  EXPECT_EQ(Sent(call), std::vector<std::string>{
                            std::string(kHeader) +
                            " kvs { key: \"a\" create_revision: 2 mod_revision: 2 version: 1 value: \"1\" } count: 1"});
  EXPECT_TRUE(StatusOf(call).ok());
  EXPECT_EQ(services.open_call_count(), 0u);
}

TEST_F(ServicesTest, MoveLeaderIsTheBackendsAndNotKept) {
  etcdserverpb::MoveLeaderRequest request;
  request.set_targetid(12);
  const CallId call = Start(Method::kMoveLeader, request);
  ASSERT_EQ(backend.moves.size(), 1u);
  EXPECT_EQ(backend.moves[0].first.call, call);
  EXPECT_EQ(backend.moves[0].second, MemberId(12));
  EXPECT_FALSE(Finished(call));
  EXPECT_EQ(services.open_call_count(), 0u);
}

TEST_F(ServicesTest, SerializableRangeAnswersAtOnce) {
  RangeRequest request = RangeOf("absent");
  request.set_serializable(true);
  const CallId call = Start(Method::kRange, request);
  EXPECT_EQ(Sent(call), std::vector<std::string>{"header { cluster_id: 10 member_id: 11 revision: 1 raft_term: 4 }"});
  EXPECT_TRUE(backend.reads.empty());
}

TEST_F(ServicesTest, RangeChecksInOrder) {
  RangeRequest request;
  request.set_sort_order(static_cast<RangeRequest::SortOrder>(3));
  EXPECT_EQ(StatusOf(Start(Method::kRange, request)), ToCallStatus(ApiError::kEmptyKey));
  request.set_key("a");
  EXPECT_EQ(StatusOf(Start(Method::kRange, request)), ToCallStatus(ApiError::kInvalidSortOption));
  request.set_sort_order(RangeRequest::NONE);
  request.set_sort_target(static_cast<RangeRequest::SortTarget>(-1));
  EXPECT_EQ(StatusOf(Start(Method::kRange, request)), ToCallStatus(ApiError::kInvalidSortOption));
  request.set_sort_target(RangeRequest::KEY);
  request.set_revision(2);
  const CallId call = Start(Method::kRange, request);
  EXPECT_FALSE(Finished(call));  // the revision is judged after the read index
  backend.FinishRead(ApiError::kOk);
  EXPECT_EQ(StatusOf(call), ToCallStatus(ApiError::kFutureRev));
  EXPECT_TRUE(Sent(call).empty());
}

TEST_F(ServicesTest, FailedReadIndexEndsTheCall) {
  for (ApiError error : {ApiError::kTimeout, ApiError::kLeaderChanged, ApiError::kStopped}) {
    const CallId call = Start(Method::kRange, RangeOf("a"));
    backend.FinishRead(error);
    EXPECT_EQ(StatusOf(call), ToCallStatus(error));
    EXPECT_TRUE(Sent(call).empty());
  }
  EXPECT_EQ(services.open_call_count(), 0u);
}

TEST_F(ServicesTest, PutIsProposedWholeAndForgotten) {
  etcdserverpb::PutRequest put;
  put.set_key("k");
  put.set_value("v");
  put.set_prev_kv(true);
  const CallId call = Start(Method::kPut, put);
  ASSERT_EQ(backend.proposals.size(), 1u);
  EXPECT_EQ(backend.proposals[0].first.call, call);
  EXPECT_EQ(backend.proposals[0].first.method, Method::kPut);
  EXPECT_EQ(backend.proposals[0].second.ShortDebugString(),
            "put { key: \"k\" value: \"v\" prev_kv: true } header { ID: 77 }");
  EXPECT_EQ(put.ShortDebugString(), "key: \"k\" value: \"v\" prev_kv: true");
  EXPECT_FALSE(Finished(call));
  EXPECT_EQ(services.open_call_count(), 0u);
}

TEST_F(ServicesTest, PutChecksInOrder) {
  etcdserverpb::PutRequest put;
  put.set_ignore_value(true);
  put.set_ignore_lease(true);
  put.set_value("v");
  put.set_lease(1);
  EXPECT_EQ(StatusOf(Start(Method::kPut, put)), ToCallStatus(ApiError::kEmptyKey));
  put.set_key("k");
  EXPECT_EQ(StatusOf(Start(Method::kPut, put)), ToCallStatus(ApiError::kValueProvided));
  put.clear_value();
  EXPECT_EQ(StatusOf(Start(Method::kPut, put)), ToCallStatus(ApiError::kLeaseProvided));
  put.clear_lease();
  Start(Method::kPut, put);
  EXPECT_EQ(backend.proposals.size(), 1u);
}

TEST_F(ServicesTest, DeleteRangeIsProposedUnlessItsKeyIsEmpty) {
  etcdserverpb::DeleteRangeRequest erase;
  EXPECT_EQ(StatusOf(Start(Method::kDeleteRange, erase)), ToCallStatus(ApiError::kEmptyKey));
  erase.set_key("a");
  erase.set_range_end("b");
  Start(Method::kDeleteRange, erase);
  ASSERT_EQ(backend.proposals.size(), 1u);
  EXPECT_EQ(backend.proposals[0].second.ShortDebugString(),
            "delete_range { key: \"a\" range_end: \"b\" } header { ID: 77 }");
}

TEST_F(ServicesTest, CancelOfAWaitingReadLeavesNothingBehind) {
  const CallId call = Start(Method::kRange, RangeOf("a"));
  services.Cancel(transport, call);
  EXPECT_EQ(services.open_call_count(), 0u);
  backend.FinishRead(ApiError::kOk);
  EXPECT_EQ(transport.finishes, 0);
}

TEST_F(ServicesTest, CancelOfAProposalAndOfUnknownCallsIsHarmless) {
  etcdserverpb::PutRequest put;
  put.set_key("k");
  const CallId call = Start(Method::kPut, put);
  services.Cancel(transport, call);
  services.Cancel(transport, 999);
  services.Cancel(transport, 999);
  EXPECT_EQ(services.open_call_count(), 0u);
  EXPECT_EQ(transport.finishes, 0);
}

TEST_F(ServicesTest, LateMessagesAndEndsOfDeadCallsAreIgnored) {
  services.Message(transport, 5, RangeOf("a"));
  services.HalfClose(transport, 5);
  services.Credit(transport, 5);
  services.OnReadReady({.transport = &transport, .call = 5}, 0, ApiError::kOk);
  EXPECT_EQ(transport.finishes, 0);
  EXPECT_TRUE(backend.reads.empty());
}

TEST_F(ServicesTest, SecondMessageOfAUnaryCallIsIgnored) {
  const CallId call = Start(Method::kRange, RangeOf("a"));
  services.Message(transport, call, RangeOf("b"));
  EXPECT_EQ(backend.reads.size(), 1u);
}

TEST_F(ServicesTest, HalfCloseWithoutAMessageForgetsAUnaryCall) {
  services.Open(transport, 500, {.method = Method::kRange});
  EXPECT_EQ(services.open_call_count(), 1u);
  services.HalfClose(transport, 500);
  EXPECT_EQ(services.open_call_count(), 0u);
}

TEST_F(ServicesTest, WaitingReadsAreBoundedByTheirBytes) {
  RangeRequest request = RangeOf("a");
  request.set_range_end(std::string(kReceiveBytesMax, 'z'));
  CallId call = 0;
  const size_t fit = kReadsInFlightBytesMax / request.ByteSizeLong();
  for (size_t i = 0; i < fit; ++i) call = Start(Method::kRange, request);
  EXPECT_FALSE(Finished(call));
  EXPECT_EQ(StatusOf(Start(Method::kRange, request)), ToCallStatus(ApiError::kTooManyRequests));
  services.Cancel(transport, call);
  EXPECT_FALSE(Finished(Start(Method::kRange, request)));  // room again
  while (!backend.reads.empty()) backend.FinishRead(ApiError::kOk);
  EXPECT_EQ(services.open_call_count(), 0u);
  EXPECT_FALSE(Finished(Start(Method::kRange, request)));
}

TEST_F(ServicesTest, WaitingReadsAreBoundedByTheirNumber) {
  for (int round = 0; round < 2; ++round) {  // what the first round leaves must not count in the second
    CallId call = 0;
    for (size_t i = 0; i < kReadsInFlightMax; ++i) call = Start(Method::kRange, RangeOf("a"));
    EXPECT_FALSE(Finished(call));
    EXPECT_EQ(StatusOf(Start(Method::kRange, RangeOf("a"))), ToCallStatus(ApiError::kTooManyRequests));
    while (!backend.reads.empty()) backend.FinishRead(round == 0 ? ApiError::kOk : ApiError::kTimeout);
  }
  EXPECT_EQ(services.open_call_count(), 0u);
}

TEST_F(ServicesTest, CommonChecksComeBeforeTheMessage) {
  EXPECT_EQ(StatusOf(Start(Method::kRange, RangeRequest(), {.client_api_version = "\xff"})),
            ToCallStatus(ApiError::kInvalidClientAPIVersion));
  backend.status.leader = MemberId();
  EXPECT_EQ(StatusOf(Start(Method::kRange, RangeRequest(), {.has_leader = true})), ToCallStatus(ApiError::kNoLeader));
  EXPECT_EQ(StatusOf(Start(Method::kRange, RangeRequest(), {.has_leader = true, .client_api_version = "\xff"})),
            ToCallStatus(ApiError::kInvalidClientAPIVersion));
  EXPECT_EQ(transport.finishes, 3);
  EXPECT_FALSE(Finished(Start(Method::kRange, RangeOf("a"), {.client_api_version = "3.7"})));
}

TEST_F(ServicesTest, MethodsOutsideThisReleaseSaySoAtOnce) {
  const CallId call = Start(Method::kHash, etcdserverpb::HashRequest());
  EXPECT_EQ(StatusOf(call), (CallStatus{StatusCode::kUnimplemented,
                                        "detcd: etcdserverpb.Maintenance/Hash is not part of this release yet"}));
  const CallId watch = Start(Method::kWatch, etcdserverpb::WatchRequest());
  EXPECT_EQ(StatusOf(watch).code, StatusCode::kUnimplemented);
  EXPECT_EQ(services.open_call_count(), 0u);
}

TEST_F(ServicesTest, AlarmsGoThroughTheLogAndUnknownOnesAreRefused) {
  etcdserverpb::AlarmRequest alarm;
  Start(Method::kAlarm, alarm);
  ASSERT_EQ(backend.proposals.size(), 1u);
  EXPECT_TRUE(backend.proposals[0].second.has_alarm());
  alarm.set_action(etcdserverpb::AlarmRequest::ACTIVATE);
  Start(Method::kAlarm, alarm);
  EXPECT_EQ(backend.proposals.size(), 2u);
  alarm.set_action(static_cast<etcdserverpb::AlarmRequest::AlarmAction>(3));
  EXPECT_EQ(StatusOf(Start(Method::kAlarm, alarm)), ToCallStatus(ApiError::kUnknownAlarm));
  alarm.set_action(etcdserverpb::AlarmRequest::ACTIVATE);
  alarm.set_alarm(static_cast<etcdserverpb::AlarmType>(3));
  EXPECT_EQ(StatusOf(Start(Method::kAlarm, alarm)), ToCallStatus(ApiError::kUnknownAlarm));
  EXPECT_EQ(backend.proposals.size(), 2u);
  // What an etcd member raised can be seen and cleared.
  for (const auto action : {etcdserverpb::AlarmRequest::GET, etcdserverpb::AlarmRequest::DEACTIVATE}) {
    const size_t before = backend.proposals.size();
    alarm.set_action(action);
    Start(Method::kAlarm, alarm);
    EXPECT_EQ(backend.proposals.size(), before + 1);
  }
}

TEST_F(ServicesTest, StatusShowsAlarmsAndTheDowngrade) {
  backend.status.alarms = {{.type = 1, .member = MemberId(11)}, {.type = 7, .member = MemberId(12)}};
  backend.status.downgrade = {.enabled = true, .target_version = "3.6.0"};
  const std::vector<std::string> sent = Sent(Start(Method::kStatus, etcdserverpb::StatusRequest()));
  EXPECT_THAT(sent, ::testing::ElementsAre(::testing::HasSubstr(
                        "errors: \"memberID:11 alarm:NOSPACE\" errors: \"memberID:12 alarm:7\"")));
  EXPECT_THAT(sent, ::testing::ElementsAre(
                        ::testing::HasSubstr("downgradeInfo { enabled: true targetVersion: \"3.6.0\" }")));
}

// --- transactions, compaction, hashes ---------------------------------------------------------------------------------

etcdserverpb::RequestOp PutOp(std::string_view key) {
  etcdserverpb::RequestOp op;
  op.mutable_request_put()->set_key(std::string(key));
  return op;
}
etcdserverpb::RequestOp RangeOp(std::string_view key, bool serializable = false) {
  etcdserverpb::RequestOp op;
  op.mutable_request_range()->set_key(std::string(key));
  op.mutable_request_range()->set_serializable(serializable);
  return op;
}

TEST_F(ServicesTest, WritingTxnIsProposed) {
  etcdserverpb::TxnRequest txn;
  *txn.add_success() = RangeOp("a");
  *txn.add_failure() = PutOp("a");
  Start(Method::kTxn, txn);
  ASSERT_EQ(backend.proposals.size(), 1u);
  EXPECT_EQ(backend.proposals[0].second.txn().ShortDebugString(), txn.ShortDebugString());
  EXPECT_EQ(services.open_call_count(), 0u);
}

TEST_F(ServicesTest, ReadOnlyTxnWaitsForItsReadIndexUnlessAllRangesAreSerializable) {
  backend.Put("a", "1");
  etcdserverpb::TxnRequest txn;
  *txn.add_success() = RangeOp("a", true);
  const std::string answer = std::string(kHeader) +
                             " succeeded: true responses { response_range { header { revision: 2 } kvs { key: \"a\" "
                             "create_revision: 2 mod_revision: 2 version: 1 value: \"1\" } count: 1 } }";
  EXPECT_EQ(Sent(Start(Method::kTxn, txn)), std::vector<std::string>{answer});
  EXPECT_TRUE(backend.reads.empty());
  *txn.add_failure() = RangeOp("b");
  const CallId call = Start(Method::kTxn, txn);
  EXPECT_FALSE(Finished(call));
  backend.FinishRead(ApiError::kOk);
  EXPECT_EQ(Sent(call), std::vector<std::string>{answer});
  EXPECT_TRUE(backend.proposals.empty());
  EXPECT_EQ(services.open_call_count(), 0u);
}

TEST_F(ServicesTest, EmptyTxnSucceedsAtOnce) {
  EXPECT_EQ(Sent(Start(Method::kTxn, etcdserverpb::TxnRequest())),
            std::vector<std::string>{"header { cluster_id: 10 member_id: 11 revision: 1 raft_term: 4 } succeeded: true"});
}

TEST_F(ServicesTest, ReadOnlyTxnTellsWhatIsWrongWithARevision) {
  backend.Put("a", "1");
  backend.Put("a", "2");
  ASSERT_EQ(backend.mutable_store().Compact(Revision(3)), mvcc::RangeError::kOk);
  etcdserverpb::TxnRequest txn;
  *txn.add_success() = RangeOp("a", true);
  auto at = [&](int64_t revision) {
    txn.mutable_success(0)->mutable_request_range()->set_revision(revision);
    return StatusOf(Start(Method::kTxn, txn));
  };
  EXPECT_EQ(at(4), ToCallStatus(ApiError::kFutureRev));
  EXPECT_EQ(at(2), ToCallStatus(ApiError::kCompacted));
  EXPECT_EQ(at(-1), ToCallStatus(ApiError::kCompacted));
  EXPECT_TRUE(at(3).ok());
  EXPECT_TRUE(at(0).ok());
}

TEST_F(ServicesTest, CompactionIsProposedAsItIs) {
  etcdserverpb::CompactionRequest request;
  request.set_revision(-4);
  request.set_physical(true);
  Start(Method::kCompact, request);
  ASSERT_EQ(backend.proposals.size(), 1u);
  EXPECT_EQ(backend.proposals[0].second.compaction().ShortDebugString(), request.ShortDebugString());
}

TEST_F(ServicesTest, HashKvAnswersWithWhatTheBackendFound) {
  backend.Put("a", "1");
  etcdserverpb::HashKVRequest request;
  request.set_revision(2);
  const CallId call = Start(Method::kHashKV, request);
  const CallId refused = Start(Method::kHashKV, request);
  const CallId cancelled = Start(Method::kHashKV, request);
  services.Cancel(transport, cancelled);
  ASSERT_EQ(backend.hashes.size(), 3u);
  EXPECT_EQ(backend.hashes[0].revision, Revision(2));
  const mvcc::HashResult result{.hash = 5, .compact_revision = Revision(-1), .revision = Revision(2)};
  services.OnHashReady(backend.hashes[0].waiter, ApiError::kOk, result);
  services.OnHashReady(backend.hashes[1].waiter, ApiError::kFutureRev, {});
  services.OnHashReady(backend.hashes[2].waiter, ApiError::kOk, result);
  EXPECT_EQ(Sent(call), std::vector<std::string>{std::string(kHeader) + " hash: 5 compact_revision: -1 hash_revision: 2"});
  EXPECT_EQ(StatusOf(refused), ToCallStatus(ApiError::kFutureRev));
  EXPECT_TRUE(Sent(cancelled).empty());
  EXPECT_EQ(services.open_call_count(), 0u);
}

// --- ranges of more than a slice -------------------------------------------------------------------------------------

class LongRangeTest : public ServicesTest {
 protected:
  static constexpr int kKeys = 3 * static_cast<int>(kRangeSlicePairs) + 7;
  LongRangeTest() {
    for (int i = 0; i < kKeys; ++i) backend.Put("k" + std::to_string(10'000 + i), std::to_string(i % 7));
  }
  static RangeRequest All() {
    RangeRequest request = RangeOf("k");
    request.set_range_end("l");
    request.set_serializable(true);
    return request;
  }
  // The answer as it would be in one go, now.
  std::string Whole(const RangeRequest& request) {
    etcdserverpb::RangeResponse response;
    EXPECT_EQ(ReadRange(backend.store(), request, response), ApiError::kOk);
    FillHeader(backend.Status(), backend.store().revision(), *response.mutable_header());
    return response.SerializeAsString();
  }
  int WorkAll() {
    int slices = 0;
    while (backend.Work()) ++slices;
    return slices;
  }
  const std::optional<std::string>& Encoded(CallId call) { return transport.calls[call].encoded; }
};

TEST_F(LongRangeTest, IsOneMessageByteForByte) {
  for (const auto order : {RangeRequest::NONE, RangeRequest::ASCEND, RangeRequest::DESCEND}) {
    for (const auto target : {RangeRequest::KEY, RangeRequest::MOD, RangeRequest::VALUE}) {
      for (const int64_t limit : {0, 2'500}) {
        RangeRequest request = All();
        request.set_sort_order(order);
        request.set_sort_target(target);
        request.set_limit(limit);
        const CallId call = Start(Method::kRange, request);
        EXPECT_FALSE(Finished(call));
        EXPECT_GE(WorkAll(), 3);
        EXPECT_TRUE(StatusOf(call).ok());
        ASSERT_TRUE(Encoded(call));
        EXPECT_TRUE(*Encoded(call) == Whole(request));
      }
    }
  }
  EXPECT_EQ(services.open_call_count(), 0u);
}

TEST_F(LongRangeTest, RangeOfOneSliceIsAnsweredInItsTurn) {
  RangeRequest request = All();
  request.set_range_end("k" + std::to_string(10'000 + kRangeSlicePairs));
  EXPECT_TRUE(Finished(Start(Method::kRange, request)));
  request.set_range_end("k" + std::to_string(10'001 + kRangeSlicePairs));
  EXPECT_FALSE(Finished(Start(Method::kRange, request)));
  request = All();
  request.set_limit(500);  // all keys are counted, which is cheap
  EXPECT_TRUE(Finished(Start(Method::kRange, request)));
}

TEST_F(LongRangeTest, ShowsTheRevisionOfItsBeginningWhateverComesBetween) {
  const CallId call = Start(Method::kRange, All());
  ASSERT_TRUE(backend.Work());
  const std::string before = Whole(All());
  backend.Put("k10000", "later");
  backend.Put("k99999", "new");
  mvcc::Store& store = backend.mutable_store();
  ASSERT_EQ(store.Compact(store.revision()), mvcc::RangeError::kOk);
  while (store.HasWork()) store.Work();
  WorkAll();
  EXPECT_TRUE(StatusOf(call).ok());
  EXPECT_TRUE(Encoded(call) == before);
  EXPECT_TRUE(store.HasWork());  // the removal goes on now
}

TEST_F(LongRangeTest, ErrorsOfTheRevisionComeAtTheBeginning) {
  RangeRequest request = All();
  request.set_revision(kKeys + 1);
  const CallId late = Start(Method::kRange, request);
  ASSERT_EQ(backend.mutable_store().Compact(Revision(kKeys + 1)), mvcc::RangeError::kOk);
  request.set_revision(kKeys);
  EXPECT_EQ(StatusOf(Start(Method::kRange, request)), ToCallStatus(ApiError::kCompacted));
  request.set_revision(kKeys + 2);
  EXPECT_EQ(StatusOf(Start(Method::kRange, request)), ToCallStatus(ApiError::kFutureRev));
  backend.Put("k", "");
  ASSERT_EQ(backend.mutable_store().Compact(Revision(kKeys + 2)), mvcc::RangeError::kOk);
  WorkAll();  // it had not begun
  EXPECT_EQ(StatusOf(late), ToCallStatus(ApiError::kCompacted));
  EXPECT_EQ(services.open_call_count(), 0u);
}

TEST_F(LongRangeTest, LinearizableOneWaitsForItsReadIndexFirst) {
  RangeRequest request = All();
  request.set_serializable(false);
  const CallId call = Start(Method::kRange, request);
  EXPECT_FALSE(backend.Work());
  backend.FinishRead(ApiError::kOk);
  EXPECT_FALSE(Finished(call));
  WorkAll();
  EXPECT_TRUE(Encoded(call) == Whole(request));
}

TEST_F(LongRangeTest, AreServedOneAfterAnotherAndTheDeadAreLeftOut) {
  std::vector<CallId> calls;
  for (int i = 0; i < 6; ++i) calls.push_back(Start(Method::kRange, All()));
  ASSERT_TRUE(backend.Work());
  for (const int dead : {0, 2, 3, 5}) services.Cancel(transport, calls[static_cast<size_t>(dead)]);
  EXPECT_EQ(services.open_call_count(), 2u);
  const std::string whole = Whole(All());
  WorkAll();
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(Finished(calls[i]), i == 1 || i == 4) << i;
    EXPECT_EQ(Encoded(calls[i]) == whole, i == 1 || i == 4) << i;
  }
  EXPECT_EQ(services.open_call_count(), 0u);
  mvcc::Store& store = backend.mutable_store();  // nothing is held any more
  backend.Put("k10000", "");
  ASSERT_EQ(store.Compact(store.revision()), mvcc::RangeError::kOk);
  while (store.HasWork()) store.Work();
  EXPECT_EQ(store.removed_revision(), store.revision());
}

TEST_F(LongRangeTest, CountOfManyKeysIsCutToo) {
  for (int i = 0; i < static_cast<int>(kRangeSliceKeys); ++i) backend.Put("n" + std::to_string(i), "");
  RangeRequest request = All();
  request.set_range_end("o");
  request.set_count_only(true);
  const CallId call = Start(Method::kRange, request);
  EXPECT_GE(WorkAll(), 2);
  EXPECT_TRUE(Encoded(call) == Whole(request));
}

// --- RangeStream -------------------------------------------------------------------------------------------------------

class RangeStreamTest : public ServicesTest {
 protected:
  RangeStreamTest() {
    for (int i = 0; i < 57; ++i) backend.Put("s" + std::to_string(100 + i), "v");
  }
  // All keys with s, serializable.
  static RangeRequest All() {
    RangeRequest request = RangeOf("s");
    request.set_range_end("t");
    request.set_serializable(true);
    return request;
  }
  // The pairs of each message.
  std::vector<int> Pairs(CallId call) {
    std::vector<int> pairs;
    for (const std::string& text : Sent(call)) {
      int count = 0;
      for (size_t at = text.find("kvs {"); at != std::string::npos; at = text.find("kvs {", at + 1)) ++count;
      pairs.push_back(count);
    }
    return pairs;
  }
};

constexpr char kStreamEnd[] = "header { cluster_id: 10 member_id: 11 revision: 58 raft_term: 4 }";

TEST_F(RangeStreamTest, PartsGrowAndTheLastHasTheHeaderAndTheCount) {
  const CallId call = Start(Method::kRangeStream, All());
  EXPECT_EQ(Pairs(call), (std::vector<int>{10, 20, 27}));
  EXPECT_TRUE(StatusOf(call).ok());
  EXPECT_THAT(Sent(call)[0], ::testing::Not(::testing::HasSubstr("header")));
  EXPECT_THAT(Sent(call)[2], ::testing::HasSubstr(kStreamEnd));
  EXPECT_THAT(Sent(call)[2], ::testing::EndsWith("count: 57 }"));
  EXPECT_EQ(services.open_call_count(), 0u);
}

TEST_F(RangeStreamTest, LimitCutsAndCountsTheRest) {
  RangeRequest request = All();
  for (const auto& [limit, pairs, more] : std::vector<std::tuple<int64_t, std::vector<int>, bool>>{
           {1, {1}, true}, {10, {10}, true}, {25, {10, 15}, true}, {57, {10, 20, 27}, false}, {58, {10, 20, 27}, false},
           {-3, {57}, false}, {std::numeric_limits<int64_t>::min(), {57}, false}}) {
    request.set_limit(limit);
    const CallId call = Start(Method::kRangeStream, request);
    EXPECT_EQ(Pairs(call), pairs) << limit;
    EXPECT_THAT(Sent(call).back(), ::testing::HasSubstr(more ? "more: true count: 57" : "} count: 57")) << limit;
  }
}

TEST_F(RangeStreamTest, CountOnlyAndEmptyRangesAreOneMessage) {
  RangeRequest request = All();
  request.set_count_only(true);
  request.set_limit(3);
  EXPECT_EQ(Sent(Start(Method::kRangeStream, request)),
            std::vector<std::string>{std::string("range_response { ") + kStreamEnd + " count: 57 }"});
  request = All();
  request.set_key("x");
  request.set_range_end("y");
  EXPECT_EQ(Sent(Start(Method::kRangeStream, request)),
            std::vector<std::string>{std::string("range_response { ") + kStreamEnd + " }"});
}

TEST_F(RangeStreamTest, ChecksInOrder) {
  RangeRequest request = All();
  auto refused = [&] { return StatusOf(Start(Method::kRangeStream, request)); };
  request.set_revision(59);
  EXPECT_EQ(refused(), ToCallStatus(ApiError::kFutureRev));
  request.set_min_mod_revision(-1);
  EXPECT_EQ(refused(), ToCallStatus(ApiError::kStreamFilterUnsupported));
  request.set_sort_order(RangeRequest::DESCEND);
  EXPECT_EQ(refused(), ToCallStatus(ApiError::kStreamSortUnsupported));
  request.set_sort_order(RangeRequest::ASCEND);
  request.set_sort_target(RangeRequest::VERSION);
  EXPECT_EQ(refused(), ToCallStatus(ApiError::kStreamSortUnsupported));
  request.set_sort_order(static_cast<RangeRequest::SortOrder>(7));
  EXPECT_EQ(refused(), ToCallStatus(ApiError::kInvalidSortOption));
  request.set_key("");
  EXPECT_EQ(refused(), ToCallStatus(ApiError::kEmptyKey));
}

TEST_F(RangeStreamTest, SendsNoMoreThanTheClientsCredit) {
  transport.credit = 1;
  const CallId call = Start(Method::kRangeStream, All());
  EXPECT_EQ(Pairs(call), std::vector<int>{10});
  backend.Put("s000", "late");  // not in the stream's revision
  transport.credit = 1;
  services.Credit(transport, call);
  EXPECT_EQ(Pairs(call), (std::vector<int>{10, 20}));
  transport.credit = 1;
  services.Credit(transport, call);
  EXPECT_TRUE(StatusOf(call).ok());
  EXPECT_THAT(Sent(call).back(), ::testing::HasSubstr(kStreamEnd));
  services.Credit(transport, call);  // late: the call is over
  EXPECT_EQ(Sent(call).size(), 3u);
}

TEST_F(RangeStreamTest, CancelEndsIt) {
  transport.credit = 1;
  const CallId call = Start(Method::kRangeStream, All());
  services.Cancel(transport, call);
  transport.credit = 9;
  services.Credit(transport, call);
  EXPECT_EQ(Sent(call).size(), 1u);
  EXPECT_EQ(services.open_call_count(), 0u);
}

TEST_F(RangeStreamTest, CompactionInTheMiddleEndsIt) {
  transport.credit = 1;
  const CallId call = Start(Method::kRangeStream, All());
  backend.Put("x", "1");
  ASSERT_EQ(backend.mutable_store().Compact(Revision(59)), mvcc::RangeError::kOk);
  transport.credit = 1;
  services.Credit(transport, call);
  EXPECT_EQ(StatusOf(call), ToCallStatus(ApiError::kCompacted));
}

TEST_F(RangeStreamTest, LargeValuesEndAPartEarly) {
  for (int i = 0; i < 12; ++i) backend.Put("L" + std::to_string(100 + i), std::string(1'000'000, 'v'));
  RangeRequest request = All();
  request.set_key("L");
  request.set_range_end("M");
  const CallId call = Start(Method::kRangeStream, request);
  EXPECT_EQ(Pairs(call), (std::vector<int>{4, 4, 2, 2}));
}

TEST_F(RangeStreamTest, WaitsForItsReadIndex) {
  RangeRequest request = All();
  request.set_serializable(false);
  const CallId call = Start(Method::kRangeStream, request);
  EXPECT_TRUE(Sent(call).empty());
  backend.FinishRead(ApiError::kOk);
  EXPECT_EQ(Pairs(call), (std::vector<int>{10, 20, 27}));
}

TEST_F(ServicesTest, StatusShowsTheMember) {
  backend.status.backend_bytes = 100;
  backend.status.backend_bytes_in_use = 60;
  const CallId call = Start(Method::kStatus, etcdserverpb::StatusRequest());
  EXPECT_EQ(
      Sent(call),
      std::vector<std::string>{
          "header { cluster_id: 10 member_id: 11 revision: 1 raft_term: 4 } version: \"3.7.3\" dbSize: 100 leader: 11 "
          "raftIndex: 9 raftTerm: 5 raftAppliedIndex: 8 dbSizeInUse: 60 storageVersion: \"3.7.0\" "
          "dbSizeQuota: 2147483648 downgradeInfo { }"});
  backend.status.leader = MemberId();
  const CallId without = Start(Method::kStatus, etcdserverpb::StatusRequest());
  EXPECT_THAT(Sent(without)[0], ::testing::HasSubstr("errors: \"etcdserver: no leader\""));
}

TEST_F(ServicesTest, MemberListLeavesTheRevisionOut) {
  backend.members = {{.id = MemberId(11), .name = "a", .peer_urls = {"http://p"}, .client_urls = {"http://c"}}};
  const std::string expected =
      "header { cluster_id: 10 member_id: 11 raft_term: 4 } members { ID: 11 name: \"a\" peerURLs: \"http://p\" "
      "clientURLs: \"http://c\" }";
  etcdserverpb::MemberListRequest request;
  EXPECT_EQ(Sent(Start(Method::kMemberList, request)), std::vector<std::string>{expected});
  request.set_linearizable(true);
  const CallId call = Start(Method::kMemberList, request);
  EXPECT_FALSE(Finished(call));
  backend.FinishRead(ApiError::kOk);
  EXPECT_EQ(Sent(call), std::vector<std::string>{expected});
}

TEST_F(ServicesTest, HealthKnowsOneServiceOfTheEmptyName) {
  grpc::health::v1::HealthCheckRequest request;
  EXPECT_EQ(Sent(Start(Method::kHealthCheck, request)), std::vector<std::string>{"status: SERVING"});
  EXPECT_EQ(Sent(Start(Method::kHealthList, grpc::health::v1::HealthListRequest())),
            std::vector<std::string>{"statuses { key: \"\" value { status: SERVING } }"});
  request.set_service("x");
  EXPECT_EQ(StatusOf(Start(Method::kHealthCheck, request)), ToCallStatus(ApiError::kHealthServiceUnknown));
  const CallId watch = Start(Method::kHealthWatch, request);
  EXPECT_EQ(Sent(watch), std::vector<std::string>{"status: SERVICE_UNKNOWN"});
  EXPECT_FALSE(Finished(watch));
  services.Cancel(transport, watch);
  EXPECT_EQ(services.open_call_count(), 0u);
}

TEST_F(ServicesTest, CallsOfTwoTransportsWithOneIdAreTwoCalls) {
  testing::FakeTransport other;
  services.Open(transport, 900, {.method = Method::kRange});
  services.Open(other, 900, {.method = Method::kStatus});
  services.Message(other, 900, etcdserverpb::StatusRequest());
  EXPECT_EQ(other.finishes, 1);
  EXPECT_EQ(transport.finishes, 0);
  EXPECT_EQ(services.open_call_count(), 1u);
}

}  // namespace
}  // namespace detcd::rpc
