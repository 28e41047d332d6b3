#include "core/member/server.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/limits.h"
#include "core/member/member_context.h"

namespace detcd::member {

Server::Server(Host& host, const ServerOptions& options, ServerListener& listener)
    : host_(host),
      options_(options),
      listener_(listener),
      member_(host, options.member, *this),
      services_(member_, {}),
      endpoints_(member_),
      grpc_(host.clock(), host.events(), services_, options.grpc),
      http_(host.clock(), endpoints_),
      clients_(host.clock(), &grpc_, &http_, options.client_connections_max),
      drain_timer_(host.clock().NewTimer(*this, 0)) {
  host.events().SetTurnListener(*this);
}

Server::~Server() = default;

void Server::Start() { member_.Start(); }

PeerCarrier& Server::OnMemberRecovered(MemberId self, ClusterId cluster) {
  std::vector<std::string> own_urls;
  for (const rpc::MemberRow& row : member_.Members()) {
    if (row.id == self) own_urls = row.peer_urls;
  }
  wire::PeerPortConfig config{.self = {.id = self, .cluster = cluster, .peer_urls = std::move(own_urls)},
                              .listen = options_.listen_peers,
                              .dial_timeout = Seconds(1) + options_.member.election_timeout};
  wire::PeerInfo& info = *this;
  peers_.emplace(std::move(config), info, host_.network(), host_.clock(), host_.events(), host_.trace());
  std::vector<PeerRow> rows;
  for (const rpc::MemberRow& row : member_.Members()) {
    if (row.id != self) rows.push_back({.id = row.id, .urls = row.peer_urls});
  }
  absl::Status usable = wire::PeerPort::CheckPeers(rows);
  if (usable.ok()) usable = peers_->Listen();
  if (!usable.ok()) host_.Stop(false, std::string(usable.message()));
  return listener_.OnPeersMade(*peers_);
}

void Server::OnMemberReady() {
  std::vector<Address> addresses;
  for (const Address& address : options_.listen_clients) {
    Address local;
    if (const IoError error = clients_.Listen(host_.network(), address, local); error != IoError::kOk) {
      return host_.Stop(
          false, absl::StrFormat("listen on client address %s:%d: %s", address.host, address.port, IoErrorName(error)));
    }
    addresses.push_back(local);
  }
  listener_.OnServerReady(addresses);
}

void Server::OnEndTurn() {
  member_.EndTurn();
  if (peers_) peers_->EndTurn();
  grpc_.EndTurn();
  http_.EndTurn();
  if (!heir_.IsZero()) return StopIfHandedOver();
  const bool drained = grpc_.connection_count() == 0 && http_.connection_count() == 0;
  if (draining_ && drained && stop_reason_.empty()) OnDrained("stopped");
}

void Server::Shutdown() {
  if (draining_) return host_.Stop(true, "asked to stop again");
  draining_ = true;
  clients_.StopListening();
  grpc_.Shutdown();
  http_.Shutdown();
  // A client that does not leave is not waited for longer than a call could take.
  drain_timer_->Arm(host_.clock().Now() + kDrainTimeout);
}

void Server::OnTimer(uint64_t) {
  if (!heir_.IsZero()) return host_.Stop(true, stop_reason_ + ", leadership was not handed over in time");
  OnDrained("stopped with clients still connected");
}

void Server::OnDrained(std::string_view how) {
  stop_reason_ = how;
  heir_ = member_.HandOverLeadership();
  if (heir_.IsZero()) return host_.Stop(true, stop_reason_);
  // Longer than raft tries: the heir's election may take a second round of votes.
  drain_timer_->Arm(host_.clock().Now() + options_.member.election_timeout * 2);
}

void Server::StopIfHandedOver() {
  if (member_.Status().leader == heir_) host_.Stop(true, stop_reason_);
}

std::string Server::VersionJson() const { return endpoints_.Version().body; }

std::string Server::MembersJson() const {
  std::string json = "[";
  for (const rpc::MemberRow& row : member_.Members()) {
    if (json.size() > 1) json += ",";
    json += EncodeMemberContext({.member = row});
  }
  return json + "]";
}

// Members are not removed in this release.
bool Server::IsRemoved(MemberId) const { return false; }

void Server::OnSelfRemoved() { host_.Stop(false, "a peer says that this member was removed from the cluster"); }

}  // namespace detcd::member
