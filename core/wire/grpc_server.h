// The gRPC server: any number of HTTP/2 connections, each call of which appears at one rpc::CallService. Sans-I/O: it
// lives on Stream events and on the ends of turns.
//
// A CallId is the connection's number, from 1 on and never used again, and the HTTP/2 stream within it: late answers find
// nothing and are dropped.
//
//   GrpcServer server(host.clock(), host.events(), services);
//   server.Accept(std::move(stream));   // from then on events come by themselves
//   server.EndTurn();                   // at the end of each turn: one write per connection
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/btree_map.h"
#include "core/io/clock.h"
#include "core/io/events.h"
#include "core/io/streams.h"
#include "core/rpc/call.h"
#include "core/wire/grpc_connection.h"

namespace detcd::wire {

class GrpcServer final : public rpc::CallTransport, private GrpcConnectionOwner, private PostListener {
 public:
  // All three live longer than the server.
  GrpcServer(Clock& clock, Events& events, rpc::CallService& service, const GrpcOptions& options = {});
  ~GrpcServer();

  // Takes a connection whose first bytes are to come, the preface included; calls SetListener.
  void Accept(std::unique_ptr<Stream> stream);

  // The end of a turn: what it made leaves, and connections that are over go. When all clients together make the server
  // keep more than client_bytes_max, the one with the largest part goes, too.
  void EndTurn();

  // Every client is told to go away; calls under way are served, then their connections end. New connections are told
  // so, too. The server is idle when connection_count() is 0; who does not want to wait destroys it.
  void Shutdown();

  size_t connection_count() const { return connections_.size(); }
  // Bytes that clients make the server keep: unfinished requests, answers they have not taken, open calls.
  size_t held() const { return shared_.held; }

  // rpc::CallTransport
  void Send(rpc::CallId call, const google::protobuf::Message& response) override;
  void SendEncoded(rpc::CallId call, std::vector<Bytes> pieces) override;
  bool Writable(rpc::CallId call) const override;
  void Finish(rpc::CallId call, rpc::CallStatus status) override;

 private:
  void OnDirty(GrpcConnection& connection) override;
  void OnCreditDue(GrpcConnection& connection) override;
  void OnOver(GrpcConnection& connection) override;
  void OnPost(uint64_t token) override;

  GrpcConnection* Find(uint64_t number) const;
  void EndTurnOfDirty();
  void CutLargest();

  Events& events_;
  GrpcShared shared_;
  absl::btree_map<uint32_t, std::unique_ptr<GrpcConnection>> connections_;
  std::vector<uint32_t> dirty_;   // connections with work for the end of the turn, in the order in which it came
  uint32_t last_number_ = 0;
  bool shutting_down_ = false;
};

}  // namespace detcd::wire
