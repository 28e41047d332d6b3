#include "sim/kv_messages.h"

namespace detcd::sim {

using checker::OperationKind;
using checker::Request;

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

}  // namespace detcd::sim
