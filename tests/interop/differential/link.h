// One server, as a client sees it: one connection, one call at a time.
#pragma once

#include <memory>
#include <string>

#include "core/wire/grpc_client.h"
#include "realnet/real_host.h"
#include "tests/interop/differential/answer.h"

namespace detcd::differential {

class Link final : private wire::GrpcClientListener {
 public:
  // A server on 127.0.0.1. `host` outlives this object.
  Link(realnet::RealHost& host, uint16_t port);

  // Sends `call`; its answer is there when busy() is false again, some turns of the host later. Connects first where
  // there is no connection.
  void Start(const testing::ApiCall& call);
  bool busy() const { return busy_; }
  // Once for each call.
  Answer TakeAnswer();

  // At the end of each turn of the host.
  void EndTurn();

 private:
  void OnResponse(uint64_t token, const google::protobuf::Message& response) override;
  void OnCallEnd(uint64_t token, const rpc::CallStatus& status) override;
  void OnGoAway() override { stale_ = true; }
  void OnDisconnected(IoError error) override;

  realnet::RealHost& host_;
  const uint16_t port_;
  std::unique_ptr<wire::GrpcClient> client_;
  bool stale_ = true;  // the connection takes no more calls
  bool lost_ = false;  // it has ended
  bool busy_ = false;
  Answer answer_;
};

}  // namespace detcd::differential
