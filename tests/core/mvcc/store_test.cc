#include "core/mvcc/store.h"

#include <limits>
#include <string>

#include "tests/core/mvcc/model_store.h"

namespace detcd::mvcc {
namespace {

const std::string kNul(1, '\0');
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

std::optional<KeyValue> Put(Store& store, std::string_view key, std::string_view value, int64_t lease = 0) {
  store.Begin();
  auto before = store.Put(Bytes::Copy(key), Bytes::Copy(value), LeaseId(lease));
  EXPECT_TRUE(store.Commit());
  return before;
}

std::vector<KeyValue> Delete(Store& store, const KeyRange& range) {
  store.Begin();
  auto deleted = store.DeleteRange(range);
  EXPECT_EQ(store.Commit(), !deleted.empty());
  return deleted;
}

std::vector<std::string> Keys(const RangeResult& result) {
  std::vector<std::string> keys;
  for (const KeyValue& kv : result.kvs) keys.emplace_back(kv.key.view());
  return keys;
}

using Strings = std::vector<std::string>;

TEST(StoreTest, IsEmptyAtRevisionOne) {
  Store store;
  EXPECT_EQ(store.revision(), Revision(1));
  EXPECT_EQ(store.compact_revision(), Revision(-1));
  EXPECT_EQ(store.Range({kNul, kNul}, {}).count, 0);
  EXPECT_EQ(store.Range({kNul, kNul}, {.revision = Revision(1)}).error, RangeError::kOk);
  EXPECT_EQ(store.Range({kNul, kNul}, {.revision = Revision(2)}).error, RangeError::kFutureRevision);
  EXPECT_EQ(store.Get("a"), std::nullopt);
  EXPECT_EQ(store.key_count(), 0u);
}

TEST(StoreTest, FirstWriteGetsRevisionTwo) {
  Store store;
  EXPECT_EQ(Put(store, "a", "1", 7), std::nullopt);
  EXPECT_EQ(ToModel(*store.Get("a")), (ModelPair{"a", "1", 2, 2, 1, 7}));
  EXPECT_EQ(store.revision(), Revision(2));
}

TEST(StoreTest, SecondPutKeepsCreationAndReturnsThePairBefore) {
  Store store;
  Put(store, "a", "1", 7);
  EXPECT_EQ(ToModel(*Put(store, "a", "1")), (ModelPair{"a", "1", 2, 2, 1, 7}));
  EXPECT_EQ(ToModel(*store.Get("a")), (ModelPair{"a", "1", 2, 3, 2, 0}));
}

TEST(StoreTest, PutAfterDeleteStartsAnew) {
  Store store;
  Put(store, "a", "1");
  Delete(store, {"a", ""});
  EXPECT_EQ(store.Get("a"), std::nullopt);
  EXPECT_EQ(Put(store, "a", "2"), std::nullopt);
  EXPECT_EQ(ToModel(*store.Get("a")), (ModelPair{"a", "2", 4, 4, 1, 0}));
  EXPECT_EQ(store.Range({"a", ""}, {.revision = Revision(3)}).count, 0);
  EXPECT_EQ(ToModel(store.Range({"a", ""}, {.revision = Revision(2)}).kvs),
            (std::vector<ModelPair>{{"a", "1", 2, 2, 1, 0}}));
}

TEST(StoreTest, DeleteOfNothingDoesNotMoveTheRevision) {
  Store store;
  Put(store, "a", "1");
  const uint64_t digest = store.history_digest();
  EXPECT_TRUE(Delete(store, {"b", kNul}).empty());
  EXPECT_TRUE(Delete(store, {"b", "a"}).empty());
  EXPECT_EQ(store.revision(), Revision(2));
  EXPECT_EQ(store.history_digest(), digest);
}

TEST(StoreTest, DeleteRangeTakesOneRevisionAndKeyOrder) {
  Store store;
  for (const char* key : {"c", "a", "b", "d"}) Put(store, key, key);
  EXPECT_EQ(ToModel(Delete(store, {"a", "d"})),
            (std::vector<ModelPair>{{"a", "a", 3, 3, 1, 0}, {"b", "b", 4, 4, 1, 0}, {"c", "c", 2, 2, 1, 0}}));
  EXPECT_EQ(store.revision(), Revision(6));
  EXPECT_EQ(store.key_count(), 1u);
}

TEST(StoreTest, ChangesOfOneTransactionShareTheirRevisionAndReadersSeeTheLast) {
  Store store;
  store.Begin();
  store.Put(Bytes::Copy("a"), Bytes::Copy("1"), LeaseId());
  EXPECT_EQ(store.Range({"a", ""}, {}).count, 1);  // own changes are seen inside
  store.DeleteRange({"a", ""});
  store.Put(Bytes::Copy("a"), Bytes::Copy("2"), LeaseId());
  EXPECT_TRUE(store.Commit());
  EXPECT_EQ(ToModel(*store.Get("a")), (ModelPair{"a", "2", 2, 2, 1, 0}));
  EXPECT_EQ(store.Range({"a", ""}, {.revision = Revision(2)}).kvs[0].value.view(), "2");
  EXPECT_EQ(store.Range({"a", ""}, {.revision = Revision(1)}).count, 0);
}

TEST(StoreTest, RangeForms) {
  Store store;
  for (const std::string& key :
       {kNul, kNul + kNul, std::string("a"), "a" + kNul, std::string("b"), std::string("\xff")})
    Put(store, key, "v");
  EXPECT_EQ(Keys(store.Range({"a", ""}, {})), Strings{"a"});
  EXPECT_EQ(Keys(store.Range({"a", "b"}, {})), (Strings{"a", "a" + kNul}));
  EXPECT_EQ(Keys(store.Range({"a", kNul}, {})), (Strings{"a", "a" + kNul, "b", "\xff"}));
  EXPECT_EQ(store.Range({kNul, kNul}, {}).count, 6);
  EXPECT_EQ(Keys(store.Range({kNul, kNul + kNul}, {})), Strings{kNul});
  EXPECT_EQ(store.Range({"b", "a"}, {}).count, 0);
  EXPECT_EQ(store.Range({"a", "a"}, {}).count, 0);
}

TEST(StoreTest, KeysWithOneEightBytePrefixStayInByteOrder) {
  Store store;
  const std::string stem = "/registr";
  for (const std::string& key :
       {stem + "y/b", stem, stem + kNul, stem + "y/a", stem.substr(0, 7), stem.substr(0, 7) + kNul})
    Put(store, key, "v");
  EXPECT_EQ(Keys(store.Range({"/", kNul}, {})),
            (Strings{stem.substr(0, 7), stem.substr(0, 7) + kNul, stem, stem + kNul, stem + "y/a", stem + "y/b"}));
}

TEST(StoreTest, LimitCutsAndTellsMore) {
  Store store;
  for (const char* key : {"a", "b", "c"}) Put(store, key, key);
  struct Case {
    int64_t limit;
    size_t kvs;
    bool more;
  };
  for (const Case& c : {Case{0, 3, false}, Case{-1, 3, false}, Case{1, 1, true}, Case{2, 2, true}, Case{3, 3, false},
                        Case{4, 3, false}, Case{kMax, 3, false}, Case{kMin, 3, false}}) {
    const RangeResult result = store.Range({"a", kNul}, {.limit = c.limit});
    EXPECT_EQ(result.kvs.size(), c.kvs) << c.limit;
    EXPECT_EQ(result.more, c.more) << c.limit;
    EXPECT_EQ(result.count, 3);
  }
}

TEST(StoreTest, CountOnlyShowsNoPairsAndNoMore) {
  Store store;
  for (const char* key : {"a", "b", "c"}) Put(store, key, key);
  const RangeResult result = store.Range({"a", kNul}, {.limit = 1, .count_only = true});
  EXPECT_EQ(result.count, 3);
  EXPECT_TRUE(result.kvs.empty());
  EXPECT_FALSE(result.more);
}

TEST(StoreTest, OrderNoneWithAnotherTargetCutsBeforeItSorts) {
  Store store;
  for (const char* key : {"a", "b", "c", "d"}) Put(store, key, std::string(1, static_cast<char>('z' - key[0] + 'a')));
  // Values fall with the keys: of the first two keys the second has the smaller value.
  EXPECT_EQ(Keys(store.Range({"a", kNul}, {.limit = 1, .sort_target = SortTarget::kValue})), Strings{"b"});
  EXPECT_EQ(
      Keys(store.Range({"a", kNul}, {.limit = 1, .sort_order = SortOrder::kAscend, .sort_target = SortTarget::kValue})),
      Strings{"d"});
}

TEST(StoreTest, KeysOnlyHidesTheLeaseUnlessSortedByValue) {
  Store store;
  Put(store, "a", "1", 7);
  EXPECT_EQ(ToModel(store.Range({"a", ""}, {.keys_only = true}).kvs), (std::vector<ModelPair>{{"a", "", 2, 2, 1, 0}}));
  EXPECT_EQ(ToModel(store.Range({"a", ""}, {.sort_target = SortTarget::kValue, .keys_only = true}).kvs),
            (std::vector<ModelPair>{{"a", "", 2, 2, 1, 7}}));
}

TEST(StoreTest, NegativeFiltersAreFilters) {
  Store store;
  Put(store, "a", "1");
  EXPECT_EQ(store.Range({"a", ""}, {.min_mod_revision = Revision(-5)}).kvs.size(), 1u);
  EXPECT_EQ(store.Range({"a", ""}, {.min_create_revision = Revision(kMin)}).kvs.size(), 1u);
  const RangeResult none = store.Range({"a", ""}, {.max_mod_revision = Revision(-5)});
  EXPECT_TRUE(none.kvs.empty());
  EXPECT_EQ(none.count, 1);
  EXPECT_TRUE(store.Range({"a", ""}, {.max_create_revision = Revision(-1)}).kvs.empty());
}

TEST(StoreTest, MoreCountsWhatFiltersLeave) {
  Store store;
  for (const char* key : {"a", "b", "c"}) Put(store, key, key);
  EXPECT_FALSE(store.Range({"a", kNul}, {.limit = 2, .min_mod_revision = Revision(3)}).more);
  EXPECT_TRUE(store.Range({"a", kNul}, {.limit = 1, .min_mod_revision = Revision(3)}).more);
}

TEST(StoreTest, ValuesAreSharedNotCopied) {
  Store store;
  const Bytes value = Bytes::Copy("a long value that would be noticed");
  store.Begin();
  store.Put(Bytes::Copy("k"), value, LeaseId());
  store.Commit();
  EXPECT_EQ(store.Get("k")->value.data(), value.data());
  EXPECT_EQ(store.Range({"k", kNul}, {}).kvs[0].value.data(), value.data());
}

TEST(StoreTest, DigestTellsHistoriesApart) {
  auto digest = [](auto... steps) {
    Store store;
    (steps(store), ...);
    return store.history_digest();
  };
  auto put = [](const char* key, const char* value, int64_t lease = 0) {
    return [=](Store& store) { Put(store, key, value, lease); };
  };
  auto erase = [](const char* key) { return [=](Store& store) { Delete(store, {key, ""}); }; };
  std::vector<uint64_t> digests = {digest(),
                                   digest(put("a", "1")),
                                   digest(put("a", "2")),
                                   digest(put("b", "1")),
                                   digest(put("a", "1", 1)),
                                   digest(put("a", "1"), put("b", "1")),
                                   digest(put("b", "1"), put("a", "1")),
                                   digest(put("a", "1"), erase("a"))};
  EXPECT_EQ(digest(put("a", "1"), erase("a")), digests.back());
  std::sort(digests.begin(), digests.end());
  EXPECT_EQ(std::unique(digests.begin(), digests.end()), digests.end());
}

// --- against the plain twin
// --------------------------------------------------------------------------------------------

rc::Gen<std::string> AnyKey() {
  return rc::gen::elementOf(std::vector<std::string>{kNul, kNul + kNul, kNul + "a", "a", "a" + kNul, "aa", "ab", "b",
                                                     "registry/a", "registry/b", "registry", "\xff", "\xff\xff"});
}
rc::Gen<std::string> AnyEnd() {
  return rc::gen::oneOf(rc::gen::elementOf(std::vector<std::string>{"", kNul}), AnyKey());
}

RangeOptions AnyOptions(int64_t revision) {
  auto near = [&] {
    return *rc::gen::weightedOneOf<int64_t>({{6, rc::gen::just<int64_t>(0)},
                                             {3, rc::gen::inRange<int64_t>(-2, revision + 3)},
                                             {1, rc::gen::elementOf(std::vector<int64_t>{kMin, kMax})}});
  };
  RangeOptions options;
  options.revision = Revision(near());
  options.limit = near();
  options.sort_order = static_cast<SortOrder>(*rc::gen::inRange(0, 3));
  options.sort_target = static_cast<SortTarget>(*rc::gen::inRange(0, 5));
  options.keys_only = *rc::gen::weightedElement<bool>({{3, false}, {1, true}});
  options.count_only = *rc::gen::weightedElement<bool>({{5, false}, {1, true}});
  options.min_mod_revision = Revision(near());
  options.max_mod_revision = Revision(near());
  options.min_create_revision = Revision(near());
  options.max_create_revision = Revision(near());
  return options;
}

RC_GTEST_PROP(StoreProperty, AgreesWithTheModel, ()) {
  Store store;
  ModelStore model;
  const int steps = *rc::gen::inRange(1, 40);
  for (int i = 0; i < steps; ++i) {
    const int kind = *rc::gen::weightedElement<int>({{5, 0}, {2, 1}, {5, 2}});
    const std::string key = *AnyKey();
    if (kind == 0) {
      const std::string value = *rc::gen::elementOf(std::vector<std::string>{"", "x", "y", kNul});
      const int64_t lease = *rc::gen::elementOf(std::vector<int64_t>{0, 0, 5, -1});
      const auto found = model.now().find(key);
      const auto before = Put(store, key, value, lease);
      RC_ASSERT(before.has_value() == (found != model.now().end()));
      if (before) RC_ASSERT(ToModel(*before) == found->second);
      model.Put(key, value, lease);
    } else if (kind == 1) {
      const std::string end = *AnyEnd();
      RC_ASSERT(ToModel(Delete(store, {key, end})) == model.DeleteRange(key, end));
    } else {
      const std::string end = *AnyEnd();
      const RangeOptions options = AnyOptions(model.revision());
      const RangeResult result = store.Range({key, end}, options);
      const ModelRange expected = model.Range(key, end, options);
      RC_ASSERT(result.error == expected.error);
      RC_ASSERT(ToModel(result.kvs) == expected.pairs);
      RC_ASSERT(result.count == expected.count);
      RC_ASSERT(result.more == expected.more);
      const auto one = store.Get(key);
      const auto found = model.now().find(key);
      RC_ASSERT(one.has_value() == (found != model.now().end()));
      if (one) RC_ASSERT(ToModel(*one) == found->second);
    }
    RC_ASSERT(store.revision().value == model.revision());
    RC_ASSERT(store.key_count() == model.now().size());
  }
}

}  // namespace
}  // namespace detcd::mvcc
