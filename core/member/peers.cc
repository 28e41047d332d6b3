#include "core/member/peers.h"

#include <utility>

#include "core/base/limits.h"
#include "core/base/probe.h"

namespace detcd::member {
namespace {

size_t EntryBytes(const raft::Message& message) {
  const std::vector<raft::Entry>* entries = nullptr;
  if (const auto* append = std::get_if<raft::Append>(&message.body)) entries = &append->entries;
  if (const auto* propose = std::get_if<raft::Proposal>(&message.body)) entries = &propose->entries;
  size_t bytes = 0;
  if (entries != nullptr) {
    for (const raft::Entry& entry : *entries) bytes += entry.data.size();
  }
  return bytes;
}

}  // namespace

void Peers::Start(PeerCarrierListener& listener, const std::vector<PeerRow>& peers) {
  for (const PeerRow& row : peers) peers_[row.id];
  carrier_.Start(listener, peers);
}

bool Peers::Send(raft::Message message) {
  auto found = peers_.find(message.to);
  if (found == peers_.end()) return false;
  bool is_append = std::holds_alternative<raft::Append>(message.body);
  PeerChannel channel = is_append && carrier_.IsUp(message.to, PeerChannel::kAppend) ? PeerChannel::kAppend
                                                                                     : PeerChannel::kMessage;
  if (!carrier_.IsUp(message.to, channel)) {
    PROBE("peers.no_channel");
    return carrier_.Post(message.to, message);
  }
  Queue& queue = found->second.queues[static_cast<size_t>(channel)];
  if (queue.messages.empty() && carrier_.Send(message.to, channel, message)) return true;

  size_t bytes = EntryBytes(message);
  if (queue.messages.size() >= kPeerQueueMessagesMax || queue.bytes + bytes > kPeerQueueBytesMax) {
    PROBE("peers.queue_full");
    return false;
  }
  queue.bytes += bytes;
  queue.messages.push_back(std::move(message));
  return true;
}

void Peers::OnUp(MemberId peer, PeerChannel channel, Instant now) {
  auto found = peers_.find(peer);
  if (found != peers_.end() && channel == PeerChannel::kMessage) found->second.active_since = now;
}

void Peers::OnRoom(MemberId peer, PeerChannel channel) {
  auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  Queue& queue = found->second.queues[static_cast<size_t>(channel)];
  while (!queue.messages.empty() && carrier_.Send(peer, channel, queue.messages.front())) {
    queue.bytes -= EntryBytes(queue.messages.front());
    queue.messages.pop_front();
  }
}

void Peers::OnDown(MemberId peer, PeerChannel channel) {
  auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  found->second.queues[static_cast<size_t>(channel)] = Queue();
  if (channel == PeerChannel::kMessage) found->second.active_since.reset();
}

std::optional<Instant> Peers::ActiveSince(MemberId peer) const {
  auto found = peers_.find(peer);
  return found == peers_.end() ? std::nullopt : found->second.active_since;
}

}  // namespace detcd::member
