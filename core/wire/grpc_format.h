// The byte-level rules of gRPC over HTTP/2 (its PROTOCOL-HTTP2 document), shared by server and client: length-prefixed
// messages, grpc-timeout, grpc-message.
//
// A message in a body: one byte 0 or 1 (compressed), four bytes of length, big end first, then that many bytes. Messages
// and DATA frames know nothing of each other's boundaries.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/base/time.h"

namespace google::protobuf {
class Message;
}

namespace detcd::wire {

class Gzip;

inline constexpr size_t kMessagePrefixBytes = 5;

// Appends `message` with its prefix, uncompressed, to `body`. Returns how many bytes that was.
size_t AppendMessage(const google::protobuf::Message& message, std::string& body);
// Appends the prefix alone, of an uncompressed message of `size` bytes.
size_t AppendPrefix(size_t size, std::string& body);
// The same as gzip; an empty message stays uncompressed, as in etcd's gRPC library.
size_t AppendGzipMessage(const google::protobuf::Message& message, Gzip& gzip, std::string& body);
// Of a message that is encoded already.
size_t AppendGzipMessage(std::string_view plain, Gzip& gzip, std::string& body);

// Puts the messages of one body back together. What is buffered is at most one message, and only bytes that came: a
// prefix alone reserves nothing.
class MessageReader {
 public:
  enum class Result : uint8_t {
    kMore,       // all bytes taken
    kStopped,    // the sink wanted no more
    kTooLarge,   // a prefix announces more than `bytes_max`: see announced()
    kWrongFlag,  // the compressed flag is neither 0 nor, where that is allowed, 1: see flag()
  };

  // Feeds the next bytes. `compressed`: messages may be so, and flag() says which are. `sink(std::string_view payload) ->
  // bool` hears each whole message, and goes on on true. The payload is good until it returns.
  template <class Sink>
  Result Feed(std::string_view bytes, size_t bytes_max, bool compressed, Sink&& sink) {
    for (;;) {
      if (prefix_size_ < kMessagePrefixBytes) {
        if (bytes.empty()) return Result::kMore;
        prefix_[prefix_size_++] = static_cast<uint8_t>(bytes[0]);
        bytes.remove_prefix(1);
        if (prefix_size_ < kMessagePrefixBytes) continue;
        if (announced() > bytes_max) return Result::kTooLarge;
        if (flag() > (compressed ? 1 : 0)) return Result::kWrongFlag;
      }
      // An empty message is complete with its prefix. Mostly a message is in one piece: no copy then.
      const size_t want = announced() - payload_.size();
      if (bytes.size() < want) {
        payload_.append(bytes);
        return Result::kMore;
      }
      std::string_view payload = bytes.substr(0, want);
      bytes.remove_prefix(want);
      if (!payload_.empty()) payload = payload_.append(payload);
      prefix_size_ = 0;
      const bool on = sink(payload);
      payload_.clear();
      if (!on) return Result::kStopped;
    }
  }

  // The length in the latest prefix.
  uint32_t announced() const {
    return uint32_t{prefix_[1]} << 24 | uint32_t{prefix_[2]} << 16 | uint32_t{prefix_[3]} << 8 | prefix_[4];
  }

  // The first byte of the latest prefix.
  uint8_t flag() const { return prefix_[0]; }

  // Within a message: its end is still to come.
  bool partial() const { return prefix_size_ > 0; }

  // Within a prefix: not even the length is known.
  bool partial_prefix() const { return prefix_size_ > 0 && prefix_size_ < kMessagePrefixBytes; }

  // Payload bytes that wait for the rest of their message.
  size_t buffered() const { return payload_.size(); }

  // Ready for another body; gives back memory beyond `keep_bytes`.
  void Clear(size_t keep_bytes);

 private:
  std::array<uint8_t, kMessagePrefixBytes> prefix_ = {};
  size_t prefix_size_ = 0;
  std::string payload_;
};

// grpc-timeout: one to eight digits and a unit of H M S m u n. Never-ending ones are capped at kTimeoutMax.
inline constexpr Duration kTimeoutMax = Seconds(100ll * 365 * 86'400);
// The length, or the text of grpc-go for why it is none.
std::variant<Duration, std::string> ParseTimeout(std::string_view text);
// The value to send for `timeout`: the finest unit that fits eight digits, rounded up. At least `1n`.
std::string FormatTimeout(Duration timeout);

// grpc-message: bytes outside ` `..`~`, and `%`, become %XX.
std::string EncodePercent(std::string_view text);
// Every byte that is not part of a UTF-8 character becomes U+FFFD.
std::string RepairUtf8(std::string_view text);
// Anything that is no %XX stays as it is.
std::string DecodePercent(std::string_view text);

// `application/grpc`, alone or followed by `+x` or `;x`.
bool IsGrpcContentType(std::string_view content_type);

}  // namespace detcd::wire
