// The header block of one gRPC request: gathered field by field, then judged as a whole. The checks, their order and
// their texts are those of etcd's gRPC library (reference: transport facts of the gRPC port), because clients and their
// tests compare them.
//
// A block that is no HTTP/2 request is malformed (RFC 9113 §8.1.1) and gets a reset. Three things that the RFC calls so
// are let through, as etcd does: `te` other than `trailers`, a content-length that is not the body's, and bytes above
// 0x7E in values. The library's checks are off (see http2_session.h), so these are the only ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/base/time.h"
#include "core/rpc/call.h"

namespace detcd::wire {

// An answer to a request that never becomes a call.
struct HeadRefusal {
  std::string_view http_status;
  rpc::StatusCode code;
  std::string message;
};

struct MalformedHead {};

class RequestHead {
 public:
  // One field, in the order of the block. What lies beyond kHttpHeaderBytesMax is counted and not kept.
  void Add(std::string_view name, std::string_view value);

  // After the last field: nothing, a refusal, or a reset with PROTOCOL_ERROR.
  std::variant<std::monostate, HeadRefusal, MalformedHead> Judge() const;

  // For the call, once Judge found nothing. The deadline is the transport's to set, from timeout().
  rpc::CallContext& context() { return context_; }
  std::optional<Duration> timeout() const { return timeout_; }
  // Messages with the compressed flag are gzip, and so are the answers.
  bool gzip() const { return encoding_ == "gzip"; }

  // Of the list, as RFC 9113 §6.5.2 counts. What is kept is no more, nor more than kHttpHeaderBytesMax.
  size_t bytes() const { return bytes_; }

  // The content type of every answer, whatever it is. Empty: plain `application/grpc`.
  std::string_view content_type() const { return answer_type_; }

 private:
  void AddPseudo(std::string_view name, std::string_view value);
  void AddContentType(std::string_view value);
  void AddBinary(std::string_view name, std::string_view value);

  rpc::CallContext context_ = {};
  std::optional<rpc::Method> known_method_;
  std::optional<Duration> timeout_;
  size_t bytes_ = 0;
  uint8_t pseudo_seen_ = 0;  // one bit for each name
  bool regular_seen_ = false;
  bool malformed_ = false;
  bool connection_seen_ = false;  // RFC 9113 §8.2.2
  bool is_grpc_ = false;
  bool is_post_ = false;
  bool has_token_ = false;  // `token` came, which `authorization` does not replace
  uint32_t host_count_ = 0;
  std::string http_method_;  // when it is not POST
  std::string path_;
  std::string wrong_type_;  // a content type that is not gRPC's
  std::string answer_type_;
  std::string encoding_;     // grpc-encoding, `identity` apart
  std::string field_error_;  // of the latest field that does not parse
};

// Whether a field of a trailer block may stand there: well formed and no pseudo-header (RFC 9113 §8.1).
bool IsTrailerField(std::string_view name, std::string_view value);

}  // namespace detcd::wire
