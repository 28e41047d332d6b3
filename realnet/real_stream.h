// One connection (see real_streams.h).
#pragma once

#include "core/io/streams.h"
#include "realnet/loop.h"
#include "realnet/socket_address.h"

namespace detcd::realnet {

class RealNetwork;

class RealStream final : public Stream, public Watcher {
 public:
  // An outgoing connection. Trouble met here is told by OnClosed in a later event.
  RealStream(RealNetwork& network, const Address& address, StreamListener& listener);
  // An accepted one; owns `descriptor`.
  RealStream(RealNetwork& network, int descriptor, const SocketAddress& remote);
  ~RealStream() override;

  void SetListener(StreamListener& listener) override { listener_ = &listener; }
  size_t Write(std::span<const Bytes> pieces) override;
  void CloseWrite() override;
  void PauseReading() override { paused_ = true; }
  void ResumeReading() override;
  Address Remote() const override;

  void OnReady(uint32_t edges) override;
  void OnLoopEnd() override;

  WatchId id() const { return id_; }
  bool has_listener() const { return listener_ != nullptr; }

 private:
  enum class Phase : uint8_t { kConnecting, kOpen, kClosed };

  void StartConnect(const Address& address);
  // Remembers what killed the connection; OnClosed follows in an event of its own, after the bytes that came before.
  void FailLater(IoError error);
  // False when nothing may be touched any more.
  bool FinishConnect();
  bool ReadSome();
  bool TellWritable();
  // Calls OnClosed; nothing may be touched afterwards.
  void TellClosed();
  bool IsConnectedToItself() const;
  void ShutdownWrite();
  void CloseDescriptor(bool reset);

  RealNetwork& network_;
  Loop& loop_;
  StreamListener* listener_ = nullptr;
  int descriptor_ = -1;      // -1: none yet, or closed
  WatchId id_;
  SocketAddress remote_;
  Address remote_path_;      // of an outgoing Unix connection
  Phase phase_ = Phase::kConnecting;
  IoError failure_ = IoError::kOk;  // not kOk: OnClosed is due
  bool readable_ = false;    // the kernel may have bytes or an end for us
  bool hung_up_ = false;     // an end or error is there: read until it shows, a short read proves nothing
  bool paused_ = false;
  bool read_ended_ = false;  // OnReadEnd was told
  bool write_short_ = false;  // OnWritable is due
  bool write_closed_ = false;
};

}  // namespace detcd::realnet
