// etcdserverpb.KV: Range, Put, DeleteRange, Txn and Compact, with their checks in etcd's order (reference/errors.md 5).
#pragma once

#include <optional>

#include "core/rpc/api_error.h"
#include "core/rpc/backend.h"

namespace etcdserverpb {
class CompactionRequest;
class DeleteRangeRequest;
class PutRequest;
class RangeRequest;
class RangeResponse;
class TxnRequest;
class TxnResponse;
}  // namespace etcdserverpb

namespace detcd::rpc {

// The checks that need nothing but the request.
ApiError CheckRange(const etcdserverpb::RangeRequest& request);
ApiError CheckPut(const etcdserverpb::PutRequest& request);
ApiError CheckDeleteRange(const etcdserverpb::DeleteRangeRequest& request);

// Answers a checked Range from the applied state; a linearizable one has waited for its read index before. nullopt: the
// answer takes more than one slice (LongRange).
std::optional<ApiError> Range(const Backend& backend, const etcdserverpb::RangeRequest& request,
                              etcdserverpb::RangeResponse& response);

// As above for a read-only Txn.
ApiError ReadTxn(const Backend& backend, const etcdserverpb::TxnRequest& request, etcdserverpb::TxnResponse& response);

// Proposes a checked request; the apply loop answers.
void ProposePut(Backend& backend, const Waiter& waiter, const etcdserverpb::PutRequest& request);
void ProposeDeleteRange(Backend& backend, const Waiter& waiter, const etcdserverpb::DeleteRangeRequest& request);
void ProposeTxn(Backend& backend, const Waiter& waiter, const etcdserverpb::TxnRequest& request);
void ProposeCompaction(Backend& backend, const Waiter& waiter, const etcdserverpb::CompactionRequest& request);

}  // namespace detcd::rpc
