// The interface between a plain HTTP/1.1 server and what answers its requests: whole requests in, whole responses out,
// at once or in a later event. Requests are named by ids, so that a connection may go away while its answer is awaited.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace detcd::rpc {

// One request of one responder: unique within the responder for its whole life.
using HttpRequestId = uint64_t;

// Views are good until Handle returns.
struct HttpRequest {
  std::string_view method;  // `GET`, as sent
  std::string_view path;    // `/health`, as sent: before `?`, percent escapes untouched
  std::string_view query;   // after `?`, escapes untouched; empty when absent
  std::string_view body;
};

// Framing headers (length, date, connection) are the server's own.
struct HttpResponse {
  int status = 200;
  std::string content_type;
  std::vector<std::pair<std::string, std::string>> headers;  // further ones, in order
  std::string body;

  friend bool operator==(const HttpResponse&, const HttpResponse&) = default;
};

// The server's side. Lives as long as the incarnation.
class HttpResponder {
 public:
  // The answer to `request`, once. Ignored when the request is gone.
  virtual void Respond(HttpRequestId request, HttpResponse response) = 0;

 protected:
  ~HttpResponder() = default;
};

// The answering side. Lives as long as the incarnation.
class HttpHandler {
 public:
  // Takes every request that reaches it, unknown paths too; may respond before it returns.
  virtual void Handle(HttpResponder& responder, HttpRequestId id, const HttpRequest& request) = 0;
  // The client is gone. The id is dead; no response is wanted.
  virtual void Cancel(HttpResponder& responder, HttpRequestId id) = 0;

 protected:
  ~HttpHandler() = default;
};

}  // namespace detcd::rpc
