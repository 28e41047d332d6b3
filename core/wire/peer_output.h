// Bytes on their way into one Stream: gathered during a turn, handed over in one Write at its end.
#pragma once

#include <utility>
#include <vector>

#include "core/base/bytes.h"
#include "core/io/streams.h"

namespace detcd::wire {

class PeerOutput {
 public:
  void Push(Bytes piece) {
    if (piece.empty()) return;
    bytes_ += piece.size();
    pieces_.push_back(std::move(piece));
  }

  size_t bytes() const { return bytes_; }
  bool empty() const { return bytes_ == 0; }

  // Writes what the stream takes now and returns how many bytes that was.
  size_t Flush(Stream& stream) {
    if (empty()) return 0;
    const size_t taken = stream.Write(pieces_);
    bytes_ -= taken;
    size_t left = taken;
    size_t done = 0;
    while (done < pieces_.size() && pieces_[done].size() <= left) left -= pieces_[done++].size();
    if (left > 0) pieces_[done] = pieces_[done].Slice(left, pieces_[done].size() - left);
    pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(done));
    return taken;
  }

 private:
  std::vector<Bytes> pieces_;
  size_t bytes_ = 0;
};

}  // namespace detcd::wire
