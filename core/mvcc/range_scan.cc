#include "core/mvcc/range_scan.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/check.h"
#include "core/base/probe.h"

namespace detcd::mvcc {
namespace {

constexpr size_t kAll = std::numeric_limits<size_t>::max();

bool HasFilters(const RangeOptions& options) {
  return options.min_mod_revision.value != 0 || options.max_mod_revision.value != 0 ||
         options.min_create_revision.value != 0 || options.max_create_revision.value != 0;
}

// Negative, zero or positive, as the sort target orders the pairs.
int Compare(SortTarget target, const KeyValue& a, const KeyValue& b) {
  auto three_way = [](const auto& x, const auto& y) { return x < y ? -1 : y < x ? 1 : 0; };
  switch (target) {
    case SortTarget::kKey:
      return three_way(a.key.view(), b.key.view());
    case SortTarget::kVersion:
      return three_way(a.version, b.version);
    case SortTarget::kCreate:
      return three_way(a.create_revision, b.create_revision);
    case SortTarget::kMod:
      return three_way(a.mod_revision, b.mod_revision);
    case SortTarget::kValue:
      return three_way(a.value.view(), b.value.view());
  }
  return 0;
}

}  // namespace

bool PassesFilters(const RangeOptions& options, const KeyVersion& version) {
  if (options.max_mod_revision.value != 0 && version.main > options.max_mod_revision) return false;
  if (options.min_mod_revision.value != 0 && version.main < options.min_mod_revision) return false;
  if (options.max_create_revision.value != 0 && version.create > options.max_create_revision) return false;
  if (options.min_create_revision.value != 0 && version.create < options.min_create_revision) return false;
  return true;
}

KeyValue MakePair(const KeyRecord& record, const KeyVersion& version) {
  return {.key = record.key,
          .value = version.value,
          .create_revision = version.create,
          .mod_revision = version.main,
          .version = version.version,
          .lease = version.lease};
}

// keys_only pairs come from the memory index in etcd, which knows no lease; only a sort by value makes it read the
// whole pair, and then just the value is dropped afterwards.
KeyValue Present(const RangeOptions& options, KeyValue pair) {
  if (options.keys_only) {
    pair.value = Bytes();
    if (options.sort_target != SortTarget::kValue) pair.lease = LeaseId();
  }
  return pair;
}

// Sorting and filtering look at the whole range; without them limit + 1 pairs tell all that is asked, and the rest is
// only counted. An order of kNone with another target than the key sorts after that cut, as etcd does.
RangeScan::RangeScan(const KeyIndex& index, const KeyRange& range, const RangeOptions& options, Revision at)
    : index_(index), range_(range), options_(options), at_(at), hits_max_(kAll) {
  CHECK(!range.end.empty());
  const bool whole = options.sort_order != SortOrder::kNone || HasFilters(options);
  if (options.count_only) {
    hits_max_ = 0;
  } else if (!whole && options.limit > 0) {
    hits_max_ = static_cast<size_t>(options.limit) + 1;
  }
}

// The walk's own order is that of keys.
bool RangeScan::Sorted() const {
  return options_.sort_target != SortTarget::kKey || options_.sort_order == SortOrder::kDescend;
}

// Equal pairs stay in key order: etcd leaves that order open, and one answer for all members is easier to check.
bool RangeScan::Before(const KeyValue& a, const KeyValue& b) const {
  const int order = Compare(options_.sort_target, a, b);
  if (order == 0) return a.key.view() < b.key.view();
  return options_.sort_order == SortOrder::kDescend ? order > 0 : order < 0;
}

bool RangeScan::Step(const RangeSlice& slice, std::vector<KeyValue>& kvs) {
  if (!walked_) {
    walked_ = Walk(slice, kvs);
    if (!walked_) return false;
  }
  return Merge(slice, kvs);
}

bool RangeScan::Walk(const RangeSlice& slice, std::vector<KeyValue>& kvs) {
  const bool sorted = Sorted();
  const size_t shown_max = sorted ? kAll : LimitOr(kAll);
  std::vector<KeyValue> run;
  std::vector<KeyValue>& out = sorted ? run : kvs;
  size_t keys = 0;
  size_t pairs = 0;
  size_t bytes = 0;
  bool whole = true;
  const bool open_ended = range_.end == std::string_view("\0", 1);
  index_.ForEach(next_.empty() ? range_.key : next_.view(),
                 open_ended ? std::nullopt : std::optional<std::string_view>(range_.end), [&](const KeyRecord& record) {
    if (keys == slice.keys_max || pairs == slice.pairs_max || bytes >= slice.bytes_max) {
      next_ = record.key;
      whole = false;
      return false;
    }
    ++keys;
    const KeyVersion* version = record.VisibleAt(at_);
    if (version == nullptr) return true;
    ++count_;
    if (found_ == hits_max_ || !PassesFilters(options_, *version)) return true;
    if (++found_ > shown_max) return true;
    const KeyValue& pair = out.emplace_back(MakePair(record, *version));
    ++pairs;
    if (sorted) return true;
    bytes += pair.key.size() + pair.value.size();
    if (options_.keys_only) out.back() = Present(options_, std::move(out.back()));
    return true;
  });
  if (!run.empty()) AddRun(std::move(run));
  return whole;
}

void RangeScan::AddRun(std::vector<KeyValue> run) {
  if (options_.sort_target == SortTarget::kKey) {
    std::reverse(run.begin(), run.end());
  } else {
    std::sort(run.begin(), run.end(), [&](const KeyValue& a, const KeyValue& b) { return Before(a, b); });
  }
  run.resize(std::min(run.size(), LimitOr(run.size())));
  heads_.push_back({.run = runs_.size()});
  runs_.push_back(std::move(run));
}

bool RangeScan::Merge(const RangeSlice& slice, std::vector<KeyValue>& kvs) {
  if (heads_.empty()) return true;
  const auto pair_of = [&](const Cursor& head) -> KeyValue& { return runs_[head.run][head.at]; };
  const auto later = [&](const Cursor& a, const Cursor& b) { return Before(pair_of(b), pair_of(a)); };
  if (merged_ == 0) {
    if (heads_.size() > 1) PROBE("mvcc.sorted_range_in_several_slices");
    std::make_heap(heads_.begin(), heads_.end(), later);
  }
  const size_t limit = LimitOr(kAll);
  size_t bytes = 0;
  for (size_t pairs = 0; !heads_.empty() && merged_ < limit; ++pairs, ++merged_) {
    if (pairs == slice.pairs_max || bytes >= slice.bytes_max) return false;
    std::pop_heap(heads_.begin(), heads_.end(), later);
    Cursor& head = heads_.back();
    KeyValue& pair = kvs.emplace_back(Present(options_, std::move(pair_of(head))));
    bytes += pair.key.size() + pair.value.size();
    if (++head.at < runs_[head.run].size()) {
      std::push_heap(heads_.begin(), heads_.end(), later);
    } else {
      std::vector<KeyValue>().swap(runs_[head.run]);
      heads_.pop_back();
    }
  }
  return true;
}

}  // namespace detcd::mvcc
