#include "checker/kv_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/proto/raft_internal.pb.h"

namespace detcd::checker {
namespace {

using etcdserverpb::InternalRaftRequest;

constexpr std::string_view kFromKey("\0", 1);

// Requests that leave keys, and what later requests do to keys, as they are.
bool LeavesKeysAlone(const InternalRaftRequest& request) {
  if (request.has_cluster_member_attr_set() || request.has_cluster_version_set()) return true;
  if (request.has_downgrade_info_set() || request.has_downgrade_version_test()) return true;
  if (request.has_range() || request.has_lease_grant() || request.has_lease_checkpoint()) return true;
  return request.has_alarm() && request.alarm().action() == etcdserverpb::AlarmRequest::GET;
}

// Three-way comparison of two pairs by the sort target.
int CompareBy(SortTarget target, const ObservedKeyValue& a, const ObservedKeyValue& b) {
  auto three_way = [](const auto& x, const auto& y) { return x < y ? -1 : (y < x ? 1 : 0); };
  switch (target) {
    case SortTarget::kKey: return three_way(a.key, b.key);
    case SortTarget::kVersion: return three_way(a.version, b.version);
    case SortTarget::kCreate: return three_way(a.create_revision, b.create_revision);
    case SortTarget::kMod: return three_way(a.mod_revision, b.mod_revision);
    case SortTarget::kValue: return three_way(a.value, b.value);
  }
  return 0;
}

bool HasFilter(const Request& request) {
  return request.max_mod_revision != 0 || request.min_mod_revision != 0 || request.max_create_revision != 0 ||
         request.min_create_revision != 0;
}

bool Passes(const Request& request, const ObservedKeyValue& kv) {
  if (request.max_mod_revision != 0 && kv.mod_revision > request.max_mod_revision) return false;
  if (request.min_mod_revision != 0 && kv.mod_revision < request.min_mod_revision) return false;
  if (request.max_create_revision != 0 && kv.create_revision > request.max_create_revision) return false;
  return request.min_create_revision == 0 || kv.create_revision >= request.min_create_revision;
}

std::string Show(const ObservedKeyValue& kv) {
  return absl::StrFormat("%s=%s (create %d, mod %d, version %d)", kv.key, kv.value, kv.create_revision,
                         kv.mod_revision, kv.version);
}

// Whether `got` is what is left of `pairs` (any order) after sorting and keeping the first `size`: equal sort values
// may stand in any order, also across the cut, so each position must have the right sort value, and each pair must be
// one of `pairs` not shown before.
std::string SequenceTrouble(const Request& request, std::vector<ObservedKeyValue> pairs, size_t size,
                            const std::vector<ObservedKeyValue>& got) {
  std::map<std::string_view, const ObservedKeyValue*> by_key;
  std::vector<const ObservedKeyValue*> order;
  for (const ObservedKeyValue& kv : pairs) {
    by_key[kv.key] = &kv;
    order.push_back(&kv);
  }
  bool sorted = request.sort_order != SortOrder::kNone || request.sort_target != SortTarget::kKey;
  if (sorted) {
    std::sort(order.begin(), order.end(), [&](const ObservedKeyValue* a, const ObservedKeyValue* b) {
      int c = CompareBy(request.sort_target, *a, *b);
      if (c == 0) return a->key < b->key;
      return request.sort_order == SortOrder::kDescend ? c > 0 : c < 0;
    });
  }
  if (got.size() != size) {
    std::string first = order.size() > got.size() ? Show(*order[got.size()]) : std::string("nothing");
    return absl::StrFormat("%d pairs instead of %d; expected next: %s", got.size(), size, first);
  }
  for (size_t i = 0; i < size; ++i) {
    auto known = by_key.find(got[i].key);
    if (known == by_key.end()) return absl::StrFormat("%s, which is not there (or twice)", Show(got[i]));
    ObservedKeyValue expected = *known->second;
    if (CompareBy(request.sort_target, expected, *order[i]) != 0) {
      return absl::StrFormat("%s where %s belongs", Show(got[i]), Show(*order[i]));
    }
    if (request.keys_only) expected.value.clear();
    if (!(got[i] == expected)) return absl::StrFormat("%s instead of %s", Show(got[i]), Show(expected));
    by_key.erase(known);
  }
  return {};
}

}  // namespace

bool InRange(std::string_view candidate, std::string_view key, std::string_view range_end) {
  if (range_end.empty()) return candidate == key;
  return candidate >= key && (range_end == kFromKey || candidate < range_end);
}

std::string RangeTrouble(const Request& request, const Answer& answer, std::vector<ObservedKeyValue> pairs) {
  auto count = static_cast<int64_t>(pairs.size());
  if (answer.count != count) return absl::StrFormat("count %d instead of %d", answer.count, count);
  if (request.count_only) {
    return answer.kvs.empty() && !answer.more ? "" : "pairs or `more` in an answer to count_only";
  }
  size_t limit = request.limit > 0 ? static_cast<size_t>(request.limit) : 0;
  if (request.sort_order != SortOrder::kNone || HasFilter(request)) {
    std::erase_if(pairs, [&](const ObservedKeyValue& kv) { return !Passes(request, kv); });
  } else if (limit != 0 && pairs.size() > limit + 1) {
    pairs.resize(limit + 1);  // without order or filter etcd reads limit + 1 keys, and sorts those
  }
  bool more = limit != 0 && pairs.size() > limit;
  if (answer.more != more) return more ? "`more` is missing" : "`more` is set though nothing was cut";
  size_t size = more ? limit : pairs.size();
  return SequenceTrouble(request, std::move(pairs), size, answer.kvs);
}

const KvModel::Version* KvModel::At(const History& history, int64_t at) {
  auto after = std::upper_bound(history.begin(), history.end(), at,
                                [](int64_t revision, const Version& v) { return revision < v.mod; });
  if (after == history.begin() || std::prev(after)->create == 0) return nullptr;
  return &*std::prev(after);
}

const KvModel::History* KvModel::Find(std::string_view key) const {
  auto it = keys_.find(key);
  return it == keys_.end() ? nullptr : &it->second;
}

Effect KvModel::Nothing(EffectKind kind) const {
  Effect effect;
  effect.kind = kind;
  effect.revision = revision_;
  return effect;
}

Effect KvModel::Put(std::string key, std::string value, bool ignore_value, bool ignore_lease) {
  History& history = keys_[key];
  const Version* before = At(history, revision_);
  if (before == nullptr && (ignore_value || ignore_lease)) return Nothing();
  ++revision_;
  Version next{.mod = revision_, .create = revision_, .version = 1, .value = value};
  if (before != nullptr) {
    next.create = before->create;
    next.version = before->version + 1;
    if (ignore_value) next.value = before->value;
  }
  history.push_back(std::move(next));
  Effect effect = Nothing(EffectKind::kPut);
  effect.key = std::move(key);
  effect.value = std::move(value);
  effect.ignore_value = ignore_value;
  return effect;
}

Effect KvModel::Delete(std::string key, std::string range_end) {
  int64_t deleted = 0;
  for (auto it = keys_.lower_bound(key); it != keys_.end() && InRange(it->first, key, range_end); ++it) {
    if (At(it->second, revision_) == nullptr) continue;
    it->second.push_back(Version{.mod = revision_ + 1});
    ++deleted;
  }
  if (deleted == 0) return Nothing();
  ++revision_;
  Effect effect = Nothing(EffectKind::kDelete);
  effect.key = std::move(key);
  effect.range_end = std::move(range_end);
  effect.deleted = deleted;
  return effect;
}

Effect KvModel::Apply(std::string_view entry_data) {
  if (entry_data.empty()) return Nothing();
  InternalRaftRequest request;
  if (!request.ParseFromArray(entry_data.data(), static_cast<int>(entry_data.size()))) {
    return Nothing(EffectKind::kForeign);
  }
  if (request.has_put()) {
    auto& put = *request.mutable_put();
    if (put.lease() != 0) return Nothing(EffectKind::kForeign);
    return Put(std::move(*put.mutable_key()), std::move(*put.mutable_value()), put.ignore_value(), put.ignore_lease());
  }
  if (request.has_delete_range()) {
    auto& deletion = *request.mutable_delete_range();
    return Delete(std::move(*deletion.mutable_key()), std::move(*deletion.mutable_range_end()));
  }
  if (request.has_compaction()) {
    int64_t wanted = request.compaction().revision();
    if (wanted > compact_revision() && wanted <= revision_) compactions_.push_back({wanted, revision_});
    return Nothing();
  }
  return Nothing(LeavesKeysAlone(request) ? EffectKind::kNone : EffectKind::kForeign);
}

std::optional<ObservedKeyValue> KvModel::Get(std::string_view key, int64_t at) const {
  const History* history = Find(key);
  const Version* version = history == nullptr ? nullptr : At(*history, at);
  if (version == nullptr) return std::nullopt;
  return ObservedKeyValue{.key = std::string(key),
                          .value = version->value,
                          .create_revision = version->create,
                          .mod_revision = version->mod,
                          .version = version->version};
}

std::vector<ObservedKeyValue> KvModel::Live(std::string_view key, std::string_view range_end, int64_t at) const {
  std::vector<ObservedKeyValue> live;
  for (auto it = keys_.lower_bound(key); it != keys_.end() && InRange(it->first, key, range_end); ++it) {
    if (auto kv = Get(it->first, at)) live.push_back(*std::move(kv));
  }
  return live;
}

std::optional<int64_t> KvModel::CompactedAt(int64_t revision) const {
  for (const Compaction& compaction : compactions_) {
    if (compaction.compacted > revision) return compaction.revision;
  }
  return std::nullopt;
}

std::optional<int64_t> KvModel::FirstAbsent(std::string_view key, int64_t from) const {
  const History* history = Find(key);
  if (history == nullptr || At(*history, from) == nullptr) return from;
  for (const Version& version : *history) {
    if (version.mod > from && version.create == 0) return version.mod;
  }
  return std::nullopt;
}

std::string KvModel::RangeTrouble(const Request& request, const Answer& answer, int64_t at) const {
  return checker::RangeTrouble(request, answer, Live(request.key, request.range_end, at));
}

}  // namespace detcd::checker
