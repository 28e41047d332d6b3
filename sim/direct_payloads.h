// What is behind the handles of the message cut (sim_messages.h): peer messages and frames of calls as structs, in a slab
// with counted references. Nothing is encoded.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <google/protobuf/message.h>

#include "core/raft/message.h"
#include "core/rpc/call.h"
#include "sim/sim_messages.h"

namespace detcd::sim {

// A step of a call between a client and a member. The call's id is the client's: unique for its whole life.
struct CallFrame {
  enum class Kind : uint8_t {
    kRequest,   // to the member: the call with its one message, half-closed
    kCancel,    // to the member
    kMessage,   // to the client: one response of a stream
    kCredit,    // to the member: the client has taken one
    kEnd,       // to the client: the answer, or the status alone
    kRefused,   // to the client: nobody listens there, nothing was delivered
    kReset,     // to the client: the process that had the call ended
  };
  Kind kind = Kind::kRequest;
  rpc::CallId call = 0;
  rpc::Method method = rpc::Method::kRange;
  std::unique_ptr<google::protobuf::Message> message;
  uint64_t sequence = 0;  // kMessage: which one, from 0; kEnd: how many there were
  rpc::CallStatus status;
};

// A member asks another one for the version of its server, or answers.
struct VersionFrame {
  std::string version;  // empty: the question
};

using DirectPayload = std::variant<std::monostate, raft::Message, CallFrame, VersionFrame>;

class DirectPayloads final : public MessageStore {
 public:
  explicit DirectPayloads(SimMessages& messages) : messages_(messages) {}
  DirectPayloads(const DirectPayloads&) = delete;

  // Each Send hands over the one reference of a fresh handle.
  void Send(EndpointId from, EndpointId to, const raft::Message& message);
  void Send(EndpointId from, EndpointId to, CallFrame frame);
  void Send(EndpointId from, EndpointId to, VersionFrame frame);

  // The payload stays where it is until its last reference goes, whatever is sent meanwhile.
  DirectPayload& At(uint64_t handle) { return slots_[handle].payload; }
  // Whether another delivery of it is to come: then it must not be moved from.
  bool IsShared(uint64_t handle) const { return slots_[handle].references > 1; }

  void Retain(uint64_t handle) override { ++slots_[handle].references; }
  void Release(uint64_t handle) override;
  // A forwarded proposal that came twice would be two entries: etcd trusts its streams not to do that, and so do we.
  bool MayDuplicate(uint64_t handle) const override;
  // The kernel of a machine whose process is down refuses calls; a machine without power says nothing.
  void OnUndelivered(EndpointId from, EndpointId to, MachineState state, uint64_t handle) override;

  size_t live() const { return slots_.size() - free_.size(); }

 private:
  struct Slot {
    DirectPayload payload;
    uint32_t references = 0;
  };

  uint64_t Put(DirectPayload payload);

  SimMessages& messages_;
  std::deque<Slot> slots_;  // stable places
  std::vector<uint64_t> free_;
};

}  // namespace detcd::sim
