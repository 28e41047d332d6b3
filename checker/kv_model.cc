#include "checker/kv_model.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
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

Request Decode(const etcdserverpb::RangeRequest& range) {
  return {.kind = OperationKind::kRange,
          .key = range.key(),
          .range_end = range.range_end(),
          .revision = range.revision(),
          .limit = range.limit(),
          .sort_order = static_cast<SortOrder>(range.sort_order()),
          .sort_target = static_cast<SortTarget>(range.sort_target()),
          .serializable = range.serializable(),
          .keys_only = range.keys_only(),
          .count_only = range.count_only(),
          .min_mod_revision = range.min_mod_revision(),
          .max_mod_revision = range.max_mod_revision(),
          .min_create_revision = range.min_create_revision(),
          .max_create_revision = range.max_create_revision()};
}

std::optional<Request> Decode(const etcdserverpb::PutRequest& put) {
  if (put.lease() != 0) return std::nullopt;
  return Request{.kind = OperationKind::kPut,
                 .key = put.key(),
                 .value = put.value(),
                 .prev_kv = put.prev_kv(),
                 .ignore_value = put.ignore_value(),
                 .ignore_lease = put.ignore_lease()};
}

Request Decode(const etcdserverpb::DeleteRangeRequest& deletion) {
  return {.kind = OperationKind::kDelete,
          .key = deletion.key(),
          .range_end = deletion.range_end(),
          .prev_kv = deletion.prev_kv()};
}

Condition Decode(const etcdserverpb::Compare& compare) {
  Condition decoded{.result = static_cast<CompareResult>(compare.result()),
                     .target = static_cast<CompareTarget>(compare.target()),
                     .key = compare.key(),
                     .range_end = compare.range_end()};
  switch (decoded.target) {
    case CompareTarget::kVersion: decoded.number = compare.version(); break;
    case CompareTarget::kCreate: decoded.number = compare.create_revision(); break;
    case CompareTarget::kMod: decoded.number = compare.mod_revision(); break;
    case CompareTarget::kValue: decoded.value = compare.value(); break;
    case CompareTarget::kLease: decoded.number = compare.lease(); break;
  }
  return decoded;
}

std::optional<Request> Decode(const etcdserverpb::TxnRequest& txn);

std::optional<Request> Decode(const etcdserverpb::RequestOp& operation) {
  switch (operation.request_case()) {
    case etcdserverpb::RequestOp::kRequestRange: return Decode(operation.request_range());
    case etcdserverpb::RequestOp::kRequestPut: return Decode(operation.request_put());
    case etcdserverpb::RequestOp::kRequestDeleteRange: return Decode(operation.request_delete_range());
    case etcdserverpb::RequestOp::kRequestTxn: return Decode(operation.request_txn());
    case etcdserverpb::RequestOp::REQUEST_NOT_SET: return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Request> Decode(const etcdserverpb::TxnRequest& txn) {
  Request decoded{.kind = OperationKind::kTxn};
  for (const etcdserverpb::Compare& compare : txn.compare()) decoded.compares.push_back(Decode(compare));
  for (bool success : {true, false}) {
    for (const etcdserverpb::RequestOp& operation : success ? txn.success() : txn.failure()) {
      std::optional<Request> step = Decode(operation);
      if (!step.has_value()) return std::nullopt;
      (success ? decoded.success : decoded.failure).push_back(*std::move(step));
    }
  }
  return decoded;
}

// nullopt: not of the KV service, or something no client of ours asks for (a lease, an operation with nothing in it).
std::optional<Request> Decode(const InternalRaftRequest& request) {
  if (request.has_put()) return Decode(request.put());
  if (request.has_delete_range()) return Decode(request.delete_range());
  if (request.has_txn()) return Decode(request.txn());
  if (!request.has_compaction()) return std::nullopt;
  return Request{.kind = OperationKind::kCompact,
                 .revision = request.compaction().revision(),
                 .physical = request.compaction().physical()};
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

uint32_t KvModel::Hash(int64_t revision, int64_t compacted) const {
  std::map<std::string, const std::pair<const std::string, History>*> rows;  // those up to `revision`, in order of the bucket
  std::map<std::string, const Version*> versions;
  std::set<std::string> kept;  // the newest row of each key, unless it is a deletion
  for (const auto& entry : keys_) {
    const Version* newest = nullptr;
    for (const Version& version : entry.second) {
      if (version.mod > revision) break;
      newest = &version;
      std::string row = RowKey(version.mod, version.sub, version.create == 0);
      rows[row] = &entry;
      versions[row] = newest;
    }
    if (newest != nullptr && newest->create != 0) kept.insert(RowKey(newest->mod, newest->sub, false));
  }
  uint32_t crc = ExtendCrc32c(0, "key");
  for (const auto& [row, entry] : rows) {
    const Version& version = *versions[row];
    if (version.mod <= compacted && !kept.empty() && !kept.contains(row)) continue;
    mvccpb::KeyValue kv;
    kv.set_key(entry->first);
    if (version.create != 0) {
      kv.set_create_revision(version.create);
      kv.set_mod_revision(version.mod);
      kv.set_version(version.version);
      kv.set_value(version.value);
    }
    crc = ExtendCrc32c(crc, row);
    crc = ExtendCrc32c(crc, kv.SerializeAsString());
  }
  return crc;
}

}  // namespace detcd::checker
