#include "core/mvcc/range_scan.h"

#include "core/base/limits.h"
#include "tests/core/mvcc/model_store.h"

namespace detcd::mvcc {
namespace {

const std::string kNul(1, '\0');

void Put(Store& store, const std::string& key, const std::string& value) {
  store.Begin();
  store.Put(Bytes::Copy(key), Bytes::Copy(value), LeaseId());
  store.Commit();
}
void Delete(Store& store, const std::string& key, const std::string& end) {
  store.Begin();
  store.DeleteRange({key, end});
  store.Commit();
}

// Whatever the store goes through between two slices, the pairs are those of the range in one go at the start.
RC_GTEST_PROP(RangeScanProperty, SlicesAreTheRangeThatWasBegun, ()) {
  Store store;
  const auto any_key = [] { return std::string(1, *rc::gen::inRange('a', 'p')); };
  const auto change = [&] {
    const int kind = *rc::gen::weightedElement<int>({{6, 0}, {2, 1}, {2, 2}, {2, 3}});
    if (kind == 0) Put(store, any_key(), any_key());
    if (kind == 1) Delete(store, any_key(), *rc::gen::element(std::string(), any_key(), kNul));
    if (kind == 2) store.Compact(Revision(*rc::gen::inRange<int64_t>(1, store.revision().value + 1)));
    if (kind == 3 && store.HasWork()) store.Work(static_cast<size_t>(*rc::gen::inRange(1, 30)));
  };
  for (int i = *rc::gen::inRange(0, 60); i > 0; --i) change();

  const int64_t lowest = std::max<int64_t>(1, store.compact_revision().value);
  const auto near = [&] { return Revision(*rc::gen::element<int64_t>(0, 0, 0, *rc::gen::inRange<int64_t>(1, 40))); };
  RangeOptions options;
  options.revision = Revision(*rc::gen::inRange<int64_t>(lowest, store.revision().value + 1));
  options.limit = *rc::gen::element<int64_t>(0, 0, 1, 3, 14, -1);
  options.sort_order = static_cast<SortOrder>(*rc::gen::inRange(0, 3));
  options.sort_target = static_cast<SortTarget>(*rc::gen::inRange(0, 5));
  options.keys_only = *rc::gen::arbitrary<bool>();
  options.count_only = *rc::gen::weightedElement<bool>({{5, false}, {1, true}});
  options.min_mod_revision = near();
  options.max_create_revision = near();
  const std::string first = any_key();
  const std::string end = *rc::gen::element(kNul, any_key());
  const RangeResult expected = store.Range({first, end}, options);
  RC_ASSERT(expected.error == RangeError::kOk);

  const Store::Hold hold(store, options.revision);
  RangeScan scan = store.Scan({first, end}, options);
  std::vector<KeyValue> kvs;
  bool done = false;
  while (!done) {
    const RangeSlice slice{.keys_max = static_cast<size_t>(*rc::gen::inRange(1, 6)),
                           .pairs_max = static_cast<size_t>(*rc::gen::inRange(1, 6)),
                           .bytes_max = static_cast<size_t>(*rc::gen::inRange(1, 12))};
    const size_t before = kvs.size();
    done = scan.Step(slice, kvs);
    RC_ASSERT(kvs.size() - before <= 2 * slice.pairs_max);
    for (int i = *rc::gen::inRange(0, 20); !done && i > 0; --i) change();
  }
  RC_ASSERT(kvs == expected.kvs);
  RC_ASSERT(scan.count() == expected.count);
  RC_ASSERT(scan.more() == expected.more);
}

TEST(RangeScanTest, OneSliceIsEnoughUpToItsBounds) {
  Store store;
  for (int i = 0; i < 10; ++i) Put(store, "k" + std::to_string(i), "v");
  EXPECT_TRUE(store.RangeWithin({"k", "l"}, {}, {.keys_max = 10}));
  EXPECT_FALSE(store.RangeWithin({"k", "l"}, {}, {.keys_max = 9}));
  EXPECT_TRUE(store.RangeWithin({"k", "l"}, {}, {.pairs_max = 10}));
  EXPECT_FALSE(store.RangeWithin({"k", "l"}, {}, {.pairs_max = 9}));
  EXPECT_TRUE(store.RangeWithin({"k", "l"}, {}, {.bytes_max = 30}));
  EXPECT_TRUE(store.RangeWithin({"k", "l"}, {}, {.bytes_max = 28}));  // the last may pass it
  EXPECT_FALSE(store.RangeWithin({"k", "l"}, {}, {.bytes_max = 27}));
  EXPECT_TRUE(store.RangeWithin({"k", ""}, {}, {.keys_max = 0}));  // one key is no walk
}

TEST(RangeScanTest, RemovalsWaitForTheHoldsBelowThem) {
  Store store;
  Put(store, "a", "1");  // 2
  Put(store, "a", "2");  // 3
  Put(store, "a", "3");  // 4
  std::optional<Store::Hold> low(std::in_place, store, Revision(2));
  std::optional<Store::Hold> high(std::in_place, store, Revision(4));
  ASSERT_EQ(store.Compact(Revision(4)), RangeError::kOk);
  EXPECT_EQ(store.Range({"a", ""}, {.revision = Revision(3)}).error, RangeError::kCompacted);
  while (store.HasWork()) store.Work();
  EXPECT_EQ(store.removed_revision(), Revision(-1));
  low.reset();
  while (store.HasWork()) store.Work();
  EXPECT_EQ(store.removed_revision(), Revision(4));
}

}  // namespace
}  // namespace detcd::mvcc
