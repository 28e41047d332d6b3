// What injected faults did. A fault that never bites proves nothing, and one that bites only where nothing depends on it
// proves little: a campaign reports, per kind, how often it was armed, effective and state-changing, and the last two by
// the role of who was hit and by phase.
//
// Armed: once for each episode or standing setting that makes the kind possible, by whoever plans it
// (scenarios/episode_faults.cc): never by the machinery, which cannot tell one plan from two.
//
// Effective, a bite: each time something that a member or a client could notice became other than without the fault. It
// hits one endpoint: the owner of the disk, clock or processor, the receiver of what was held, lost or late; where a
// client is one of the two ends, the client. What is effective has been armed.
//
// State-changing: a bite after which the state of the endpoint became other, which in a world without faults happens only
// while it starts:
//   - a member: its term, vote, role or leader changed, or entries that its log held are gone or replaced, within two
//     election timeouts of the moment at which what was altered took place. A member that was down: within that time
//     before its end, or while it was down; and its term, vote or log came back other than it was last seen. The end of
//     an incarnation itself (crash, power loss) changes when the next one is seen.
//   - a client: the operation that ends next after the bite ends refused or unknown.
// A change counts once for each kind that bit since the change before it, so it is at most as often as effective. It
// says that the fault came where something followed, not that it alone was the cause: two kinds share a change. That a
// kind alone is cause enough is what its test says, in a world where nothing else happens (tests/scenarios/runner_test.cc).
// A member's bites before it first knows a leader change nothing: what follows them would come anyway.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/time.h"
#include "sim/event_queue.h"

namespace detcd::sim {

enum class FaultKind : uint8_t {
  // Those that block links come first (links.h counts by them). Effective: bytes, a connection attempt, a reset or a
  // message held or lost at a link that is blocked so.
  kPartition,        // symmetric, among members
  kOneWay,           // one direction, among members
  kClientPartition,  // between clients and members
  kBridge,           // two sides that only the members of neither hear
  kRing,             // members that hear their two neighbours only
  kSlowLink,         // effective: a delivery under a fault's delay law
  kClog,             // effective: what was held back, whole and in order, until the path is free
  kDelaySpike,       // effective: a delivery in the slow mode of the link's own law
  kSegmentLoss,      // effective: bytes late by retransmission; in the end a reset
  kStreamReset,      // effective: a connection cut
  kHalfOpen,         // effective: a connection cut at one end, of which the other hears nothing
  kBitFlip,          // effective: altered bytes, which their checksum turns into a reset of both ends
  kMessageLoss,
  kMessageDuplicate,
  kMessageReorder,   // effective: a message that overtook another
  // Both at most once for each incarnation that ended: work of it was pending (events, disk calls, calls of clients), its
  // connections were cut, or something was sent to it while it was down.
  kCrash,            // a process ended
  kPowerLoss,        // a machine went down
  kBlackout,         // effective: a member that lost its power in the same event as all others
  kCrashLoop,        // effective: an end before the member knew a leader, in a row of ends
  kSectorLost,       // effective: an unsynced sector that went back to its old bytes
  kSizeLost,         // effective: an unsynced size of a file that went back
  kEntryLost,        // effective: an unsynced change of a folder undone
  kSyncStall,        // effective: a disk call made later
  kSlowSync,         // effective: a sync in the slow mode of the disk's own law
  kSyncError,        // effective: a sync that failed, with what it dropped
  kDeviceError,      // effective: a read or a write that failed
  kNoSpace,          // effective: a call that failed for want of space
  kCorruption,       // effective: a byte altered
  // What no format can detect. Effective: a sector or a change of a folder that a sync had reported to be safe, and that
  // a power loss took; a synced sector that came back as zeros; a disk of a member that has run that came back empty; a
  // write that landed at another place of its file.
  kLyingSync,
  kZeroedTail,
  kWipedDisk,
  kMisdirectedWrite,
  kPause,            // effective: an event that waited for a stopped processor
  kSlowProcessor,    // effective: an event that took longer
  kOvertaking,       // effective: a turn that took something before what had come earlier from another source
  kClockDrift,       // effective: a timer armed on a clock whose rate is wrong
  kClockLeap,        // effective: a clock set forward under a process that runs
  kClockFreeze,      // effective: a timer armed on a clock that stands still
  kWallJump,         // effective: a reading of a wall clock other than the one before the jump would have been
  kTransfer,         // effective: a leader told another member to campaign
};
inline constexpr size_t kFaultKindCount = static_cast<size_t>(FaultKind::kTransfer) + 1;

// What the endpoint was when it was hit.
enum class VictimRole : uint8_t {
  kClient,
  kDown,  // a member that does not run or has not yet recovered; its disk when it loses power
  kFollower,
  kPreCandidate,
  kCandidate,
  kLeader,
};
inline constexpr size_t kVictimRoleCount = static_cast<size_t>(VictimRole::kLeader) + 1;

enum class Phase : uint8_t {
  kStartUp,  // of a member, until it first knows a leader
  kChaos,
  kHealing,  // after the world healed
};
inline constexpr size_t kPhaseCount = static_cast<size_t>(Phase::kHealing) + 1;

struct Victim {
  VictimRole role = VictimRole::kClient;
  Phase phase = Phase::kChaos;
};

std::string_view FaultKindName(FaultKind kind);
std::string_view VictimRoleName(VictimRole role);
std::string_view PhaseName(Phase phase);

// The counts of one run.
class EffectCounts {
 public:
  void Armed(FaultKind kind, uint64_t count = 1) { armed_[Index(kind)] += count; }
  void Effective(FaultKind kind, Victim victim, uint64_t count = 1) { effective_[Cell(kind, victim)] += count; }
  void Changing(FaultKind kind, Victim victim, uint64_t count = 1) { changing_[Cell(kind, victim)] += count; }

