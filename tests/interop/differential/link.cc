#include "tests/interop/differential/link.h"

#include <utility>

#include "core/base/check.h"

namespace detcd::differential {
namespace {

// Beyond etcd's own limit for a request without a quorum, which is 7 s.
constexpr Duration kCallTimeout = Seconds(60);

}  // namespace

Link::Link(realnet::RealHost& host, uint16_t port) : host_(host), port_(port) {}

void Link::Start(const testing::ApiCall& call) {
  CHECK(!busy_);
  if (stale_) {
    client_ = std::make_unique<wire::GrpcClient>(host_.clock(), static_cast<wire::GrpcClientListener&>(*this));
    client_->Attach(host_.network().Connect({.host = "127.0.0.1", .port = port_}, client_->stream_listener()));
    stale_ = false;
    lost_ = false;
  }
  answer_ = Answer();
  busy_ = true;
  const wire::ClientCallOptions options{.timeout = kCallTimeout, .has_leader = call.has_leader};
  const auto id = call.request != nullptr ? client_->Start(call.method, call.request.get(), options)
                                          : client_->StartRaw(call.path, call.method, call.body, options);
  CHECK(id.has_value());
  client_->EndTurn();
}

Answer Link::TakeAnswer() {
  CHECK(!busy_);
  answer_.lost = lost_;
  return std::exchange(answer_, Answer());
}

void Link::EndTurn() {
  if (client_ != nullptr && !lost_) client_->EndTurn();
}

void Link::OnResponse(uint64_t, const google::protobuf::Message& response) {
  answer_.responses.emplace_back(response.New());
  answer_.responses.back()->CopyFrom(response);
}

void Link::OnCallEnd(uint64_t, const rpc::CallStatus& status) {
  answer_.status = status;
  busy_ = false;
}

void Link::OnDisconnected(IoError) {
  stale_ = true;
  lost_ = true;
}

}  // namespace detcd::differential
