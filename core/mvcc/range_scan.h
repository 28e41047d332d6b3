// A range over the key index at one revision, in slices: a walk in key order, and for an order of another kind a merge of
// what each slice of the walk found, sorted. Between two slices the store may change, as long as compaction takes nothing
// that the revision shows (Store::Hold). What it means is Store::Range, which is one slice without bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/mvcc/key_index.h"
#include "core/mvcc/store.h"

namespace detcd::mvcc {

class RangeScan {
 public:
  // Reads at `at`, whatever `options` say. `index` and the bytes of `range` outlive this object. The range is not one
  // single key.
  RangeScan(const KeyIndex& index, const KeyRange& range, const RangeOptions& options, Revision at);

  // One slice: appends the next pairs of the answer to `kvs`, which may be none. True: that was all.
  bool Step(const RangeSlice& slice, std::vector<KeyValue>& kvs);

  // Once all is read.
  int64_t count() const { return count_; }
  bool more() const { return options_.limit > 0 && found_ > static_cast<size_t>(options_.limit); }

 private:
  // Where the merge stands in one run.
  struct Cursor {
    size_t run;
    size_t at = 0;
  };

  bool Sorted() const;
  size_t LimitOr(size_t none) const { return options_.limit > 0 ? static_cast<size_t>(options_.limit) : none; }
  bool Walk(const RangeSlice& slice, std::vector<KeyValue>& kvs);
  void AddRun(std::vector<KeyValue> run);
  bool Merge(const RangeSlice& slice, std::vector<KeyValue>& kvs);
  bool Before(const KeyValue& a, const KeyValue& b) const;

  const KeyIndex& index_;
  KeyRange range_;
  RangeOptions options_;
  Revision at_;
  size_t hits_max_;        // pairs that are looked for; the others are only counted
  Bytes next_;             // the key to walk on from; empty: from the start
  bool walked_ = false;
  int64_t count_ = 0;      // keys of the range
  size_t found_ = 0;       // pairs that pass the filters, up to hits_max_
  std::vector<std::vector<KeyValue>> runs_;  // of a sorted range: each in order, and no longer than the limit
  std::vector<Cursor> heads_;                // a heap of the runs that have pairs left, the next pair first
  size_t merged_ = 0;                        // pairs given out by the merge
};

KeyValue MakePair(const KeyRecord& record, const KeyVersion& version);
// The pair as an answer to `options` shows it.
KeyValue Present(const RangeOptions& options, KeyValue pair);
bool PassesFilters(const RangeOptions& options, const KeyVersion& version);

}  // namespace detcd::mvcc
