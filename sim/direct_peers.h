// The peer carrier of direct fidelity: messages as structs over SimMessages, which delays, loses, duplicates and
// partitions them. Channels come up at Start, each as an event of its own, and always have room: what etcd's streams do
// to a member beyond that is wire fidelity's business.
#pragma once

#include <map>
#include <vector>

#include "core/io/events.h"
#include "core/member/peer_carrier.h"
#include "sim/direct_payloads.h"

namespace detcd::sim {

class DirectPeers final : public member::PeerCarrier, private PostListener {
 public:
  // `members[e]` is the member at endpoint e; it outlives the carrier.
  DirectPeers(DirectPayloads& payloads, Events& events, EndpointId self, const std::vector<MemberId>& members)
      : payloads_(payloads), events_(events), self_(self), members_(members) {}

  void Start(member::PeerCarrierListener& listener, const std::vector<member::PeerRow>& peers) override;
  bool IsUp(MemberId peer, member::PeerChannel channel) const override;
  bool Send(MemberId peer, member::PeerChannel channel, const raft::Message& message) override;
  // Streams, once up, stay up here: nothing is posted before.
  bool Post(MemberId, const raft::Message&) override { return false; }
  void AskVersion(MemberId peer) override;
  void EndTurn() override {}

  // A message arrived; one before Start is lost, as in a member that does not listen yet.
  void OnMessage(EndpointId from, uint64_t handle);

 private:
  struct Peer {
    EndpointId endpoint = 0;
    bool up[member::kPeerChannelCount] = {};
  };

  void OnPost(uint64_t token) override;

  DirectPayloads& payloads_;
  Events& events_;
  EndpointId self_;
  const std::vector<MemberId>& members_;
  member::PeerCarrierListener* listener_ = nullptr;
  std::map<MemberId, Peer> peers_;
};

}  // namespace detcd::sim
