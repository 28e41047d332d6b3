// A thin skin around a peer carrier that shows every message at the cut: as it leaves the sender's queues, and as it
// reaches its receiver. Both fidelities wear it, so that judges see the same things in both.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/member/peer_carrier.h"

namespace detcd::sim {

class PeerCutObserver {
 public:
  virtual void OnPeerSent(const raft::Message& message) = 0;
  virtual void OnPeerDelivered(const raft::Message& message) = 0;

 protected:
  ~PeerCutObserver() = default;
};

class ObservedPeers final : public member::PeerCarrier, private member::PeerCarrierListener {
 public:
  ObservedPeers(member::PeerCarrier& carrier, PeerCutObserver& observer) : carrier_(carrier), observer_(observer) {}

  void Start(member::PeerCarrierListener& listener, const std::vector<member::PeerRow>& peers) override {
    listener_ = &listener;
    carrier_.Start(*this, peers);
  }
  bool IsUp(MemberId peer, member::PeerChannel channel) const override { return carrier_.IsUp(peer, channel); }
  bool Send(MemberId peer, member::PeerChannel channel, const raft::Message& message) override {
    if (!carrier_.Send(peer, channel, message)) return false;
    observer_.OnPeerSent(message);
    return true;
  }
  bool Post(MemberId peer, const raft::Message& message) override {
    if (!carrier_.Post(peer, message)) return false;
    observer_.OnPeerSent(message);
    return true;
  }
  void AskVersion(MemberId peer) override { carrier_.AskVersion(peer); }
  void EndTurn() override { carrier_.EndTurn(); }

 private:
  void OnPeerMessage(raft::Message message) override {
    observer_.OnPeerDelivered(message);
    listener_->OnPeerMessage(std::move(message));
  }
  void OnChannelUp(MemberId peer, member::PeerChannel channel) override { listener_->OnChannelUp(peer, channel); }
  void OnChannelRoom(MemberId peer, member::PeerChannel channel) override { listener_->OnChannelRoom(peer, channel); }
  void OnChannelDown(MemberId peer, member::PeerChannel channel) override { listener_->OnChannelDown(peer, channel); }
  void OnPostFailed(MemberId peer) override { listener_->OnPostFailed(peer); }
  void OnPeerVersion(MemberId peer, std::string version) override {
    listener_->OnPeerVersion(peer, std::move(version));
  }

  member::PeerCarrier& carrier_;
  PeerCutObserver& observer_;
  member::PeerCarrierListener* listener_ = nullptr;
};

}  // namespace detcd::sim
