// Addresses of the seam as socket addresses and back.
#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <optional>

#include "core/io/streams.h"

namespace detcd::realnet {

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t size = 0;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

// Nothing when `address` is no numeric IPv4 or IPv6 address (a zone, `fe80::1%eth0`, is) and no path of at most 107
// bytes.
std::optional<SocketAddress> ToSocketAddress(const Address& address);

// An IPv4 address in IPv6 clothes (::ffff:10.0.0.1) comes out as IPv4; the nameless end of a Unix socket with an empty
// path.
Address FromSocketAddress(const SocketAddress& address);

}  // namespace detcd::realnet
