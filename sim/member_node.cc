#include "sim/member_node.h"

#include <optional>
#include <utility>

#include "core/base/check.h"
#include "core/member/server.h"
#include "sim/direct_calls.h"
#include "sim/direct_peers.h"
#include "sim/sim_streams.h"
#include "sim/wire_calls.h"

namespace detcd::sim {

class MemberNode::Direct final : private TurnListener, private member::MemberListener, private MessageListener {
 public:
  Direct(Host& host, const MemberPlace& place)
      : payloads_(place.payloads),
        id_(place.options.id),
        carrier_(place.payloads, host.events(), place.endpoint, place.members),
        peers_(carrier_, place.observer),
        calls_(place.payloads, place.endpoint),
        member_(host, place.options, *this),
        services_(member_, {}) {
    host.events().SetTurnListener(*this);
    place.messages.SetListener(place.endpoint, this);
    member_.Start();
  }

  member::Member& member() { return member_; }
  bool HangUp() { return calls_.HangUp() > 0; }

 private:
  void OnEndTurn() override { member_.EndTurn(); }
  member::PeerCarrier& OnMemberRecovered(MemberId self, ClusterId) override {
    CHECK(self == id_);
    return peers_;
  }
  void OnMemberReady() override { calls_.Serve(services_); }
  void OnMessage(EndpointId from, uint64_t handle) override {
    if (auto* frame = std::get_if<CallFrame>(&payloads_.At(handle))) {
      calls_.OnFrame(from, *frame);
    } else {
      carrier_.OnMessage(from, handle);
    }
  }

  DirectPayloads& payloads_;
  const MemberId id_;
  DirectPeers carrier_;
  ObservedPeers peers_;
  DirectCallServer calls_;
  member::Member member_;
  rpc::Services services_;
};

class MemberNode::Wire final : private member::ServerListener {
 public:
  Wire(Host& host, const MemberPlace& place)
      : observer_(place.observer),
        server_(host,
                {.member = place.options,
                 .listen_clients = {{.host = EndpointHost(place.endpoint), .port = kClientPortNumber}},
                 .listen_peers = {{.host = EndpointHost(place.endpoint), .port = kPeerPortNumber}}},
                *this) {
    server_.Start();
  }

  member::Member& member() { return server_.member(); }

 private:
  void OnServerReady(const std::vector<Address>&) override {}
  member::PeerCarrier& OnPeersMade(member::PeerCarrier& peers) override { return peers_.emplace(peers, observer_); }

  PeerCutObserver& observer_;
  std::optional<ObservedPeers> peers_;
  member::Server server_;
};

MemberNode::MemberNode(Host& host, const MemberPlace& place) : host_(host) {
  if (place.fidelity == Fidelity::kWire) {
    wire_ = std::make_unique<Wire>(host, place);
  } else {
    direct_ = std::make_unique<Direct>(host, place);
  }
}

MemberNode::~MemberNode() = default;

bool MemberNode::HangUp() { return direct_ != nullptr && direct_->HangUp(); }

void MemberNode::MoveLeader(MemberId target) { host_.events().Post(*this, target.value); }

void MemberNode::OnPost(uint64_t target) {
  member::Member& member = wire_ != nullptr ? wire_->member() : direct_->member();
  member.MoveLeader({.transport = &nobody_waits_, .call = 0, .method = rpc::Method::kMoveLeader}, MemberId(target));
}

const member::Member& MemberNode::member() const { return wire_ != nullptr ? wire_->member() : direct_->member(); }

}  // namespace detcd::sim
