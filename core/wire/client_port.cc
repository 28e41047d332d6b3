#include "core/wire/client_port.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/limits.h"
#include "core/base/probe.h"

namespace detcd::wire {
namespace {

constexpr std::string_view kPrefaceStart = "PRI * HTTP/2.0";

}  // namespace

std::optional<Protocol> Sniff(std::string_view bytes) {
  const size_t size = std::min(bytes.size(), kPrefaceStart.size());
  if (bytes.substr(0, size) != kPrefaceStart.substr(0, size)) return Protocol::kHttp1;
  if (size < kPrefaceStart.size()) return std::nullopt;
  return Protocol::kHttp2;
}

// A stream that is looked at before its protocol's listener is known. Afterwards it only passes on.
class ClientPort::SniffedStream final : public Stream, private StreamListener {
 public:
  SniffedStream(ClientPort& port, uint32_t number, std::unique_ptr<Stream> below)
      : port_(&port),
        number_(number),
        gauge_(port.gauge_),
        below_(std::move(below)),
        timer_(port.clock_.NewTimer(port, number)) {
    ++gauge_->count;
    timer_->Arm(port.clock_.Now() + kHttpHeaderTimeout);
    below_->SetListener(*this);
  }

  ~SniffedStream() override {
    below_.reset();  // its descriptor is free before the next connection is taken
    --gauge_->count;
    if (gauge_->port != nullptr) gauge_->port->OnConnectionGone();
  }

  void SetListener(StreamListener& listener) override {
    CHECK(listener_ == nullptr);
    listener_ = &listener;
  }
  size_t Write(std::span<const Bytes> pieces) override { return below_->Write(pieces); }
  void CloseWrite() override { below_->CloseWrite(); }
  void PauseReading() override { below_->PauseReading(); }
  void ResumeReading() override { below_->ResumeReading(); }
  Address Remote() const override { return below_->Remote(); }

 private:
  void OnConnected() override {}

  void OnData(std::string_view bytes) override;
  void OnReadEnd() override {
    if (listener_ != nullptr) return listener_->OnReadEnd();
    port_->Release(number_);
  }
  void OnWritable() override {
    if (listener_ != nullptr) listener_->OnWritable();
  }
  void OnClosed(IoError error) override {
    if (listener_ != nullptr) return listener_->OnClosed(error);
    port_->Release(number_);
  }

  ClientPort* port_;                     // until it is decided
  const uint32_t number_;
  const std::shared_ptr<Gauge> gauge_;
  std::unique_ptr<Stream> below_;
  std::unique_ptr<Timer> timer_;         // until it is decided
  StreamListener* listener_ = nullptr;   // from then on
  std::string head_;                     // bytes that do not tell yet
};

// Each path ends with the call that may destroy this object.
void ClientPort::SniffedStream::OnData(std::string_view bytes) {
  if (listener_ != nullptr) return listener_->OnData(bytes);
  std::string joined;
  if (!head_.empty()) {
    joined = std::move(head_).append(bytes);
    bytes = joined;
  }
  const std::optional<Protocol> protocol = Sniff(bytes);
  if (!protocol.has_value()) {
    head_ = bytes;
    return;
  }
  timer_.reset();
  ClientPort& port = *port_;
  std::unique_ptr<SniffedStream> self = port.Release(number_);
  if (*protocol == Protocol::kHttp2 && port.grpc_ != nullptr) {
    port.grpc_->Accept(std::move(self));
  } else if (*protocol == Protocol::kHttp1 && port.http1_ != nullptr) {
    port.http1_->Accept(std::move(self));
  } else {
    PROBE("wire.protocol_not_served");
    return;  // closes it
  }
  listener_->OnData(bytes);
}

ClientPort::ClientPort(Clock& clock, GrpcServer* grpc, Http1Server* http1, size_t connections_max)
    : clock_(clock),
      grpc_(grpc),
      http1_(http1),
      connections_max_(connections_max),
      gauge_(std::make_shared<Gauge>(Gauge{.port = this})) {
  CHECK(connections_max > 0);
}

ClientPort::~ClientPort() { gauge_->port = nullptr; }

IoError ClientPort::Listen(Network& network, const Address& address, Address& local) {
  ListenResult result = network.Listen(address, *this);
  if (result.error != IoError::kOk) return result.error;
  local = result.acceptor->Local();
  acceptors_.push_back(std::move(result.acceptor));
  return IoError::kOk;
}

void ClientPort::OnConnectionGone() {
  if (!full_ || gauge_->count >= connections_max_) return;
  full_ = false;
  for (const std::unique_ptr<Acceptor>& acceptor : acceptors_) acceptor->ResumeAccepting();
}

void ClientPort::OnAccept(std::unique_ptr<Stream> stream) {
  const uint32_t number = ++last_number_;
  CHECK_MSG(number != 0, "four billion connections in one incarnation");
  undecided_.emplace(number, std::make_unique<SniffedStream>(*this, number, std::move(stream)));
  if (gauge_->count < connections_max_) return;
  PROBE("wire.client_port_full");
  full_ = true;
  for (const std::unique_ptr<Acceptor>& acceptor : acceptors_) acceptor->PauseAccepting();
}

void ClientPort::OnTimer(uint64_t number) {
  PROBE("wire.silent_connection_closed");
  Release(static_cast<uint32_t>(number));
}

std::unique_ptr<ClientPort::SniffedStream> ClientPort::Release(uint32_t number) {
  const auto found = undecided_.find(number);
  CHECK(found != undecided_.end());
  std::unique_ptr<SniffedStream> released = std::move(found->second);
  undecided_.erase(found);
  return released;
}

}  // namespace detcd::wire
