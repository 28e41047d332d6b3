#include "checker/api_messages.h"

#include <utility>

#include "core/base/check.h"
#include "core/proto/raft_internal.pb.h"
#include "core/proto/rpc.pb.h"

namespace detcd::checker {
namespace {

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

void Fill(const Condition& condition, etcdserverpb::Compare& compare) {
  compare.set_result(static_cast<etcdserverpb::Compare::CompareResult>(condition.result));
  compare.set_target(static_cast<etcdserverpb::Compare::CompareTarget>(condition.target));
  compare.set_key(condition.key);
  compare.set_range_end(condition.range_end);
  switch (condition.target) {
    case CompareTarget::kVersion: compare.set_version(condition.number); break;
    case CompareTarget::kCreate: compare.set_create_revision(condition.number); break;
    case CompareTarget::kMod: compare.set_mod_revision(condition.number); break;
    case CompareTarget::kValue: compare.set_value(condition.value); break;
    case CompareTarget::kLease: compare.set_lease(condition.number); break;
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
  for (const Condition& condition : r.compares) Fill(condition, *txn.add_compare());
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

void Write(const ObservedKeyValue& kv, mvccpb::KeyValue& pair) {
  pair.set_key(kv.key);
  pair.set_value(kv.value);
  pair.set_create_revision(kv.create_revision);
  pair.set_mod_revision(kv.mod_revision);
  pair.set_version(kv.version);
}

void AddPairs(const Answer& answer, google::protobuf::RepeatedPtrField<mvccpb::KeyValue>& pairs) {
  for (const ObservedKeyValue& kv : answer.kvs) Write(kv, *pairs.Add());
}

template <class Response>
void WriteHeader(const Answer& answer, Response& response) {
  response.mutable_header()->set_revision(answer.header_revision);
  response.mutable_header()->set_member_id(answer.header_member);
}

void Write(const Answer& answer, etcdserverpb::PutResponse& put) {
  WriteHeader(answer, put);
  if (!answer.kvs.empty()) Write(answer.kvs.front(), *put.mutable_prev_kv());
}

void Write(const Answer& answer, etcdserverpb::DeleteRangeResponse& deletion) {
  WriteHeader(answer, deletion);
  AddPairs(answer, *deletion.mutable_prev_kvs());
  deletion.set_deleted(answer.count);
}

void Write(const Answer& answer, etcdserverpb::RangeResponse& range) {
  WriteHeader(answer, range);
  AddPairs(answer, *range.mutable_kvs());
  range.set_count(answer.count);
  range.set_more(answer.more);
}

void Write(const Answer& answer, etcdserverpb::TxnResponse& txn) {
  WriteHeader(answer, txn);
  txn.set_succeeded(answer.succeeded);
  for (const Answer& step : answer.responses) {
    etcdserverpb::ResponseOp& response = *txn.add_responses();
    switch (step.kind) {
      case OperationKind::kPut: Write(step, *response.mutable_response_put()); break;
      case OperationKind::kDelete: Write(step, *response.mutable_response_delete_range()); break;
      case OperationKind::kRange: Write(step, *response.mutable_response_range()); break;
      case OperationKind::kTxn: Write(step, *response.mutable_response_txn()); break;
      case OperationKind::kCompact: case OperationKind::kHashKv: break;  // a response with nothing in it
    }
  }
}

void Write(const Answer& answer, etcdserverpb::CompactionResponse& compaction) { WriteHeader(answer, compaction); }

void Write(const Answer& answer, etcdserverpb::HashKVResponse& hash) {
  WriteHeader(answer, hash);
  hash.set_hash(answer.hash);
  hash.set_compact_revision(answer.compact_revision);
  hash.set_hash_revision(answer.hash_revision);
}

template <class Response>
std::unique_ptr<google::protobuf::Message> Written(const Answer& answer) {
  auto response = std::make_unique<Response>();
  Write(answer, *response);
  return response;
}

Condition ReadCondition(const etcdserverpb::Compare& compare) {
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

std::optional<Request> ReadStep(const etcdserverpb::RequestOp& operation) {
  switch (operation.request_case()) {
    case etcdserverpb::RequestOp::kRequestRange: return ReadRequest(operation.request_range());
    case etcdserverpb::RequestOp::kRequestPut: return ReadRequest(operation.request_put());
    case etcdserverpb::RequestOp::kRequestDeleteRange: return ReadRequest(operation.request_delete_range());
    case etcdserverpb::RequestOp::kRequestTxn: return ReadRequest(operation.request_txn());
    case etcdserverpb::RequestOp::REQUEST_NOT_SET: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

Request ReadRequest(const etcdserverpb::RangeRequest& range) {
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

std::optional<Request> ReadRequest(const etcdserverpb::PutRequest& put) {
  if (put.lease() != 0) return std::nullopt;
  return Request{.kind = OperationKind::kPut,
                 .key = put.key(),
                 .value = put.value(),
                 .prev_kv = put.prev_kv(),
                 .ignore_value = put.ignore_value(),
                 .ignore_lease = put.ignore_lease()};
}

Request ReadRequest(const etcdserverpb::DeleteRangeRequest& deletion) {
  return {.kind = OperationKind::kDelete,
          .key = deletion.key(),
          .range_end = deletion.range_end(),
          .prev_kv = deletion.prev_kv()};
}

std::optional<Request> ReadRequest(const etcdserverpb::TxnRequest& txn) {
  Request decoded{.kind = OperationKind::kTxn};
  for (const etcdserverpb::Compare& compare : txn.compare()) decoded.compares.push_back(ReadCondition(compare));
  for (bool success : {true, false}) {
    for (const etcdserverpb::RequestOp& operation : success ? txn.success() : txn.failure()) {
      std::optional<Request> step = ReadStep(operation);
      if (!step.has_value()) return std::nullopt;
      (success ? decoded.success : decoded.failure).push_back(*std::move(step));
    }
  }
  return decoded;
}

Request ReadRequest(const etcdserverpb::CompactionRequest& compaction) {
  return {.kind = OperationKind::kCompact, .revision = compaction.revision(), .physical = compaction.physical()};
}

Request ReadRequest(const etcdserverpb::HashKVRequest& hash) {
  return {.kind = OperationKind::kHashKv, .revision = hash.revision()};
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

Bytes MakeEntry(const Request& request) {
  etcdserverpb::InternalRaftRequest entry;
  switch (request.kind) {
    case OperationKind::kPut: Fill(request, *entry.mutable_put()); break;
    case OperationKind::kDelete: Fill(request, *entry.mutable_delete_range()); break;
    case OperationKind::kTxn: Fill(request, *entry.mutable_txn()); break;
    case OperationKind::kCompact:
      entry.mutable_compaction()->set_revision(request.revision);
      entry.mutable_compaction()->set_physical(request.physical);
      break;
    case OperationKind::kRange: case OperationKind::kHashKv: CHECK(false);
  }
  return Bytes::Copy(entry.SerializeAsString());
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

std::unique_ptr<google::protobuf::Message> MakeResponse(const Request& request, const Answer& answer) {
  switch (request.kind) {
    case OperationKind::kPut: return Written<etcdserverpb::PutResponse>(answer);
    case OperationKind::kDelete: return Written<etcdserverpb::DeleteRangeResponse>(answer);
    case OperationKind::kRange: return Written<etcdserverpb::RangeResponse>(answer);
    case OperationKind::kTxn: return Written<etcdserverpb::TxnResponse>(answer);
    case OperationKind::kCompact: return Written<etcdserverpb::CompactionResponse>(answer);
    case OperationKind::kHashKv: break;
  }
  return Written<etcdserverpb::HashKVResponse>(answer);
}

}  // namespace detcd::checker
