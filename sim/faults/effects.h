// What injected faults did. A fault that never bites proves nothing: a campaign reports, per kind, how often it was
// armed and how often it was effective.
//
// Armed: once for each episode or standing setting that makes the kind possible, by whoever plans it (scenarios/runner.cc):
// never by the machinery, which cannot tell one plan from two. Effective: each time something that a member or a client
// could notice became other than without the fault. What is effective has been armed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace detcd::sim {

enum class FaultKind : uint8_t {
  // The three that block links come first (links.h counts by them). Effective: bytes, a connection attempt, a reset or a
  // message held or lost at a link that is blocked so.
  kPartition,        // symmetric, among members
  kOneWay,           // one direction, among members
  kClientPartition,  // between clients and members
  kSlowLink,         // effective: a delivery under a fault's delay law
  kDelaySpike,       // effective: a delivery in the slow mode of the link's own law
  kSegmentLoss,      // effective: bytes late by retransmission; in the end a reset
  kStreamReset,      // effective: a connection cut
  kMessageLoss,
  kMessageDuplicate,
  kMessageReorder,   // effective: a message that overtook another
  // Both at most once for each incarnation that ended: work of it was pending (events, disk calls, calls of clients), its
  // connections were cut, or something was sent to it while it was down.
  kCrash,            // a process ended
  kPowerLoss,        // a machine went down
  kSectorLost,       // effective: an unsynced sector that went back to its old bytes
  kSizeLost,         // effective: an unsynced size of a file that went back
  kEntryLost,        // effective: an unsynced change of a folder undone
  kSyncStall,        // effective: a disk call made later
  kSlowSync,         // effective: a sync in the slow mode of the disk's own law
  kSyncError,
  kDeviceError,
  kNoSpace,
  kCorruption,       // effective: a byte altered
  kPause,            // effective: an event that waited for a stopped processor
  kClockDrift,       // effective: a timer armed on a clock whose rate is wrong
  kClockLeap,
  kClockFreeze,      // effective: a timer armed on a clock that stands still
  kWallJump,
  kTransfer,         // effective: a leader told another member to campaign
};
inline constexpr size_t kFaultKindCount = static_cast<size_t>(FaultKind::kTransfer) + 1;

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
