#include "core/rpc/kv_service.h"

#include "core/proto/raft_internal.pb.h"
#include "core/proto/rpc.pb.h"
#include "core/rpc/messages.h"
#include "core/rpc/txn.h"

namespace detcd::rpc {

ApiError CheckRange(const etcdserverpb::RangeRequest& request) {
  if (request.key().empty()) return ApiError::kEmptyKey;
  if (!etcdserverpb::RangeRequest::SortOrder_IsValid(request.sort_order())) return ApiError::kInvalidSortOption;
  if (!etcdserverpb::RangeRequest::SortTarget_IsValid(request.sort_target())) return ApiError::kInvalidSortOption;
  return ApiError::kOk;
}

ApiError CheckPut(const etcdserverpb::PutRequest& request) {
  if (request.key().empty()) return ApiError::kEmptyKey;
  if (request.ignore_value() && !request.value().empty()) return ApiError::kValueProvided;
  if (request.ignore_lease() && request.lease() != 0) return ApiError::kLeaseProvided;
  return ApiError::kOk;
}

ApiError CheckDeleteRange(const etcdserverpb::DeleteRangeRequest& request) {
  return request.key().empty() ? ApiError::kEmptyKey : ApiError::kOk;
}

std::optional<ApiError> Range(const Backend& backend, const etcdserverpb::RangeRequest& request,
                              etcdserverpb::RangeResponse& response) {
  const std::optional<ApiError> error = ReadRangeInOneSlice(backend.store(), request, response);
  if (error != ApiError::kOk) return error;
  FillHeader(backend.Status(), backend.store().revision(), *response.mutable_header());
  return ApiError::kOk;
}

ApiError ReadTxn(const Backend& backend, const etcdserverpb::TxnRequest& request, etcdserverpb::TxnResponse& response) {
  if (ApiError error = ReadTxn(backend.store(), request, response); error != ApiError::kOk) return error;
  FillHeader(backend.Status(), backend.store().revision(), *response.mutable_header());
  return ApiError::kOk;
}

// All lend the client's request to the proposal instead of copying its key and value: Propose encodes before it
// returns, and encoding changes nothing that the owner of the request can see.
void ProposePut(Backend& backend, const Waiter& waiter, const etcdserverpb::PutRequest& request) {
  etcdserverpb::InternalRaftRequest proposal;
  proposal.unsafe_arena_set_allocated_put(const_cast<etcdserverpb::PutRequest*>(&request));
  backend.Propose(waiter, proposal);
  proposal.unsafe_arena_release_put();
}

void ProposeDeleteRange(Backend& backend, const Waiter& waiter, const etcdserverpb::DeleteRangeRequest& request) {
  etcdserverpb::InternalRaftRequest proposal;
  proposal.unsafe_arena_set_allocated_delete_range(const_cast<etcdserverpb::DeleteRangeRequest*>(&request));
  backend.Propose(waiter, proposal);
  proposal.unsafe_arena_release_delete_range();
}

void ProposeTxn(Backend& backend, const Waiter& waiter, const etcdserverpb::TxnRequest& request) {
  etcdserverpb::InternalRaftRequest proposal;
  proposal.unsafe_arena_set_allocated_txn(const_cast<etcdserverpb::TxnRequest*>(&request));
  backend.Propose(waiter, proposal);
  proposal.unsafe_arena_release_txn();
}

void ProposeCompaction(Backend& backend, const Waiter& waiter, const etcdserverpb::CompactionRequest& request) {
  etcdserverpb::InternalRaftRequest proposal;
  *proposal.mutable_compaction() = request;
  backend.Propose(waiter, proposal);
}

}  // namespace detcd::rpc
