// A peer carrier whose channels and room a test sets, and which keeps what it took.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "core/member/peer_carrier.h"

namespace detcd::testing {

class FakeCarrier final : public member::PeerCarrier {
 public:
  struct Sent {
    member::PeerChannel channel;
    raft::Message message;
  };

  void Start(member::PeerCarrierListener& l, const std::vector<member::PeerRow>& rows) override {
    listener = &l;
    peers = rows;
  }
  bool IsUp(MemberId peer, member::PeerChannel channel) const override { return up.contains({peer, channel}); }
  bool Send(MemberId peer, member::PeerChannel channel, const raft::Message& message) override {
    if (!IsUp(peer, channel) || room == 0) return false;
    --room;
    sent.push_back({channel, message});
    return true;
  }
  bool Post(MemberId, const raft::Message& message) override {
    if (!takes_posts) return false;
    posted.push_back(message);
    return true;
  }
  void AskVersion(MemberId peer) override { asked_versions.push_back(peer); }
  void EndTurn() override {}

  // Brings a channel up or takes it down, and tells.
  void SetUp(MemberId peer, member::PeerChannel channel) {
    up.insert({peer, channel});
    listener->OnChannelUp(peer, channel);
  }
  void SetDown(MemberId peer, member::PeerChannel channel) {
    up.erase({peer, channel});
    listener->OnChannelDown(peer, channel);
  }
  // The bodies of one kind taken so far.
  template <class Body>
  std::vector<Body> SentOf() const {
    std::vector<Body> bodies;
    for (const Sent& one : sent) {
      if (const auto* body = std::get_if<Body>(&one.message.body)) bodies.push_back(*body);
    }
    return bodies;
  }

  member::PeerCarrierListener* listener = nullptr;
  std::vector<member::PeerRow> peers;
  std::set<std::pair<MemberId, member::PeerChannel>> up;
  size_t room = 1'000'000;  // messages it still takes
  std::vector<Sent> sent;
  bool takes_posts = false;
  std::vector<raft::Message> posted;
  std::vector<MemberId> asked_versions;
};

}  // namespace detcd::testing
