// The faults of a scenario: its standing settings and its episodes. What one kind of fault arms, does, and takes back
// stands in one function, a Turn of the episode's message.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "scenarios/scenario.pb.h"
#include "sim/world.h"

namespace detcd::scenario {

// After this a member that stopped by itself is started again.
inline constexpr Duration kSupervisorPause = Seconds(1);

// `numbers` count from 1, endpoints from 0.
template <class Numbers>
bool Has(const Numbers& numbers, sim::EndpointId endpoint) {
  return std::find(numbers.begin(), numbers.end(), endpoint + 1) != numbers.end();
}

// Hears what is about to happen.
class EpisodeListener {
 public:
  virtual void OnEpisode(const Episode& episode, size_t place, bool begins) = 0;
  virtual void OnCrash(uint32_t member, std::string_view how) = 0;
  virtual void OnStart(uint32_t member) = 0;

 protected:
  ~EpisodeListener() = default;
};

class EpisodeFaults {
 public:
  EpisodeFaults(const Scenario& scenario, sim::World& world, EpisodeListener& listener);

  // Before the first event: arms the standing settings, and plans starts and episodes as control events. Nothing is
  // begun at `heal_at` or later; what would end later ends then.
  void Plan(Duration heal_at);

  // A leader of a new term was seen: episodes that wait for one begin, as the next event, and those that last until one
  // know their end.
  void OnNewLeader();
  // A member stopped by itself: it is started again after kSupervisorPause.
  void OnStopped(uint32_t member);
  // A power loss is planned, with all that it may take.
  void ArmPowerLoss();
  // At the healing: disks work, processors are as fast as ever, clocks run.
  void HealMachines();

  // For each control event with a token below kTokenLimit, until the healing.
  void OnControl(uint64_t token);
  static constexpr uint64_t kTokenLimit = uint64_t{8} << 56;

 private:
  enum class Control : uint8_t { kStart, kWait, kBegin, kEnd, kCrash, kRestart, kReset, kSupervise };
  static_assert(static_cast<uint64_t>(Control::kSupervise) < kTokenLimit >> 56);
  static uint64_t Token(Control control, size_t episode, uint32_t member = 0);

  // An episode at its beginning or at its end.
  struct Moment {
    const Episode& episode;
    size_t place;
    bool begins;
  };
  struct ResetPlan {
    size_t place = 0;
    KeyedRandom random;
  };

  // Arms, begins and ends one kind of fault. An episode that blocks or hits nobody (a group of all members) arms nothing.
  void Turn(const Moment& moment, const Partition& fault);
  void Turn(const Moment& moment, const OneWay& fault);
  void Turn(const Moment& moment, const ClientPartition& fault);
  void Turn(const Moment& moment, const Slow& fault);
  void Turn(const Moment& moment, const Loss& fault);
  void Turn(const Moment& moment, const Resets& fault);
  void Turn(const Moment& moment, const Crash& fault);
  void Turn(const Moment& moment, const Pause& fault);
  void Turn(const Moment& moment, const SyncStall& fault);
  void Turn(const Moment& moment, const Drift& fault);
  void Turn(const Moment& moment, const Transfer& fault);
  void Turn(const Moment& moment, const Bridge& fault);
  void Turn(const Moment& moment, const Ring& fault);
  void Turn(const Moment& moment, const Clog& fault);
  void Turn(const Moment& moment, const HalfOpen& fault);
  void Turn(const Moment& moment, const BitFlips& fault);
  void Turn(const Moment& moment, const DiskErrors& fault);
  void Turn(const Moment& moment, const FullDisk& fault);
  void Turn(const Moment& moment, const Corruption& fault);
  void Turn(const Moment& moment, const ClockLeap& fault);
  void Turn(const Moment& moment, const ClockFreeze& fault);
  void Turn(const Moment& moment, const WallJump& fault);
  void Turn(const Moment& moment, const SlowProcessor& fault);
  void Turn(const Moment& moment, const CrashLoop& fault);
  void Turn(const Moment& moment, const Blackout& fault);
  void Turn(const Moment& moment, const LyingDrive& fault);
  void Turn(const Moment& moment, const ZeroedTail& fault);
  void Turn(const Moment& moment, const WipedDisk& fault);
  void Turn(const Moment& moment, const MisdirectedWrites& fault);
  void TurnEpisode(size_t place, bool begins);

  void ArmSettings();
  void ArmLoss(uint32_t loss_ppm, uint32_t duplicate_ppm);
  void ArmCrash(Survival survival);

  void CrashMember(size_t place, uint32_t member);
  void TakeDown(uint32_t member, Survival survival, std::string_view how = {});
  void Restart(size_t place, uint32_t member);
  void Up(uint32_t member);
  void PauseMembers(size_t changed);
  void RefreshDisks();
  void RefreshProcessors();
  void FlipStoredBit(sim::EndpointId member, KeyedRandom& random);
  void BeginResets(const Moment& moment);
  void ScheduleReset(ResetPlan& plan);
  void Reset(size_t place);
  void RefreshLinks();

  const Episode& At(size_t place) const { return scenario_.episodes(static_cast<int>(place)); }
  KeyedRandom Draws(const Episode& episode) const;
  int64_t EndOf(size_t place) const;
  bool IsWire() const { return scenario_.fidelity() == WIRE; }
  int64_t DriftOf(sim::EndpointId member) const;

  const Scenario& scenario_;
  sim::World& world_;
  sim::SimUniverse& universe_;
  EpisodeListener& listener_;
  const sim::LinkLaw base_link_;
  Duration heal_at_;
  std::vector<uint32_t> down_;  // by member: why it is down, counted
  std::vector<bool> active_;    // by episode
  std::vector<int64_t> counted_from_;  // by episode: what `for_ms` counts from, once it has begun
  std::vector<size_t> outlasting_;     // episodes under way that last until the next leader
  std::vector<size_t> waiting_;  // episodes that begin with the next leader
  std::vector<ResetPlan> resets_;
};

}  // namespace detcd::scenario
