// How a simulated client reaches the members: one call at a time, unary or with a stream of responses. Direct fidelity hands messages over
// (direct_calls.h), wire fidelity speaks gRPC over virtual sockets (wire_calls.h).
#pragma once

#include <cstdint>
#include <memory>

#include <google/protobuf/message.h>

#include "core/rpc/call.h"
#include "sim/event_queue.h"

namespace detcd::sim {

class ClientCallsListener {
 public:
  // One response of a call with a stream of them.
  virtual void OnCallMessage(uint64_t token, const google::protobuf::Message& message) = 0;
  // The call `token` is over. `response` is set when `status` is ok and the call unary. `sent` false: the member never got any of it.
  virtual void OnCallEnd(uint64_t token, const google::protobuf::Message* response, const rpc::CallStatus& status,
                         bool sent) = 0;

 protected:
  ~ClientCallsListener() = default;
};

class ClientCalls {
 public:
  virtual ~ClientCalls() = default;

  // Whether a call through the member at endpoint `member` is worth trying now.
  virtual bool IsUp(EndpointId member) = 0;
  // Begins call `token` (never used before); its end is heard unless it is cancelled. Never calls back inside.
  // False: not possible after all, nothing happened.
  virtual bool Start(EndpointId member, rpc::Method method, std::unique_ptr<google::protobuf::Message> request,
                     uint64_t token, Duration timeout) = 0;
  // Gives the call under way up.
  virtual void Cancel() = 0;
  virtual void EndTurn() = 0;
};

}  // namespace detcd::sim
