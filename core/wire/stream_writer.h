// The bytes of one connection that wait for room in its stream. Protocols append what a turn made and flush once at its
// end: one Stream::Write a turn, whatever the number of answers.
#pragma once

#include <cstddef>
#include <vector>

#include "core/base/bytes.h"
#include "core/io/streams.h"

namespace detcd::wire {

class StreamWriter {
 public:
  void Append(Bytes piece);

  // Offers everything to `stream` in one Write, unless an earlier one found no room and Unblock was not called since.
  void Flush(Stream& stream);

  // OnWritable came: the next Flush writes again.
  void Unblock() { blocked_ = false; }

  // Bytes not yet taken by the stream.
  size_t backlog() const { return backlog_; }

 private:
  std::vector<Bytes> pieces_;  // none is empty
  size_t backlog_ = 0;         // the sum of their sizes
  bool blocked_ = false;       // the stream took less than all: it says when there is room
};

}  // namespace detcd::wire
