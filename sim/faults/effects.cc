#include "sim/faults/effects.h"

namespace detcd::sim {

std::string_view FaultKindName(FaultKind kind) {
  static constexpr std::string_view kNames[] = {
      "partition",         "one_way",         "client_partition", "slow_link",    "delay_spike",
      "segment_loss",      "stream_reset",    "message_loss",     "message_duplicate", "message_reorder",
      "crash",             "power_loss",      "sector_lost",      "size_lost",    "entry_lost",
      "sync_stall",        "slow_sync",       "sync_error",       "device_error", "no_space",
      "corruption",        "pause",           "clock_drift",      "clock_leap",   "clock_freeze",
      "wall_jump",         "transfer"};
  static_assert(std::size(kNames) == kFaultKindCount);
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace detcd::sim
