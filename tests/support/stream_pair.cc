#include "tests/support/stream_pair.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace detcd {

class StreamPair::End final : public Stream {
 public:
  End(StreamPair& pair, size_t index) : pair_(pair), index_(index) {}
  ~End() override {
    Side& me = pair_.sides_[index_];
    me.stream = nullptr;
    me.listener = nullptr;
    me.incoming.clear();
    if (!me.write_closed && !me.closed) me.was_reset = true;
  }

  void SetListener(StreamListener& listener) override {
    CHECK(pair_.sides_[index_].listener == nullptr);
    pair_.sides_[index_].listener = &listener;
  }

  size_t Write(std::span<const Bytes> pieces) override {
    Side& me = pair_.sides_[index_];
    Side& peer = pair_.sides_[1 - index_];
    ++me.writes;
    if (!me.connected || me.write_closed || me.closed) return 0;
    size_t taken = 0;
    for (const Bytes& piece : pieces) {
      const size_t room = pair_.room_ - std::min(pair_.room_, peer.incoming.size());
      const size_t size = std::min(room, piece.size());
      if (peer.stream != nullptr) peer.incoming.append(piece.view().substr(0, size));
      taken += size;
      if (size < piece.size()) {
        me.wants_room = true;
        break;
      }
    }
    return taken;
  }

  void CloseWrite() override { pair_.sides_[index_].write_closed = true; }
  void PauseReading() override { pair_.sides_[index_].paused = true; }
  void ResumeReading() override { pair_.sides_[index_].paused = false; }
  Address Remote() const override { return {.host = "test", .port = static_cast<uint16_t>(1 - index_)}; }

 private:
  StreamPair& pair_;
  size_t index_;
};

StreamPair::StreamPair(size_t room) : room_(room) { sides_[1].connected = true; }

StreamPair::~StreamPair() { CHECK(gone(0) && gone(1)); }

std::unique_ptr<Stream> StreamPair::TakeEnd(int end) {
  Side& side = sides_[static_cast<size_t>(end)];
  CHECK(side.stream == nullptr);
  auto stream = std::make_unique<End>(*this, static_cast<size_t>(end));
  side.stream = stream.get();
  return stream;
}

void StreamPair::Connect() {
  sides_[0].connected = true;
  sides_[0].listener->OnConnected();
}

bool StreamPair::Deliver(int end, size_t bytes_max) {
  Side& me = sides_[static_cast<size_t>(end)];
  Side& peer = sides_[static_cast<size_t>(1 - end)];
  bool any = false;
  if (me.listener != nullptr && !me.paused && !me.closed && !me.incoming.empty() && bytes_max > 0) {
    const size_t size = std::min(bytes_max, me.incoming.size());
    // A copy of exactly this size, so that a sanitizer sees a read behind it.
    const auto copy = std::make_unique<char[]>(size);
    std::copy_n(me.incoming.data(), size, copy.get());
    me.incoming.erase(0, size);
    any = true;
    me.listener->OnData({copy.get(), size});
  }
  if (me.listener != nullptr && !me.paused && !me.closed && me.incoming.empty()) {
    if (peer.was_reset) {
      any = me.closed = true;
      me.listener->OnClosed(IoError::kReset);
    } else if (peer.write_closed && !peer.write_end_heard) {
      any = peer.write_end_heard = true;
      me.listener->OnReadEnd();
    }
  }
  if (peer.wants_room && me.incoming.size() < room_ && peer.listener != nullptr && !peer.closed) {
    peer.wants_room = false;
    any = true;
    peer.listener->OnWritable();
  }
  return any;
}

void StreamPair::Reset(IoError error) {
  for (Side& side : sides_) {
    side.incoming.clear();
    if (side.listener == nullptr || side.closed) continue;
    side.closed = true;
    side.listener->OnClosed(error);
  }
}

}  // namespace detcd
