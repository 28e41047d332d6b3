// Transactions, compactions and hashes: the model against tables by hand (semantics.md 3-8, 17), and the judge against
// stories by hand.
#include <gtest/gtest.h>

#include "checker/kv_model.h"
#include "checker/requests.h"
#include "core/base/crc32c.h"
#include "tests/checker/history_by_hand.h"
#include "tests/checker/history_generator.h"
#include "tests/checker/revision_order_story.h"

namespace detcd::checker {
namespace {

const std::string kOpen(1, '\0');

Request Kept(std::string key) { return {.kind = OperationKind::kPut, .key = std::move(key), .ignore_value = true}; }
Request Compact(int64_t revision) { return {.kind = OperationKind::kCompact, .revision = revision}; }
Request Txn(std::vector<Condition> compares, std::vector<Request> success, std::vector<Request> failure = {}) {
  return {.kind = OperationKind::kTxn,
          .compares = std::move(compares),
          .success = std::move(success),
          .failure = std::move(failure)};
}
Condition If(CompareTarget target, CompareResult result, std::string key, int64_t number) {
  return {.result = result, .target = target, .key = std::move(key), .number = number};
}
Condition IfValue(CompareResult result, std::string key, std::string value) {
  return {.result = result, .target = CompareTarget::kValue, .key = std::move(key), .value = std::move(value)};
}

class TransactionTest : public testing::Test {
 protected:
  Effect Apply(const Request& request) { return model_.Apply(Encode(request).view()); }
  bool Succeeds(std::vector<Condition> compares) {
    const int64_t before = model_.revision();
    const Effect effect = Apply(Txn(std::move(compares), {Put("branch", "success")}, {Put("branch", "failure")}));
    EXPECT_EQ(effect.revision, before + 1);
    return model_.Get("branch", model_.revision())->value == "success";
  }
  KvModel model_;
};

using enum CompareTarget;
using enum CompareResult;

// Five targets and four operators on a key that is not there: zero, but no value at all.
TEST_F(TransactionTest, AnAbsentKeyComparesAsZeroAndItsValueNever) {
  for (CompareTarget target : {kVersion, kCreate, kMod, kLease}) {
    EXPECT_TRUE(Succeeds({If(target, kEqual, "a", 0)}));
    EXPECT_FALSE(Succeeds({If(target, kNotEqual, "a", 0)}));
    EXPECT_TRUE(Succeeds({If(target, kGreater, "a", -1)}));
    EXPECT_FALSE(Succeeds({If(target, kGreater, "a", 0)}));
    EXPECT_TRUE(Succeeds({If(target, kLess, "a", 1)}));
    EXPECT_FALSE(Succeeds({If(target, kLess, "a", 0)}));
  }
  for (CompareResult result : {kEqual, kNotEqual, kGreater, kLess}) {
    EXPECT_FALSE(Succeeds({IfValue(result, "a", "")}));
    EXPECT_FALSE(Succeeds({IfValue(result, "a", "x")}));
  }
}

TEST_F(TransactionTest, APresentKeyComparesByItsFields) {
  Apply(Put("a", "1"));  // 2
  Apply(Put("a", "2"));  // 3
  EXPECT_TRUE(Succeeds({If(kVersion, kEqual, "a", 2), If(kCreate, kEqual, "a", 2), If(kMod, kEqual, "a", 3),
                        If(kLease, kEqual, "a", 0), IfValue(kEqual, "a", "2")}));
  EXPECT_FALSE(Succeeds({If(kVersion, kEqual, "a", 2), If(kMod, kGreater, "a", 3)}));
  EXPECT_TRUE(Succeeds({IfValue(kGreater, "a", "1\xff"), IfValue(kLess, "a", "\x80")}));  // bytes, not signed
}

TEST_F(TransactionTest, ARangeMustHoldForEveryKeyAndAnEmptyOneIsAbsent) {
  Apply(Put("a", "1"));
  Apply(Put("b", "2"));
  Condition all = IfValue(kGreater, "a", "0");
  all.range_end = "c";
  EXPECT_TRUE(Succeeds({all}));
  all.value = "1";
  EXPECT_FALSE(Succeeds({all}));
  Condition none = If(kVersion, kEqual, "x", 0);
  none.range_end = "z";
  EXPECT_TRUE(Succeeds({none}));
}

TEST_F(TransactionTest, AllChangesShareOneRevisionWithSubRevisions) {
  Apply(Put("a", "1"));
  const Effect effect = Apply(Txn({}, {Put("b"), Delete("a"), Put("c")}));
  EXPECT_EQ(effect.kind, EffectKind::kChange);
  EXPECT_EQ(effect.changes, 3);
  EXPECT_EQ(effect.revision, 3);
  EXPECT_EQ(model_.Live("", kOpen, 3), (std::vector<ObservedKeyValue>{{"b", "v", 3, 3, 1}, {"c", "v", 3, 3, 1}}));
}

TEST_F(TransactionTest, NestedBranchesAreChosenBeforeAnythingRuns) {
  Apply(Txn({}, {Put("a"), Txn({If(kVersion, kEqual, "a", 0)}, {Put("then")}, {Put("else")})}));
  EXPECT_TRUE(model_.Get("then", 2).has_value());
  EXPECT_FALSE(model_.Get("else", 2).has_value());
}

TEST_F(TransactionTest, LaterOperationsSeeEarlierOnes) {
  Apply(Put("a", "old"));
  Request read = Get("a");
  Request put = Put("a", "new");
  put.prev_kv = true;
  const Request txn = Txn({}, {read, put, read});
  Answer answer{.header_revision = 3, .succeeded = true};
  answer.responses = {{.header_revision = 2, .kvs = {{"a", "old", 2, 2, 1}}, .count = 1},
                      {.header_revision = 3, .kvs = {{"a", "old", 2, 2, 1}}, .kind = OperationKind::kPut},
                      {.header_revision = 3, .kvs = {{"a", "new", 2, 3, 2}}, .count = 1}};
  EXPECT_EQ(model_.ExecuteAt(txn, 2, -1, &answer).trouble, "");
  Answer early = answer;
  early.responses[0].header_revision = 3;
  EXPECT_EQ(model_.ExecuteAt(txn, 2, -1, &early).property, "K7");
  Answer stale = answer;
  stale.responses[2].kvs = {{"a", "old", 2, 2, 1}};
  EXPECT_EQ(model_.ExecuteAt(txn, 2, -1, &stale).property, "K12");
  Answer unasked = answer;
  unasked.responses[1].kvs.clear();
  EXPECT_EQ(model_.ExecuteAt(txn, 2, -1, &unasked).property, "K10");
  Answer failed = answer;
  failed.succeeded = false;
  EXPECT_EQ(model_.ExecuteAt(txn, 2, -1, &failed).property, "K8");
}

// zoo-A10: what is checked before running decides for the whole, ranges included.
TEST_F(TransactionTest, ACheckThatFailsLeavesNothingDone) {
  Apply(Put("a"));
  EXPECT_EQ(Apply(Txn({}, {Put("b"), Get("a", 3)})).kind, EffectKind::kNone);
  EXPECT_EQ(Apply(Txn({}, {Put("b"), Kept("c")})).kind, EffectKind::kNone);
  Apply(Put("a"));
  Apply(Compact(3));
  EXPECT_EQ(Apply(Txn({}, {Put("b"), Get("a", 2)})).kind, EffectKind::kNone);
  EXPECT_EQ(Apply(Txn({}, {Put("b"), Get("a", -2)})).kind, EffectKind::kNone);
  EXPECT_EQ(Apply(Txn({If(kVersion, kEqual, "x", 0)}, {Put("b")}, {Get("a", 2)})).revision, 4);  // not the chosen branch
  EXPECT_EQ(Apply(Txn({}, {Put("b"), Get("a", 4)})).revision, 5);
}

// etcd takes an open end for no range when it looks for duplicates; the store must be right for what gets through.
TEST_F(TransactionTest, AKeyDeletedAndPutAgainInOneRevision) {
  Apply(Put("a", "1"));
  EXPECT_EQ(StaticError(Txn({}, {Delete("a", kOpen), Put("a", "2")})), "");
  EXPECT_EQ(Apply(Txn({}, {Delete("a", kOpen), Put("a", "2")})).changes, 2);
  EXPECT_EQ(model_.Get("a", 3), (ObservedKeyValue{"a", "2", 3, 3, 1}));
  EXPECT_EQ(Apply(Put("a", "3")).revision, 4);
  EXPECT_EQ(model_.Get("a", 4), (ObservedKeyValue{"a", "3", 3, 4, 2}));
}

TEST(StaticErrorTest, DuplicatesAreEtcds) {
  EXPECT_EQ(StaticError(Txn({}, {Put("a"), Put("a")})), kErrorDuplicateKey);
  EXPECT_EQ(StaticError(Txn({}, {Put("a")}, {Put("a")})), "");
  EXPECT_EQ(StaticError(Txn({}, {Put("b"), Delete("a", "c")})), kErrorDuplicateKey);
  EXPECT_EQ(StaticError(Txn({}, {Delete("a", "c"), Delete("b")})), "");
  EXPECT_EQ(StaticError(Txn({}, {Txn({}, {Put("a")}, {Put("a")})})), "");
  EXPECT_EQ(StaticError(Txn({}, {Txn({}, {Put("a")}), Put("a")})), kErrorDuplicateKey);
  EXPECT_EQ(StaticError(Txn({}, {Txn({}, {Put("a")}), Txn({}, {Put("a")})})), kErrorDuplicateKey);
  EXPECT_EQ(StaticError(Txn({}, {Delete("a"), Txn({}, {}, {Put("a")})})), kErrorDuplicateKey);
  EXPECT_EQ(StaticError(Txn({}, {Txn({}, {Delete("a")}), Put("a")})), kErrorDuplicateKey);
  EXPECT_EQ(StaticError(Txn({}, {Txn({}, {Put("a")}), Txn({}, {Delete("a")})})), "");  // not looked at
  EXPECT_EQ(StaticError(Txn({}, {}, {Put("a"), Put("a")})), kErrorDuplicateKey);
}

TEST(StaticErrorTest, NestedTransactionsGetWhatTheParentLeft) {
  std::vector<Request> most(kTxnOpsMax, Get("a"));
  EXPECT_EQ(StaticError(Txn({}, most)), "");
  most.push_back(Get("a"));
  EXPECT_EQ(StaticError(Txn({}, most)), kErrorTooManyOps);
  EXPECT_EQ(StaticError(Txn({}, {}, most)), kErrorTooManyOps);
  std::vector<Request> inner(kTxnOpsMax - 1, Get("a"));
  EXPECT_EQ(StaticError(Txn({}, {Txn({}, inner)})), "");
  EXPECT_EQ(StaticError(Txn({}, {Get("a"), Txn({}, inner)})), kErrorTooManyOps);
  EXPECT_EQ(StaticError(Txn({If(kMod, kEqual, "", 1)}, most)), kErrorTooManyOps);
  EXPECT_EQ(StaticError(Txn({If(kMod, kEqual, "", 1)}, {Get("")})), kErrorEmptyKey);
}

TEST(ReadsLocallyTest, OnlyWhenEveryRangeIsSerializable) {
  Request local = Get("a");
  local.serializable = true;
  EXPECT_TRUE(ReadsLocally(Txn({}, {local}, {local})));
  EXPECT_FALSE(ReadsLocally(Txn({}, {local}, {Get("a")})));
  EXPECT_TRUE(ReadsLocally(Txn({If(kMod, kEqual, "a", 1)}, {})));  // no range that is not
  EXPECT_TRUE(ReadsOnly(Txn({}, {Get("a")})));
  EXPECT_FALSE(ReadsOnly(Txn({}, {Txn({}, {})})));  // a nested one is proposed
}

// Rows as etcd has them in its bucket, spelt out.
TEST_F(TransactionTest, HashIsOfTheRowsThatACompactionKeeps) {
  Apply(Put("a", "1"));  // 2
  Apply(Delete("a"));    // 3
  Apply(Put("b", "2"));  // 4
  const std::string row2("\0\0\0\0\0\0\0\x02_\0\0\0\0\0\0\0\0", 17);
  const std::string row3("\0\0\0\0\0\0\0\x03_\0\0\0\0\0\0\0\0t", 18);
  const std::string row4("\0\0\0\0\0\0\0\x04_\0\0\0\0\0\0\0\0", 17);
  const std::string a = "\x0a\x01" "a\x10\x02\x18\x02\x20\x01\x2a\x01" "1";
  const std::string gone = "\x0a\x01" "a";
  const std::string b = "\x0a\x01" "b\x10\x04\x18\x04\x20\x01\x2a\x01" "2";
  EXPECT_EQ(model_.Hash(4, -1), ExtendCrc32c(0, "key" + row2 + a + row3 + gone + row4 + b));
  EXPECT_EQ(model_.Hash(3, -1), ExtendCrc32c(0, "key" + row2 + a + row3 + gone));
  EXPECT_EQ(model_.Hash(4, 3), ExtendCrc32c(0, "key" + row4 + b));
  EXPECT_EQ(model_.Hash(4, 2), ExtendCrc32c(0, "key" + row3 + gone + row4 + b));
}

class StoryTest : public RevisionOrderStory {
 protected:
  void Refused(uint64_t id, std::string_view error) { End(id, {.error = std::string(error)}, Outcome::kRefused); }
  void Do(const Request& request, Answer answer) {
    const uint64_t id = Call(request);
    Commit(request);
    End(id, std::move(answer));
  }
  void DoPut(std::string key, int64_t revision) { Do(Put(std::move(key), "v" + std::to_string(revision)), {.header_revision = revision}); }
};

TEST_F(StoryTest, K3_AChangeTakesTheNextRevision) {
  const uint64_t id = Call(Put("a"));
  Commit(Put("a"));
  End(id, {.header_revision = 1});
  EXPECT_EQ(Broken(), "K3");
}

TEST_F(StoryTest, K3_ATransactionThatSaysItChangedNothing) {
  const Request txn = Txn({}, {Delete("a")});
  DoPut("a", 2);
  Do(txn, {.header_revision = 2, .succeeded = true, .responses = {{.header_revision = 2, .kind = OperationKind::kDelete}}});
  EXPECT_EQ(Broken(), "K14");  // its revision has no author left
}

TEST_F(StoryTest, K10_PreviousPairOfAPut) {
  DoPut("a", 2);
  Request put = Put("a", "w");
  put.prev_kv = true;
  Do(put, {.header_revision = 3, .kvs = {{"a", "v2", 2, 2, 2}}});
  EXPECT_EQ(Broken(), "K10");
}

TEST_F(StoryTest, K10_PreviousPairThatWasNotAsked) {
  DoPut("a", 2);
  Do(Put("a", "w"), {.header_revision = 3, .kvs = {{"a", "v2", 2, 2, 1}}});
  EXPECT_EQ(Broken(), "K10");
}

TEST_F(StoryTest, K11_NumberOfDeletedKeys) {
  DoPut("a", 2);
  DoPut("b", 3);
  Do(Delete("a", kOpen), {.header_revision = 4, .count = 1});
  EXPECT_EQ(Broken(), "K11");
}

TEST_F(StoryTest, K11_ADeleteThatMissed) {
  DoPut("a", 2);
  const uint64_t id = Call(Delete("a"));
  End(id, {.header_revision = 2});
  EXPECT_EQ(Broken(), "K11");
}

TEST_F(StoryTest, K18_KeyNotFoundNeedsAnAbsentKey) {
  DoPut("a", 2);
  const uint64_t concurrent = Call(Delete("a"));
  uint64_t kept = Call(Kept("a"));
  Commit(Delete("a"));
  Refused(kept, kErrorKeyNotFound);
  EXPECT_EQ(Broken(), "");
  End(concurrent, {.header_revision = 3, .count = 1});
  DoPut("a", 4);
  kept = Call(Txn({}, {Kept("a")}));
  Refused(kept, kErrorKeyNotFound);
  EXPECT_EQ(Broken(), "K18");
}

TEST_F(StoryTest, K18_AKeptValueIsTheOldOne) {
  DoPut("a", 2);
  Do(Kept("a"), {.header_revision = 3});
  const uint64_t read = Call(Get("a"));
  End(read, {.header_revision = 3, .kvs = {{"a", "", 2, 3, 2}}, .count = 1});
  EXPECT_EQ(Broken(), "K5");
}

TEST_F(StoryTest, R1_AReadOnlyTransactionIsARead) {
  const Request read = Txn({}, {Get("a")});
  uint64_t id = Call(read);
  End(id, {.header_revision = 1, .succeeded = true, .responses = {{.header_revision = 1}}});
  DoPut("a", 2);
  EXPECT_EQ(Broken(), "");
  id = Call(read);
  End(id, {.header_revision = 1, .succeeded = true, .responses = {{.header_revision = 1}}});
  EXPECT_EQ(Broken(), "K4");
}

TEST_F(StoryTest, AnUnknownTransactionTakesEffectLateButOnce) {
  const Request txn = Txn({If(kVersion, kEqual, "a", 0)}, {Put("a", "mine")});
  End(Call(txn), {}, Outcome::kUnknown);
  Commit(txn);
  EXPECT_EQ(Broken(), "");
  Commit(txn);  // its condition fails now: nothing done
  EXPECT_EQ(Broken(), "");
  const Request plain = Txn({}, {Put("a", "mine")});
  End(Call(plain), {}, Outcome::kUnknown);
  Commit(plain);
  Commit(plain);
  EXPECT_EQ(Broken(), "K15");
}

TEST_F(StoryTest, K9_DuplicateKeysAreRefusedAndNothingElseIs) {
  uint64_t id = Call(Txn({}, {Put("a"), Put("a")}));
  Refused(id, kErrorDuplicateKey);
  EXPECT_EQ(Broken(), "");
  id = Call(Txn({}, {Put("a"), Put("b")}));
  Refused(id, kErrorDuplicateKey);
  EXPECT_EQ(Broken(), "K9");
}

TEST_F(StoryTest, C1_ACompactionIsAcknowledgedOnceAndAfterItHappened) {
  DoPut("a", 2);
  DoPut("a", 3);
  Do(Compact(3), {.header_revision = 3});
  uint64_t again = Call(Compact(3));
  Commit(Compact(3));
  Refused(again, kErrorCompacted);
  again = Call(Compact(4));
  Refused(again, kErrorFutureRevision);
  EXPECT_EQ(Broken(), "");
  again = Call(Compact(2));
  End(again, {.header_revision = 3});
  EXPECT_EQ(Broken(), "C1");
}

TEST_F(StoryTest, K13_CompactedIfAndOnlyIf) {
  DoPut("a", 2);
  DoPut("a", 3);
  const uint64_t early = Call(Get("a", 2));
  Do(Compact(3), {.header_revision = 3});
  End(early, {.header_revision = 3, .kvs = {{"a", "v2", 2, 2, 1}}, .count = 1});  // was called before
  Refused(Call(Get("a", 2)), kErrorCompacted);
  End(Call(Get("a", 3)), {.header_revision = 3, .kvs = {{"a", "v3", 2, 3, 2}}, .count = 1});
  EXPECT_EQ(Broken(), "");
  End(Call(Get("a", 2)), {.header_revision = 3, .kvs = {{"a", "v2", 2, 2, 1}}, .count = 1});
  EXPECT_EQ(Broken(), "K13");
}

TEST_F(StoryTest, K13_NotCompactedAtItsOwnRevision) {
  DoPut("a", 2);
  Do(Compact(2), {.header_revision = 2});
  Refused(Call(Get("a", 2)), kErrorCompacted);
  EXPECT_EQ(Broken(), "K13");
}

// What a member has made, it made after every compaction before it.
TEST_F(StoryTest, K13_ASerializableReadKnowsWhatItsHeaderImplies) {
  DoPut("a", 2);
  DoPut("a", 3);
  Do(Compact(3), {.header_revision = 3});
  Request read = Get("a", 2);
  read.serializable = true;
  End(Call(read), {.header_revision = 3, .kvs = {{"a", "v2", 2, 2, 1}}, .count = 1});
  EXPECT_EQ(Broken(), "");
  DoPut("a", 4);
  End(Call(read), {.header_revision = 4, .kvs = {{"a", "v2", 2, 2, 1}}, .count = 1});
  EXPECT_EQ(Broken(), "K13");
}

TEST_F(StoryTest, AStreamMayBeOvertakenByACompaction) {
  DoPut("a", 2);
  Request stream = Get("a");
  stream.range_end = kOpen;
  stream.streamed = true;
  const uint64_t id = Call(stream);
  DoPut("a", 3);
  Do(Compact(3), {.header_revision = 3});
  Refused(id, kErrorCompacted);
  EXPECT_EQ(Broken(), "");
  Refused(Call(stream), kErrorCompacted);  // nothing behind revision 3 was compacted
  EXPECT_EQ(Broken(), "K13");
}

TEST_F(StoryTest, H1_HashesOfOneStateAreEqual) {
  DoPut("a", 2);
  const uint32_t right = judge_.model().Hash(2, -1);
  const Request hash{.kind = OperationKind::kHashKv};
  Answer answer{.header_revision = 2, .hash = right, .compact_revision = -1, .hash_revision = 2};
  End(Call(hash), answer);
  EXPECT_EQ(Broken(), "");
  answer.hash = right + 1;
  End(Call(hash), answer);
  EXPECT_EQ(Broken(), "H1");
}

TEST_F(StoryTest, H2_AHashIsTheModels) {
  DoPut("a", 2);
  End(Call({.kind = OperationKind::kHashKv}), {.header_revision = 2, .hash = 7, .compact_revision = -1, .hash_revision = 2});
  EXPECT_EQ(Broken(), "H2");
}

TEST_F(StoryTest, H2_AHashKnowsTheCompactionsBeforeItsRevision) {
  DoPut("a", 2);
  Do(Compact(2), {.header_revision = 2});
  DoPut("a", 3);
  const Answer old{.header_revision = 3, .hash = judge_.model().Hash(3, -1), .compact_revision = -1, .hash_revision = 3};
  End(Call({.kind = OperationKind::kHashKv}), old);
  EXPECT_EQ(Broken(), "H2");
}

// The header is written with the answer: what was applied since the state was looked at shows in it, and not in the hash.
TEST_F(StoryTest, H2_AHashMayBeOlderThanItsHeader) {
  DoPut("a", 2);
  Request hash{.kind = OperationKind::kHashKv};
  hash.revision = 2;
  const uint64_t id = Call(hash);
  Do(Compact(1), {.header_revision = 2});
  DoPut("a", 3);
  End(id, {.header_revision = 3, .hash = judge_.model().Hash(2, -1), .compact_revision = -1, .hash_revision = 2});
  EXPECT_EQ(Broken(), "");
}

// A past revision says little of what its member had compacted; what the member answered before the call says more.
TEST_F(StoryTest, H2_AHashKnowsTheCompactionsBeforeWhatItsMemberHadAnswered) {
  for (const uint64_t member : {7u, 8u}) judge_.OnStarted(MemberId(member), Next());
  DoPut("a", 2);
  DoPut("a", 3);
  Do(Compact(2), {.header_revision = 3});
  Do(Put("a", "v4"), {.header_revision = 4, .header_member = 7});
  Request hash{.kind = OperationKind::kHashKv};
  hash.revision = 3;
  Answer answer{.header_revision = 4, .hash = judge_.model().Hash(3, -1), .compact_revision = -1, .hash_revision = 3};
  answer.header_member = 8;  // may have been behind when it looked
  End(Call(hash), answer);
  EXPECT_EQ(Broken(), "");
  judge_.OnStarted(MemberId(7), Next());  // and so may one that has just started
  answer.header_member = 7;
  End(Call(hash), answer);
  EXPECT_EQ(Broken(), "");
  End(Call(hash), answer);
  EXPECT_EQ(Broken(), "H2");
}

TEST_F(StoryTest, H2_ANegativeNumberHasTheHashOfNothing) {
  DoPut("a", 2);
  Request hash{.kind = OperationKind::kHashKv};
  hash.revision = -2;
  Answer answer{.header_revision = 2, .hash = ExtendCrc32c(0, "key"), .compact_revision = -1, .hash_revision = -2};
  End(Call(hash), answer);
  Do(Compact(2), {.header_revision = 2});
  answer.compact_revision = 2;
  End(Call(hash), answer);
  EXPECT_EQ(Broken(), "");
  answer.hash_revision = -3;
  End(Call(hash), answer);
  EXPECT_EQ(Broken(), "H2");
}

// A hash that was made while its own compaction ran is kept, with the compaction before it.
TEST_F(StoryTest, H2_AStoredHashMayBeOfBefore) {
  DoPut("a", 2);
  DoPut("a", 3);
  Do(Compact(2), {.header_revision = 3});
  Do(Compact(3), {.header_revision = 3});
  DoPut("a", 4);
  Request hash{.kind = OperationKind::kHashKv};
  hash.revision = 2;
  End(Call(hash), {.header_revision = 4, .hash = judge_.model().Hash(2, -1), .compact_revision = -1, .hash_revision = 2});
  EXPECT_EQ(Broken(), "");
}

}  // namespace
}  // namespace detcd::checker
