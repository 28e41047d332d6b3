#include "sim/faults/effects.h"

#include <bit>

namespace detcd::sim {
namespace {

// Of a bite at a member that is down, the next incarnation tells; of one at a client, the end of an operation.
constexpr int64_t kUntilTold = INT64_MAX;

constexpr uint64_t Bit(FaultKind kind) { return uint64_t{1} << static_cast<uint32_t>(kind); }
constexpr uint64_t kEnds =
    Bit(FaultKind::kCrash) | Bit(FaultKind::kPowerLoss) | Bit(FaultKind::kBlackout) | Bit(FaultKind::kCrashLoop);

}  // namespace

std::string_view FaultKindName(FaultKind kind) {
  static constexpr std::string_view kNames[] = {
      "partition",    "one_way",      "client_partition",  "bridge",          "ring",        "slow_link",
      "clog",         "delay_spike",  "segment_loss",      "stream_reset",    "half_open",   "bit_flip",
      "message_loss", "message_duplicate", "message_reorder", "crash",        "power_loss",  "blackout",
      "crash_loop",   "sector_lost",  "size_lost",         "entry_lost",      "sync_stall",  "slow_sync",
      "sync_error",   "device_error", "no_space",          "corruption",      "lying_sync",  "zeroed_tail",
      "wiped_disk",   "misdirected_write", "pause",        "slow_processor",    "overtaking",    "clock_drift",     "clock_leap",  "clock_freeze",
      "wall_jump",    "transfer"};
  static_assert(std::size(kNames) == kFaultKindCount);
  return kNames[static_cast<size_t>(kind)];
}

std::string_view VictimRoleName(VictimRole role) {
  static constexpr std::string_view kNames[] = {"client", "down", "follower", "pre_candidate", "candidate", "leader"};
  static_assert(std::size(kNames) == kVictimRoleCount);
  return kNames[static_cast<size_t>(role)];
}

std::string_view PhaseName(Phase phase) {
  static constexpr std::string_view kNames[] = {"start_up", "chaos", "healing"};
  static_assert(std::size(kNames) == kPhaseCount);
  return kNames[static_cast<size_t>(phase)];
}

uint64_t EffectCounts::Sum(const Cells& cells, FaultKind kind) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kVictims; ++i) sum += cells[Index(kind) * kVictims + i];
  return sum;
}

Victim EffectLedger::VictimAt(EndpointId endpoint) const {
  const Endpoint& at = endpoints_[endpoint];
  return {.role = at.role, .phase = healed_ ? Phase::kHealing : at.in_start_up ? Phase::kStartUp : Phase::kChaos};
}

void EffectLedger::Effective(FaultKind kind, EndpointId endpoint, Victim victim, Duration lasts) {
  counts_.Effective(kind, victim);
  Endpoint& at = endpoints_[endpoint];
  if (at.in_start_up) return;
  at.open |= Bit(kind);
  const bool waits = at.role == VictimRole::kDown || at.role == VictimRole::kClient;
  at.last[static_cast<size_t>(kind)] = {.until = waits ? kUntilTold : queue_.now() + lasts.nanos + at.bound.nanos,
                                        .victim = victim};
}

void EffectLedger::MakeMember(EndpointId endpoint, Duration bound) {
  endpoints_[endpoint].is_member = true;
  endpoints_[endpoint].in_start_up = true;
  endpoints_[endpoint].role = VictimRole::kDown;
  endpoints_[endpoint].bound = bound;
}

// Counts those of `kinds` whose bite is not too long ago; none is open after it.
void EffectLedger::Count(Endpoint& at, uint64_t kinds) {
  for (uint64_t left = at.open & kinds; left != 0; left &= left - 1) {
    const auto kind = static_cast<size_t>(std::countr_zero(left));
    if (at.last[kind].until >= queue_.now()) counts_.Changing(static_cast<FaultKind>(kind), at.last[kind].victim);
  }
  at.open = 0;
}

void EffectLedger::Changed(Endpoint& at) { Count(at, ~uint64_t{0}); }

void EffectLedger::Restarted(EndpointId member, bool changed) {
  Count(endpoints_[member], changed ? ~uint64_t{0} : kEnds);
}

void EffectLedger::Down(EndpointId endpoint) {
  Endpoint& at = endpoints_[endpoint];
  if (!at.is_member) return;
  at.role = VictimRole::kDown;
  for (uint64_t left = at.open; left != 0; left &= left - 1) {
    const auto kind = static_cast<uint32_t>(std::countr_zero(left));
    if (at.last[kind].until < queue_.now()) {
      at.open &= ~(uint64_t{1} << kind);
    } else {
      at.last[kind].until = kUntilTold;
    }
  }
}

void EffectLedger::OperationEnded(EndpointId client, bool as_hoped) {
  Count(endpoints_[client], as_hoped ? 0 : ~uint64_t{0});
}

}  // namespace detcd::sim
