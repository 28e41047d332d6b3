#include "realnet/lingering_close.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "realnet/real_streams.h"

namespace detcd::realnet {

LingeringClose::LingeringClose(RealNetwork& network, int descriptor)
    : network_(network), loop_(network.loop()), descriptor_(descriptor), id_(loop_.Watch(*this)) {
  loop_.Reattach(id_, descriptor_);
  loop_.timers().Arm(*this, Loop::Now() + kLingerTime);
}

LingeringClose::~LingeringClose() { OnLoopEnd(); }

void LingeringClose::OnLoopEnd() {
  if (descriptor_ < 0) return;
  loop_.timers().Disarm(*this);
  loop_.Forget(id_);
  ::close(descriptor_);
  descriptor_ = -1;
}

void LingeringClose::OnReady(uint32_t) {
  for (int i = 0; i < 16; ++i) {
    const ssize_t size = ::recv(descriptor_, loop_.read_buffer(), kReadBufferBytes, MSG_DONTWAIT);
    if (size > 0 || (size < 0 && errno == EINTR)) continue;
    if (size < 0 && errno == EAGAIN) return;
    return network_.EndLinger(*this);  // destroys this
  }
  loop_.Schedule(id_);
}

void LingeringClose::Fire() { network_.EndLinger(*this); }

}  // namespace detcd::realnet
