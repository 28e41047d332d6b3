// The interface between a plain HTTP/1.x server (core/wire) and what answers its requests: whole requests in, whole
// responses out, at once or later. In the spirit of call.h: requests are named by ids, and late answers are ignored.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace detcd::rpc {

struct HttpHeader {
  std::string name;  // as sent; names are compared without case
  std::string value;

  friend bool operator==(const HttpHeader&, const HttpHeader&) = default;
};

struct HttpRequest {
  std::string method;  // `GET`
  std::string target;  // as sent: `/health?serializable=true`
  std::vector<HttpHeader> headers;
  std::string body;

  // The target up to `?`, and what follows it.
  std::string_view path() const;
  std::string_view query() const;
  // The first value of `name`, in any case; empty when absent.
  std::string_view Header(std::string_view name) const;
  // Whether `name` was sent, be it empty.
  bool HasHeader(std::string_view name) const;

 private:
  const HttpHeader* Find(std::string_view name) const;
};

struct HttpResponse {
  uint16_t status = 200;
  std::string content_type = "text/plain; charset=utf-8";  // empty: no such header
  std::vector<HttpHeader> headers;                         // besides content type and length
  std::string body;

  friend bool operator==(const HttpResponse&, const HttpResponse&) = default;
};

// The answers that Go's net/http gives everywhere, and so etcd.
HttpResponse NotFound();                                         // 404 `404 page not found`
HttpResponse MethodNotAllowed();                                 // 405, Allow: GET
HttpResponse HttpError(uint16_t status, std::string_view text);  // text and a newline, nosniff

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

}  // namespace detcd::rpc
