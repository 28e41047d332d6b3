// The client port: one listener for gRPC and HTTP/1.x. The first bytes of a connection tell them apart: HTTP/2 with
// prior knowledge starts with `PRI * HTTP/2.0` (RFC 9113 §3.4), which is no HTTP/1 request.
//
// Layers are Streams over Streams. What sits here is plain text, whoever carries it: a layer that decrypts takes the
// accepted Stream, is a Stream itself, and is handed to OnAccept in its place. Above, GrpcServer and Http1Server know
// only the Stream that this port gives them, which starts with the bytes it has looked at.
//
// The number of connections is bounded, so that clients leave descriptors to the log and the peers: at the bound the
// port stops accepting, and connections wait in the system's queue, as with etcd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/btree_map.h"
#include "core/io/clock.h"
#include "core/io/streams.h"
#include "core/wire/grpc_server.h"
#include "core/wire/http1_server.h"

namespace detcd::wire {

enum class Protocol : uint8_t { kHttp1, kHttp2 };

// What a connection that starts with `bytes` speaks; nullopt: too few bytes to tell.
std::optional<Protocol> Sniff(std::string_view bytes);

class ClientPort final : public AcceptListener, private TimerListener {
 public:
  // All live longer than the port. A null server: connections that speak its protocol are closed (split ports).
  ClientPort(Clock& clock, GrpcServer* grpc, Http1Server* http1,
             size_t connections_max = std::numeric_limits<size_t>::max());
  ~ClientPort();

  // Listens at one more address. `local`: where that is, for a port of 0. Anything but kOk: as Network::Listen has it.
  IoError Listen(Network& network, const Address& address, Address& local);
  void StopListening() { acceptors_.clear(); }

  void OnAccept(std::unique_ptr<Stream> stream) override;

  // Accepted and not yet gone, whatever they speak.
  size_t connection_count() const { return gauge_->count; }

  // Connections that have not yet said what they speak; one that takes longer than kHttpHeaderTimeout is closed.
  size_t undecided_count() const { return undecided_.size(); }

 private:
  class SniffedStream;

  // Shared with the accepted streams, which may outlive the port.
  struct Gauge {
    ClientPort* port;  // null: the port is gone
    size_t count = 0;
  };

  void OnConnectionGone();

  void OnTimer(uint64_t number) override;
  std::unique_ptr<SniffedStream> Release(uint32_t number);

  Clock& clock_;
  GrpcServer* grpc_;
  Http1Server* http1_;
  absl::btree_map<uint32_t, std::unique_ptr<SniffedStream>> undecided_;
  const size_t connections_max_;
  std::shared_ptr<Gauge> gauge_;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  bool full_ = false;  // the acceptors are paused
  uint32_t last_number_ = 0;
};

}  // namespace detcd::wire
