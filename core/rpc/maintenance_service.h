// etcdserverpb.Maintenance: Status, and the listing of alarms.
#pragma once

#include <cstdint>

#include "core/rpc/backend.h"

namespace etcdserverpb {
class AlarmRequest;
class StatusResponse;
}  // namespace etcdserverpb

namespace detcd::rpc {

// The version this server speaks for, as Status and /version show it: clients choose features by it.
inline constexpr char kServerVersion[] = "3.7.3";

void Status(const Backend& backend, int64_t quota_bytes, etcdserverpb::StatusResponse& response);

// Whether this release takes the request: it raises no alarms, so only GET has a meaning.
bool IsAlarmListing(const etcdserverpb::AlarmRequest& request);
// As etcd does, the listing goes through the log, so that it shows what was raised before it.
void ProposeAlarm(Backend& backend, const Waiter& waiter, const etcdserverpb::AlarmRequest& request);

}  // namespace detcd::rpc
