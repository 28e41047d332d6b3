// gzip (RFC 1952) for gRPC messages, in bounded memory. The only file pair that knows zlib.
//
// Output depends on the input and zlib's version alone. The two states, together some 300 KiB, are made with the first
// use and kept: one Gzip serves every connection.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace detcd::wire {

class Gzip {
 public:
  enum class Result {
    kOk,
    kTooLarge,  // more than `bytes_max` come out
    kNoHeader,  // not even the fixed header of ten bytes is there
    kBadHeader,
    kCutOff,   // within a member, or within the header of a further one
    kCorrupt,  // the compressed data, or the length or checksum behind it
  };

  Gzip();
  ~Gzip();

  // Appends what all members of `compressed` hold to `out`, at most `bytes_max` and one more.
  Result Decompress(std::string_view compressed, size_t bytes_max, std::string& out);

  // Appends one member that holds `bytes` to `out`.
  void Compress(std::string_view bytes, std::string& out);

 private:
  struct State;

  std::unique_ptr<State> state_;
};

}  // namespace detcd::wire
