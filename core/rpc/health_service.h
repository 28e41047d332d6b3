// grpc.health.v1.Health: one service, of the empty name, that serves from the moment clients are served, with or
// without a leader (reference/api.md 4).
#pragma once

#include "core/rpc/api_error.h"

namespace grpc::health::v1 {
class HealthCheckRequest;
class HealthCheckResponse;
class HealthListResponse;
}  // namespace grpc::health::v1

namespace detcd::rpc {

// kHealthServiceUnknown for another name.
ApiError HealthCheck(const grpc::health::v1::HealthCheckRequest& request,
                     grpc::health::v1::HealthCheckResponse& response);
void HealthList(grpc::health::v1::HealthListResponse& response);
// The first message of a watch. The status never changes while a member runs, so there is no second one; the stream
// stays open.
void HealthWatchStart(const grpc::health::v1::HealthCheckRequest& request,
                      grpc::health::v1::HealthCheckResponse& response);

}  // namespace detcd::rpc
