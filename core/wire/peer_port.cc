#include "core/wire/peer_port.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/limits.h"
#include "core/base/probe.h"
#include "core/wire/url.h"

namespace detcd::wire {
namespace {

using member::PeerChannel;
using member::PeerRow;

constexpr std::string_view kPlace = "wire/peer_port";
constexpr std::array kChannels = {PeerChannel::kAppend, PeerChannel::kMessage};

size_t IndexOf(PeerChannel channel) { return static_cast<size_t>(channel); }

absl::StatusOr<std::vector<Url>> ParsePeerUrls(const PeerRow& row) {
  std::vector<Url> urls;
  for (const std::string& text : row.urls) {
    ASSIGN_OR_RETURN(Url url, ParseUrl(text));
    if (url.IsTls()) return InvalidArgument("TLS on peer URLs is not supported: %s", text);
    urls.push_back(std::move(url));
  }
  if (urls.empty()) return InvalidArgument("member %x has no peer URLs", row.id.value);
  return urls;
}

}  // namespace

PeerPort::PeerPort(PeerPortConfig config, PeerInfo& info, Network& network, Clock& clock, Events& events, Trace& trace)
    : config_(std::move(config)),
      network_(network),
      events_(events),
      trace_(trace),
      accepted_context_{.self = config_.self, .info = info, .clock = clock, .trace = trace, .owner = *this},
      dialled_context_{.self = config_.self,
                       .info = info,
                       .network = network,
                       .clock = clock,
                       .trace = trace,
                       .owner = *this,
                       .dial_timeout = config_.dial_timeout},
      client_context_{.self = config_.self,
                      .network = network,
                      .clock = clock,
                      .trace = trace,
                      .owner = *this,
                      .dial_timeout = config_.dial_timeout},
      timer_(clock.NewTimer(*this, 0)) {
  CHECK(!config_.self.id.IsZero());
}

PeerPort::~PeerPort() = default;

absl::Status PeerPort::Listen() {
  for (const Address& address : config_.listen) {
    ListenResult result = network_.Listen(address, *this);
    if (result.error != IoError::kOk) {
      return FailedPrecondition("listen on peer address %s:%d: %s", address.host, address.port,
                                IoErrorName(result.error));
    }
    acceptors_.push_back(std::move(result.acceptor));
  }
  return absl::OkStatus();
}

std::vector<Address> PeerPort::ListeningOn() const {
  std::vector<Address> addresses;
  for (const auto& acceptor : acceptors_) addresses.push_back(acceptor->Local());
  return addresses;
}

absl::Status PeerPort::CheckPeers(const std::vector<PeerRow>& peers) {
  for (const PeerRow& row : peers) RETURN_IF_ERROR(ParsePeerUrls(row).status());
  return absl::OkStatus();
}

void PeerPort::Start(member::PeerCarrierListener& listener, const std::vector<PeerRow>& peers) {
  CHECK(listener_ == nullptr);
  listener_ = &listener;
  for (const PeerRow& row : peers) {
    if (row.id == config_.self.id) continue;
    absl::StatusOr<std::vector<Url>> urls = ParsePeerUrls(row);
    if (!urls.ok()) {
      // Whoever wires the port refuses such rows by CheckPeers, and has asked for the end of this incarnation.
      Emit(trace_, LogLevel::kError, "wire/peer_port", "a peer has no address that can be used",
           {TraceField::Id("peer", row.id.value)});
      continue;
    }
    Peer& peer = peers_[row.id];
    for (const PeerChannel channel : kChannels) {
      peer.incoming[IndexOf(channel)] = std::make_unique<DialledPeer>(dialled_context_, row.id, channel, *urls);
    }
    peer.client = std::make_unique<PeerClient>(client_context_, row.id, *std::move(urls));
  }
  for (auto& [id, peer] : peers_) {
    for (auto& incoming : peer.incoming) incoming->Start();
    peer.client->Start();
  }
}

// --- sending --------------------------------------------------------------------------------------------------------

AcceptedPeer* PeerPort::Outgoing(MemberId peer, PeerChannel channel) const {
  const auto row = peers_.find(peer);
  return row == peers_.end() ? nullptr : row->second.outgoing[IndexOf(channel)];
}

bool PeerPort::IsUp(MemberId peer, PeerChannel channel) const { return Outgoing(peer, channel) != nullptr; }

bool PeerPort::Send(MemberId peer, PeerChannel channel, const raft::Message& message) {
  CHECK(message.from == config_.self.id && message.to == peer);
  AcceptedPeer* const connection = Outgoing(peer, channel);
  return connection != nullptr && connection->Send(message);
}

bool PeerPort::Post(MemberId peer, const raft::Message& message) {
  CHECK(message.from == config_.self.id && message.to == peer);
  const auto row = peers_.find(peer);
  return row != peers_.end() && row->second.client->Post(message);
}

void PeerPort::AskVersion(MemberId peer) {
  const auto row = peers_.find(peer);
  if (row != peers_.end()) row->second.client->AskVersion();
}

void PeerPort::EndTurn() {
  for (const uint64_t id : std::exchange(dirty_accepted_, {})) {
    const auto found = accepted_.find(id);
    if (found == accepted_.end()) continue;
    AcceptedPeer& connection = *found->second;
    connection.Flush();
    if (!connection.is_gone()) ArmBy(connection.Deadline());
  }
  for (DialledPeer* stream : std::exchange(dirty_dialled_, {})) {
    stream->Flush();
    ArmBy(stream->Deadline());
  }
  for (PeerClient* client : std::exchange(dirty_clients_, {})) {
    client->Flush();
    ArmBy(client->Deadline());
  }
  gone_.clear();
}

// --- connections ----------------------------------------------------------------------------------------------------

void PeerPort::OnAccept(std::unique_ptr<Stream> stream) {
  if (accepted_.size() >= kPeerConnectionsMax) {
    PROBE("wire.peer_connections_full");
    return Emit(trace_, LogLevel::kWarn, kPlace, "dropped a connection: too many",
                {TraceField::Text("remote", stream->Remote().host)});
  }
  const uint64_t id = next_connection_id_++;
  const auto [added, is_new] =
      accepted_.emplace(id, std::make_unique<AcceptedPeer>(accepted_context_, id, std::move(stream)));
  ArmBy(added->second->Deadline());
}

void PeerPort::OnStreamOpened(AcceptedPeer& connection, StreamGrant grant) {
  AcceptedPeer*& slot = peers_.at(grant.peer).outgoing[IndexOf(grant.channel)];
  if (slot != nullptr) {
    PROBE("wire.peer_stream_replaced");
    slot->Close("replaced by a newer stream");
  }
  slot = &connection;
  Emit(trace_, LogLevel::kInfo, kPlace, "outgoing stream is up", {TraceField::Id("peer", grant.peer.value)});
  listener_->OnChannelUp(grant.peer, grant.channel);
}

void PeerPort::OnGone(AcceptedPeer& connection) {
  const auto found = accepted_.find(connection.id());
  gone_.push_back(std::move(found->second));
  accepted_.erase(found);
  if (!connection.grant()) return;
  const auto [peer, channel] = *connection.grant();
  AcceptedPeer*& slot = peers_.at(peer).outgoing[IndexOf(channel)];
  if (slot != &connection) return;
  slot = nullptr;
  listener_->OnChannelDown(peer, channel);
}

bool PeerPort::OnPosted(raft::Message message) {
  if (listener_ == nullptr) return false;
  listener_->OnPeerMessage(std::move(message));
  return true;
}

void PeerPort::OnStreamMessage(raft::Message message) { listener_->OnPeerMessage(std::move(message)); }

void PeerPort::OnDirty(AcceptedPeer& connection) { dirty_accepted_.push_back(connection.id()); }

void PeerPort::OnDirty(DialledPeer& stream) {
  if (std::find(dirty_dialled_.begin(), dirty_dialled_.end(), &stream) == dirty_dialled_.end()) {
    dirty_dialled_.push_back(&stream);
  }
}

// Room is made while a turn ends, and whoever waits for it must not be called from there.
void PeerPort::OnRoom(AcceptedPeer& connection) { events_.Post(*this, connection.id()); }

void PeerPort::OnPost(uint64_t connection_id) {
  const auto found = accepted_.find(connection_id);
  if (found == accepted_.end()) return;
  const auto [peer, channel] = *found->second->grant();
  if (found->second->HasRoom()) listener_->OnChannelRoom(peer, channel);
}

uint64_t PeerPort::Resolve(DialledPeer& stream, const std::string& host, uint16_t port) {
  const uint64_t token = next_resolve_token_++;
  resolving_.emplace(token, &stream);
  network_.Resolve(host, port, *this, token);
  return token;
}

void PeerPort::OnVersion(MemberId peer, std::string version) { listener_->OnPeerVersion(peer, std::move(version)); }

void PeerPort::OnPostFailed(MemberId peer) { listener_->OnPostFailed(peer); }

uint64_t PeerPort::Resolve(PeerClient& client, const std::string& host, uint16_t port) {
  const uint64_t token = next_resolve_token_++;
  clients_resolving_.emplace(token, &client);
  network_.Resolve(host, port, *this, token);
  return token;
}

void PeerPort::OnDirty(PeerClient& client) {
  if (std::find(dirty_clients_.begin(), dirty_clients_.end(), &client) == dirty_clients_.end()) {
    dirty_clients_.push_back(&client);
  }
}

void PeerPort::OnResolved(uint64_t token, IoError error, std::vector<Address> addresses) {
  if (const auto client = clients_resolving_.find(token); client != clients_resolving_.end()) {
    PeerClient& asker = *client->second;
    clients_resolving_.erase(client);
    return asker.OnResolved(token, error, std::move(addresses));
  }
  const auto found = resolving_.find(token);
  if (found == resolving_.end()) return;
  DialledPeer& stream = *found->second;
  resolving_.erase(found);
  stream.OnResolved(token, error, std::move(addresses));
}

// --- time -----------------------------------------------------------------------------------------------------------

void PeerPort::ArmBy(Instant deadline) {
  if (is_armed_ && armed_for_ <= deadline) return;
  is_armed_ = true;
  armed_for_ = deadline;
  timer_->Arm(deadline);
}

void PeerPort::OnTimer(uint64_t) {
  is_armed_ = false;
  const Instant now = accepted_context_.clock.Now();
  std::vector<uint64_t> ids;
  for (const auto& [id, connection] : accepted_) ids.push_back(id);
  for (const uint64_t id : ids) {
    const auto found = accepted_.find(id);
    if (found == accepted_.end()) continue;
    AcceptedPeer& connection = *found->second;
    if (connection.Deadline() <= now) connection.OnDeadline(now);
    if (!connection.is_gone()) ArmBy(connection.Deadline());
  }
  for (auto& [peer_id, peer] : peers_) {
    for (auto& stream : peer.incoming) {
      stream->OnDeadline(now);
      ArmBy(stream->Deadline());
    }
    peer.client->OnDeadline(now);
    ArmBy(peer.client->Deadline());
  }
}

}  // namespace detcd::wire
