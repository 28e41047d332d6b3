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

class MemberNode final : private TurnListener, private member::MemberListener, private MessageListener {
 public:
  MemberNode(Host& host, const MemberPlace& place);
  ~MemberNode();
  MemberNode(const MemberNode&) = delete;

  const member::Member& member() const { return *member_; }

 private:
  class Wire;    // ports over virtual sockets
  class Direct;

  void OnEndTurn() override;
  void OnMemberReady() override;
  void OnMessage(EndpointId from, uint64_t handle) override;

  const MemberPlace& place_;
  std::unique_ptr<Wire> wire_;      // one of the two
  std::unique_ptr<Direct> direct_;
  std::unique_ptr<ObservedPeers> peers_;
  std::unique_ptr<member::Member> member_;
  std::unique_ptr<rpc::Services> services_;
};

}  // namespace detcd::sim
