// The direct cut for clients: calls of the call interface (core/rpc/call.h) as frames over SimMessages, unary or with a
// stream of responses. A stream has credit for a few messages, as a window on a wire; a lost piece breaks it off. Calls are
// delayed and lost, never duplicated or reordered; what a machine that is down does to them is what sockets would do:
// the kernel of a process that ended resets its calls and refuses new ones, a machine without power is silent.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/io/clock.h"
#include "sim/client_calls.h"
#include "sim/direct_payloads.h"

namespace detcd::sim {

// The server's side, of one member incarnation.
class DirectCallServer final : public rpc::CallTransport {
 public:
  DirectCallServer(DirectPayloads& payloads, EndpointId self) : payloads_(payloads), self_(self) {}

  // Messages of one stream that are on their way or not taken yet.
  static constexpr uint64_t kStreamCredit = 4;

  // From now on calls are served; before, they are refused.
  void Serve(rpc::CallService& service) { service_ = &service; }
  void OnFrame(EndpointId from, CallFrame& frame);
  // The process has ended, the machine has not: clients hear that their calls are over. How many calls there were.
  size_t HangUp();

  // --- rpc::CallTransport ---
  void Send(rpc::CallId call, const google::protobuf::Message& response) override;
  void SendEncoded(rpc::CallId call, std::vector<Bytes> pieces) override;
  bool Writable(rpc::CallId call) const override;
  void Finish(rpc::CallId call, rpc::CallStatus status) override;

 private:
  struct Call {
    EndpointId client = 0;
    rpc::Method method = rpc::Method::kRange;
    std::unique_ptr<google::protobuf::Message> response;  // unary
    uint64_t sent = 0;                                    // stream: messages
    uint64_t taken = 0;                                   // stream: messages the client has told of
  };

  DirectPayloads& payloads_;
  EndpointId self_;
  rpc::CallService* service_ = nullptr;
  std::map<rpc::CallId, Call> calls_;
};

// The client's side.
class DirectClientCalls final : public ClientCalls, public MessageListener {
 public:
  // A member that refused is left alone for a while.
  static constexpr Duration kRedialAfter = Millis(100);

  DirectClientCalls(DirectPayloads& payloads, Clock& clock, EndpointId self, uint32_t members,
                    ClientCallsListener& listener)
      : payloads_(payloads), clock_(clock), self_(self), up_at_(members), listener_(listener) {}

  bool IsUp(EndpointId member) override { return clock_.Now() >= up_at_[member]; }
  bool Start(EndpointId member, rpc::Method method, std::unique_ptr<google::protobuf::Message> request, uint64_t token,
             Duration timeout) override;
  void Cancel() override;
  void EndTurn() override {}

  void OnMessage(EndpointId from, uint64_t handle) override;

 private:
  // Ids of all clients' calls differ.
  rpc::CallId IdOf(uint64_t token) const { return uint64_t{self_} << 40 | token; }

  DirectPayloads& payloads_;
  Clock& clock_;
  EndpointId self_;
  std::vector<Instant> up_at_;  // by member
  ClientCallsListener& listener_;
  uint64_t token_ = 0;  // of the call under way; 0: none
  uint64_t received_ = 0;  // messages of its stream
  EndpointId member_ = 0;
};

}  // namespace detcd::sim
