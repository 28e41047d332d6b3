#include "core/rpc/health_service.h"

#include "core/proto/health.pb.h"

namespace detcd::rpc {

using grpc::health::v1::HealthCheckResponse;

ApiError HealthCheck(const grpc::health::v1::HealthCheckRequest& request, HealthCheckResponse& response) {
  if (!request.service().empty()) return ApiError::kHealthServiceUnknown;
  response.set_status(HealthCheckResponse::SERVING);
  return ApiError::kOk;
}

void HealthList(grpc::health::v1::HealthListResponse& response) {
  (*response.mutable_statuses())[""].set_status(HealthCheckResponse::SERVING);
}

void HealthWatchStart(const grpc::health::v1::HealthCheckRequest& request, HealthCheckResponse& response) {
  const bool known = request.service().empty();
  response.set_status(known ? HealthCheckResponse::SERVING : HealthCheckResponse::SERVICE_UNKNOWN);
}

}  // namespace detcd::rpc
