#include "core/wire/gzip.h"

#include <zlib.h>

#include <algorithm>

#include "core/base/check.h"

namespace detcd::wire {
namespace {

constexpr int kGzipWindowBits = 15 + 16;  // the largest window, in a gzip frame
constexpr size_t kChunkBytes = 65'536;
constexpr size_t kHeaderBytes = 10;  // RFC 1952 §2.3.1, the part that is always there

Bytef* Input(std::string_view bytes) { return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data())); }

}  // namespace

struct Gzip::State {
  z_stream inflating = {};
  z_stream deflating = {};
  bool can_inflate = false;
  bool can_deflate = false;
};

Gzip::Gzip() : state_(std::make_unique<State>()) {}

Gzip::~Gzip() {
  if (state_->can_inflate) ::inflateEnd(&state_->inflating);
  if (state_->can_deflate) ::deflateEnd(&state_->deflating);
}

Gzip::Result Gzip::Decompress(std::string_view compressed, size_t bytes_max, std::string& out) {
  if (compressed.size() < kHeaderBytes) return Result::kNoHeader;
  z_stream& stream = state_->inflating;
  if (!state_->can_inflate) {
    CHECK(::inflateInit2(&stream, kGzipWindowBits) == Z_OK);
    state_->can_inflate = true;
  } else {
    CHECK(::inflateReset(&stream) == Z_OK);
  }
  stream.next_in = Input(compressed);
  stream.avail_in = static_cast<uInt>(compressed.size());
  const size_t start = out.size();
  const size_t limit = start + bytes_max + 1;
  bool first = true;  // member
  for (;;) {
    const size_t at = out.size();
    // Grows with what comes out, so that a small message that lies about itself takes no memory.
    out.resize(std::min(limit, at + kChunkBytes));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + at);
    stream.avail_out = static_cast<uInt>(out.size() - at);
    const uLong out_before = stream.total_out;
    const int result = ::inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
    if (out.size() == limit) return Result::kTooLarge;
    if (result == Z_STREAM_END) {
      if (stream.avail_in == 0) return Result::kOk;
      if (stream.avail_in < kHeaderBytes) return Result::kCutOff;
      CHECK(::inflateReset(&stream) == Z_OK);
      first = false;
    } else if (result == Z_DATA_ERROR) {
      return first && stream.total_out == 0 && out_before == 0 && compressed.substr(0, 3) != "\x1F\x8B\x08"
                 ? Result::kBadHeader
                 : Result::kCorrupt;
    } else if (result == Z_BUF_ERROR || (result == Z_OK && stream.avail_in == 0 && stream.avail_out > 0)) {
      return Result::kCutOff;
    } else {
      CHECK_MSG(result == Z_OK, "inflate");
    }
  }
}

void Gzip::Compress(std::string_view bytes, std::string& out) {
  z_stream& stream = state_->deflating;
  if (!state_->can_deflate) {
    CHECK(::deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindowBits, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    state_->can_deflate = true;
  } else {
    CHECK(::deflateReset(&stream) == Z_OK);
  }
  const size_t at = out.size();
  out.resize(at + ::deflateBound(&stream, static_cast<uLong>(bytes.size())));
  stream.next_in = Input(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data() + at);
  stream.avail_out = static_cast<uInt>(out.size() - at);
  CHECK(::deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
}

}  // namespace detcd::wire
