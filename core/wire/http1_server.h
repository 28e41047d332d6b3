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
#include "core/wire/http1_parser.h"
#include "core/wire/stream_writer.h"

namespace detcd::wire {

struct HttpResponse {
  uint16_t status = 200;
  std::string content_type = "text/plain; charset=utf-8";   // empty: no such header
  std::vector<HttpHeader> headers;                           // besides content type and length
  std::string body;
};

// The answers that Go's net/http gives everywhere, and so etcd.
HttpResponse NotFound();                    // 404 `404 page not found`
HttpResponse MethodNotAllowed();            // 405, Allow: GET
HttpResponse HttpError(uint16_t status, std::string_view text);   // text and a newline, nosniff

// One request of one server, unique for its whole life.
using HttpRequestId = uint64_t;

class HttpResponder {
 public:
  // Answers `id`; ignored when its connection is gone or it was answered.
  virtual void Respond(HttpRequestId id, HttpResponse response) = 0;

 protected:
  ~HttpResponder() = default;
};

class HttpHandler {
 public:
  // One whole request; `request` is good until this returns. Exactly one Respond is due, from within or later.
  virtual void Handle(HttpResponder& responder, HttpRequestId id, const HttpRequest& request) = 0;
  // The client is gone before the answer; a late Respond is ignored.
  virtual void Abandon(HttpRequestId id) = 0;

 protected:
  ~HttpHandler() = default;
};

class Http1Server final : public HttpResponder {
 public:
  // Both live longer than the server.
  Http1Server(Clock& clock, HttpHandler& handler);
  ~Http1Server();

  // Takes a connection whose first bytes are to come; calls SetListener.
  void Accept(std::unique_ptr<Stream> stream);
  void EndTurn();
  // Connections close after the answer under way; idle ones at once.
  void Shutdown();
  size_t connection_count() const { return connections_.size(); }

  void Respond(HttpRequestId id, HttpResponse response) override;

 private:
  class Connection;

  void MarkDirty(Connection& connection);

  Clock& clock_;
  HttpHandler& handler_;
  absl::btree_map<uint32_t, std::unique_ptr<Connection>> connections_;
  std::vector<uint32_t> dirty_;
  uint32_t last_number_ = 0;
  bool shutting_down_ = false;
};

}  // namespace detcd::wire
