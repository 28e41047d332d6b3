// A client's calls in wire fidelity: gRPC over HTTP/2 over virtual sockets, one connection to each member, dialled again
// with a growing pause when it ends.
#pragma once

#include <memory>
#include <vector>

#include "core/io/host.h"
#include "core/wire/grpc_client.h"
#include "sim/client_calls.h"

namespace detcd::sim {

inline constexpr uint16_t kClientPortNumber = 2379;
inline constexpr uint16_t kPeerPortNumber = 2380;

class WireClientCalls final : public ClientCalls {
 public:
  static constexpr Duration kRedialFirst = Millis(50);
  static constexpr Duration kRedialMost = Seconds(1);

  // Dials every member in `members` at once.
  WireClientCalls(Host& host, const std::vector<EndpointId>& members, ClientCallsListener& listener);
  ~WireClientCalls() override;

  bool IsUp(EndpointId member) override;
  bool Start(EndpointId member, rpc::Method method, std::unique_ptr<google::protobuf::Message> request, uint64_t token,
             Duration timeout) override;
  void Cancel() override;
  void EndTurn() override;

 private:
  class Connection;

  Connection* Find(EndpointId member) const;

  Host& host_;
  ClientCallsListener& listener_;
  std::vector<std::unique_ptr<Connection>> connections_;
  Connection* busy_ = nullptr;  // carries the call under way
  wire::ClientCallId call_ = 0;
  bool streams_ = false;         // the call under way has a stream of responses
};

}  // namespace detcd::sim
