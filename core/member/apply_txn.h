// A committed Txn that may change something.
#pragma once

#include "core/mvcc/store.h"
#include "core/rpc/api_error.h"

namespace etcdserverpb {
class TxnRequest;
class TxnResponse;
}  // namespace etcdserverpb

namespace detcd::member {

// Chooses the branches of `request`, checks what they hold, and runs it as one transaction of the store; after an error
// nothing is done. `response` is filled in when given, all of its header but the revision left to the caller; ranges are
// read for it only.
rpc::ApiError ApplyTxn(mvcc::Store& store, const etcdserverpb::TxnRequest& request,
                       etcdserverpb::TxnResponse* response);

}  // namespace detcd::member
