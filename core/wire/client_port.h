// The client port: one listener for gRPC and HTTP/1.x. The first bytes of a connection tell them apart: HTTP/2 with prior
// knowledge starts with `PRI * HTTP/2.0` (RFC 9113 §3.4), which is no HTTP/1 request.
//
// Layers are Streams over Streams. What sits here is plain text, whoever carries it: a layer that decrypts takes the
// accepted Stream, is a Stream itself, and is handed to OnAccept in its place. Above, GrpcServer and Http1Server know
// only the Stream that this port gives them, which starts with the bytes it has looked at.
//
// The number of connections is bounded by the system's descriptors: the Network stops accepting when they are used up.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

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
  ClientPort(Clock& clock, GrpcServer* grpc, Http1Server* http1);
  ~ClientPort();

  void OnAccept(std::unique_ptr<Stream> stream) override;

  // Connections that have not yet said what they speak; one that takes longer than kHttpHeaderTimeout is closed.
  size_t undecided_count() const { return undecided_.size(); }

 private:
  class SniffedStream;

  void OnTimer(uint64_t number) override;
  std::unique_ptr<SniffedStream> Release(uint32_t number);

  Clock& clock_;
  GrpcServer* grpc_;
  Http1Server* http1_;
  absl::btree_map<uint32_t, std::unique_ptr<SniffedStream>> undecided_;
  uint32_t last_number_ = 0;
};

}  // namespace detcd::wire
