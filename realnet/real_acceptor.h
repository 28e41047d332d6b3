// One listening socket (see real_streams.h).
#pragma once

#include <string>

#include "core/io/streams.h"
#include "realnet/loop.h"
#include "realnet/socket_address.h"

namespace detcd::realnet {

class RealNetwork;

inline constexpr Duration kAcceptBackOff = Millis(100);  // after running out of descriptors or memory

class RealAcceptor final : public Acceptor, public Watcher, public TimerNode {
 public:
  // Binds and listens. A socket file that nobody listens on any more is replaced, as by etcd.
  static ListenResult Open(RealNetwork& network, const Address& address, AcceptListener& listener);
  ~RealAcceptor() override;

  Address Local() const override { return local_; }
  void PauseAccepting() override { paused_ = true; }
  void ResumeAccepting() override;

  void OnReady(uint32_t edges) override;
  void OnLoopEnd() override;
  void Fire() override;

 private:
  RealAcceptor(RealNetwork& network, int descriptor, const Address& local, AcceptListener& listener);

  // Out of descriptors: leaves the connections in the kernel's queue, where they lose nothing but time, and tries again
  // later. Told once, not for each try.
  void BackOff(int error_number);

  RealNetwork& network_;
  Loop& loop_;
  AcceptListener& listener_;
  int descriptor_;
  const WatchId id_;
  const Address local_;
  bool paused_ = false;
  bool readable_ = false;     // connections may wait in the queue
  bool backing_off_ = false;  // the timer is armed
  bool told_ = false;         // that descriptors ran out
};

}  // namespace detcd::realnet
