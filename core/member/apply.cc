#include "core/member/apply.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/codec.h"
#include "core/base/digest.h"
#include "core/base/probe.h"
#include "core/base/status.h"
#include "core/member/apply_txn.h"
#include "core/member/member_context.h"
#include "core/proto/raft.pb.h"
#include "core/proto/raft_internal.pb.h"
#include "core/proto/rpc.pb.h"
#include "core/rpc/messages.h"

namespace detcd::member {
namespace {

using etcdserverpb::InternalRaftRequest;
using google::protobuf::Arena;
using rpc::ApiError;

// Field numbers of InternalRaftRequest and PutRequest that the hand-written path reads.
constexpr uint32_t kLegacyIdField = 1;
constexpr uint32_t kPutField = 4;
constexpr uint32_t kHeaderField = 100;

// The operations of this release: range, put, delete_range, txn, compaction, alarm, cluster_version_set,
// cluster_member_attr_set, downgrade_info_set.
constexpr uint32_t kOperationFields[] = {3, kPutField, 5, 6, 7, 10, 1300, 1301, 1302};

// What the operations work on, besides the entry.
struct Context {
  ApplyState& state;
  const LocalWaiters* waiters;
  Arena& arena;
  ApplyResult& result;
  Digest effect;

  bool Waits() const { return waiters != nullptr && waiters->Waits(result.request_id); }
  // A response on the arena, which the result now has. For callers that wait only.
  template <class Response>
  Response& Respond() {
    auto* response = Arena::CreateMessage<Response>(&arena);
    result.response = response;
    if constexpr (requires { response->mutable_header(); }) result.header = response->mutable_header();
    return *response;
  }
};

// A put whose bytes are slices of the entry: its value goes from the log into the store without a copy.
struct PutOperation {
  uint64_t request_id = 0;
  Bytes key;
  Bytes value;
  LeaseId lease;
  bool prev_kv = false;
  bool ignore_value = false;
  bool ignore_lease = false;
};

Bytes SliceOf(const Bytes& whole, std::string_view part) {
  if (part.empty()) return Bytes();
  return whole.Slice(static_cast<size_t>(part.data() - whole.data()), part.size());
}

bool ReadPutFields(const Bytes& data, std::string_view encoded, PutOperation& out) {
  ProtoFields fields(encoded);
  for (ProtoField field; fields.Next(field);) {
    const uint32_t wire_type_wanted = field.number <= 2 ? 2 : 0;
    if (field.number <= 6 && field.wire_type != wire_type_wanted) return false;
    switch (field.number) {
      case 1:
        out.key = SliceOf(data, field.bytes);
        break;
      case 2:
        out.value = SliceOf(data, field.bytes);
        break;
      case 3:
        out.lease = LeaseId(static_cast<int64_t>(field.varint));
        break;
      case 4:
        out.prev_kv = field.varint != 0;
        break;
      case 5:
        out.ignore_value = field.varint != 0;
        break;
      case 6:
        out.ignore_lease = field.varint != 0;
        break;
      default:
        break;  // a field of a later release: the protobuf library passes over it too
    }
  }
  return fields.ok();
}

// The put of an entry that holds one put, an id, and nothing else: the form in which puts are proposed. nullopt: any
// other entry, which the protobuf library shall judge.
std::optional<PutOperation> ReadPut(const Bytes& data) {
  PutOperation put;
  std::string_view header, body;
  uint64_t legacy_id = 0;
  ProtoFields fields(data.view());
  for (ProtoField field; fields.Next(field);) {
    if (field.number == kLegacyIdField && field.wire_type == 0) {
      legacy_id = field.varint;
    } else if (field.number == kPutField && field.wire_type == 2 && body.data() == nullptr) {
      body = field.bytes;
    } else if (field.number == kHeaderField && field.wire_type == 2 && header.data() == nullptr) {
      header = field.bytes;
    } else {
      return std::nullopt;
    }
  }
  if (!fields.ok() || body.data() == nullptr || !ReadPutFields(data, body, put)) return std::nullopt;
  etcdserverpb::RequestHeader parsed;
  if (!parsed.ParseFromArray(header.data(), static_cast<int>(header.size()))) return std::nullopt;
  put.request_id = legacy_id != 0 ? legacy_id : parsed.id();
  return put;
}

PutOperation PutFrom(const etcdserverpb::PutRequest& request) {
  return {.key = Bytes::Copy(request.key()),
          .value = Bytes::Copy(request.value()),
          .lease = LeaseId(request.lease()),
          .prev_kv = request.prev_kv(),
          .ignore_value = request.ignore_value(),
          .ignore_lease = request.ignore_lease()};
}

// The order of the checks is etcd's. No lease exists in this release.
void ApplyPut(Context& context, PutOperation put) {
  mvcc::Store& store = context.state.store;
  if (put.lease.value != 0) {
    context.result.error = ApiError::kLeaseNotFound;
    return;
  }
  if (put.ignore_value || put.ignore_lease) {
    const std::optional<mvcc::KeyValue> present = store.Get(put.key.view());
    if (!present) {
      context.result.error = ApiError::kKeyNotFound;
      return;
    }
    if (put.ignore_value) put.value = present->value;
    if (put.ignore_lease) put.lease = present->lease;
  }
  store.Begin();
  const std::optional<mvcc::KeyValue> before = store.Put(std::move(put.key), std::move(put.value), put.lease);
  const bool changed = store.Commit();
  CHECK(changed);
  if (!context.Waits()) return;
  auto& response = context.Respond<etcdserverpb::PutResponse>();
  response.mutable_header()->set_revision(store.revision().value);
  if (put.prev_kv && before) rpc::ToMessage(*before, *response.mutable_prev_kv());
}

void ApplyDeleteRange(Context& context, const etcdserverpb::DeleteRangeRequest& request) {
  mvcc::Store& store = context.state.store;
  store.Begin();
  const std::vector<mvcc::KeyValue> deleted = store.DeleteRange({.key = request.key(), .end = request.range_end()});
  store.Commit();
  if (!context.Waits()) return;
  auto& response = context.Respond<etcdserverpb::DeleteRangeResponse>();
  response.mutable_header()->set_revision(store.revision().value);
  response.set_deleted(static_cast<int64_t>(deleted.size()));
  if (!request.prev_kv()) return;
  for (const mvcc::KeyValue& pair : deleted) rpc::ToMessage(pair, *response.add_prev_kvs());
}

// A read that etcd's older members send through the log. Its error is found with and without a caller.
void ApplyRange(Context& context, const etcdserverpb::RangeRequest& request) {
  auto* response = Arena::CreateMessage<etcdserverpb::RangeResponse>(&context.arena);
  context.result.error = rpc::ReadRange(context.state.store, request, *response);
  if (context.result.error != ApiError::kOk || !context.Waits()) return;
  response->mutable_header()->set_revision(context.state.store.revision().value);
  context.result.response = response;
  context.result.header = response->mutable_header();
}

void ApplyTxnRequest(Context& context, const etcdserverpb::TxnRequest& request) {
  auto* response = context.Waits() ? Arena::CreateMessage<etcdserverpb::TxnResponse>(&context.arena) : nullptr;
  context.result.error = ApplyTxn(context.state.store, request, response);
  if (context.result.error != ApiError::kOk || response == nullptr) return;
  context.result.response = response;
  context.result.header = response->mutable_header();
}

void ApplyCompaction(Context& context, const etcdserverpb::CompactionRequest& request) {
  mvcc::Store& store = context.state.store;
  const Revision revision(request.revision());
  context.result.error = rpc::ToApiError(store.Compact(revision));
  if (context.result.error != ApiError::kOk || !context.Waits()) return;
  context.Respond<etcdserverpb::CompactionResponse>().mutable_header()->set_revision(store.revision().value);
  if (request.physical()) context.result.answer_after_removal = revision;
}

void ToMessage(const rpc::Alarm& alarm, etcdserverpb::AlarmMember& out) {
  out.set_memberid(alarm.member.value);
  out.set_alarm(static_cast<etcdserverpb::AlarmType>(alarm.type));
}

// reference/semantics.md 13. An action that is not known is refused before it is proposed, since etcd's members crash at
// it; here it changes nothing.
void ApplyAlarm(Context& context, const etcdserverpb::AlarmRequest& request) {
  std::set<rpc::Alarm>& alarms = context.state.alarms;
  const rpc::Alarm alarm{.type = static_cast<int>(request.alarm()), .member = MemberId(request.memberid())};
  std::vector<rpc::Alarm> answered;
  switch (request.action()) {
    case etcdserverpb::AlarmRequest::GET:
      std::ranges::copy_if(alarms, std::back_inserter(answered), [&](const rpc::Alarm& raised) {
        return alarm.type == etcdserverpb::NONE || raised.type == alarm.type;
      });
      break;
    case etcdserverpb::AlarmRequest::ACTIVATE:
      if (alarm.type == etcdserverpb::NONE) break;
      alarms.insert(alarm);
      answered.push_back(alarm);
      break;
    case etcdserverpb::AlarmRequest::DEACTIVATE:
      if (alarms.erase(alarm) != 0) answered.push_back(alarm);
      break;
    default:
      break;
  }
  if (request.action() != etcdserverpb::AlarmRequest::GET) {
    context.effect.Add(static_cast<uint64_t>(request.action()));
    context.effect.Add(static_cast<uint64_t>(alarm.type));
    context.effect.Add(alarm.member.value);
  }
  if (!context.Waits()) return;
  auto& response = context.Respond<etcdserverpb::AlarmResponse>();
  for (const rpc::Alarm& one : answered) ToMessage(one, *response.add_alarms());
}

// P6 and P7 of reference/errors.md 4. Only puts cost space.
ApiError CheckAlarms(const std::set<rpc::Alarm>& alarms, bool writes_or_reads, bool has_cost) {
  const auto active = [&](int type) {
    return std::ranges::any_of(alarms, [&](const rpc::Alarm& alarm) { return alarm.type == type; });
  };
  if (alarms.empty()) return ApiError::kOk;
  if (writes_or_reads && active(etcdserverpb::CORRUPT)) return ApiError::kCorrupt;
  if (has_cost && active(etcdserverpb::NOSPACE)) return ApiError::kNoSpace;
  return ApiError::kOk;
}

bool HasPut(const google::protobuf::RepeatedPtrField<etcdserverpb::RequestOp>& ops) {
  return std::ranges::any_of(ops, [](const etcdserverpb::RequestOp& op) {
    if (op.has_request_txn()) return HasPut(op.request_txn().success()) || HasPut(op.request_txn().failure());
    return op.has_request_put();
  });
}

ApiError CheckAlarms(const std::set<rpc::Alarm>& alarms, const InternalRaftRequest& request) {
  const bool put = request.has_put() ||
                   (request.has_txn() && (HasPut(request.txn().success()) || HasPut(request.txn().failure())));
  const bool kv = put || request.has_range() || request.has_delete_range() || request.has_txn() || request.has_compaction();
  return CheckAlarms(alarms, kv, put);
}

absl::Status ApplyMemberAttributes(Context& context, const membershippb::ClusterMemberAttrSetRequest& request) {
  auto it = context.state.members.find(MemberId(request.member_id()));
  if (it == context.state.members.end()) {
    return FailedPrecondition("entry %d: attributes of member %x, which is not in the cluster",
                              context.result.index.value, request.member_id());
  }
  rpc::MemberRow& row = it->second;
  const membershippb::Attributes& attributes = request.member_attributes();
  row.name = attributes.name();
  row.client_urls.assign(attributes.client_urls().begin(), attributes.client_urls().end());
  context.effect.Add(row.id.value);
  context.effect.AddBytes(row.name);
  for (const std::string& url : row.client_urls) context.effect.AddBytes(url);
  if (context.Waits()) context.Respond<etcdserverpb::EmptyResponse>();
  return absl::OkStatus();
}

void ApplyClusterVersion(Context& context, const membershippb::ClusterVersionSetRequest& request) {
  context.state.cluster_version = request.ver();
  context.effect.AddBytes(request.ver());
  if (context.Waits()) context.Respond<etcdserverpb::EmptyResponse>();
}

void ApplyDowngrade(Context& context, const membershippb::DowngradeInfoSetRequest& request) {
  context.state.downgrade = {.enabled = request.enabled(), .target_version = request.enabled() ? request.ver() : ""};
  context.effect.Add(request.enabled());
  context.effect.AddBytes(context.state.downgrade.target_version);
  if (context.Waits()) context.Respond<etcdserverpb::EmptyResponse>();
}

// Whether `data` is plainly seen to hold one operation of this release, beside an id and a header. False says nothing:
// OperationNames knows, which costs as much as applying a small transaction.
bool HoldsOneOperation(const Bytes& data) {
  size_t operations = 0;
  ProtoFields fields(data.view());
  for (ProtoField field; fields.Next(field);) {
    if (field.number == kLegacyIdField && field.wire_type == 0) continue;
    if (field.number == kHeaderField && field.wire_type == 2) continue;
    if (field.wire_type != 2 || std::ranges::find(kOperationFields, field.number) == std::end(kOperationFields)) return false;
    ++operations;
  }
  return fields.ok() && operations == 1;
}

// The name of each operation set in `request`, header and id left out, in field order; unknown ones by number.
std::vector<std::string> OperationNames(const InternalRaftRequest& request) {
  std::vector<std::string> names;
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  request.GetReflection()->ListFields(request, &fields);
  for (const auto* field : fields) {
    const auto number = static_cast<uint32_t>(field->number());
    if (number != kLegacyIdField && number != kHeaderField) names.push_back(field->name());
  }
  const google::protobuf::UnknownFieldSet& unknown = request.GetReflection()->GetUnknownFields(request);
  for (int i = 0; i < unknown.field_count(); ++i) names.push_back(absl::StrFormat("%d", unknown.field(i).number()));
  return names;
}

absl::Status CheckOneOperation(const InternalRaftRequest& request, LogIndex index) {
  const std::vector<std::string> operations = OperationNames(request);
  if (operations.size() == 1) return absl::OkStatus();
  std::string names;
  for (const std::string& name : operations) names += " " + name;
  return FailedPrecondition("entry %d: want one operation, have %d:%s", index.value, operations.size(), names);
}

absl::Status ApplyRequest(Context& context, const raft::Entry& entry) {
  if (std::optional<PutOperation> put = ReadPut(entry.data)) {
    context.result.request_id = put->request_id;
    context.result.error = CheckAlarms(context.state.alarms, true, true);
    if (context.result.error == ApiError::kOk) ApplyPut(context, *std::move(put));
    return absl::OkStatus();
  }
  auto* request = Arena::CreateMessage<InternalRaftRequest>(&context.arena);
  if (!rpc::ParseRequest(entry.data.view(), *request)) {
    return DataLoss("entry %d: %d bytes that are no InternalRaftRequest", entry.index.value, entry.data.size());
  }
  if (!HoldsOneOperation(entry.data)) RETURN_IF_ERROR(CheckOneOperation(*request, entry.index));
  context.result.request_id = request->id() != 0 ? request->id() : request->header().id();
  context.result.error = CheckAlarms(context.state.alarms, *request);
  if (context.result.error != ApiError::kOk) {
    PROBE("apply.refused_by_alarm");
  } else if (request->has_put()) {
    PROBE("apply.put_in_unusual_form");
    ApplyPut(context, PutFrom(request->put()));
  } else if (request->has_delete_range()) {
    ApplyDeleteRange(context, request->delete_range());
  } else if (request->has_range()) {
    ApplyRange(context, request->range());
  } else if (request->has_alarm()) {
    ApplyAlarm(context, request->alarm());
  } else if (request->has_txn()) {
    ApplyTxnRequest(context, request->txn());
  } else if (request->has_compaction()) {
    ApplyCompaction(context, request->compaction());
  } else if (request->has_downgrade_info_set()) {
    ApplyDowngrade(context, request->downgrade_info_set());
  } else if (request->has_cluster_member_attr_set()) {
    return ApplyMemberAttributes(context, request->cluster_member_attr_set());
  } else if (request->has_cluster_version_set()) {
    ApplyClusterVersion(context, request->cluster_version_set());
  } else {
    return FailedPrecondition("entry %d: operation %s is not part of this release", entry.index.value,
                              OperationNames(*request).front());
  }
  return absl::OkStatus();
}

// kOk when `row` may join (reference/errors.md 5, MemberAdd at apply).
ApiError CheckNewMember(const ApplyState& state, const rpc::MemberRow& row) {
  if (state.members.contains(row.id)) return ApiError::kMemberExist;
  for (const auto& [id, member] : state.members) {
    for (const std::string& url : member.peer_urls) {
      if (std::ranges::find(row.peer_urls, url) != row.peer_urls.end()) return ApiError::kPeerURLExist;
    }
  }
  return ApiError::kOk;
}

absl::Status ApplyConfChange(Context& context, const raft::Entry& entry) {
  raftpb::ConfChange change;
  if (!change.ParseFromArray(entry.data.data(), static_cast<int>(entry.data.size()))) {
    return DataLoss("entry %d: %d bytes that are no ConfChange", entry.index.value, entry.data.size());
  }
  context.result.request_id = change.id();
  if (change.type() != raftpb::ConfChangeAddNode) {
    return FailedPrecondition("entry %d: conf change %s of member %x is not part of this release", entry.index.value,
                              raftpb::ConfChangeType_Name(change.type()), change.node_id());
  }
  const std::optional<MemberContext> added = DecodeMemberContext(change.context());
  if (!added) return DataLoss("entry %d: conf change with a context that is no member", entry.index.value);
  if (added->is_promote || added->member.is_learner) {
    return FailedPrecondition("entry %d: conf change for learner %x is not part of this release", entry.index.value,
                              change.node_id());
  }
  if (added->member.id.value != change.node_id()) {
    return DataLoss("entry %d: conf change of member %x with the context of %x", entry.index.value, change.node_id(),
                    added->member.id.value);
  }
  context.result.error = CheckNewMember(context.state, added->member);
  if (context.result.error != ApiError::kOk) {
    PROBE("apply.conf_change_refused");
    return absl::OkStatus();
  }
  context.state.members.emplace(added->member.id, added->member);
  context.result.added_voter = added->member.id;
  context.effect.Add(added->member.id.value);
  context.effect.AddBytes(change.context());
  return absl::OkStatus();
}

absl::Status Dispatch(Context& context, const raft::Entry& entry) {
  switch (entry.type) {
    case raft::EntryType::kNormal:
      return entry.data.empty() ? absl::OkStatus() : ApplyRequest(context, entry);
    case raft::EntryType::kConfChange:
      return ApplyConfChange(context, entry);
    case raft::EntryType::kConfChangeV2:
      return FailedPrecondition("entry %d: joint conf changes are not part of this release", entry.index.value);
  }
  return DataLoss("entry %d: type %d", entry.index.value, static_cast<int>(entry.type));
}
}  // namespace

bool CanApply(const raft::Entry& entry) {
  if (entry.type != raft::EntryType::kNormal) {
    raftpb::ConfChange change;
    return entry.type == raft::EntryType::kConfChange &&
           (!change.ParseFromArray(entry.data.data(), static_cast<int>(entry.data.size())) ||
            change.type() == raftpb::ConfChangeAddNode);
  }
  ProtoFields fields(entry.data.view());
  for (ProtoField field; fields.Next(field);) {
    if (field.number == kLegacyIdField || field.number == kHeaderField) continue;
    if (std::ranges::find(kOperationFields, field.number) == std::end(kOperationFields)) return false;
  }
  return true;
}

absl::StatusOr<ApplyResult> ApplyEntry(ApplyState& state, const raft::Entry& entry, const LocalWaiters* waiters,
                                       Arena& arena) {
  CHECK(entry.index == state.applied_index + 1);
  CHECK(entry.term >= state.applied_term);
  ApplyResult result{.index = entry.index};
  Context context{.state = state, .waiters = waiters, .arena = arena, .result = result, .effect = {}};
  RETURN_IF_ERROR(Dispatch(context, entry));
  if (result.error != ApiError::kOk) CHECK(result.response == nullptr);
  state.applied_index = entry.index;
  state.applied_term = entry.term;
  context.effect.Add(entry.index.value);
  context.effect.Add(static_cast<uint64_t>(result.error));
  context.effect.Add(state.store.history_digest());
  result.effect_digest = context.effect.value();
  return result;
}
}  // namespace detcd::member
