// What injected faults did. A fault that never bites proves nothing: a campaign reports, per kind, how often it was
// armed (made possible) and how often it was effective (changed something a member could notice).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace detcd::sim {

enum class FaultKind : uint8_t {
  kPartition,        // effective: bytes, a connection attempt or a message held or lost at a blocked link
  kClog,             // effective: a delivery made later by a slow link
  kSegmentLoss,      // effective: bytes late by retransmission
  kStreamTimeout,    // effective: a connection given up
  kStreamReset,      // effective: a connection cut
  kMessageLoss,
  kMessageDuplicate,
  kMessageReorder,   // effective: a message that overtook another
  kCrash,            // effective: an incarnation ended with work pending
  kPowerLoss,        // effective: a machine down
  kSectorLost,       // effective: an unsynced sector that went back to its old bytes
  kSizeLost,
  kEntryLost,        // effective: an unsynced change of a folder undone
  kSyncStall,        // effective: a disk call made later
  kSyncError,
  kDeviceError,
  kNoSpace,
  kCorruption,       // effective: a byte altered
  kPause,            // effective: an event that waited for a stopped processor
  kClockDrift,
  kClockLeap,
  kClockFreeze,
  kWallJump,
};
inline constexpr size_t kFaultKindCount = static_cast<size_t>(FaultKind::kWallJump) + 1;

std::string_view FaultKindName(FaultKind kind);

class Effects {
 public:
  void Armed(FaultKind kind, uint64_t count = 1) { armed_[static_cast<size_t>(kind)] += count; }
  void Effective(FaultKind kind, uint64_t count = 1) { effective_[static_cast<size_t>(kind)] += count; }
  uint64_t armed(FaultKind kind) const { return armed_[static_cast<size_t>(kind)]; }
  uint64_t effective(FaultKind kind) const { return effective_[static_cast<size_t>(kind)]; }

 private:
  std::array<uint64_t, kFaultKindCount> armed_{};
  std::array<uint64_t, kFaultKindCount> effective_{};
};

}  // namespace detcd::sim
