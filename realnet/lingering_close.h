// The end of a connection whose owner is gone and whose last bytes shall still arrive.
//
// Closing a TCP socket while bytes of the peer are unread, or before late ones come, makes the kernel answer with a
// reset, which also throws away what we sent (RFC 2525, section 2.17). So after CloseWrite the socket stays open and
// its input is thrown away until the peer closes too or kLingerTime is over.
#pragma once

#include "realnet/loop.h"

namespace detcd::realnet {

inline constexpr size_t kLingeringMax = 64;  // beyond: the oldest is closed at once
inline constexpr Duration kLingerTime = Seconds(2);

class RealNetwork;

class LingeringClose final : public Watcher, public TimerNode {
 public:
  // Takes over `descriptor`, whose former registration is forgotten.
  LingeringClose(RealNetwork& network, int descriptor);
  ~LingeringClose();

  void OnReady(uint32_t edges) override;
  void OnLoopEnd() override;
  void Fire() override;

 private:
  RealNetwork& network_;
  Loop& loop_;
  int descriptor_;
  WatchId id_;
};

}  // namespace detcd::realnet
