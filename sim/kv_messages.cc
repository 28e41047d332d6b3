#include "sim/kv_messages.h"

#include <utility>

#include "core/proto/rpc.pb.h"

namespace detcd::sim {
namespace {

using checker::Answer;
using checker::OperationKind;
using checker::Request;

void Fill(const Request& r, etcdserverpb::PutRequest& put) {
  put.set_key(r.key);
  put.set_value(r.value);
  put.set_prev_kv(r.prev_kv);
  put.set_ignore_value(r.ignore_value);
  put.set_ignore_lease(r.ignore_lease);
}

void Fill(const Request& r, etcdserverpb::DeleteRangeRequest& deletion) {
  deletion.set_key(r.key);
  deletion.set_range_end(r.range_end);
  deletion.set_prev_kv(r.prev_kv);
}

void Fill(const Request& r, etcdserverpb::RangeRequest& range) {
  range.set_key(r.key);
  range.set_range_end(r.range_end);
  range.set_limit(r.limit);
  range.set_revision(r.revision);
  range.set_sort_order(static_cast<etcdserverpb::RangeRequest::SortOrder>(r.sort_order));
  range.set_sort_target(static_cast<etcdserverpb::RangeRequest::SortTarget>(r.sort_target));
  range.set_serializable(r.serializable);
  range.set_keys_only(r.keys_only);
  range.set_count_only(r.count_only);
  range.set_min_mod_revision(r.min_mod_revision);
  range.set_max_mod_revision(r.max_mod_revision);
  range.set_min_create_revision(r.min_create_revision);
  range.set_max_create_revision(r.max_create_revision);
}

void Fill(const checker::Condition& condition, etcdserverpb::Compare& compare) {
  compare.set_result(static_cast<etcdserverpb::Compare::CompareResult>(condition.result));
  compare.set_target(static_cast<etcdserverpb::Compare::CompareTarget>(condition.target));
  compare.set_key(condition.key);
  compare.set_range_end(condition.range_end);
  switch (condition.target) {
    case checker::CompareTarget::kVersion: compare.set_version(condition.number); break;
    case checker::CompareTarget::kCreate: compare.set_create_revision(condition.number); break;
    case checker::CompareTarget::kMod: compare.set_mod_revision(condition.number); break;
    case checker::CompareTarget::kValue: compare.set_value(condition.value); break;
    case checker::CompareTarget::kLease: compare.set_lease(condition.number); break;
  }
}

void Fill(const Request& r, etcdserverpb::TxnRequest& txn);

void Fill(const Request& r, etcdserverpb::RequestOp& operation) {
  switch (r.kind) {
    case OperationKind::kPut: Fill(r, *operation.mutable_request_put()); break;
    case OperationKind::kDelete: Fill(r, *operation.mutable_request_delete_range()); break;
    case OperationKind::kRange: Fill(r, *operation.mutable_request_range()); break;
    case OperationKind::kTxn: Fill(r, *operation.mutable_request_txn()); break;
    case OperationKind::kCompact: case OperationKind::kHashKv: break;  // etcd has none inside a transaction
  }
}

void Fill(const Request& r, etcdserverpb::TxnRequest& txn) {
  for (const checker::Condition& condition : r.compares) Fill(condition, *txn.add_compare());
  for (const Request& operation : r.success) Fill(operation, *txn.add_success());
  for (const Request& operation : r.failure) Fill(operation, *txn.add_failure());
}

template <class Message>
std::unique_ptr<google::protobuf::Message> Filled(const Request& request) {
  auto message = std::make_unique<Message>();
  Fill(request, *message);
  return message;
}

void AddPair(const mvccpb::KeyValue& kv, Answer& answer) {
  answer.kvs.push_back({.key = kv.key(),
                        .value = kv.value(),
                        .create_revision = kv.create_revision(),
                        .mod_revision = kv.mod_revision(),
                        .version = kv.version()});
}

// `kind` of an answer says what the response inside a transaction was; outside it stays as in every fresh answer.
template <class Response>
Answer WithHeader(const Response& response, OperationKind kind) {
  Answer answer;
  answer.header_revision = response.header().revision();
  answer.header_member = response.header().member_id();
  answer.kind = kind;
  return answer;
}

Answer Read(const etcdserverpb::PutResponse& put) {
  Answer answer = WithHeader(put, OperationKind::kPut);
  if (put.has_prev_kv()) AddPair(put.prev_kv(), answer);
  return answer;
}

Answer Read(const etcdserverpb::DeleteRangeResponse& deletion) {
  Answer answer = WithHeader(deletion, OperationKind::kDelete);
  for (const mvccpb::KeyValue& kv : deletion.prev_kvs()) AddPair(kv, answer);
  answer.count = deletion.deleted();
  return answer;
}

Answer Read(const etcdserverpb::RangeResponse& range) {
  Answer answer = WithHeader(range, OperationKind::kRange);
  for (const mvccpb::KeyValue& kv : range.kvs()) AddPair(kv, answer);
  answer.count = range.count();
  answer.more = range.more();
  return answer;
}

Answer Read(const etcdserverpb::TxnResponse& txn) {
  Answer answer = WithHeader(txn, OperationKind::kTxn);
  answer.succeeded = txn.succeeded();
  for (const etcdserverpb::ResponseOp& response : txn.responses()) {
    switch (response.response_case()) {
      case etcdserverpb::ResponseOp::kResponsePut: answer.responses.push_back(Read(response.response_put())); break;
      case etcdserverpb::ResponseOp::kResponseDeleteRange:
        answer.responses.push_back(Read(response.response_delete_range()));
        break;
      case etcdserverpb::ResponseOp::kResponseRange: answer.responses.push_back(Read(response.response_range())); break;
      case etcdserverpb::ResponseOp::kResponseTxn: answer.responses.push_back(Read(response.response_txn())); break;
      case etcdserverpb::ResponseOp::RESPONSE_NOT_SET:
        answer.responses.emplace_back().kind = OperationKind::kHashKv;  // none that can be right
        break;
    }
  }
  return answer;
}

Answer Read(const etcdserverpb::HashKVResponse& hash) {
  Answer answer = WithHeader(hash, OperationKind::kHashKv);
  answer.hash = hash.hash();
  answer.compact_revision = hash.compact_revision();
  answer.hash_revision = hash.hash_revision();
  return answer;
}

}  // namespace

rpc::Method MethodOf(const Request& request) {
  switch (request.kind) {
    case OperationKind::kPut: return rpc::Method::kPut;
    case OperationKind::kDelete: return rpc::Method::kDeleteRange;
    case OperationKind::kRange: return request.streamed ? rpc::Method::kRangeStream : rpc::Method::kRange;
    case OperationKind::kTxn: return rpc::Method::kTxn;
    case OperationKind::kCompact: return rpc::Method::kCompact;
    case OperationKind::kHashKv: return rpc::Method::kHashKV;
  }
  return rpc::Method::kRange;
}

bool MayRepeat(const Request& request) {
  return (request.kind == OperationKind::kRange && !request.streamed) || request.kind == OperationKind::kHashKv;
}

std::unique_ptr<google::protobuf::Message> MakeRequest(const Request& request) {
  switch (request.kind) {
    case OperationKind::kPut: return Filled<etcdserverpb::PutRequest>(request);
    case OperationKind::kDelete: return Filled<etcdserverpb::DeleteRangeRequest>(request);
    case OperationKind::kTxn: return Filled<etcdserverpb::TxnRequest>(request);
    case OperationKind::kRange: break;
    case OperationKind::kCompact: {
      auto compaction = std::make_unique<etcdserverpb::CompactionRequest>();
      compaction->set_revision(request.revision);
      compaction->set_physical(request.physical);
      return compaction;
    }
    case OperationKind::kHashKv: {
      auto hash = std::make_unique<etcdserverpb::HashKVRequest>();
      hash->set_revision(request.revision);
      return hash;
    }
  }
  return Filled<etcdserverpb::RangeRequest>(request);
}

Answer ReadAnswer(const Request& request, const google::protobuf::Message& response) {
  switch (request.kind) {
    case OperationKind::kPut: return Read(static_cast<const etcdserverpb::PutResponse&>(response));
    case OperationKind::kDelete: return Read(static_cast<const etcdserverpb::DeleteRangeResponse&>(response));
    case OperationKind::kRange: return Read(static_cast<const etcdserverpb::RangeResponse&>(response));
    case OperationKind::kTxn: return Read(static_cast<const etcdserverpb::TxnResponse&>(response));
    case OperationKind::kHashKv: return Read(static_cast<const etcdserverpb::HashKVResponse&>(response));
    case OperationKind::kCompact: break;
  }
  return WithHeader(static_cast<const etcdserverpb::CompactionResponse&>(response), OperationKind::kCompact);
}

void AddPiece(const google::protobuf::Message& message, Answer& answer) {
  const auto& piece = static_cast<const etcdserverpb::RangeStreamResponse&>(message).range_response();
  for (const mvccpb::KeyValue& kv : piece.kvs()) AddPair(kv, answer);
  if (!piece.has_header()) return;  // only the last has one
  answer.header_revision = piece.header().revision();
  answer.header_member = piece.header().member_id();
  answer.count = piece.count();
  answer.more = piece.more();
}

}  // namespace detcd::sim
