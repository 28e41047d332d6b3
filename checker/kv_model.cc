#include "checker/kv_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "checker/api_messages.h"
#include "checker/requests.h"
#include "core/base/crc32c.h"
#include "core/proto/kv.pb.h"
#include "core/proto/raft_internal.pb.h"

namespace detcd::checker {
namespace {

using etcdserverpb::InternalRaftRequest;

// Requests that leave keys, and what later requests do to keys, as they are.
bool LeavesKeysAlone(const InternalRaftRequest& request) {
  if (request.has_cluster_member_attr_set() || request.has_cluster_version_set()) return true;
  if (request.has_downgrade_info_set() || request.has_downgrade_version_test()) return true;
  if (request.has_range() || request.has_lease_grant() || request.has_lease_checkpoint()) return true;
  return request.has_alarm() && request.alarm().action() == etcdserverpb::AlarmRequest::GET;
}

// nullopt: not of the KV service, or something no client of ours asks for (a lease, an operation with nothing in it).
std::optional<Request> Decode(const InternalRaftRequest& request) {
  if (request.has_put()) return ReadRequest(request.put());
  if (request.has_delete_range()) return ReadRequest(request.delete_range());
  if (request.has_txn()) return ReadRequest(request.txn());
  if (!request.has_compaction()) return std::nullopt;
  return ReadRequest(request.compaction());
}

class ModelView final : public StateView {
 public:
  ModelView(const KvModel& model, int64_t at, int64_t compacted) : model_(model), at_(at), compacted_(compacted) {}

  int64_t revision() const override { return at_; }
  std::vector<ObservedKeyValue> Live(const std::string& key, const std::string& range_end) const override {
    return model_.Live(key, range_end, at_);
  }
  std::optional<std::vector<ObservedKeyValue>> LiveAt(const std::string& key, const std::string& range_end,
                                                      int64_t revision) const override {
    return model_.Live(key, range_end, revision);
  }
  int64_t compact_revision() const override { return compacted_; }
  Evidence evidence() const override { return Evidence::kAll; }

 private:
  const KvModel& model_;
  const int64_t at_;
  const int64_t compacted_;
};

// The row of a revision in the key bucket (disk.md): main, `_`, sub, big-endian; of a deletion with `t` behind.
std::string RowKey(int64_t mod, int64_t sub, bool deletion) {
  std::string key;
  auto add = [&](int64_t number) {
    for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(static_cast<uint64_t>(number) >> shift));
  };
  add(mod);
  key.push_back('_');
  add(sub);
  if (deletion) key.push_back('t');
  return key;
}

}  // namespace

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

Effect KvModel::Compact(Request request) {
  if (request.revision <= compact_revision() || request.revision > revision_) return Nothing();
  compactions_.push_back({request.revision, revision_});
  Effect effect = Nothing(EffectKind::kCompaction);
  effect.request = std::move(request);
  return effect;
}

Effect KvModel::Apply(std::string_view entry_data) {
  if (entry_data.empty()) return Nothing();
  InternalRaftRequest encoded;
  if (!encoded.ParseFromArray(entry_data.data(), static_cast<int>(entry_data.size()))) {
    return Nothing(EffectKind::kForeign);
  }
  std::optional<Request> request = Decode(encoded);
  if (!request.has_value()) return Nothing(LeavesKeysAlone(encoded) ? EffectKind::kNone : EffectKind::kForeign);
  if (request->kind == OperationKind::kCompact) return Compact(*std::move(request));
  Execution execution = ExecuteAt(*request, revision_, compact_revision(), nullptr);
  if (execution.changes.empty()) return Nothing();
  ++revision_;
  int64_t sub = 0;
  for (Change& change : execution.changes) {
    Version version{.mod = revision_, .sub = sub++};
    if (change.now.has_value()) {
      version.create = change.now->create_revision;
      version.version = change.now->version;
      version.value = std::move(change.now->value);
    }
    keys_[change.key].push_back(std::move(version));
  }
  Effect effect = Nothing(EffectKind::kChange);
  effect.request = *std::move(request);
  effect.changes = sub;
  return effect;
}

Execution KvModel::ExecuteAt(const Request& request, int64_t at, int64_t compacted, const Answer* answer) const {
  return Execute(request, ModelView(*this, at, compacted), answer);
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

int64_t KvModel::CompactedBefore(int64_t revision) const {
  int64_t compacted = -1;
  for (const Compaction& compaction : compactions_) {
    if (compaction.revision >= revision) break;
    compacted = compaction.compacted;
  }
  return compacted;
}

std::optional<int64_t> KvModel::FirstAbsent(const Request& request, int64_t from) const {
  for (int64_t at = from; at <= revision_; ++at) {
    if (MayFail(request, ModelView(*this, at, -1), kErrorKeyNotFound)) return at;
  }
  return std::nullopt;
}

std::string KvModel::RangeTrouble(const Request& request, const Answer& answer, int64_t at) const {
  return checker::RangeTrouble(request, answer, Live(request.key, request.range_end, at));
}

const KvModel::Version* KvModel::KeptAt(const History& history, int64_t revision, bool tombstones) {
  const Version* newest = nullptr;
  for (const Version& version : history) {
    if (version.mod > revision) break;
    newest = &version;
    // Of a key deleted and put again in that very revision the deletion counts.
    if (version.mod == revision && version.create == 0) return tombstones ? newest : nullptr;
  }
  return newest == nullptr || newest->create == 0 ? nullptr : newest;
}

uint32_t KvModel::Hash(int64_t revision, int64_t compacted, bool tombstones) const {
  struct Row {
    const std::string* key;
    const Version* version;
    bool kept;
  };
  std::map<std::string, Row> rows;  // those up to `revision` that are left, in order of the bucket
  bool any_kept = false;
  for (const auto& [key, history] : keys_) {
    const Version* kept = KeptAt(history, revision, tombstones);
    any_kept = any_kept || kept != nullptr;
    const Version* survivor = nullptr;  // of the compaction
    for (const Version& version : history) {
      if (version.mod > revision) break;
      if (version.mod <= compacted) {
        survivor = version.create == 0 ? nullptr : &version;
        continue;
      }
      rows[RowKey(version.mod, version.sub, version.create == 0)] = {&key, &version, true};
    }
    if (survivor != nullptr) rows[RowKey(survivor->mod, survivor->sub, false)] = {&key, survivor, survivor == kept};
  }
  uint32_t crc = ExtendCrc32c(0, "key");
  for (const auto& [row, entry] : rows) {
    if (!entry.kept && any_kept) continue;  // when nothing at all is kept etcd leaves nothing out
    mvccpb::KeyValue kv;
    kv.set_key(*entry.key);
    if (entry.version->create != 0) {
      kv.set_create_revision(entry.version->create);
      kv.set_mod_revision(entry.version->mod);
      kv.set_version(entry.version->version);
      kv.set_value(entry.version->value);
    }
    crc = ExtendCrc32c(crc, row);
    crc = ExtendCrc32c(crc, kv.SerializeAsString());
  }
  return crc;
}

}  // namespace detcd::checker
