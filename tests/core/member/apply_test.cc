#include "core/member/apply.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/text_format.h>

#include "core/member/member_context.h"
#include "core/proto/raft.pb.h"
#include "core/proto/raft_internal.pb.h"
#include "core/proto/rpc.pb.h"

namespace detcd::member {
namespace {

using etcdserverpb::InternalRaftRequest;
using raft::EntryType;
using rpc::ApiError;

struct Everybody final : LocalWaiters {
  bool Waits(uint64_t) const override { return true; }
};

// A store, the state around it, and the log position.
class Applier {
 public:
  explicit Applier(bool waits) : waits_(waits) {}

  absl::StatusOr<ApplyResult> Apply(EntryType type, std::string_view data) {
    return ApplyEntry(state,
                      {.term = Term(2), .index = state.applied_index + 1, .type = type, .data = Bytes::Copy(data)},
                      waits_ ? &everybody_ : nullptr, arena_);
  }
  absl::StatusOr<ApplyResult> Apply(InternalRaftRequest request) {
    request.mutable_header()->set_id(42);
    return Apply(EntryType::kNormal, request.SerializeAsString());
  }
  absl::StatusOr<ApplyResult> Put(std::string_view key, std::string_view value, bool prev_kv = false) {
    InternalRaftRequest request;
    request.mutable_put()->set_key(std::string(key));
    request.mutable_put()->set_value(std::string(value));
    request.mutable_put()->set_prev_kv(prev_kv);
    return Apply(request);
  }
  absl::StatusOr<ApplyResult> Add(uint64_t id, std::string url,
                                  raftpb::ConfChangeType type = raftpb::ConfChangeAddNode) {
    raftpb::ConfChange change;
    change.set_type(type);
    change.set_node_id(id);
    change.set_context(
        EncodeMemberContext({.member = {.id = MemberId(id), .name = "m", .peer_urls = {std::move(url)}}}));
    return Apply(EntryType::kConfChange, change.SerializeAsString());
  }

  mvcc::Store store;
  ApplyState state{.store = store, .members = {}, .cluster_version = {}, .applied_index = {}, .applied_term = {}};

 private:
  bool waits_;
  Everybody everybody_;
  google::protobuf::Arena arena_;
};

std::string ResponseText(const absl::StatusOr<ApplyResult>& result) {
  if (!result.ok()) return result.status().ToString();
  return result->response == nullptr ? "none" : result->response->ShortDebugString();
}

TEST(ApplyTest, EmptyEntryOnlyMovesTheIndex) {
  Applier applier(true);
  const auto result = applier.Apply(EntryType::kNormal, "");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->index, LogIndex(1));
  EXPECT_EQ(result->request_id, 0u);
  EXPECT_EQ(applier.state.applied_index, LogIndex(1));
  EXPECT_EQ(applier.state.applied_term, Term(2));
  EXPECT_EQ(applier.store.revision(), Revision(1));
}

TEST(ApplyTest, PutChangesTheStoreAndAnswers) {
  Applier applier(true);
  auto result = applier.Put("k", "v1");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->request_id, 42u);
  EXPECT_EQ(ResponseText(result), "header { revision: 2 }");
  EXPECT_EQ(
      ResponseText(applier.Put("k", "v2", true)),
      "header { revision: 3 } prev_kv { key: \"k\" create_revision: 2 mod_revision: 2 version: 1 value: \"v1\" }");
  EXPECT_EQ(ResponseText(applier.Put("new", "", true)), "header { revision: 4 }");
  EXPECT_EQ(ResponseText(applier.Put("new", "unasked")), "header { revision: 5 }");
}

TEST(ApplyTest, PutSharesTheValueWithItsEntry) {
  Applier applier(false);
  InternalRaftRequest request;
  request.mutable_put()->set_key("k");
  request.mutable_put()->set_value(std::string(100, 'v'));
  request.mutable_header()->set_id(1);
  const Bytes data = Bytes::Copy(request.SerializeAsString());
  google::protobuf::Arena arena;
  ASSERT_TRUE(ApplyEntry(applier.state, {.term = Term(2), .index = LogIndex(1), .data = data}, nullptr, arena).ok());
  const char* value = applier.store.Get("k")->value.data();
  EXPECT_GE(value, data.data());
  EXPECT_LT(value, data.data() + data.size());
  EXPECT_EQ(arena.SpaceUsed(), 0u);
}

