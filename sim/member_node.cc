#include "sim/member_node.h"

#include <utility>

#include "core/wire/client_port.h"
#include "core/wire/grpc_server.h"
#include "core/wire/peer_port.h"
#include "sim/direct_calls.h"
#include "sim/direct_peers.h"
#include "sim/sim_streams.h"
#include "sim/wire_calls.h"

namespace detcd::sim {

class MemberNode::Direct {
 public:
  Direct(Host& host, const MemberPlace& place)
      : payloads_(place.payloads),
        peers_(place.payloads, host.events(), place.endpoint, place.members),
        calls_(place.payloads, place.endpoint) {}

  DirectPeers& peers() { return peers_; }
  DirectCallServer& calls() { return calls_; }

  void OnMessage(EndpointId from, uint64_t handle) {
    if (auto* frame = std::get_if<CallFrame>(&payloads_.At(handle))) {
      calls_.OnFrame(from, *frame);
    } else {
      peers_.OnMessage(handle);
    }
  }

 private:
  DirectPayloads& payloads_;
  DirectPeers peers_;
  DirectCallServer calls_;
};

class MemberNode::Wire final : private wire::PeerInfo {
 public:
  Wire(Host& host, const MemberPlace& place)
      : host_(host),
        address_{.host = EndpointHost(place.endpoint)},
        peers_(PeerConfig(place), *this, host.network(), host.clock(), host.events(), host.trace()) {
    if (const absl::Status status = peers_.Listen(); !status.ok()) host.Stop(false, std::string(status.message()));
  }

  wire::PeerPort& peers() { return peers_; }

  void Serve(rpc::CallService& service) {
    grpc_.emplace(host_.clock(), host_.events(), service);
    port_.emplace(host_.clock(), &*grpc_, nullptr);
    Address address = address_;
    address.port = kClientPortNumber;
    ListenResult listening = host_.network().Listen(address, *port_);
    if (listening.error != IoError::kOk) return host_.Stop(false, "cannot listen for clients");
    acceptor_ = std::move(listening.acceptor);
  }

  void EndTurn() {
    if (grpc_.has_value()) grpc_->EndTurn();
  }

 private:
  static wire::PeerPortConfig PeerConfig(const MemberPlace& place) {
    wire::PeerPortConfig config;
    config.self.id = place.options.id;
    config.self.cluster = place.options.cluster;
    for (const rpc::MemberRow& row : place.options.initial_members) {
      if (row.id == place.options.id) config.self.peer_urls = row.peer_urls;
    }
    config.listen = {{.host = EndpointHost(place.endpoint), .port = kPeerPortNumber}};
    config.dial_timeout = Seconds(1) + place.options.election_timeout;
    return config;
  }

  std::string VersionJson() const override { return R"({"etcdserver":"3.7.3","etcdcluster":"3.7.0"})"; }
  std::string MembersJson() const override { return "[]"; }
  bool IsRemoved(MemberId) const override { return false; }
  void OnSelfRemoved() override { host_.Stop(false, "removed from the cluster"); }

  Host& host_;
  Address address_;
  wire::PeerPort peers_;
  std::optional<wire::GrpcServer> grpc_;
  std::optional<wire::ClientPort> port_;
  std::unique_ptr<Acceptor> acceptor_;
};

MemberNode::MemberNode(Host& host, const MemberPlace& place) : place_(place) {
  host.events().SetTurnListener(*this);
  if (place.fidelity == Fidelity::kWire) {
    wire_ = std::make_unique<Wire>(host, place);
    peers_ = std::make_unique<ObservedPeers>(wire_->peers(), place.observer);
  } else {
    direct_ = std::make_unique<Direct>(host, place);
    peers_ = std::make_unique<ObservedPeers>(direct_->peers(), place.observer);
    place.messages.SetListener(place.endpoint, this);
  }
  member_ = std::make_unique<member::Member>(host, place.options, *peers_, static_cast<member::MemberListener&>(*this));
  services_ = std::make_unique<rpc::Services>(*member_, rpc::ServicesOptions{});
  member_->Start();
}

// What uses goes before what is used; the host is dead already and hears nothing.
MemberNode::~MemberNode() {
  wire_.reset();
  direct_.reset();
  services_.reset();
  member_.reset();
}

void MemberNode::OnEndTurn() {
  member_->EndTurn();
  if (wire_ != nullptr) wire_->EndTurn();
  peers_->EndTurn();
}

void MemberNode::OnMemberReady() {
  if (wire_ != nullptr) {
    wire_->Serve(*services_);
  } else {
    direct_->calls().Serve(*services_);
  }
}

void MemberNode::OnMessage(EndpointId from, uint64_t handle) { direct_->OnMessage(from, handle); }

}  // namespace detcd::sim
