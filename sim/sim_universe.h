// A world's machinery: endpoints (members and clients alike) with their clocks, disks and processors, the network
// between them, and the one loop.
//
//   SimUniverse universe({.seed = 7, .endpoints = 3});
//   Host& host = universe.Start(0);           // builds nothing: the caller makes the member's objects over it
//   while (universe.now() < limit) {
//     StepResult step = universe.Step();      // one event
//     if (step.ran) Judge(step.endpoint);     // code of that member ran
//   }
//   universe.Crash(0);                        // pending work is dropped; then the caller destroys the objects
//
// Faults are plain functions, called between steps.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sim/sim_host.h"

namespace detcd::sim {

struct UniverseKnobs {
  uint64_t seed = 1;
  uint32_t endpoints = 1;
  LinkLaw link = {.delay = DelayLaw::Uniform(Micros(100), Millis(1))};
  LinkLaw loopback = {.delay = DelayLaw::Uniform(Micros(5), Micros(20))};
  StreamKnobs streams;
  DiskKnobs disk;
  ProcessorKnobs processor;
};

struct StepResult {
  bool idle = false;  // nothing was pending: time stands still
  EventKind kind = EventKind::kControl;
  EndpointId endpoint = 0;
  bool ran = false;      // code of `endpoint` ran
  bool stopped = false;  // it called Stop: its incarnation has ended, see StoppedHost
  uint64_t control = 0;  // kControl: the token
};

class SimUniverse final : private Inboxes {
 public:
  explicit SimUniverse(const UniverseKnobs& knobs);
  ~SimUniverse();
  SimUniverse(const SimUniverse&) = delete;

  // --- the loop ---
  // Runs exactly one event.
  StepResult Step();
  // Has Step return `token` at `time` (true nanoseconds).
  EventId ScheduleControl(int64_t time, uint64_t token);
  int64_t now() const { return context_.queue.now(); }
  EventQueue& queue() { return context_.queue; }
  uint64_t digest() const { return context_.queue.digest(); }

  // --- incarnations ---
  // The endpoint must not be up. The host lives until the next Start of the endpoint.
  Host& Start(EndpointId endpoint);
  // The process ends; the machine stays: peers are reset, the disk keeps what was done.
  void End(EndpointId endpoint);
  // Power loss: peers hear nothing, the disk loses what it may lose, nobody answers until Start. Also takes down a
  // machine without a process.
  void Crash(EndpointId endpoint, Survival survival = Survival::kDrawn);
  // Somebody noticed that the endpoint's last incarnation ended, for the count of effects.
  void EndNoticed(EndpointId endpoint);
  bool IsUp(EndpointId endpoint) const { return machines_[endpoint]->state == MachineState::kUp; }
  // The incarnation that ran last; it must have been started.
  const SimHost& LastHost(EndpointId endpoint) const { return *machines_[endpoint]->host; }

  // --- network ---
  Links& links() { return links_; }
  SimStreams& streams() { return streams_; }
  SimMessages& messages() { return messages_; }
  // Blocks both directions between every endpoint of `left` and every one of `right`; Rejoin takes it back. `why` is
  // kPartition or kClientPartition.
  void Partition(const std::vector<EndpointId>& left, const std::vector<EndpointId>& right,
                 FaultKind why = FaultKind::kPartition);
  void Rejoin(const std::vector<EndpointId>& left, const std::vector<EndpointId>& right,
              FaultKind why = FaultKind::kPartition);
  // One direction only.
  void BlockOneWay(EndpointId from, EndpointId to) { links_.Block(from, to, FaultKind::kOneWay); }
  void UnblockOneWay(EndpointId from, EndpointId to) { links_.Unblock(from, to, FaultKind::kOneWay); }
  void HealNetwork() { links_.Heal(); }

  // --- machines ---
  // The processor stops until `time`, which may be sooner than was said before; its clocks run on.
  void PauseUntil(EndpointId endpoint, int64_t time);
  void SetDrift(EndpointId endpoint, int64_t ppm);
  void LeapClock(EndpointId endpoint, Duration by);
  void FreezeClock(EndpointId endpoint) { SetDrift(endpoint, kFrozenPpm); }
  void JumpWall(EndpointId endpoint, Duration by);
  // Each event takes so much longer.
  void SetSlowness(EndpointId endpoint, Duration each) { machines_[endpoint]->slowness = each; }
  void StallDiskUntil(EndpointId endpoint, int64_t time);
  // Flips one bit of a stored file, as a failing medium does; false when there is no such byte.
  bool CorruptFile(EndpointId endpoint, std::string_view path, uint64_t offset, uint32_t bit);
  // Of a machine that is down: the last sectors of a file that hold anything, at most `sectors`, come back as zeros.
  void ZeroTail(EndpointId endpoint, std::string_view path, uint64_t sectors);
  // Of a machine that is down: an empty disk takes the place of its own.
  void WipeDisk(EndpointId endpoint);
  // Whether a fault made a disk call of the endpoint's last incarnation fail.
  bool DiskFailed(EndpointId endpoint) const { return machines_[endpoint]->files.failed_a_call(); }
  DiskKnobs& disk_knobs(EndpointId endpoint) { return machines_[endpoint]->files.knobs(); }
  SimDisk& disk(EndpointId endpoint) { return machines_[endpoint]->files.disk(); }
  const SimClock& clock(EndpointId endpoint) const { return machines_[endpoint]->clock; }

  EffectLedger& effects() { return context_.effects; }
  TraceLog& trace() { return trace_; }

 private:
  enum class Ending : uint8_t { kProcessEnded, kPowerLost, kStopped };

  struct Machine {
    Machine(SimContext& context, Inboxes& inboxes, EndpointId endpoint, const DiskKnobs& knobs)
        : files(context, inboxes, endpoint, knobs) {}

    MachineState state = MachineState::kProcessDown;
    uint32_t incarnations = 0;
    SimClock clock;
    Duration slowness;
    SimFiles files;
    std::unique_ptr<SimHost> host;
    // Of the end of the incarnation that ran last, until its effect is counted: why, and what it was then.
    struct Unnoticed {
      FaultKind why;
      Victim victim;
    };
    std::optional<Unnoticed> end_unnoticed;
  };

  void Enqueue(EndpointId endpoint, const InboxItem& item) override;
  MachineState State(EndpointId endpoint) const override { return machines_[endpoint]->state; }
  void OnMissed(EndpointId endpoint) override { EndNoticed(endpoint); }
  int64_t TrueNow(EndpointId endpoint) const override;
  void EndIncarnation(EndpointId endpoint, Ending how);

  UniverseKnobs knobs_;
  SimContext context_;
  TraceLog trace_;
  Links links_;
  SimStreams streams_;
  SimMessages messages_;
  std::vector<std::unique_ptr<Machine>> machines_;
};

}  // namespace detcd::sim