TEST(ApplyTest, PutInAnUnusualFormIsTheSamePut) {
  // Two put fields merge, as protobuf has it: the later value wins, the key stays.
  InternalRaftRequest first, second;
  first.mutable_put()->set_key("k");
  first.mutable_put()->set_value("old");
  first.set_id(9);
  second.mutable_put()->set_value("new");
  Applier applier(true);
  const auto result = applier.Apply(EntryType::kNormal, first.SerializeAsString() + second.SerializeAsString());
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->request_id, 9u);
  EXPECT_EQ(applier.store.Get("k")->value.view(), "new");
}

TEST(ApplyTest, RefusedPutsChangeNothing) {
  Applier applier(true);
  InternalRaftRequest request;
  request.mutable_put()->set_key("absent");
  request.mutable_put()->set_lease(5);
  request.mutable_put()->set_ignore_value(true);
  EXPECT_EQ(applier.Apply(request)->error, ApiError::kLeaseNotFound);  // before the key is looked for
  request.mutable_put()->clear_lease();
  EXPECT_EQ(applier.Apply(request)->error, ApiError::kKeyNotFound);
  request.mutable_put()->clear_ignore_value();
  request.mutable_put()->set_ignore_lease(true);
  const auto result = applier.Apply(request);
  EXPECT_EQ(result->error, ApiError::kKeyNotFound);
  EXPECT_EQ(ResponseText(result), "none");
  EXPECT_EQ(applier.store.revision(), Revision(1));
  EXPECT_EQ(applier.state.applied_index, LogIndex(3));
}

TEST(ApplyTest, IgnoredValueStaysAndCountsAsAPut) {
  Applier applier(true);
  ASSERT_TRUE(applier.Put("k", "v").ok());
  InternalRaftRequest request;
  request.mutable_put()->set_key("k");
  request.mutable_put()->set_ignore_value(true);
  ASSERT_TRUE(applier.Apply(request).ok());
  const auto pair = applier.store.Get("k");
  EXPECT_EQ(pair->value.view(), "v");
  EXPECT_EQ(pair->version, 2);
  EXPECT_EQ(pair->mod_revision, Revision(3));
}

TEST(ApplyTest, DeleteRangeAnswersWithItsRevision) {
  Applier applier(true);
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(applier.Put(key, key).ok());
  InternalRaftRequest request;
  request.mutable_delete_range()->set_key("a");
  request.mutable_delete_range()->set_range_end("c");
  request.mutable_delete_range()->set_prev_kv(true);
  EXPECT_EQ(ResponseText(applier.Apply(request)),
            "header { revision: 5 } deleted: 2 "
            "prev_kvs { key: \"a\" create_revision: 2 mod_revision: 2 version: 1 value: \"a\" } "
            "prev_kvs { key: \"b\" create_revision: 3 mod_revision: 3 version: 1 value: \"b\" }");
  EXPECT_EQ(ResponseText(applier.Apply(request)), "header { revision: 5 }");
}

TEST(ApplyTest, RangeInTheLogReadsAndChangesNothing) {
  Applier applier(true);
  ASSERT_TRUE(applier.Put("a", "1").ok());
  InternalRaftRequest request;
  request.mutable_range()->set_key("a");
  EXPECT_EQ(
      ResponseText(applier.Apply(request)),
      "header { revision: 2 } kvs { key: \"a\" create_revision: 2 mod_revision: 2 version: 1 value: \"1\" } count: 1");
  request.mutable_range()->set_revision(9);
  EXPECT_EQ(applier.Apply(request)->error, ApiError::kFutureRev);
}

InternalRaftRequest AlarmOf(etcdserverpb::AlarmRequest::AlarmAction action, int type, uint64_t member) {
  InternalRaftRequest request;
  request.mutable_alarm()->set_action(action);
  request.mutable_alarm()->set_alarm(static_cast<etcdserverpb::AlarmType>(type));
  request.mutable_alarm()->set_memberid(member);
  return request;
}

