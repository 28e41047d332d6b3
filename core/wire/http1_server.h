// HTTP/1.x on client connections, without I/O: /health, /version, /metrics and the JSON gateway hang on it. In the spirit
// of core/rpc/call.h: requests are named by ids, answers may come at any later time, and late ones are ignored.
//
// One request of a connection is under way at a time; pipelined ones wait as bytes. Wrong bytes get 400 and the
// connection closes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/btree_map.h"
#include "core/io/clock.h"
#include "core/io/streams.h"
#include "core/rpc/http.h"
#include "core/wire/http1_parser.h"
#include "core/wire/stream_writer.h"

namespace detcd::wire {

class Http1Server final : public rpc::HttpResponder {
 public:
  // Both live longer than the server.
  Http1Server(Clock& clock, rpc::HttpHandler& handler);
  ~Http1Server();

  // Takes a connection whose first bytes are to come; calls SetListener.
  void Accept(std::unique_ptr<Stream> stream);
  void EndTurn();
  // Connections close after the answer under way; idle ones at once.
  void Shutdown();
  size_t connection_count() const { return connections_.size(); }

  void Respond(rpc::HttpRequestId id, rpc::HttpResponse response) override;

 private:
  class Connection;

  void MarkDirty(Connection& connection);

  Clock& clock_;
  rpc::HttpHandler& handler_;
  absl::btree_map<uint32_t, std::unique_ptr<Connection>> connections_;
  std::vector<uint32_t> dirty_;
  uint32_t last_number_ = 0;
  bool shutting_down_ = false;
};

}  // namespace detcd::wire
