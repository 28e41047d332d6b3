// The store's plain twin: the whole key space as one map per revision. Slow, small, and obviously right.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/mvcc/store.h"

namespace detcd::mvcc {

struct ModelPair {
  std::string key, value;
  int64_t create = 0, mod = 0, version = 0, lease = 0;

  friend bool operator==(const ModelPair&, const ModelPair&) = default;
};

inline ModelPair ToModel(const KeyValue& kv) {
  return {std::string(kv.key.view()),
          std::string(kv.value.view()),
          kv.create_revision.value,
          kv.mod_revision.value,
          kv.version,
          kv.lease.value};
}
inline std::vector<ModelPair> ToModel(const std::vector<KeyValue>& kvs) {
  std::vector<ModelPair> pairs;
  for (const KeyValue& kv : kvs) pairs.push_back(ToModel(kv));
  return pairs;
}

struct ModelRange {
  RangeError error = RangeError::kOk;
  std::vector<ModelPair> pairs;
  int64_t count = 0;
  bool more = false;
};

class ModelStore {
 public:
  using State = std::map<std::string, ModelPair>;

  int64_t revision() const { return static_cast<int64_t>(states_.size()); }
  const State& now() const { return states_.back(); }

  static bool Contains(const std::string& key, const std::string& end, const std::string& candidate) {
    if (end.empty()) return candidate == key;
    if (end == std::string(1, '\0')) return candidate >= key;
    return candidate >= key && candidate < end;
  }

  // Between Begin and Commit, now() is the state with the transaction's changes so far, and revision() counts it.
  void Begin() {
    states_.push_back(State(now()));
    changed_ = false;
  }
  void Commit() {
    if (!changed_) states_.pop_back();
  }

  void PutInside(const std::string& key, const std::string& value, int64_t lease) {
    ModelPair& pair = states_.back()[key];
    pair = {key, value, pair.version == 0 ? revision() : pair.create, revision(), pair.version + 1, lease};
    changed_ = true;
  }
  std::vector<ModelPair> DeleteInside(const std::string& key, const std::string& end) {
    std::vector<ModelPair> deleted;
    for (const auto& [candidate, pair] : now()) {
      if (Contains(key, end, candidate)) deleted.push_back(pair);
    }
    for (const ModelPair& pair : deleted) states_.back().erase(pair.key);
    changed_ = changed_ || !deleted.empty();
    return deleted;
  }

  void Put(const std::string& key, const std::string& value, int64_t lease) {
    Begin();
    PutInside(key, value, lease);
    Commit();
  }
  std::vector<ModelPair> DeleteRange(const std::string& key, const std::string& end) {
    Begin();
    std::vector<ModelPair> deleted = DeleteInside(key, end);
    Commit();
    return deleted;
  }

  RangeError Compact(int64_t at) {
    if (at <= compacted_) return RangeError::kCompacted;
    if (at > revision()) return RangeError::kFutureRevision;
    compacted_ = at;
    return RangeError::kOk;
  }

  // As etcd words it: read everything (or limit + 1), drop by each filter, sort, cut.
  ModelRange Range(const std::string& key, const std::string& end, const RangeOptions& o) const {
    ModelRange result;
    const int64_t at = o.revision.value <= 0 ? revision() : o.revision.value;
    if (at > revision()) return {.error = RangeError::kFutureRevision};
    if (o.revision.value > 0 && at < compacted_) return {.error = RangeError::kCompacted};
    std::vector<ModelPair> pairs;
    for (const auto& [candidate, pair] : states_[static_cast<size_t>(at - 1)]) {
      if (Contains(key, end, candidate)) pairs.push_back(pair);
    }
    result.count = static_cast<int64_t>(pairs.size());
    if (o.count_only) return result;
    const bool filters = o.max_mod_revision.value != 0 || o.min_mod_revision.value != 0 ||
                         o.max_create_revision.value != 0 || o.min_create_revision.value != 0;
    const auto limit = o.limit > 0 ? static_cast<size_t>(o.limit) : std::numeric_limits<size_t>::max() - 1;
    if (o.sort_order == SortOrder::kNone && !filters && pairs.size() > limit + 1) pairs.resize(limit + 1);
    auto drop = [&](auto condition) { std::erase_if(pairs, condition); };
    if (int64_t n = o.max_mod_revision.value; n != 0) drop([n](const ModelPair& p) { return p.mod > n; });
    if (int64_t n = o.min_mod_revision.value; n != 0) drop([n](const ModelPair& p) { return p.mod < n; });
    if (int64_t n = o.max_create_revision.value; n != 0) drop([n](const ModelPair& p) { return p.create > n; });
    if (int64_t n = o.min_create_revision.value; n != 0) drop([n](const ModelPair& p) { return p.create < n; });

    const bool descend = o.sort_order == SortOrder::kDescend;
    auto by = [&](auto attribute) {
      std::stable_sort(pairs.begin(), pairs.end(), [&](const ModelPair& a, const ModelPair& b) {
        return descend ? attribute(b) < attribute(a) : attribute(a) < attribute(b);
      });
    };
    switch (o.sort_target) {
      case SortTarget::kKey:
        by([](const ModelPair& p) { return p.key; });
        break;
      case SortTarget::kVersion:
        by([](const ModelPair& p) { return p.version; });
        break;
      case SortTarget::kCreate:
        by([](const ModelPair& p) { return p.create; });
        break;
      case SortTarget::kMod:
        by([](const ModelPair& p) { return p.mod; });
        break;
      case SortTarget::kValue:
        by([](const ModelPair& p) { return p.value; });
        break;
    }
    result.more = pairs.size() > limit;
    if (result.more) pairs.resize(limit);
    if (o.keys_only) {
      for (ModelPair& pair : pairs) {
        pair.value.clear();
        if (o.sort_target != SortTarget::kValue) pair.lease = 0;
      }
    }
    result.pairs = pairs;
    return result;
  }

 private:
  std::vector<State> states_ = {State{}};  // by revision - 1
  int64_t compacted_ = -1;
  bool changed_ = false;
};

}  // namespace detcd::mvcc
