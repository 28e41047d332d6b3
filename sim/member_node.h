// One incarnation of a member in a world: the member, its services, and the transports of its world's fidelity, built
// over its host. Destroyed after the universe has ended the incarnation.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/io/host.h"
#include "core/member/member.h"
#include "core/rpc/services.h"
#include "sim/direct_payloads.h"
#include "sim/observed_peers.h"

namespace detcd::sim {

enum class Fidelity : uint8_t { kDirect, kWire };

// What all incarnations of one member share; outlives them.
struct MemberPlace {
  Fidelity fidelity = Fidelity::kDirect;
  EndpointId endpoint = 0;
  member::MemberOptions options;
  const std::vector<MemberId>& members;  // by endpoint
  SimMessages& messages;
  DirectPayloads& payloads;
  PeerCutObserver& observer;
};

// The transport of a call that nobody waits for.
class NobodyWaits final : public rpc::CallTransport {
 public:
  void Send(rpc::CallId, const google::protobuf::Message&) override {}
  void SendEncoded(rpc::CallId, std::vector<Bytes>) override {}
  bool Writable(rpc::CallId) const override { return true; }
  void Finish(rpc::CallId, rpc::CallStatus) override {}
};

class MemberNode final : private PostListener {
 public:
  MemberNode(Host& host, const MemberPlace& place);
  ~MemberNode();
  MemberNode(const MemberNode&) = delete;

  const member::Member& member() const;
  // An event of the incarnation asks it to hand its leadership to `target`. Nobody waits for the outcome.
  void MoveLeader(MemberId target);
  // The process has ended, the machine has not: what calls of clients it had are cut, as its kernel would. Whether there
  // were any; of sockets the universe has told already.
  bool HangUp();

 private:
  class Wire;    // the server over virtual sockets
  class Direct;  // the same member and services over the message cut

  void OnPost(uint64_t target) override;

  Host& host_;
  NobodyWaits nobody_waits_;
  std::unique_ptr<Wire> wire_;  // one of the two
  std::unique_ptr<Direct> direct_;
};

}  // namespace detcd::sim
