// Off-loading to one thread: bcrypt and hashes, a few at a time.
#pragma once

#include "core/io/offload.h"
#include "realnet/loop.h"
#include "realnet/worker.h"

namespace detcd::realnet {

class RealOffloader final : public Offloader {
 public:
  explicit RealOffloader(Loop& loop) : loop_(loop), worker_("offload", loop.completions()) {}

  void Run(OffloadFunction function, Bytes input, OffloadListener& listener, uint64_t token) override;

  // Drops what is not begun and waits for what runs.
  void End() { worker_.Stop(); }

 private:
  Loop& loop_;
  Worker worker_;
};

}  // namespace detcd::realnet
