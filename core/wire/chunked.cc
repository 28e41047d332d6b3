#include "core/wire/chunked.h"

#include <algorithm>

#include "core/base/status.h"

namespace detcd::wire {
namespace {

constexpr uint32_t kSizeDigitsMax = 15;  // 2^60 bytes: past it no length is honest, and the sum cannot overflow

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string ChunkHead(size_t size) { return absl::StrFormat("%x\r\n", size); }

ChunkedDecoder::State ChunkedDecoder::AfterSize(char c) {
  if (const int digit = HexDigit(c); digit >= 0) {
    if (++digits_ > kSizeDigitsMax) return State::kMalformed;
    remaining_ = remaining_ * 16 + static_cast<uint64_t>(digit);
    return State::kSize;
  }
  if (digits_ == 0) return State::kMalformed;
  if (c == '\r') return State::kSizeEnd;
  return c == ';' || c == ' ' || c == '\t' ? State::kExtension : State::kMalformed;
}

// The state after one byte outside of content.
ChunkedDecoder::State ChunkedDecoder::After(char c) {
  if (++line_bytes_ > kLineBytesMax) return State::kMalformed;
  switch (state_) {
    case State::kSize:
      return AfterSize(c);
    case State::kExtension:
      if (c == '\r') return State::kSizeEnd;
      return c == '\n' ? State::kMalformed : State::kExtension;
    case State::kSizeEnd:
      if (c != '\n') return State::kMalformed;
      line_bytes_ = 0;
      return remaining_ > 0 ? State::kContent : State::kTrailer;
    case State::kContentEnd:
      return c == '\r' ? State::kContentEnd2 : State::kMalformed;
    case State::kContentEnd2:
      digits_ = 0;
      line_bytes_ = 0;
      return c == '\n' ? State::kSize : State::kMalformed;
    case State::kTrailer:
      if (c == '\n') return State::kMalformed;
      return c == '\r' ? State::kLastEnd : State::kTrailerLine;
    case State::kTrailerLine:
      if (c == '\n') return State::kMalformed;
      return c == '\r' ? State::kTrailerEnd : State::kTrailerLine;
    case State::kTrailerEnd:
      return c == '\n' ? State::kTrailer : State::kMalformed;
    case State::kLastEnd:
      return c == '\n' ? State::kEnd : State::kMalformed;
    case State::kContent:
    case State::kEnd:
    case State::kMalformed:
      break;
  }
  return State::kMalformed;
}

ChunkedDecoder::Step ChunkedDecoder::Next(std::string_view& input, std::string_view& content) {
  while (true) {
    if (state_ == State::kEnd) return Step::kEnd;
    if (state_ == State::kMalformed) return Step::kMalformed;
    if (input.empty()) return Step::kNeedMore;
    if (state_ == State::kContent) {
      const size_t size = std::min<uint64_t>(remaining_, input.size());
      content = input.substr(0, size);
      input.remove_prefix(size);
      remaining_ -= size;
      if (remaining_ == 0) state_ = State::kContentEnd;
      return Step::kContent;
    }
    state_ = After(input.front());
    input.remove_prefix(1);
  }
}

}  // namespace detcd::wire
