#include "core/wire/stream_writer.h"

#include <utility>

#include "core/base/check.h"

namespace detcd::wire {

void StreamWriter::Append(Bytes piece) {
  if (piece.empty()) return;
  backlog_ += piece.size();
  pieces_.push_back(std::move(piece));
}

void StreamWriter::Flush(Stream& stream) {
  if (blocked_ || pieces_.empty()) return;
  size_t taken = stream.Write(pieces_);
  CHECK(taken <= backlog_);
  backlog_ -= taken;
  blocked_ = backlog_ > 0;
  size_t whole = 0;
  while (whole < pieces_.size() && taken >= pieces_[whole].size()) taken -= pieces_[whole++].size();
  pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<ptrdiff_t>(whole));
  if (taken > 0) pieces_[0] = pieces_[0].Slice(taken, pieces_[0].size() - taken);
}

}  // namespace detcd::wire
