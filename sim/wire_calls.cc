#include "sim/wire_calls.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "sim/sim_streams.h"

namespace detcd::sim {

// One member's connection and its successors.
class WireClientCalls::Connection final : private wire::GrpcClientListener, private TimerListener {
 public:
  Connection(WireClientCalls& owner, EndpointId member)
      : owner_(owner), member_(member), timer_(owner.host_.clock().NewTimer(*this, 0)) {
    Dial();
  }

  EndpointId member() const { return member_; }
  bool usable() const { return client_ != nullptr && !over_ && !going_away_ && client_->connected(); }
  wire::GrpcClient& client() { return *client_; }

  void EndTurn() {
    if (over_ && client_ != nullptr) {
      client_.reset();
      timer_->Arm(owner_.host_.clock().Now() + pause_);
      pause_ = std::min(pause_ * 2, kRedialMost);
    } else if (client_ != nullptr) {
      client_->EndTurn();
    }
  }

 private:
  void Dial() {
    over_ = false;
    going_away_ = false;
    client_ = std::make_unique<wire::GrpcClient>(owner_.host_.clock(), static_cast<wire::GrpcClientListener&>(*this));
    client_->Attach(owner_.host_.network().Connect({.host = EndpointHost(member_), .port = kClientPortNumber},
                                                   client_->stream_listener()));
  }

  void OnResponse(uint64_t token, const google::protobuf::Message& response) override {
    if (owner_.streams_) {
      pause_ = kRedialFirst;
      owner_.listener_.OnCallMessage(token, response);
      return;
    }
    response_.reset(response.New());
    response_->CopyFrom(response);
    pause_ = kRedialFirst;
  }
  void OnCallEnd(uint64_t token, const rpc::CallStatus& status) override {
    owner_.busy_ = nullptr;
    const std::unique_ptr<google::protobuf::Message> response = std::move(response_);
    owner_.listener_.OnCallEnd(token, status.ok() ? response.get() : nullptr, status, true);
  }
  void OnGoAway() override {
    going_away_ = true;
    client_->Close();
  }
  void OnDisconnected(IoError) override { over_ = true; }
  void OnTimer(uint64_t) override { Dial(); }

  WireClientCalls& owner_;
  EndpointId member_;
  std::unique_ptr<Timer> timer_;
  std::unique_ptr<wire::GrpcClient> client_;
  std::unique_ptr<google::protobuf::Message> response_;  // of the call under way
  Duration pause_ = kRedialFirst;
  bool over_ = false;        // heard OnDisconnected; destroyed at the end of the turn
  bool going_away_ = false;
};

WireClientCalls::WireClientCalls(Host& host, const std::vector<EndpointId>& members, ClientCallsListener& listener)
    : host_(host), listener_(listener) {
  for (const EndpointId member : members) connections_.push_back(std::make_unique<Connection>(*this, member));
}

WireClientCalls::~WireClientCalls() = default;

WireClientCalls::Connection* WireClientCalls::Find(EndpointId member) const {
  for (const auto& connection : connections_) {
    if (connection->member() == member) return connection.get();
  }
  return nullptr;
}

bool WireClientCalls::IsUp(EndpointId member) {
  const Connection* connection = Find(member);
  return connection != nullptr && connection->usable();
}

bool WireClientCalls::Start(EndpointId member, rpc::Method method, std::unique_ptr<google::protobuf::Message> request,
                            uint64_t token, Duration timeout) {
  CHECK(busy_ == nullptr);
  Connection* connection = Find(member);
  if (connection == nullptr || !connection->usable()) return false;
  const std::optional<wire::ClientCallId> call =
      connection->client().Start(method, request.get(), {.token = token, .timeout = timeout});
  if (!call.has_value()) return false;
  busy_ = connection;
  streams_ = rpc::Info(method).server_streams;
  call_ = *call;
  return true;
}

void WireClientCalls::Cancel() {
  if (busy_ == nullptr) return;
  busy_->client().Cancel(call_);
  busy_ = nullptr;
}

void WireClientCalls::EndTurn() {
  for (const auto& connection : connections_) connection->EndTurn();
}

}  // namespace detcd::sim
