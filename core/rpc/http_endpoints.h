// The plain HTTP endpoints of a client URL: /health and /version, with etcd's bodies (reference/metrics.md 5). Anything
// else is 404.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/rpc/backend.h"
#include "core/rpc/http.h"

namespace detcd::rpc {

class HttpEndpoints final : public HttpHandler, public ReadListener {
 public:
  // `backend` outlives this object.
  explicit HttpEndpoints(Backend& backend) : backend_(backend) {}
  HttpEndpoints(const HttpEndpoints&) = delete;
  HttpEndpoints& operator=(const HttpEndpoints&) = delete;

  void Handle(HttpResponder& responder, HttpRequestId id, const HttpRequest& request) override;
  void Abandon(HttpRequestId id) override;
  // The answer of /version, on client and peer ports alike.
  HttpResponse Version() const;

  void OnReadReady(const Waiter& waiter, uint64_t token, ApiError error) override;

 private:
  struct WaitingRequest {
    HttpResponder* responder;
    HttpRequestId id;
  };

  void HandleHealth(HttpResponder& responder, HttpRequestId id, std::string_view query);

  Backend& backend_;
  uint64_t next_token_ = 1;
  std::map<uint64_t, WaitingRequest> waiting_;  // by token; at most kReadsInFlightMax
};

}  // namespace detcd::rpc
