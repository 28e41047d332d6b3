// etcdserverpb.Cluster: MemberList. A linearizable one has waited for its read index before.
#pragma once

#include "core/rpc/backend.h"

namespace etcdserverpb {
class MemberListResponse;
}

namespace detcd::rpc {

// The members as applied on this member, sorted by id. The header's revision stays 0, as with all member calls.
void MemberList(const Backend& backend, etcdserverpb::MemberListResponse& response);

}  // namespace detcd::rpc
