#include "checker/kv_model.h"

#include <gtest/gtest.h>

#include "core/proto/raft_internal.pb.h"

namespace detcd::checker {
namespace {

std::string PutData(const std::string& key, const std::string& value, bool ignore_value = false) {
  etcdserverpb::InternalRaftRequest request;
  request.mutable_put()->set_key(key);
  request.mutable_put()->set_value(value);
  request.mutable_put()->set_ignore_value(ignore_value);
  return request.SerializeAsString();
}

std::string DeleteData(const std::string& key, const std::string& end = "") {
  etcdserverpb::InternalRaftRequest request;
  request.mutable_delete_range()->set_key(key);
  request.mutable_delete_range()->set_range_end(end);
  return request.SerializeAsString();
}

const std::string kAll(1, '\0');

TEST(KvModelTest, CountsVersionsAndStartsAnewAfterDelete) {
  KvModel model;
  EXPECT_EQ(model.revision(), 1);
  EXPECT_EQ(model.Apply(PutData("a", "1")).revision, 2);
  EXPECT_EQ(model.Apply(PutData("a", "2")).revision, 3);
  EXPECT_EQ(model.Apply(DeleteData("a")).revision, 4);
  EXPECT_EQ(model.Apply(PutData("a", "3")).revision, 5);
  EXPECT_EQ(model.Get("a", 1), std::nullopt);
  EXPECT_EQ(model.Get("a", 3), (ObservedKeyValue{"a", "2", 2, 3, 2}));
  EXPECT_EQ(model.Get("a", 4), std::nullopt);
  EXPECT_EQ(model.Get("a", 5), (ObservedKeyValue{"a", "3", 5, 5, 1}));
}

TEST(KvModelTest, DeleteOfNothingMakesNoRevision) {
  KvModel model;
  Effect effect = model.Apply(DeleteData("a", kAll));
  EXPECT_EQ(effect.kind, EffectKind::kNone);
  EXPECT_EQ(model.revision(), 1);
}

TEST(KvModelTest, DeleteTakesARangeInOneRevision) {
  KvModel model;
  for (const char* key : {"a", "b", "c"}) model.Apply(PutData(key, "v"));
  Effect effect = model.Apply(DeleteData("a", "c"));
  EXPECT_EQ(effect.changes, 2);
  EXPECT_EQ(effect.revision, 5);
  EXPECT_EQ(model.Live("", kAll, 5), (std::vector<ObservedKeyValue>{{"c", "v", 4, 4, 1}}));
  EXPECT_EQ(model.Live("", kAll, 4).size(), 3u);
}

TEST(KvModelTest, RangeFormsAreEtcds) {
  EXPECT_TRUE(InRange("a", "a", ""));
  EXPECT_FALSE(InRange("ab", "a", ""));
  EXPECT_TRUE(InRange("zz", "a", kAll));
  EXPECT_FALSE(InRange("b", "a", "b"));
  EXPECT_FALSE(InRange("b", "b", "a"));
}

TEST(KvModelTest, IgnoreValueKeepsItOrFails) {
  KvModel model;
  EXPECT_EQ(model.Apply(PutData("a", "", true)).kind, EffectKind::kNone);
  model.Apply(PutData("a", "1"));
  model.Apply(PutData("a", "", true));
  EXPECT_EQ(model.Get("a", 3), (ObservedKeyValue{"a", "1", 2, 3, 2}));
  const Request kept{.kind = OperationKind::kPut, .key = "a", .ignore_value = true};
  EXPECT_EQ(model.FirstAbsent(kept, 2), std::nullopt);
  model.Apply(DeleteData("a"));
  EXPECT_EQ(model.FirstAbsent(kept, 2), 4);
}

TEST(KvModelTest, OtherRequestsChangeNothingAndUnknownOnesAreNamed) {
  KvModel model;
  etcdserverpb::InternalRaftRequest attributes;
  attributes.mutable_cluster_member_attr_set()->set_member_id(1);
  EXPECT_EQ(model.Apply(attributes.SerializeAsString()).kind, EffectKind::kNone);
  EXPECT_EQ(model.Apply("").kind, EffectKind::kNone);
  etcdserverpb::InternalRaftRequest leased;
  leased.mutable_put()->set_key("a");
  leased.mutable_put()->set_lease(7);
  EXPECT_EQ(model.Apply(leased.SerializeAsString()).kind, EffectKind::kForeign);
  etcdserverpb::InternalRaftRequest txn;
  txn.mutable_txn()->add_success()->mutable_request_txn()->add_failure();  // an operation with nothing in it
  EXPECT_EQ(model.Apply(txn.SerializeAsString()).kind, EffectKind::kForeign);
  EXPECT_EQ(model.Apply("\xff\xff").kind, EffectKind::kForeign);
}

TEST(KvModelTest, CompactionIsRemembered) {
  KvModel model;
  for (int i = 0; i < 4; ++i) model.Apply(PutData("a", "v"));
  etcdserverpb::InternalRaftRequest request;
  request.mutable_compaction()->set_revision(3);
  model.Apply(request.SerializeAsString());
  EXPECT_EQ(model.compact_revision(), 3);
  EXPECT_EQ(model.CompactedAt(2), 5);
  EXPECT_EQ(model.CompactedAt(3), std::nullopt);
  request.mutable_compaction()->set_revision(9);  // of the future
  model.Apply(request.SerializeAsString());
  EXPECT_EQ(model.compact_revision(), 3);
}

class RangeTroubleTest : public testing::Test {
 protected:
  // Revision 2: a=2, 3: b=1, 4: c=1, 5: b=1 again (version 2).
  RangeTroubleTest() {
    model_.Apply(PutData("a", "2"));
    model_.Apply(PutData("b", "1"));
    model_.Apply(PutData("c", "1"));
    model_.Apply(PutData("b", "1"));
  }
  bool Right(const Request& request, std::vector<ObservedKeyValue> kvs, int64_t count, bool more = false) {
    return model_.RangeTrouble(request, {.header_revision = 5, .kvs = std::move(kvs), .count = count, .more = more}, 5)
        .empty();
  }
  const ObservedKeyValue a_{"a", "2", 2, 2, 1};
  const ObservedKeyValue b_{"b", "1", 3, 5, 2};
  const ObservedKeyValue c_{"c", "1", 4, 4, 1};
  Request all_{.key = "a", .range_end = kAll};
  KvModel model_;
};

TEST_F(RangeTroubleTest, LimitCutsAndSaysSo) {
  all_.limit = 2;
  EXPECT_TRUE(Right(all_, {a_, b_}, 3, true));
  EXPECT_FALSE(Right(all_, {a_, b_}, 3, false));
  EXPECT_FALSE(Right(all_, {a_, b_}, 2, true));
  EXPECT_FALSE(Right(all_, {b_, a_}, 3, true));
  all_.limit = 3;
  EXPECT_TRUE(Right(all_, {a_, b_, c_}, 3, false));
}

TEST_F(RangeTroubleTest, EqualSortValuesStandInAnyOrder) {
  all_.sort_order = SortOrder::kAscend;
  all_.sort_target = SortTarget::kValue;
  EXPECT_TRUE(Right(all_, {b_, c_, a_}, 3));
  EXPECT_TRUE(Right(all_, {c_, b_, a_}, 3));
  EXPECT_FALSE(Right(all_, {a_, b_, c_}, 3));
  EXPECT_FALSE(Right(all_, {b_, b_, a_}, 3));
  all_.limit = 1;
  EXPECT_TRUE(Right(all_, {c_}, 3, true));
  EXPECT_TRUE(Right(all_, {b_}, 3, true));
  EXPECT_FALSE(Right(all_, {a_}, 3, true));
}

TEST_F(RangeTroubleTest, DescendingByModRevision) {
  all_.sort_order = SortOrder::kDescend;
  all_.sort_target = SortTarget::kMod;
  EXPECT_TRUE(Right(all_, {b_, c_, a_}, 3));
  EXPECT_FALSE(Right(all_, {b_, a_, c_}, 3));
}

// Without an order etcd sorts by a target other than the key, after the first limit + 1 keys were read.
TEST_F(RangeTroubleTest, TargetWithoutOrderSortsTheFirstKeysOnly) {
  all_.sort_target = SortTarget::kVersion;
  all_.limit = 1;
  EXPECT_TRUE(Right(all_, {a_}, 3, true));
  EXPECT_FALSE(Right(all_, {c_}, 3, true));
}

TEST_F(RangeTroubleTest, FiltersLeaveTheCount) {
  all_.min_mod_revision = 3;
  EXPECT_TRUE(Right(all_, {b_, c_}, 3));
  all_.max_create_revision = 3;
  EXPECT_TRUE(Right(all_, {b_}, 3));
  all_.max_mod_revision = -1;  // a negative maximum lets nothing pass
  EXPECT_TRUE(Right(all_, {}, 3));
}

TEST_F(RangeTroubleTest, KeysOnlyAndCountOnly) {
  ObservedKeyValue bare = a_;
  bare.value.clear();
  EXPECT_TRUE(Right({.key = "a", .keys_only = true}, {bare}, 1));
  EXPECT_FALSE(Right({.key = "a", .keys_only = true}, {a_}, 1));
  all_.count_only = true;
  EXPECT_TRUE(Right(all_, {}, 3));
  EXPECT_FALSE(Right(all_, {a_}, 3));
}

}  // namespace
}  // namespace detcd::checker
