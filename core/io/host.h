// What one incarnation of a member sees of the world. Everything reaches the outside through the host it was given;
// nothing is global. Two implementations, sim/ and realnet/, pass one contract suite (tests/seam).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/io/clock.h"
#include "core/io/events.h"
#include "core/io/files.h"
#include "core/io/offload.h"
#include "core/io/random.h"
#include "core/io/streams.h"
#include "core/io/trace.h"

namespace detcd {

class Host {
 public:
  virtual ~Host() = default;

  virtual Events& events() = 0;
  virtual Clock& clock() = 0;
  virtual Network& network() = 0;
  virtual FileSystem& files() = 0;
  virtual Offloader& offloader() = 0;
  virtual Trace& trace() = 0;

  // The draws of one component, e.g. "raft"; the same label gives the same stream within an incarnation, another one in
  // another incarnation or member.
  virtual KeyedRandom Random(std::string_view component) = 0;
  // Bytes nobody can guess: the operating system's in production, keyed in the simulator. For tokens and salts.
  virtual void FillSecure(std::span<uint8_t> out) = 0;

  // Ends this incarnation after the current event: `ok` is a wanted stop; otherwise `reason` says what broke (a failed
  // sync, a damaged data directory). No further event reaches any listener.
  virtual void Stop(bool ok, std::string reason) = 0;
};

}  // namespace detcd