TEST(ApplyTest, AlarmsAreRaisedListedAndCleared) {
  using etcdserverpb::AlarmRequest;
  Applier applier(true);
  EXPECT_EQ(ResponseText(applier.Apply(AlarmOf(AlarmRequest::GET, 0, 0))), "header { }");
  EXPECT_EQ(ResponseText(applier.Apply(AlarmOf(AlarmRequest::ACTIVATE, 0, 7))), "header { }");
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(ResponseText(applier.Apply(AlarmOf(AlarmRequest::ACTIVATE, 1, 7))),
              "header { } alarms { memberID: 7 alarm: NOSPACE }");
  }
  EXPECT_EQ(ResponseText(applier.Apply(AlarmOf(AlarmRequest::GET, 2, 0))), "header { }");
  EXPECT_EQ(ResponseText(applier.Apply(AlarmOf(AlarmRequest::GET, 0, 99))),
            "header { } alarms { memberID: 7 alarm: NOSPACE }");
  EXPECT_EQ(ResponseText(applier.Apply(AlarmOf(AlarmRequest::DEACTIVATE, 1, 8))), "header { }");
  EXPECT_EQ(ResponseText(applier.Apply(AlarmOf(AlarmRequest::DEACTIVATE, 1, 7))),
            "header { } alarms { memberID: 7 alarm: NOSPACE }");
  EXPECT_TRUE(applier.state.alarms.empty());
}

TEST(ApplyTest, AlarmsRefuseWhatTheyMustNotLetThrough) {
  Applier applier(true);
  InternalRaftRequest erase, range, compaction, read_txn, put_txn;
  erase.mutable_delete_range()->set_key("a");
  range.mutable_range()->set_key("a");
  compaction.mutable_compaction()->set_revision(1);
  read_txn.mutable_txn()->add_success()->mutable_request_range()->set_key("a");
  put_txn.mutable_txn()->add_failure()->mutable_request_txn()->add_success()->mutable_request_put()->set_key("a");
  applier.state.alarms = {{.type = etcdserverpb::NOSPACE, .member = MemberId(3)}};
  EXPECT_EQ(applier.Put("a", "1")->error, ApiError::kNoSpace);
  EXPECT_EQ(applier.Apply(put_txn)->error, ApiError::kNoSpace);
  for (const auto& request : {erase, range, compaction, read_txn}) {
    EXPECT_EQ(applier.Apply(request)->error, ApiError::kOk) << request.ShortDebugString();
  }
  applier.state.alarms.insert({.type = etcdserverpb::CORRUPT, .member = MemberId(4)});
  EXPECT_EQ(applier.Put("a", "1")->error, ApiError::kCorrupt);
  for (const auto& request : {put_txn, erase, range, compaction, read_txn}) {
    EXPECT_EQ(applier.Apply(request)->error, ApiError::kCorrupt) << request.ShortDebugString();
  }
}

TEST(ApplyTest, DowngradeIsKeptAndEnds) {
  Applier applier(true);
  InternalRaftRequest request;
  request.mutable_downgrade_info_set()->set_enabled(true);
  request.mutable_downgrade_info_set()->set_ver("3.6.0");
  ASSERT_TRUE(applier.Apply(request).ok());
  EXPECT_EQ(applier.state.downgrade, (rpc::Downgrade{.enabled = true, .target_version = "3.6.0"}));
  request.mutable_downgrade_info_set()->set_enabled(false);
  ASSERT_TRUE(applier.Apply(request).ok());
  EXPECT_EQ(applier.state.downgrade, rpc::Downgrade());
}

