#include "core/raft/leader_lease.h"

#include "absl/strings/str_format.h"

namespace detcd::raft {

std::string LeaseTrouble(Duration election_timeout, Duration heartbeat_interval, int64_t drift_ppm) {
  if (drift_ppm < 0 || drift_ppm >= kPartsPerMillion) {
    return absl::StrFormat("leader leases: want a clock drift of 0 to %d ppm, got %d", kPartsPerMillion - 1, drift_ppm);
  }
  const Duration bound = LeaseBound(election_timeout, drift_ppm);
  if (bound > heartbeat_interval) return "";
  return absl::StrFormat(
      "leader leases: with an election timeout of %d us and a clock drift of %d ppm a lease lasts %d us, which is not "
      "longer than the heartbeat interval of %d us",
      election_timeout.nanos / 1'000, drift_ppm, bound.nanos / 1'000, heartbeat_interval.nanos / 1'000);
}

}  // namespace detcd::raft
