#include "core/rpc/cluster_service.h"

#include "core/proto/rpc.pb.h"
#include "core/rpc/messages.h"

namespace detcd::rpc {

void MemberList(const Backend& backend, etcdserverpb::MemberListResponse& response) {
  FillHeader(backend.Status(), *response.mutable_header());
  for (const MemberRow& row : backend.Members()) ToMessage(row, *response.add_members());
}

}  // namespace detcd::rpc