TEST(ApplyTest, CompactionAnswersWithTheCurrentRevision) {
  Applier applier(true);
  applier.Put("a", "1").IgnoreError();
  InternalRaftRequest request;
  request.mutable_compaction()->set_revision(2);
  const auto plain = applier.Apply(request);
  EXPECT_EQ(ResponseText(plain), "header { revision: 2 }");
  EXPECT_EQ(plain->answer_after_removal, std::nullopt);
  EXPECT_EQ(applier.Apply(request)->error, ApiError::kCompacted);
  request.mutable_compaction()->set_revision(4);
  request.mutable_compaction()->set_physical(true);
  EXPECT_EQ(applier.Apply(request)->error, ApiError::kFutureRev);
  applier.Put("a", "1").IgnoreError();
  request.mutable_compaction()->set_revision(3);
  EXPECT_EQ(applier.Apply(request)->answer_after_removal, Revision(3));
}

// --- transactions ------------------------------------------------------------------------------------------------------

InternalRaftRequest TxnOf(std::string_view text) {
  InternalRaftRequest request;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(std::string(text), request.mutable_txn())) << text;
  return request;
}

TEST(ApplyTxnTest, HeadersShowTheRevisionAtEachStep) {
  Applier applier(true);
  applier.Put("w", "v").IgnoreError();
  EXPECT_EQ(ResponseText(applier.Apply(TxnOf(R"(
              success { request_delete_range { key: "zzz" } }
              success { request_range { key: "a" } }
              success { request_put { key: "w" value: "x" prev_kv: true } }
              success { request_range { key: "w" } }
              success { request_delete_range { key: "w9" } }
              success { request_txn { success { request_range { key: "w" count_only: true } } } })"))),
            "header { revision: 3 } succeeded: true"
            " responses { response_delete_range { header { revision: 2 } } }"
            " responses { response_range { header { revision: 2 } } }"
            " responses { response_put { header { revision: 3 } prev_kv { key: \"w\" create_revision: 2 mod_revision: 2"
            " version: 1 value: \"v\" } } }"
            " responses { response_range { header { revision: 3 } kvs { key: \"w\" create_revision: 2 mod_revision: 3"
            " version: 2 value: \"x\" } count: 1 } }"
            " responses { response_delete_range { header { revision: 3 } } }"
            " responses { response_txn { header { } succeeded: true"
            " responses { response_range { header { revision: 3 } count: 1 } } } }");
}

TEST(ApplyTxnTest, WithoutChangesTheRevisionStays) {
  Applier applier(true);
  applier.Put("a", "1").IgnoreError();
  EXPECT_EQ(ResponseText(applier.Apply(TxnOf(R"(compare { key: "a" target: VERSION version: 9 }
                                                success { request_put { key: "b" } })"))),
            "header { revision: 2 }");
  EXPECT_EQ(ResponseText(applier.Apply(TxnOf(R"(success { request_delete_range { key: "b" } })"))),
            "header { revision: 2 } succeeded: true responses { response_delete_range { header { revision: 2 } } }");
}

TEST(ApplyTxnTest, AllBranchesAreChosenBeforeAnyOpRuns) {
  Applier applier(true);
  EXPECT_EQ(ResponseText(applier.Apply(TxnOf(R"(
              success { request_put { key: "a" value: "1" } }
              success { request_txn { compare { key: "a" target: VERSION version: 0 }
                                      success { request_put { key: "b" } } failure { request_put { key: "c" } } } }
              success { request_txn { compare { key: "a" target: VERSION version: 1 }
                                      success { request_put { key: "d" } } } })"))),
            "header { revision: 2 } succeeded: true responses { response_put { header { revision: 2 } } }"
            " responses { response_txn { header { } succeeded: true"
            " responses { response_put { header { revision: 2 } } } } } responses { response_txn { header { } } }");
  EXPECT_TRUE(applier.store.Get("b"));
  EXPECT_FALSE(applier.store.Get("c"));
  EXPECT_FALSE(applier.store.Get("d"));
}

TEST(ApplyTxnTest, ChecksOfTheChosenBranchComeInOpOrderAndLeaveNothingDone) {
  Applier applier(false);
  applier.Put("a", "1").IgnoreError();
  applier.Put("a", "2").IgnoreError();
  InternalRaftRequest compaction;
  compaction.mutable_compaction()->set_revision(3);
  ASSERT_TRUE(applier.Apply(compaction).ok());
  auto error = [&](std::string_view text) { return applier.Apply(TxnOf(text))->error; };
  EXPECT_EQ(error(R"(success { request_put { key: "b" } } success { request_range { key: "a" revision: 4 } })"),
            ApiError::kFutureRev);  // also not the revision that this transaction would make
  EXPECT_EQ(error(R"(success { request_put { key: "b" } } success { request_range { key: "a" revision: 2 } })"),
            ApiError::kCompacted);
  EXPECT_EQ(error(R"(success { request_put { key: "b" } } success { request_range { key: "a" revision: -1 } })"),
            ApiError::kCompacted);
  EXPECT_EQ(error(R"(success { request_put { key: "b" lease: 5 } } success { request_range { key: "a" revision: 2 } })"),
            ApiError::kLeaseNotFound);
  EXPECT_EQ(error(R"(success { request_put { key: "b" } } success { request_put { key: "n" ignore_value: true } })"),
            ApiError::kKeyNotFound);
  EXPECT_EQ(error(R"(success { request_txn { success { request_range { key: "a" revision: 9 } } } })"),
            ApiError::kFutureRev);
  EXPECT_EQ(error(R"(failure { request_put { key: "b" lease: 5 } })"), ApiError::kOk);  // the other branch
  EXPECT_EQ(applier.store.revision(), Revision(3));
  EXPECT_FALSE(applier.store.Get("b"));
}

TEST(ApplyTxnTest, NegativeRevisionReadsTheNewestWhenNothingIsCompacted) {
  Applier applier(true);
  EXPECT_EQ(ResponseText(applier.Apply(TxnOf(R"(success { request_put { key: "w" } }
                                                success { request_range { key: "w" revision: -1 count_only: true } })"))),
            "header { revision: 2 } succeeded: true responses { response_put { header { revision: 2 } } }"
            " responses { response_range { header { revision: 2 } count: 1 } }");
  EXPECT_EQ(applier.Apply(TxnOf(R"(success { request_put { key: "w" } }
                                   success { request_range { key: "w" revision: -2 } })"))
                ->error,
            ApiError::kCompacted);
}

TEST(ApplyTxnTest, IgnoreFlagsKeepWhatIsThere) {
  Applier applier(true);
  applier.Put("a", "1").IgnoreError();
  ASSERT_EQ(applier.Apply(TxnOf(R"(success { request_put { key: "a" ignore_value: true } })"))->error, ApiError::kOk);
  EXPECT_EQ(applier.store.Get("a")->value.view(), "1");
  EXPECT_EQ(applier.store.Get("a")->version, 2);
  // Past the duplicate check by its open end: deleted first, nothing is left to keep.
  ASSERT_EQ(applier.Apply(TxnOf(R"(success { request_delete_range { key: "a" range_end: "\000" } }
                                   success { request_put { key: "a" ignore_value: true } })"))
                ->error,
            ApiError::kOk);
  EXPECT_EQ(applier.store.Get("a")->value.view(), "");
  EXPECT_EQ(applier.store.Get("a")->version, 1);
}

TEST(ApplyTxnTest, NestsAsDeepAsOperationsAllow) {
  InternalRaftRequest request;
  etcdserverpb::TxnRequest* txn = request.mutable_txn();
  for (int depth = 0; depth < 127; ++depth) txn = txn->add_success()->mutable_request_txn();
  txn->add_success()->mutable_request_put()->set_key("deep");
  Applier applier(true);
  ASSERT_TRUE(applier.Apply(request).ok());
  EXPECT_TRUE(applier.store.Get("deep"));
}

TEST(ApplyTest, CanApplyTellsWhatWouldStopTheMember) {
  auto can = [](const InternalRaftRequest& request) {
    return CanApply({.data = Bytes::Copy(request.SerializeAsString())});
  };
  InternalRaftRequest request;
  request.mutable_header()->set_id(4);
  EXPECT_TRUE(can(request));
  request.mutable_cluster_version_set();
  EXPECT_TRUE(can(request));
  request.mutable_lease_grant();
  EXPECT_FALSE(can(request));
  request.clear_cluster_version_set();
  EXPECT_FALSE(can(request));
  raftpb::ConfChange change;
  change.set_type(raftpb::ConfChangeAddNode);
  EXPECT_TRUE(CanApply({.type = EntryType::kConfChange, .data = Bytes::Copy(change.SerializeAsString())}));
  change.set_type(raftpb::ConfChangeRemoveNode);
  EXPECT_FALSE(CanApply({.type = EntryType::kConfChange, .data = Bytes::Copy(change.SerializeAsString())}));
  EXPECT_FALSE(CanApply({.type = EntryType::kConfChangeV2, .data = Bytes()}));
}

TEST(ApplyTest, BootstrapAddsMembersAndRefusesDuplicates) {
  Applier applier(true);
  auto result = applier.Add(11, "http://a");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->added_voter, MemberId(11));
  EXPECT_EQ(applier.state.members.at(MemberId(11)),
            (rpc::MemberRow{.id = MemberId(11), .name = "m", .peer_urls = {"http://a"}}));
  result = applier.Add(11, "http://b");
  EXPECT_EQ(result->error, ApiError::kMemberExist);
  EXPECT_EQ(result->added_voter, std::nullopt);
  EXPECT_EQ(applier.Add(12, "http://a")->error, ApiError::kPeerURLExist);
  EXPECT_EQ(applier.state.members.size(), 1u);
}

TEST(ApplyTest, MemberAttributesAndClusterVersionAreKept) {
  Applier applier(true);
  ASSERT_TRUE(applier.Add(11, "http://a").ok());
  InternalRaftRequest request;
  request.mutable_cluster_member_attr_set()->set_member_id(11);
  request.mutable_cluster_member_attr_set()->mutable_member_attributes()->set_name("n");
  request.mutable_cluster_member_attr_set()->mutable_member_attributes()->add_client_urls("http://c");
  ASSERT_TRUE(applier.Apply(request).ok());
  EXPECT_EQ(applier.state.members.at(MemberId(11)),
            (rpc::MemberRow{.id = MemberId(11), .name = "n", .peer_urls = {"http://a"}, .client_urls = {"http://c"}}));
  request.mutable_cluster_member_attr_set()->set_member_id(12);
  EXPECT_FALSE(applier.Apply(request).ok());

  InternalRaftRequest version;
  version.mutable_cluster_version_set()->set_ver("3.7.0");
  ASSERT_TRUE(applier.Apply(version).ok());
  EXPECT_EQ(applier.state.cluster_version, "3.7.0");
}

TEST(ApplyTest, UnknownKindsAreNamedAndLeaveTheStateAlone) {
  Applier applier(true);
  InternalRaftRequest grant;
  grant.mutable_lease_grant();
  EXPECT_EQ(applier.Apply(grant).status().message(), "entry 1: operation lease_grant is not part of this release");
  InternalRaftRequest two;
  two.mutable_put()->set_key("k");
  two.mutable_compaction();
  EXPECT_EQ(applier.Apply(two).status().message(), "entry 1: want one operation, have 2: put compaction");
  EXPECT_FALSE(applier.Apply(InternalRaftRequest()).ok());
  EXPECT_EQ(applier.Apply(EntryType::kNormal, "\x08").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(applier.Apply(EntryType::kNormal, "\x0a\x00\x22\x03\x0a\x01k").status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(applier.Apply(EntryType::kConfChange, "\xff").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(applier.Apply(EntryType::kConfChangeV2, "").ok());
  EXPECT_EQ(applier.Add(1, "u", raftpb::ConfChangeAddLearnerNode).status().message(),
            "entry 1: conf change ConfChangeAddLearnerNode of member 1 is not part of this release");
  EXPECT_EQ(applier.Add(1, "u", raftpb::ConfChangeRemoveNode).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(applier.state.applied_index, LogIndex(0));
  EXPECT_EQ(applier.store.revision(), Revision(1));
}

// --- equal on all members
// ----------------------------------------------------------------------------------------------

struct Step {
  EntryType type;
  std::string data;
};

Step AnyStep() {
  InternalRaftRequest request;
  request.mutable_header()->set_id(*rc::gen::inRange<uint64_t>(1, 5));
  const std::string key = *rc::gen::elementOf(std::vector<std::string>{"a", "b", "c", std::string(1, '\0')});
  switch (*rc::gen::inRange(0, 8)) {
    case 0:
      return {EntryType::kNormal, ""};
    case 1:
      request.mutable_delete_range()->set_key(key);
      request.mutable_delete_range()->set_range_end(
          *rc::gen::elementOf(std::vector<std::string>{"", "c", std::string(1, '\0')}));
      request.mutable_delete_range()->set_prev_kv(*rc::gen::arbitrary<bool>());
      break;
    case 2:
      request.mutable_range()->set_key(key);
      request.mutable_range()->set_revision(*rc::gen::inRange(-1, 6));
      break;
    case 3:
      request.mutable_cluster_version_set()->set_ver(*rc::gen::elementOf(std::vector<std::string>{"3.6.0", "3.7.0"}));
      break;
    case 4:
      request.mutable_compaction()->set_revision(*rc::gen::inRange(-1, 12));
      request.mutable_compaction()->set_physical(*rc::gen::arbitrary<bool>());
      break;
    case 5: {
      etcdserverpb::TxnRequest& txn = *request.mutable_txn();
      etcdserverpb::Compare& compare = *txn.add_compare();
      compare.set_key(key);
      compare.set_version(*rc::gen::inRange(0, 3));
      etcdserverpb::RequestOp& nested = *txn.add_success();
      nested.mutable_request_txn()->add_success()->mutable_request_put()->set_key(key);
      txn.add_success()->mutable_request_range()->set_key(key);
      txn.add_failure()->mutable_request_delete_range()->set_key(key);
      txn.add_failure()->mutable_request_range()->set_revision(*rc::gen::inRange(0, 6));
      break;
    }
    default:
      request.mutable_put()->set_key(key);
      request.mutable_put()->set_value(*rc::gen::elementOf(std::vector<std::string>{"", "x", "y"}));
      request.mutable_put()->set_lease(*rc::gen::elementOf(std::vector<int64_t>{0, 0, 0, 3}));
      request.mutable_put()->set_ignore_value(*rc::gen::weightedElement<bool>({{4, false}, {1, true}}));
      request.mutable_put()->set_prev_kv(*rc::gen::arbitrary<bool>());
  }
  return {EntryType::kNormal, request.SerializeAsString()};
}

RC_GTEST_PROP(ApplyProperty, AWaiterChangesNothing, ()) {
  Applier with(true);
  Applier without(false);
  std::vector<uint64_t> digests;
  const int steps = *rc::gen::inRange(1, 30);
  for (int i = 0; i < steps; ++i) {
    const Step step = AnyStep();
    const auto a = with.Apply(step.type, step.data);
    const auto b = without.Apply(step.type, step.data);
    RC_ASSERT(a.ok() && b.ok());
    RC_ASSERT(a->effect_digest == b->effect_digest);
    RC_ASSERT(a->error == b->error);
    RC_ASSERT(a->request_id == b->request_id);
    RC_ASSERT(b->response == nullptr);
    RC_ASSERT((a->response != nullptr) == (a->error == ApiError::kOk && !step.data.empty()));
    digests.push_back(a->effect_digest);
  }
  RC_ASSERT(with.store.history_digest() == without.store.history_digest());
  std::sort(digests.begin(), digests.end());
  RC_ASSERT(std::unique(digests.begin(), digests.end()) == digests.end());  // no two positions look alike
}

RC_GTEST_PROP(ApplyProperty, DamagedEntriesNeverCrash, ()) {
  Applier applier(true);
  Step step = AnyStep();
  RC_PRE(!step.data.empty());
  const auto at = *rc::gen::inRange<size_t>(0, step.data.size());
  step.data[at] = static_cast<char>(*rc::gen::inRange(0, 256));
  if (*rc::gen::arbitrary<bool>()) step.data.resize(at);
  (void)applier.Apply(*rc::gen::element(EntryType::kNormal, EntryType::kConfChange), step.data);
}

}  // namespace
}  // namespace detcd::member
