// etcdserverpb.Maintenance: Status and Alarm.
#pragma once

#include <cstdint>
#include <string>

#include "core/rpc/backend.h"

namespace etcdserverpb {
class AlarmRequest;
class StatusResponse;
}  // namespace etcdserverpb

namespace detcd::rpc {

// The version this server speaks for, as Status and /version show it: clients choose features by it.
inline constexpr char kServerVersion[] = "3.7.3";

void Status(const Backend& backend, int64_t quota_bytes, etcdserverpb::StatusResponse& response);

// `NOSPACE`; a type without a name by its number.
std::string AlarmName(int type);

// An action that etcd does not know, and an alarm of a type that it does not know, are refused: the first would crash
// the etcd members of a cluster as they apply it, the second as they downgrade. Such alarms can be asked for and cleared.
ApiError CheckAlarm(const etcdserverpb::AlarmRequest& request);
// As etcd does, a listing too goes through the log, so that it shows what was raised before it.
void ProposeAlarm(Backend& backend, const Waiter& waiter, const etcdserverpb::AlarmRequest& request);

}  // namespace detcd::rpc
