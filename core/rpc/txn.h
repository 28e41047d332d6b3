// What a Txn means apart from its changes: the checks of the request, the choice of its branches, the checks of what was
// chosen, and the transactions that only read (reference/semantics.md 7, errors.md 5). Shared by the services and the
// apply loop, so that both read a transaction the same way.
#pragma once

#include <vector>

#include "core/mvcc/store.h"
#include "core/rpc/api_error.h"

namespace etcdserverpb {
class TxnRequest;
class TxnResponse;
}  // namespace etcdserverpb

namespace detcd::rpc {

// The checks that need nothing but the request, in etcd's order; one more than etcd's refuses (as kDuplicateKey) what
// would end the etcd members that apply it. Afterwards nesting is at most `ops_max` deep.
ApiError CheckTxn(const etcdserverpb::TxnRequest& request, size_t ops_max);

// Whether every op of both branches is a range; such a transaction is not proposed. A nested transaction does not count
// as one.
bool IsReadOnly(const etcdserverpb::TxnRequest& request);
// Of a read-only transaction: whether no range asks for the read index.
bool IsSerializable(const etcdserverpb::TxnRequest& request);

// Which branch each transaction takes, itself first, then the nested ones of the chosen branch in order. All are chosen
// on the state before any op runs.
using TxnPath = std::vector<bool>;
TxnPath ChoosePath(const mvcc::Store& store, const etcdserverpb::TxnRequest& request);

// The checks of the chosen ops, in order, on the state before any of them runs. No lease exists in this release.
ApiError CheckChosen(const mvcc::Store& store, const etcdserverpb::TxnRequest& request, const TxnPath& path);

// Answers a checked read-only transaction, all but its own header.
ApiError ReadTxn(const mvcc::Store& store, const etcdserverpb::TxnRequest& request, etcdserverpb::TxnResponse& response);

}  // namespace detcd::rpc
