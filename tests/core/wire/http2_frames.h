// HTTP/2 frames as bytes, for clients that no library would be (RFC 9113 §4.1, RFC 7541).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace detcd::wire {

enum class FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
  kUnknown = 0xEE,
};

inline constexpr uint8_t kEndStream = 0x1;
inline constexpr uint8_t kAck = 0x1;
inline constexpr uint8_t kEndHeaders = 0x4;
inline constexpr uint8_t kPadded = 0x8;

struct Frame {
  FrameType type;
  uint8_t flags;
  uint32_t stream;
  std::string payload;
};

// Big end first.
std::string Number(uint32_t value, int bytes = 4);

std::string Encode(FrameType type, uint8_t flags, uint32_t stream, std::string_view payload);

// The client's preface and empty SETTINGS.
std::string Hello();

// One field, as literal that goes into no table, or (`indexed`) into the dynamic one.
std::string Field(std::string_view name, std::string_view value, bool indexed = false);

// The fields of a call of `path`, without those of any names in `without`.
std::string CallFields(std::string_view path = "/etcdserverpb.KV/Range", std::string_view without = {});

// A call of Range whose message is still to come.
std::string OpenCall(uint32_t stream);

// The whole frames at the start of `bytes`.
std::vector<Frame> Decode(std::string_view bytes);
size_t CountOf(const std::vector<Frame>& frames, FrameType type);
// `error debug` of the last GOAWAY; empty without one.
std::string GoAwayOf(const std::vector<Frame>& frames);
// `GOAWAY error` or `RST_STREAM error` of the last frame of these two; empty without one.
std::string ErrorOf(const std::vector<Frame>& frames);

}  // namespace detcd::wire
