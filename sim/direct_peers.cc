#include "sim/direct_peers.h"

#include <algorithm>
#include <utility>

#include "core/rpc/maintenance_service.h"

namespace detcd::sim {

void DirectPeers::Start(member::PeerCarrierListener& listener, const std::vector<member::PeerRow>& peers) {
  listener_ = &listener;
  for (const member::PeerRow& row : peers) {
    const auto found = std::find(members_.begin(), members_.end(), row.id);
    if (found == members_.end() || row.id == members_[self_]) continue;
    const auto endpoint = static_cast<EndpointId>(found - members_.begin());
    peers_[row.id] = {.endpoint = endpoint};
    for (uint64_t channel = 0; channel < member::kPeerChannelCount; ++channel) {
      events_.Post(*this, uint64_t{endpoint} * member::kPeerChannelCount + channel);
    }
  }
}

void DirectPeers::OnPost(uint64_t token) {
  const MemberId peer = members_[token / member::kPeerChannelCount];
  const uint64_t channel = token % member::kPeerChannelCount;
  peers_[peer].up[channel] = true;
  listener_->OnChannelUp(peer, static_cast<member::PeerChannel>(channel));
}

bool DirectPeers::IsUp(MemberId peer, member::PeerChannel channel) const {
  const auto found = peers_.find(peer);
  return found != peers_.end() && found->second.up[static_cast<size_t>(channel)];
}

bool DirectPeers::Send(MemberId peer, member::PeerChannel channel, const raft::Message& message) {
  const auto found = peers_.find(peer);
  if (found == peers_.end() || !found->second.up[static_cast<size_t>(channel)]) return false;
  payloads_.Send(self_, found->second.endpoint, message);
  return true;
}

void DirectPeers::AskVersion(MemberId peer) {
  const auto found = peers_.find(peer);
  if (found != peers_.end()) payloads_.Send(self_, found->second.endpoint, VersionFrame{});
}

void DirectPeers::OnMessage(EndpointId from, uint64_t handle) {
  if (listener_ == nullptr) return;
  if (const auto* frame = std::get_if<VersionFrame>(&payloads_.At(handle))) {
    if (frame->version.empty()) return payloads_.Send(self_, from, VersionFrame{.version = rpc::kServerVersion});
    return listener_->OnPeerVersion(members_[from], frame->version);
  }
  auto& message = std::get<raft::Message>(payloads_.At(handle));
  listener_->OnPeerMessage(payloads_.IsShared(handle) ? message : std::move(message));
}

}  // namespace detcd::sim
