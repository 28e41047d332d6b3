#include "core/rpc/maintenance_service.h"

#include <string>

#include "absl/strings/str_format.h"
#include "core/proto/raft_internal.pb.h"
#include "core/proto/rpc.pb.h"
#include "core/rpc/messages.h"

namespace detcd::rpc {

void Status(const Backend& backend, int64_t quota_bytes, etcdserverpb::StatusResponse& response) {
  const MemberStatus status = backend.Status();
  FillHeader(status, backend.store().revision(), *response.mutable_header());
  response.set_version(kServerVersion);
  response.set_dbsize(static_cast<int64_t>(status.backend_bytes));
  response.set_dbsizeinuse(static_cast<int64_t>(status.backend_bytes_in_use));
  response.set_dbsizequota(quota_bytes);
  response.set_leader(status.leader.value);
  response.set_raftindex(status.commit_index.value);
  response.set_raftterm(status.term.value);
  response.set_raftappliedindex(status.applied_index.value);
  response.set_storageversion(status.storage_version);
  etcdserverpb::DowngradeInfo& downgrade = *response.mutable_downgradeinfo();  // present also while no downgrade is on
  downgrade.set_enabled(status.downgrade.enabled);
  downgrade.set_targetversion(status.downgrade.target_version);
  if (status.leader.IsZero()) response.add_errors(std::string(TextOf(ApiError::kNoLeader)));
  for (const Alarm& alarm : status.alarms) {
    response.add_errors(absl::StrFormat("memberID:%d alarm:%s", alarm.member.value, AlarmName(alarm.type)));
  }
}

std::string AlarmName(int type) {
  const std::string& name = etcdserverpb::AlarmType_Name(static_cast<etcdserverpb::AlarmType>(type));
  return name.empty() ? absl::StrFormat("%d", type) : name;
}

ApiError CheckAlarm(const etcdserverpb::AlarmRequest& request) {
  using etcdserverpb::AlarmRequest;
  const bool known = AlarmRequest::AlarmAction_IsValid(request.action());
  // Types of other releases can be asked for and cleared, but not raised.
  const bool raises = request.action() == AlarmRequest::ACTIVATE && !etcdserverpb::AlarmType_IsValid(request.alarm());
  return known && !raises ? ApiError::kOk : ApiError::kUnknownAlarm;
}

void ProposeAlarm(Backend& backend, const Waiter& waiter, const etcdserverpb::AlarmRequest& request) {
  etcdserverpb::InternalRaftRequest proposal;
  *proposal.mutable_alarm() = request;
  backend.Propose(waiter, proposal);
}

}  // namespace detcd::rpc