  uint64_t armed(FaultKind kind) const { return armed_[Index(kind)]; }
  uint64_t effective(FaultKind kind, Victim victim) const { return effective_[Cell(kind, victim)]; }
  uint64_t changing(FaultKind kind, Victim victim) const { return changing_[Cell(kind, victim)]; }
  // Of all roles and phases.
  uint64_t effective(FaultKind kind) const { return Sum(effective_, kind); }
  uint64_t changing(FaultKind kind) const { return Sum(changing_, kind); }

 private:
  static constexpr size_t kVictims = kVictimRoleCount * kPhaseCount;
  using Cells = std::array<uint64_t, kFaultKindCount * kVictims>;

  static size_t Index(FaultKind kind) { return static_cast<size_t>(kind); }
  static size_t Cell(FaultKind kind, Victim victim) {
    return Index(kind) * kVictims + static_cast<size_t>(victim.role) * kPhaseCount + static_cast<size_t>(victim.phase);
  }
  static uint64_t Sum(const Cells& cells, FaultKind kind);

  std::array<uint64_t, kFaultKindCount> armed_{};
  Cells effective_{};
  Cells changing_{};
};

class EffectLedger;

// The ledger as the devices have it: whatever is counted hits one endpoint.
class Effects {
 public:
  Effects(EffectLedger& ledger, EndpointId endpoint) : ledger_(&ledger), endpoint_(endpoint) {}
  // `lasts`: from now until what was altered takes place, where that is later.
  void Effective(FaultKind kind, Duration lasts = {}) const;

 private:
  EffectLedger* ledger_;
  EndpointId endpoint_;
};

// Counts a run. The devices tell of bites, the world of roles and changes.
class EffectLedger {
 public:
  // All endpoints are clients until they are said to be members.
  EffectLedger(const EventQueue& queue, uint32_t endpoints) : queue_(queue), endpoints_(endpoints) {}
  EffectLedger(const EffectLedger&) = delete;

  const EffectCounts& counts() const { return counts_; }
  void Armed(FaultKind kind) { counts_.Armed(kind); }

  Effects At(EndpointId endpoint) { return {*this, endpoint}; }
  // Of something sent from one to the other.
  Effects OnWay(EndpointId from, EndpointId to) { return At(endpoints_[from].is_member ? to : from); }
  Victim VictimAt(EndpointId endpoint) const;
  // A bite whose victim is known from before.
  void Effective(FaultKind kind, EndpointId endpoint, Victim victim, Duration lasts = {});

  // --- what the world tells ---
  // `bound`: how long after a bite a change is still counted as its consequence.
  void MakeMember(EndpointId endpoint, Duration bound);
  // After each event of a member that runs. `changed`: its state is other than when it was last seen.
  void Seen(EndpointId member, VictimRole role, bool knows_leader, bool changed) {
    Endpoint& at = endpoints_[member];
    at.role = role;
    if (changed) Changed(at);
    if (knows_leader) at.in_start_up = false;
  }
  // The first of an incarnation. `changed`: of its term, vote and log.
  void Restarted(EndpointId member, bool changed);
  // An incarnation ended. Of a client: nothing.
  void Down(EndpointId endpoint);
  void OperationEnded(EndpointId client, bool as_hoped);
  void Healed() { healed_ = true; }

 private:
  // The last bite of one kind at one endpoint, while it waits for a change.
  struct Open {
    int64_t until = 0;
    Victim victim;
  };
  struct Endpoint {
    bool is_member = false;
    bool in_start_up = false;
    VictimRole role = VictimRole::kClient;
    Duration bound;
    uint64_t open = 0;  // a bit for each kind
    std::array<Open, kFaultKindCount> last;
  };
  static_assert(kFaultKindCount <= 64);

  void Changed(Endpoint& at);
  void Count(Endpoint& at, uint64_t kinds);

  const EventQueue& queue_;
  std::vector<Endpoint> endpoints_;
  bool healed_ = false;
  EffectCounts counts_;
};

inline void Effects::Effective(FaultKind kind, Duration lasts) const {
  ledger_->Effective(kind, endpoint_, ledger_->VictimAt(endpoint_), lasts);
}

}  // namespace detcd::sim
