// What the contract suite of the seam asks of an implementation: incarnations of one host, driven until something
// happens. sim/ and realnet/ each provide one; the same tests run over both (tests/seam/contract.h).
#pragma once

#include <functional>
#include <memory>

#include "core/io/host.h"

namespace detcd {

class SeamWorld {
 public:
  virtual ~SeamWorld() = default;

  // Starts an incarnation over the same data folder and addresses. Two hosts (0 and 1) may run at once; each has a
  // folder of its own and shares the network.
  virtual Host& Start(int host) = 0;
  // Ends it with everything pending: nothing that it was told to do later happens, and no listener hears anything.
  virtual void End(int host) = 0;
  // End, and then power loss: what files.h says a crash may lose is lost where this world can do so.
  virtual void Crash(int host) = 0;
  // Whether Crash really loses unsynced bytes (the simulator's does, a real file system's does not).
  virtual bool CrashLosesUnsynced() const = 0;

  // Runs events (all hosts) until `done` holds, checked between events; false when `limit` of this world's time passed.
  virtual bool RunUntil(const std::function<bool()>& done, Duration limit = Seconds(10)) = 0;

  // A numeric address that `host` can listen on; another port each call.
  virtual Address NewAddress(int host) = 0;
  // Leaves about `bytes` of disk space to `host`; false where this world cannot (no small tmpfs permitted).
  virtual bool LimitDisk(int host, uint64_t bytes) = 0;
};

using SeamWorldFactory = std::unique_ptr<SeamWorld> (*)();

}  // namespace detcd
