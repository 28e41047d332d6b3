// Two streams back to back under the test's control: nothing moves until the test says how much. Room is limited as in a
// socket's buffer, so that Write takes parts.
//
//   StreamPair pair(/*room=*/65'536);
//   server.Accept(pair.TakeEnd(1));
//   pair.Deliver(1, 10);      // ten bytes of what end 0 wrote reach end 1
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <memory>
#include <string>

#include "core/io/streams.h"

namespace detcd {

class StreamPair {
 public:
  explicit StreamPair(size_t room = std::numeric_limits<size_t>::max());
  ~StreamPair();
  StreamPair(const StreamPair&) = delete;
  StreamPair& operator=(const StreamPair&) = delete;

  // End 0 or 1, once each. The pair outlives both. End 0 is the one that connects: see Connect.
  std::unique_ptr<Stream> TakeEnd(int end);
  // End 0 hears OnConnected; before that it takes no bytes.
  void Connect();

  // Has `end` hear up to `bytes_max` of what the other wrote, in one OnData; then, if that was all, the other's
  // CloseWrite or reset. The writer hears OnWritable when it waited for room. Returns whether anything happened.
  bool Deliver(int end, size_t bytes_max = std::numeric_limits<size_t>::max());
  // Both living ends hear OnClosed; what was under way is lost.
  void Reset(IoError error = IoError::kReset);

  // Whether `end` was destroyed (or never taken).
  bool gone(int end) const { return sides_[static_cast<size_t>(end)].stream == nullptr; }
  // Writes at `end` so far, and bytes under way to it.
  size_t writes(int end) const { return sides_[static_cast<size_t>(end)].writes; }
  size_t waiting(int end) const { return sides_[static_cast<size_t>(end)].incoming.size(); }
  bool paused(int end) const { return sides_[static_cast<size_t>(end)].paused; }

 private:
  class End;
  struct Side {
    End* stream = nullptr;
    StreamListener* listener = nullptr;
    std::string incoming;        // written by the other side, not yet heard
    size_t writes = 0;
    bool connected = false;
    bool write_closed = false;   // it said CloseWrite
    bool write_end_heard = false;  // and the other side knows
    bool wants_room = false;
    bool paused = false;
    bool was_reset = false;      // it was destroyed without CloseWrite: the other side is to hear it
    bool closed = false;         // it heard OnClosed
  };

  size_t room_;
  std::array<Side, 2> sides_;
};

}  // namespace detcd
