#include "sim/faults/effects.h"

namespace detcd::sim {

std::string_view FaultKindName(FaultKind kind) {
  static constexpr std::string_view kNames[] = {
      "partition",    "clog",          "segment_loss", "stream_timeout", "stream_reset", "message_loss",
      "message_duplicate", "message_reorder", "crash", "power_loss",    "sector_lost",  "size_lost",
      "entry_lost",   "sync_stall",    "sync_error",   "device_error",   "no_space",     "corruption",
      "pause",        "clock_drift",   "clock_leap",   "clock_freeze",   "wall_jump"};
  static_assert(std::size(kNames) == kFaultKindCount);
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace detcd::sim
