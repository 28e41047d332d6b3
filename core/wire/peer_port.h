// etcd's peer protocol over stream sockets: a member's peer port and the streams to and from its peers (reference: peer
// protocol). For each peer two streams are dialled, on which we hear it, and two are accepted, on which it hears us;
// one more connection is for requests of our own.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/io/clock.h"
#include "core/io/events.h"
#include "core/io/streams.h"
#include "core/io/trace.h"
#include "core/member/peer_carrier.h"
#include "core/wire/peer_accepted.h"
#include "core/wire/peer_client.h"
#include "core/wire/peer_dialled.h"
#include "core/wire/peer_handshake.h"

namespace detcd::wire {

struct PeerPortConfig {
  PeerIdentity self;
  std::vector<Address> listen;         // where to listen
  Duration dial_timeout = Seconds(2);  // etcd: one second and an election timeout
};

// A channel is up while the peer's stream of that kind is accepted; a newer one replaces an older one, which is heard as
// down and up, because what the older one had taken may be lost.
//
//   PeerPort port(config, info, host.network(), host.clock(), host.events(), host.trace());
//   RETURN_IF_ERROR(port.Listen());
//   port.Start(member, peers);
class PeerPort final : public member::PeerCarrier,
                       private AcceptListener,
                       private TimerListener,
                       private PostListener,
                       private ResolveListener,
                       private AcceptedPeer::Owner,
                       private DialledPeer::Owner,
                       private PeerClient::Owner {
 public:
  // All arguments outlive the port.
  PeerPort(PeerPortConfig config, PeerInfo& info, Network& network, Clock& clock, Events& events, Trace& trace);
  ~PeerPort();

  // Listens on every address, and from now on answers requests; streams are granted to peers after Start. An error names
  // the address. Called once.
  absl::Status Listen();
  // The addresses listened on, with the ports that were picked.
  std::vector<Address> ListeningOn() const;
  // What Start takes: kInvalidArgument names a URL that is none or asks for TLS, or a peer without URLs.
  static absl::Status CheckPeers(const std::vector<member::PeerRow>& peers);

  // `peers` pass CheckPeers. A row of this member itself is skipped.
  void Start(member::PeerCarrierListener& listener, const std::vector<member::PeerRow>& peers) override;
  bool IsUp(MemberId peer, member::PeerChannel channel) const override;
  bool Send(MemberId peer, member::PeerChannel channel, const raft::Message& message) override;
  bool Post(MemberId peer, const raft::Message& message) override;
  void AskVersion(MemberId peer) override;
  void EndTurn() override;

 private:
  struct Peer {
    std::array<AcceptedPeer*, member::kPeerChannelCount> outgoing{};
    std::array<std::unique_ptr<DialledPeer>, member::kPeerChannelCount> incoming;
    std::unique_ptr<PeerClient> client;
  };

  void OnAccept(std::unique_ptr<Stream> stream) override;
  void OnTimer(uint64_t token) override;
  void OnPost(uint64_t token) override;
  void OnResolved(uint64_t token, IoError error, std::vector<Address> addresses) override;

  bool IsPeer(MemberId id) const override { return peers_.contains(id); }
  void OnStreamOpened(AcceptedPeer& connection, StreamGrant grant) override;
  bool OnPosted(raft::Message message) override;
  void OnDirty(AcceptedPeer& connection) override;
  void OnRoom(AcceptedPeer& connection) override;
  void OnGone(AcceptedPeer& connection) override;

  void OnStreamMessage(raft::Message message) override;
  uint64_t Resolve(DialledPeer& stream, const std::string& host, uint16_t port) override;
  void OnDirty(DialledPeer& stream) override;

  void OnVersion(MemberId peer, std::string version) override;
  void OnPostFailed(MemberId peer) override;
  uint64_t Resolve(PeerClient& client, const std::string& host, uint16_t port) override;
  void OnDirty(PeerClient& client) override;

  AcceptedPeer* Outgoing(MemberId peer, member::PeerChannel channel) const;
  void ArmBy(Instant deadline);

  const PeerPortConfig config_;
  Network& network_;
  Events& events_;
  Trace& trace_;
  const AcceptedPeer::Context accepted_context_;
  const DialledPeer::Context dialled_context_;
  const PeerClient::Context client_context_;
  member::PeerCarrierListener* listener_ = nullptr;  // null before Start

  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  std::map<MemberId, Peer> peers_;
  std::map<uint64_t, std::unique_ptr<AcceptedPeer>> accepted_;  // by connection id
  uint64_t next_connection_id_ = 1;
  std::vector<std::unique_ptr<AcceptedPeer>> gone_;  // destroyed at the end of the turn
  std::vector<uint64_t> dirty_accepted_;             // connection ids; each once
  std::vector<DialledPeer*> dirty_dialled_;
  std::vector<PeerClient*> dirty_clients_;
  std::map<uint64_t, DialledPeer*> resolving_;  // by token
  std::map<uint64_t, PeerClient*> clients_resolving_;
  uint64_t next_resolve_token_ = 1;

  // One timer for all: armed at or before the earliest deadline. Deadlines move later without a word.
  std::unique_ptr<Timer> timer_;
  bool is_armed_ = false;
  Instant armed_for_;
};

}  // namespace detcd::wire
