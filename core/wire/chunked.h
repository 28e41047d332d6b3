// HTTP/1.1's chunked transfer coding (RFC 9112 §7.1), without I/O. Peer streams are endless chunked bodies; where one
// chunk ends means nothing to the frames inside.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace detcd::wire {

// What stands before and behind the `size` > 0 bytes of one chunk, and the end of a body without trailers.
std::string ChunkHead(size_t size);
inline constexpr std::string_view kChunkTail = "\r\n";
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

// Takes the coding off, piece by piece. It buffers nothing but a number: content is handed out as views of the input.
class ChunkedDecoder {
 public:
  enum class Step : uint8_t {
    kContent,    // `content` has the next bytes of the body, at least one
    kNeedMore,   // all input was taken
    kEnd,        // the body ended; what follows in `input` is another message. Repeats for good.
    kMalformed,  // not the coding, or a line of it over kLineBytesMax. Repeats for good.
  };
  // A chunk's size line (extensions are skipped) or one trailer line (skipped too) may be this long, and all trailer
  // lines together.
  static constexpr size_t kLineBytesMax = 4'096;

  // Takes bytes off the front of `input` up to the next content.
  Step Next(std::string_view& input, std::string_view& content);

 private:
  enum class State : uint8_t { kSize, kExtension, kSizeEnd, kContent, kContentEnd, kContentEnd2, kTrailer, kTrailerLine, kTrailerEnd, kLastEnd, kEnd, kMalformed };

  State After(char c);
  State AfterSize(char c);

  State state_ = State::kSize;
  uint64_t remaining_ = 0;   // content bytes of the chunk still to come
  uint32_t digits_ = 0;      // of the size being read
  size_t line_bytes_ = 0;    // of the size line, or of all trailer lines
};

}  // namespace detcd::wire
