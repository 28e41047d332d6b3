// The part of HTTP/1.1 that members speak to each other (RFC 9112): heads and bodies of requests and answers, without
// I/O. Strict on purpose, because both ends are programs: CRLF only, no folded lines, one framing of the body.
// It is written here and not taken from Boost.Beast, whose parser brings locks and exceptions into the core's objects.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/rpc/http.h"
#include "core/base/time.h"
#include "core/wire/chunked.h"

namespace detcd::wire {

using rpc::HttpHeader;

// What both kinds of heads have.
struct HttpFields {
  std::vector<HttpHeader> headers;

  // The value of the first header of that name, whatever its case; nullopt without one.
  std::optional<std::string_view> Find(std::string_view name) const;
  // As Find; empty without one.
  std::string_view Get(std::string_view name) const { return Find(name).value_or(std::string_view()); }
  // Whether a comma-separated header (Connection) has `token`, whatever its case.
  bool HasToken(std::string_view name, std::string_view token) const;
};

struct HttpRequestHead : HttpFields {
  std::string method;
  std::string target;  // as it came

  // The target without its query.
  std::string_view Path() const { return std::string_view(target).substr(0, target.find('?')); }
  bool KeepsAlive() const { return !HasToken("Connection", "close"); }
};

struct HttpResponseHead : HttpFields {
  int status = 0;
};

// How the end of a body is known.
struct HttpBodyFraming {
  bool is_chunked = false;
  bool until_close = false;      // answers only: neither coding nor length
  uint64_t content_length = 0;   // when neither
};
// nullopt: both coding and length, another coding than chunked, or a length that is no number or not one.
std::optional<HttpBodyFraming> RequestBodyFraming(const HttpRequestHead& head);
std::optional<HttpBodyFraming> ResponseBodyFraming(const HttpResponseHead& head);

enum class HttpHeadError : uint8_t {
  kMalformed,
  kVersion,  // another one than HTTP/1.1, without which a stream has no framing
};

// Gathers the bytes of one head, up to kHttpHeaderBytesMax, and reads it.
class HttpHeadReader {
 public:
  enum class Step : uint8_t { kNeedMore, kHead, kTooLarge };

  // Takes bytes off the front of `input` up to the end of the head. On kHead the caller reads text() and calls Reset
  // before the next message.
  Step Next(std::string_view& input);
  std::string_view text() const { return text_; }  // ends with the empty line
  void Reset() { text_.clear(); }
  bool IsEmpty() const { return text_.empty(); }

 private:
  std::string text_;
};

// Read a whole head, the empty line included. On failure the error, and nothing of `head` means anything.
std::optional<HttpHeadError> ParseRequestHead(std::string_view text, HttpRequestHead& head);
std::optional<HttpHeadError> ParseResponseHead(std::string_view text, HttpResponseHead& head);

// The bytes of a whole body, as they come.
class HttpBodyReader {
 public:
  enum class Step : uint8_t { kNeedMore, kContent, kEnd, kMalformed };

  explicit HttpBodyReader(HttpBodyFraming framing) : framing_(framing), remaining_(framing.content_length) {}
  // Takes bytes off the front of `input`; on kContent `content` views some of them.
  Step Next(std::string_view& input, std::string_view& content);

 private:
  HttpBodyFraming framing_;
  uint64_t remaining_;
  ChunkedDecoder chunked_;
};

// One answer whose body is known.
struct HttpAnswer {
  int status = 200;
  std::vector<HttpHeader> headers;
  std::string body;  // none for 204
};

// A text/plain answer whose body is `text` and a final newline, as etcd's handlers refuse a request.
HttpAnswer TextAnswer(int status, std::string_view text);

// The head of an answer; `date` is the Date header's. Its body headers (Content-Length, Transfer-Encoding) are those in
// `headers`.
std::string WriteResponseHead(int status, const std::vector<HttpHeader>& headers, WallTime date);
// Head and body with Content-Length. `is_head_request`: the body stays away.
std::string WriteAnswer(const HttpAnswer& answer, WallTime date, bool is_head_request);
std::string WriteRequestHead(std::string_view method, std::string_view target, const std::vector<HttpHeader>& headers);

// `Mon, 30 Nov 2026 18:00:00 GMT` (RFC 9110 §5.6.7) and `2026-11-30T18:00:00.5Z` (RFC 3339, the shortest fraction).
std::string FormatHttpDate(WallTime time);
std::string FormatRfc3339(WallTime time);

}  // namespace detcd::wire
