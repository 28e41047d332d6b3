// Options of every socket; those of a listening socket are inherited by what it accepts.
#pragma once

namespace detcd::realnet {

// TCP: no delay of small writes (batches leave at the end of a turn), and keep-alive probes with Go's timing (15 s
// idle, 15 s apart, 9 times), so that a vanished peer is noticed as by etcd. Nothing for Unix sockets.
void SetStreamOptions(int descriptor, int family);

}  // namespace detcd::realnet
