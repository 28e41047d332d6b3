#include "core/mvcc/compaction.h"

#include <limits>
#include <string>

#include "core/base/limits.h"
#include "core/mvcc/store.h"
#include "tests/core/mvcc/model_store.h"

namespace detcd::mvcc {
namespace {

const std::string kNul(1, '\0');

void Put(Store& store, std::string_view key, std::string_view value) {
  store.Begin();
  store.Put(Bytes::Copy(key), Bytes::Copy(value), LeaseId());
  store.Commit();
}
void Delete(Store& store, std::string_view key, std::string_view end = "") {
  store.Begin();
  store.DeleteRange({key, end});
  store.Commit();
}
void FinishWork(Store& store) {
  while (store.HasWork()) store.Work();
}
std::optional<std::string> ValueAt(const Store& store, std::string_view key, int64_t revision) {
  const RangeResult result = store.Range({key, ""}, {.revision = Revision(revision)});
  EXPECT_EQ(result.error, RangeError::kOk);
  if (result.kvs.empty()) return std::nullopt;
  return std::string(result.kvs[0].value.view());
}

TEST(CompactionTest, AcceptsRevisionsAboveTheLastOneUpToTheCurrent) {
  Store store;
  Put(store, "a", "1");
  EXPECT_EQ(store.Compact(Revision(-1)), RangeError::kCompacted);
  EXPECT_EQ(store.Compact(Revision(3)), RangeError::kFutureRevision);
  EXPECT_EQ(store.Compact(Revision(0)), RangeError::kOk);  // once, because none has been before
  EXPECT_EQ(store.Compact(Revision(0)), RangeError::kCompacted);
  EXPECT_EQ(store.Compact(Revision(2)), RangeError::kOk);
  EXPECT_EQ(store.Compact(Revision(2)), RangeError::kCompacted);
  EXPECT_EQ(store.compact_revision(), Revision(2));
}

TEST(CompactionTest, CountsAtOnceAndIsRemovedLater) {
  Store store;
  Put(store, "a", "1");
  Put(store, "a", "2");
  ASSERT_EQ(store.Compact(Revision(3)), RangeError::kOk);
  EXPECT_EQ(store.Range({"a", ""}, {.revision = Revision(2)}).error, RangeError::kCompacted);
  EXPECT_EQ(store.Range({"never", ""}, {.revision = Revision(2)}).error, RangeError::kCompacted);  // the number decides
  EXPECT_EQ(ValueAt(store, "a", 3), "2");
  EXPECT_EQ(store.removed_revision(), Revision(-1));
  FinishWork(store);
  EXPECT_EQ(store.removed_revision(), Revision(3));
  EXPECT_EQ(ValueAt(store, "a", 3), "2");
}

TEST(CompactionTest, TombstoneAtTheRevisionStaysAndGoesWithTheNext) {
  Store store;
  const uint64_t empty = store.bytes();
  Put(store, "a", "1");
  Delete(store, "a");  // 3
  Put(store, "b", "");  // 4
  const uint64_t all = store.bytes();
  ASSERT_EQ(store.Compact(Revision(3)), RangeError::kOk);
  FinishWork(store);
  EXPECT_EQ(ValueAt(store, "a", 3), std::nullopt);
  EXPECT_EQ(store.bytes(), all - sizeof(KeyVersion) - 1);  // the put and its value
  ASSERT_EQ(store.Compact(Revision(4)), RangeError::kOk);
  FinishWork(store);
  EXPECT_EQ(store.bytes(), empty + KeyIndex::KeyBytes(1) + sizeof(KeyVersion));  // "b" alone
  Put(store, "a", "again");
  EXPECT_EQ(ToModel(*store.Get("a")), (ModelPair{"a", "again", 5, 5, 1, 0}));
}

TEST(CompactionTest, KeyDeletedAndPutAgainInTheRevisionLives) {
  Store store;
  Put(store, "a", "1");
  store.Begin();  // 3
  store.DeleteRange({"a", ""});
  store.Put(Bytes::Copy("a"), Bytes::Copy("2"), LeaseId());
  store.Commit();
  ASSERT_EQ(store.Compact(Revision(3)), RangeError::kOk);
  FinishWork(store);
  EXPECT_EQ(ValueAt(store, "a", 3), "2");
  Delete(store, "a");
  Put(store, "b", "1");
  ASSERT_EQ(store.Compact(Revision(5)), RangeError::kOk);
  FinishWork(store);
  EXPECT_EQ(ValueAt(store, "a", 5), std::nullopt);
}

TEST(CompactionTest, KeyPutAndDeletedTwiceInOneRevisionEnds) {
  Store store;
  store.Begin();
  for (int i = 0; i < 2; ++i) {
    store.Put(Bytes::Copy("a"), Bytes::Copy("x"), LeaseId());
    store.DeleteRange({"a", ""});
  }
  store.Commit();
  Put(store, "b", "");
  ASSERT_EQ(store.Compact(Revision(3)), RangeError::kOk);
  FinishWork(store);
  EXPECT_EQ(store.bytes(), KeyIndex::KeyBytes(1) + sizeof(KeyVersion));
}

TEST(CompactionTest, AtTheHeadLeavesOneVersionAKey) {
  Store store;
  for (int i = 0; i < 5000; ++i) Put(store, "hot", "x");
  Put(store, "cold", "y");
  ASSERT_EQ(store.Compact(store.revision()), RangeError::kOk);
  FinishWork(store);
  EXPECT_EQ(store.bytes(), KeyIndex::KeyBytes(3) + KeyIndex::KeyBytes(4) + 2 * sizeof(KeyVersion) + 2);
  EXPECT_EQ(ToModel(*store.Get("hot")), (ModelPair{"hot", "x", 2, 5001, 5000, 0}));
}

TEST(CompactionTest, SliceIsBounded) {
  Store store;
  const size_t changes = kStoreSliceChanges * 3;
  for (size_t i = 0; i < changes; ++i) Put(store, "k", "");
  const uint64_t before = store.bytes();
  ASSERT_EQ(store.Compact(store.revision()), RangeError::kOk);
  size_t slices = 0;
  uint64_t last = before;
  for (; store.HasWork(); ++slices) {
    store.Work();
    EXPECT_LE(last - store.bytes(), kStoreSliceChanges * sizeof(KeyVersion));
    last = store.bytes();
  }
  EXPECT_GE(slices, 3u);
}

TEST(CompactionTest, DigestHasTheRevisionAndNotTheProgress) {
  auto digest = [](int64_t compact, bool finish) {
    Store store;
    for (int i = 0; i < 4; ++i) Put(store, "a", "1");
    if (compact >= 0) (void)store.Compact(Revision(compact));
    if (finish) FinishWork(store);
    return store.history_digest();
  };
  EXPECT_EQ(digest(3, true), digest(3, false));
  EXPECT_NE(digest(3, true), digest(4, true));
  EXPECT_NE(digest(3, true), digest(-1, true));
}

TEST(VersionListTest, TakesFromTheFrontAndGivesMemoryBack) {
  VersionList list;
  for (uint32_t i = 0; i < 100; ++i) {
    KeyVersion& version = list.Add();
    version.sub = i;
    version.value = Bytes::Copy("v");
  }
  for (uint32_t first = 0; first < 100; ++first) {
    ASSERT_EQ(list.size(), 100 - first);
    ASSERT_EQ(list.front().sub, first);
    ASSERT_EQ(list.back().sub, 99u);
    list.RemoveOldest(1);
  }
  EXPECT_TRUE(list.empty());
  list.Add().sub = 7;
  EXPECT_EQ(list.front().sub, 7u);
}

// --- against the plain twin --------------------------------------------------------------------------------------------

const std::vector<std::string> kKeys = {kNul, "a", "a" + kNul, "b", "c", "\xff"};

void ExpectEqualReads(const Store& store, const ModelStore& model) {
  for (int64_t at = 1; at <= model.revision(); ++at) {
    const RangeOptions options{.revision = Revision(at)};
    const RangeResult result = store.Range({kNul, kNul}, options);
    const ModelRange expected = model.Range(kNul, kNul, options);
    RC_ASSERT(result.error == expected.error);
    RC_ASSERT(ToModel(result.kvs) == expected.pairs);
    for (const std::string& key : kKeys) {
      RC_ASSERT(ToModel(store.Range({key, ""}, options).kvs) == model.Range(key, "", options).pairs);
    }
  }
}

// One transaction of a few changes, keys changed twice among them.
void Change(Store& store, ModelStore& model) {
  store.Begin();
  model.Begin();
  const int changes = *rc::gen::inRange(0, 4);
  for (int i = 0; i < changes; ++i) {
    const std::string key = *rc::gen::elementOf(kKeys);
    if (*rc::gen::weightedElement<bool>({{2, true}, {1, false}})) {
      store.Put(Bytes::Copy(key), Bytes::Copy("v"), LeaseId());
      model.PutInside(key, "v", 0);
    } else {
      const std::string end = *rc::gen::elementOf(std::vector<std::string>{"", kNul, "b"});
      RC_ASSERT(ToModel(store.DeleteRange({key, end})) == model.DeleteInside(key, end));
    }
    RC_ASSERT(ToModel(store.Range({kNul, kNul}, {}).kvs) == model.Range(kNul, kNul, {}).pairs);
  }
  store.Commit();
  model.Commit();
  RC_ASSERT(store.revision().value == model.revision());
}

RC_GTEST_PROP(CompactionProperty, ReadsAreExactBetweenAllSlices, ()) {
  Store store;
  ModelStore model;
  const int steps = *rc::gen::inRange(1, 40);
  for (int i = 0; i < steps; ++i) {
    const int kind = *rc::gen::weightedElement<int>({{5, 0}, {2, 1}, {6, 2}});
    if (kind == 0) {
      Change(store, model);
    } else if (kind == 1) {
      const auto at = *rc::gen::inRange<int64_t>(-1, model.revision() + 2);
      RC_ASSERT(store.Compact(Revision(at)) == model.Compact(at));
    } else if (store.HasWork()) {
      store.Work(*rc::gen::inRange<size_t>(1, 4));
    }
    ExpectEqualReads(store, model);
  }
}

// Members that are differently far with their removals answer every hash alike, and end with the same memory.
RC_GTEST_PROP(CompactionProperty, NothingTellsHowFarRemovalsHaveCome, ()) {
  Store eager, lazy;
  std::vector<std::pair<uint64_t, uint64_t>> tickets;
  std::map<uint64_t, HashResult> eager_hashes, lazy_hashes;
  auto take = [](Store& store, std::map<uint64_t, HashResult>& hashes) {
    for (const FinishedHash& finished : store.TakeHashes()) hashes[finished.ticket] = finished.result;
  };
  const int steps = *rc::gen::inRange(1, 60);
  for (int i = 0; i < steps; ++i) {
    const int kind = *rc::gen::weightedElement<int>({{6, 0}, {3, 1}, {3, 2}, {2, 3}});
    if (kind == 0) {
      const std::string key = *rc::gen::elementOf(kKeys);
      const bool put = *rc::gen::weightedElement<bool>({{2, true}, {1, false}});
      const bool both = *rc::gen::weightedElement<bool>({{1, true}, {4, false}});
      for (Store* store : {&eager, &lazy}) {
        store->Begin();
        if (put || both) store->Put(Bytes::Copy(key), Bytes::Copy("v"), LeaseId());
        if (!put || both) store->DeleteRange({key, ""});
        store->Commit();
      }
    } else if (kind == 1) {
      const Revision at(*rc::gen::inRange<int64_t>(0, eager.revision().value + 1));
      RC_ASSERT(eager.Compact(at) == lazy.Compact(at));
    } else if (kind == 2) {
      const Revision at(*rc::gen::inRange<int64_t>(-1, eager.revision().value + 2));
      const Store::HashRequest a = eager.RequestHash(at);
      const Store::HashRequest b = lazy.RequestHash(at);
      RC_ASSERT(a.error == b.error);
      RC_ASSERT(!a.too_many);
      if (a.error == RangeError::kOk && !b.too_many) tickets.emplace_back(a.ticket, b.ticket);
    } else if (lazy.HasWork()) {
      lazy.Work(1);
    }
    FinishWork(eager);
    take(eager, eager_hashes);
    take(lazy, lazy_hashes);
  }
  while (lazy.HasWork()) lazy.Work(1);
  take(lazy, lazy_hashes);
  for (const auto& [a, b] : tickets) RC_ASSERT(eager_hashes.at(a) == lazy_hashes.at(b));
  RC_ASSERT(eager.bytes() == lazy.bytes());
  RC_ASSERT(eager.history_digest() == lazy.history_digest());
}

}  // namespace
}  // namespace detcd::mvcc
