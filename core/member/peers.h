// The queues between raft and the channels to its peers: which channel a message takes, and what happens when it has no
// room. Bounded per peer and channel; beyond the bound a message is dropped and raft told that the peer is unreachable,
// which every message of raft survives. Shared by both network fidelities: the carrier below is what differs.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "core/base/time.h"
#include "core/member/peer_carrier.h"
#include "core/raft/message.h"

namespace detcd::member {

class Peers {
 public:
  explicit Peers(PeerCarrier& carrier) : carrier_(carrier) {}

  void Start(PeerCarrierListener& listener, const std::vector<PeerRow>& peers);

  // Sends or queues `message`: appends on their own stream, else on the other one, which takes the rest; while no stream is
  // up, as a request of its own (reference/peer.md 8). False: it was dropped, because a queue is full.
  bool Send(raft::Message message);
  void AskVersion(MemberId peer) { carrier_.AskVersion(peer); }
  // A channel came up.
  void OnUp(MemberId peer, PeerChannel channel, Instant now);
  // A channel has room again: sends what waits for it.
  void OnRoom(MemberId peer, PeerChannel channel);
  // A channel went down: what waits for it is dropped, as etcd drops a stream's queue.
  void OnDown(MemberId peer, PeerChannel channel);

  // Since when messages can reach `peer`; nullopt while they cannot.
  std::optional<Instant> ActiveSince(MemberId peer) const;

 private:
  struct Queue {
    std::deque<raft::Message> messages;
    size_t bytes = 0;  // of entry data
  };
  struct Peer {
    Queue queues[kPeerChannelCount];
    std::optional<Instant> active_since;
  };

  PeerCarrier& carrier_;
  std::map<MemberId, Peer> peers_;
};

}  // namespace detcd::member
