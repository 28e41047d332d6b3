#include "core/wire/grpc_server.h"

#include <utility>

#include "core/base/check.h"
#include "core/base/probe.h"

namespace detcd::wire {
namespace {

uint64_t NumberOf(rpc::CallId call) { return call >> 32; }
int32_t StreamOf(rpc::CallId call) { return static_cast<int32_t>(call & 0x7FFFFFFF); }

}  // namespace

GrpcServer::GrpcServer(Clock& clock, Events& events, rpc::CallService& service, const GrpcOptions& options)
    : events_(events), shared_(clock, service, *this, options) {}

GrpcServer::~GrpcServer() = default;

GrpcConnection* GrpcServer::Find(uint64_t number) const {
  const auto found = connections_.find(static_cast<uint32_t>(number));
  return found == connections_.end() ? nullptr : found->second.get();
}

void GrpcServer::Accept(std::unique_ptr<Stream> stream) {
  const uint32_t number = ++last_number_;
  CHECK_MSG(number != 0, "four billion connections in one incarnation");
  GrpcConnectionOwner& owner = *this;
  auto connection = std::make_unique<GrpcConnection>(shared_, owner, number, std::move(stream));
  GrpcConnection& accepted = *connection;
  connections_.emplace(number, std::move(connection));
  OnDirty(accepted);  // SETTINGS leave at once, whatever the client does
  if (shutting_down_) accepted.Shutdown();
}

void GrpcServer::EndTurn() {
  EndTurnOfDirty();
  if (shared_.held <= shared_.options.client_bytes_max) return;
  CutLargest();
  EndTurnOfDirty();  // a service that hears of a lost call may answer others
}

void GrpcServer::EndTurnOfDirty() {
  // A service that hears of a lost call may answer others: the list may grow while it is read.
  for (size_t i = 0; i < dirty_.size(); ++i) {
    GrpcConnection* connection = Find(dirty_[i]);
    if (connection == nullptr) continue;
    connection->dirty = false;
    if (!connection->EndTurn()) connections_.erase(connection->number());
  }
  dirty_.clear();
}

void GrpcServer::CutLargest() {
  GrpcConnection* largest = nullptr;
  for (auto& [number, connection] : connections_) {
    if (largest == nullptr || connection->held() > largest->held()) largest = connection.get();
  }
  CHECK(largest != nullptr);
  PROBE("wire.largest_client_cut");
  // It does not take its answers: a farewell would wait behind them.
  largest->Cut();
}

void GrpcServer::Shutdown() {
  shutting_down_ = true;
  for (auto& [number, connection] : connections_) connection->Shutdown();
}

void GrpcServer::Send(rpc::CallId call, const google::protobuf::Message& response) {
  if (GrpcConnection* connection = Find(NumberOf(call))) connection->Send(StreamOf(call), response);
}

void GrpcServer::SendEncoded(rpc::CallId call, std::vector<Bytes> pieces) {
  if (GrpcConnection* connection = Find(NumberOf(call))) connection->SendEncoded(StreamOf(call), std::move(pieces));
}

bool GrpcServer::Writable(rpc::CallId call) const {
  GrpcConnection* connection = Find(NumberOf(call));
  return connection != nullptr && connection->Writable(StreamOf(call));
}

void GrpcServer::Finish(rpc::CallId call, rpc::CallStatus status) {
  if (GrpcConnection* connection = Find(NumberOf(call))) connection->Finish(StreamOf(call), status);
}

void GrpcServer::OnDirty(GrpcConnection& connection) {
  connection.dirty = true;
  dirty_.push_back(connection.number());
}

void GrpcServer::OnCreditDue(GrpcConnection& connection) {
  connection.credit_posted = true;
  events_.Post(*this, connection.number());
}

void GrpcServer::OnPost(uint64_t token) {
  GrpcConnection* connection = Find(token);
  if (connection == nullptr) return;
  connection->credit_posted = false;
  connection->GiveCredit();
}

void GrpcServer::OnOver(GrpcConnection& connection) { connections_.erase(connection.number()); }

}  // namespace detcd::wire
