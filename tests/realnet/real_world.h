// The contract suite's world over the operating system: two hosts in one process and one thread, with temporary
// folders.
#pragma once

#include <memory>
#include <vector>

#include "realnet/real_host.h"
#include "tests/realnet/temporary_folder.h"
#include "tests/seam/seam_world.h"

namespace detcd::realnet {

// One turn of each host; sleeps about a millisecond when none had anything to do.
void RunOneTurn(const std::vector<RealHost*>& hosts);

class RealWorld final : public SeamWorld {
 public:
  // `log_folder`: the file tests' folders are served by the log's thread.
  explicit RealWorld(bool log_folder) : log_folder_(log_folder) {}

  Host& Start(int host) override;
  void End(int host) override;
  void Crash(int host) override { End(host); }
  bool CrashLosesUnsynced() const override { return false; }
  bool RunUntil(const std::function<bool()>& done, Duration limit) override;
  Address NewAddress(int host) override;
  bool LimitDisk(int host, uint64_t bytes) override;

 private:
  static constexpr int kHosts = 2;

  const bool log_folder_;
  TemporaryFolder folders_[kHosts];
  std::unique_ptr<RealHost> hosts_[kHosts];
  // Handles of an ended incarnation may still be destroyed by a test.
  std::vector<std::unique_ptr<RealHost>> ended_;
};

}  // namespace detcd::realnet
