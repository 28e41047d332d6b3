// A whole server over one Host: the member, the API services, and the ports that carry clients and peers as bytes. What
// the production program runs, and a member of a simulated world in wire fidelity.
//
//   Server server(host, options, listener);
//   server.Start();        // OnServerReady, or the host is stopped with the reason
//   server.Shutdown();     // clients are told, calls under way are answered, leadership is handed over, the host is stopped
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/io/host.h"
#include "core/member/member.h"
#include "core/rpc/http_endpoints.h"
#include "core/rpc/services.h"
#include "core/wire/client_port.h"
#include "core/wire/grpc_server.h"
#include "core/wire/http1_server.h"
#include "core/wire/peer_port.h"

namespace detcd::member {

struct ServerOptions {
  MemberOptions member;
  std::vector<Address> listen_clients;     // numeric; at least one
  std::vector<Address> listen_peers;
  wire::GrpcOptions grpc;
  size_t client_connections_max = std::numeric_limits<size_t>::max();  // beyond: they wait to be accepted
};

class ServerListener {
 public:
  // Clients are served at these addresses: linearizable reads work.
  virtual void OnServerReady(const std::vector<Address>& clients) = 0;
  // The way to the peers is made; what is returned takes its place (the simulator shows its judges what passes).
  virtual PeerCarrier& OnPeersMade(PeerCarrier& peers) { return peers; }

 protected:
  ~ServerListener() = default;
};

class Server final : private MemberListener, private TurnListener, private TimerListener, private wire::PeerInfo {
 public:
  Server(Host& host, const ServerOptions& options, ServerListener& listener);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void Start();
  // A clean stop: clients are told and waited for, then leadership is handed over. A second call stops at once.
  void Shutdown();

  const Member& member() const { return member_; }
  Member& member() { return member_; }

 private:
  // MemberListener
  PeerCarrier& OnMemberRecovered(MemberId self, ClusterId cluster) override;
  void OnMemberReady() override;
  // TurnListener
  void OnEndTurn() override;
  // TimerListener
  void OnTimer(uint64_t token) override;
  // wire::PeerInfo
  std::string VersionJson() const override;
  std::string MembersJson() const override;
  bool IsRemoved(MemberId id) const override;
  void OnSelfRemoved() override;

  void OnDrained(std::string_view how);
  void StopIfHandedOver();

  Host& host_;
  ServerOptions options_;
  ServerListener& listener_;
  Member member_;
  rpc::Services services_;
  rpc::HttpEndpoints endpoints_;
  wire::GrpcServer grpc_;
  wire::Http1Server http_;
  wire::ClientPort clients_;
  std::optional<wire::PeerPort> peers_;  // once the member knows who it is
  std::unique_ptr<Timer> drain_timer_;
  bool draining_ = false;
  std::string stop_reason_;            // set once clients have left, or were waited for long enough
  MemberId heir_;                      // whom we hand our leadership to before the stop
};

}  // namespace detcd::member
