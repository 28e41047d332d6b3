#include "realnet/socket_options.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace detcd::realnet {
namespace {

// Failing is harmless: the connection works, less well.
void Set(int descriptor, int level, int option, int value) {
  ::setsockopt(descriptor, level, option, &value, sizeof(value));
}

}  // namespace

void SetStreamOptions(int descriptor, int family) {
  if (family == AF_UNIX) return;
  Set(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  Set(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  Set(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, 15);
  Set(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, 15);
  Set(descriptor, IPPROTO_TCP, TCP_KEEPCNT, 9);
}

}  // namespace detcd::realnet
