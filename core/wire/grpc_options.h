// What an operator may set about client connections (flags of the same names; a zero of the first four means the default
// of etcd's gRPC library, as in etcd).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/base/limits.h"
#include "core/base/time.h"

namespace detcd::wire {

struct GrpcOptions {
  // Calls that one connection may have open at once; beyond, streams are refused. The largest number announces no
  // limit, because clients queue silently behind one; kHttp2StreamsOpenMax holds even then.
  uint32_t streams_max = std::numeric_limits<uint32_t>::max();  // --max-concurrent-streams
  Duration ping_interval_min = kPingIntervalMin;                // --grpc-keepalive-min-time
  Duration keepalive_interval = kKeepaliveInterval;             // --grpc-keepalive-interval: silence before our ping
  Duration keepalive_timeout = kKeepaliveTimeout;               // --grpc-keepalive-timeout: for anything after it
  size_t client_bytes_max = kClientBytesMax;                    // that all connections together make the server keep
};

}  // namespace detcd::wire
