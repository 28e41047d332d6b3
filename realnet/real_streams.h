// Sockets of the loop: TCP over IPv4 and IPv6, and Unix sockets.
//
// At high load a connection costs one recv and one sendmsg a turn: a read that fills less than the buffer is taken as
// the end of what is there (epoll(7)), readiness is edge-triggered, options are set on the listening socket, from which
// accepted ones inherit.
//
// Where the world is poorer than the seam: a Unix socket knows no reset, so its peer hears OnReadEnd instead.
#pragma once

#include <memory>
#include <vector>

#include "core/io/streams.h"
#include "core/io/trace.h"
#include "realnet/loop.h"
#include "realnet/worker.h"

namespace detcd::realnet {

class LingeringClose;

class RealNetwork final : public Network {
 public:
  RealNetwork(Loop& loop, Trace& trace);
  ~RealNetwork();

  ListenResult Listen(const Address& address, AcceptListener& listener) override;
  std::unique_ptr<Stream> Connect(const Address& address, StreamListener& listener) override;
  void Resolve(const std::string& host, uint16_t port, ResolveListener& listener, uint64_t token) override;

  // Resolving stops; an answer that a thread still waits for is dropped.
  void End() { resolver_.Abandon(); }

  // --- for the streams
  Loop& loop() { return loop_; }
  Trace& trace() { return trace_; }
  // Takes the descriptor of a stream that was destroyed after CloseWrite: see LingeringClose.
  void Linger(int descriptor);
  // The errand is over.
  void EndLinger(LingeringClose& errand);

 private:
  Loop& loop_;
  Trace& trace_;
  Worker resolver_;  // getaddrinfo blocks for as long as it likes
  std::vector<std::unique_ptr<LingeringClose>> lingering_;
};

}  // namespace detcd::realnet
