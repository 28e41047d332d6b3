#include "core/member/apply_txn.h"

#include <optional>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/proto/rpc.pb.h"
#include "core/rpc/messages.h"
#include "core/rpc/txn.h"

namespace detcd::member {
namespace {

using etcdserverpb::RequestOp;
using etcdserverpb::ResponseOp;
using rpc::ApiError;

// The op responses' headers have a revision and nothing else: the one that the transaction has reached.
template <class Response>
void SetRevision(const mvcc::Store& store, Response& response) {
  response.mutable_header()->set_revision(store.transaction_revision().value);
}

void RunRange(const mvcc::Store& store, const etcdserverpb::RangeRequest& request, ResponseOp* response) {
  if (response == nullptr) return;
  // Checked against the state before the transaction, which knows all revisions that this one does but its own.
  const ApiError error = rpc::ReadRange(store, request, *response->mutable_response_range());
  CHECK(error == ApiError::kOk);
  SetRevision(store, *response->mutable_response_range());
}

void RunPut(mvcc::Store& store, const etcdserverpb::PutRequest& request, ResponseOp* response) {
  Bytes value = Bytes::Copy(request.value());
  LeaseId lease(request.lease());
  if (request.ignore_value() || request.ignore_lease()) {
    // It was there before the transaction; an earlier op may have deleted it since, past the duplicate check. Every
    // etcd 3.7.3 stops at such an entry. There is nothing to keep, so the put is one of an empty value and no lease.
    const mvcc::KeyValue present = store.Get(request.key()).value_or(mvcc::KeyValue());
    if (request.ignore_value()) value = present.value;
    if (request.ignore_lease()) lease = present.lease;
  }
  const std::optional<mvcc::KeyValue> before = store.Put(Bytes::Copy(request.key()), std::move(value), lease);
  if (response == nullptr) return;
  etcdserverpb::PutResponse& out = *response->mutable_response_put();
  SetRevision(store, out);
  if (request.prev_kv() && before) rpc::ToMessage(*before, *out.mutable_prev_kv());
}

void RunDeleteRange(mvcc::Store& store, const etcdserverpb::DeleteRangeRequest& request, ResponseOp* response) {
  const std::vector<mvcc::KeyValue> deleted = store.DeleteRange({.key = request.key(), .end = request.range_end()});
  if (response == nullptr) return;
  etcdserverpb::DeleteRangeResponse& out = *response->mutable_response_delete_range();
  SetRevision(store, out);
  out.set_deleted(static_cast<int64_t>(deleted.size()));
  if (!request.prev_kv()) return;
  for (const mvcc::KeyValue& pair : deleted) rpc::ToMessage(pair, *out.add_prev_kvs());
}

// `at` walks along the path.
void RunOps(mvcc::Store& store, const etcdserverpb::TxnRequest& request, const rpc::TxnPath& path, size_t& at,
            etcdserverpb::TxnResponse* response) {
  CHECK(at < path.size());
  const bool success = path[at++];
  if (response != nullptr) response->set_succeeded(success);
  for (const RequestOp& op : success ? request.success() : request.failure()) {
    ResponseOp* out = response == nullptr ? nullptr : response->add_responses();
    switch (op.request_case()) {
      case RequestOp::kRequestRange:
        RunRange(store, op.request_range(), out);
        break;
      case RequestOp::kRequestPut:
        RunPut(store, op.request_put(), out);
        break;
      case RequestOp::kRequestDeleteRange:
        RunDeleteRange(store, op.request_delete_range(), out);
        break;
      case RequestOp::kRequestTxn: {
        etcdserverpb::TxnResponse* nested = out == nullptr ? nullptr : out->mutable_response_txn();
        if (nested != nullptr) nested->mutable_header();  // present and empty
        RunOps(store, op.request_txn(), path, at, nested);
        break;
      }
      case RequestOp::REQUEST_NOT_SET:
        break;  // refused before it is proposed
    }
  }
}

}  // namespace

ApiError ApplyTxn(mvcc::Store& store, const etcdserverpb::TxnRequest& request, etcdserverpb::TxnResponse* response) {
  const rpc::TxnPath path = rpc::ChoosePath(store, request);
  if (ApiError error = rpc::CheckChosen(store, request, path); error != ApiError::kOk) return error;
  store.Begin();
  size_t at = 0;
  RunOps(store, request, path, at, response);
  CHECK(at == path.size());
  store.Commit();
  if (response != nullptr) response->mutable_header()->set_revision(store.revision().value);
  return ApiError::kOk;
}

}  // namespace detcd::member
