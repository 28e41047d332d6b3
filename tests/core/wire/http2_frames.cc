#include "tests/core/wire/http2_frames.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace detcd::wire {
namespace {

uint32_t Value(std::string_view bytes) {
  uint32_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<uint8_t>(c);
  return value;
}

// A string of RFC 7541 §5.2 without Huffman code; lengths from 127 on continue in groups of seven bits.
std::string Literal(std::string_view text) {
  std::string out;
  if (text.size() < 127) {
    out.push_back(static_cast<char>(text.size()));
  } else {
    out.push_back(127);
    size_t rest = text.size() - 127;
    for (; rest >= 128; rest >>= 7) out.push_back(static_cast<char>(rest % 128 | 128));
    out.push_back(static_cast<char>(rest));
  }
  return out.append(text);
}

}  // namespace

std::string Number(uint32_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
  return out;
}

std::string Encode(FrameType type, uint8_t flags, uint32_t stream, std::string_view payload) {
  std::string out = Number(static_cast<uint32_t>(payload.size()), 3);
  out.push_back(static_cast<char>(type));
  out.push_back(static_cast<char>(flags));
  return out.append(Number(stream)).append(payload);
}

std::string Hello() { return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Encode(FrameType::kSettings, 0, 0, ""); }

std::string Field(std::string_view name, std::string_view value, bool indexed) {
  return std::string(1, indexed ? '\x40' : '\0') + Literal(name) + Literal(value);
}

std::string CallFields(std::string_view path, std::string_view without) {
  std::string out;
  for (const auto& [name, value] :
       std::vector<std::pair<std::string_view, std::string_view>>{{":method", "POST"},
                                                                  {":scheme", "http"},
                                                                  {":path", path},
                                                                  {":authority", "a"},
                                                                  {"content-type", "application/grpc"},
                                                                  {"te", "trailers"}}) {
    if (name != without) out += Field(name, value);
  }
  return out;
}

std::string OpenCall(uint32_t stream) { return Encode(FrameType::kHeaders, kEndHeaders, stream, CallFields()); }

std::vector<Frame> Decode(std::string_view bytes) {
  std::vector<Frame> frames;
  while (bytes.size() >= 9) {
    const size_t size = Value(bytes.substr(0, 3));
    if (bytes.size() < 9 + size) break;
    frames.push_back({.type = static_cast<FrameType>(bytes[3]),
                      .flags = static_cast<uint8_t>(bytes[4]),
                      .stream = Value(bytes.substr(5, 4)),
                      .payload = std::string(bytes.substr(9, size))});
    bytes.remove_prefix(9 + size);
  }
  return frames;
}

size_t CountOf(const std::vector<Frame>& frames, FrameType type) {
  return static_cast<size_t>(
      std::count_if(frames.begin(), frames.end(), [&](const Frame& f) { return f.type == type; }));
}

std::string GoAwayOf(const std::vector<Frame>& frames) {
  std::string text;
  for (const Frame& frame : frames) {
    if (frame.type != FrameType::kGoAway) continue;
    text = absl::StrFormat("%d %s", Value(std::string_view(frame.payload).substr(4, 4)), frame.payload.substr(8));
  }
  return text;
}

std::string ErrorOf(const std::vector<Frame>& frames) {
  std::string text;
  for (const Frame& frame : frames) {
    const std::string_view payload = frame.payload;
    if (frame.type == FrameType::kGoAway) text = absl::StrFormat("GOAWAY %d", Value(payload.substr(4, 4)));
    if (frame.type == FrameType::kReset) text = absl::StrFormat("RST_STREAM %d", Value(payload));
  }
  return text;
}

}  // namespace detcd::wire
