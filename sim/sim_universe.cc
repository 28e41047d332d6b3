#include "sim/sim_universe.h"

#include "core/base/check.h"

namespace detcd::sim {
namespace {

constexpr uint64_t kControlSource = uint64_t{6} << 40;

}  // namespace

SimUniverse::SimUniverse(const UniverseKnobs& knobs)
    : knobs_(knobs),
      context_(knobs.seed, knobs.endpoints),
      links_(knobs.endpoints, knobs.link, knobs.loopback),
      streams_(context_, links_, *this, knobs.streams),
      messages_(context_, links_, *this) {
  machines_.reserve(knobs.endpoints);
  for (EndpointId e = 0; e < knobs.endpoints; ++e) {
    machines_.push_back(std::make_unique<Machine>(context_, static_cast<Inboxes&>(*this), e, knobs.disk));
  }
}

SimUniverse::~SimUniverse() {
  for (EndpointId e = 0; e < machines_.size(); ++e) EndIncarnation(e, Ending::kPowerLost);
}

// --- The loop ---

StepResult SimUniverse::Step() {
  Event event;
  if (!context_.queue.Pop(event)) return {.idle = true};
  context_.queue.set_cause(event.cause);
  StepResult result = {.kind = event.kind, .endpoint = event.target};
  switch (event.kind) {
    case EventKind::kRun:
    case EventKind::kTimer:
    case EventKind::kBackground: {
      SimHost& host = *machines_[event.target]->host;
      result.ran = host.OnEvent(event);
      if (host.stopped() && IsUp(event.target)) {
        result.stopped = true;
        EndIncarnation(event.target, Ending::kStopped);
      }
      break;
    }
    case EventKind::kConnect:
    case EventKind::kConnected:
    case EventKind::kData:
    case EventKind::kFin:
    case EventKind::kWindow:
    case EventKind::kReset:
    case EventKind::kRetry:
      streams_.OnEvent(event);
      break;
    case EventKind::kMessage:
      messages_.OnArrival(event);
      break;
    case EventKind::kDisk:
      machines_[event.target]->files.OnEvent(event);
      break;
    case EventKind::kControl:
      result.control = event.subject;
      break;
  }
  return result;
}

EventId SimUniverse::ScheduleControl(int64_t time, uint64_t token) {
  return context_.queue.Push(time, kControlSource, {.kind = EventKind::kControl, .subject = token});
}

void SimUniverse::Enqueue(EndpointId endpoint, const InboxItem& item) {
  Machine& machine = *machines_[endpoint];
  if (machine.state == MachineState::kUp) machine.host->Enqueue(item);
}

int64_t SimUniverse::TrueNow(EndpointId endpoint) const {
  const Machine& machine = *machines_[endpoint];
  return machine.state == MachineState::kUp ? machine.host->TrueNow() : now();
}

// --- Incarnations ---

Host& SimUniverse::Start(EndpointId endpoint) {
  Machine& machine = *machines_[endpoint];
  CHECK_MSG(machine.state != MachineState::kUp, "started twice");
  const HostParts parts = {context_,      streams_, messages_,       machine.files,
                           machine.clock, trace_,   knobs_.processor, machine.slowness};
  machine.files.StartIncarnation();
  machine.host = std::make_unique<SimHost>(parts, endpoint, ++machine.incarnations);
  machine.state = MachineState::kUp;
  machine.end_unnoticed.reset();
  return *machine.host;
}

void SimUniverse::EndIncarnation(EndpointId endpoint, Ending how) {
  Machine& machine = *machines_[endpoint];
  if (machine.state != MachineState::kUp) return;
  const bool silent = how == Ending::kPowerLost;
  bool noticed = machine.host->End();
  messages_.SetListener(endpoint, nullptr);
  machine.state = MachineState::kProcessDown;
  noticed |= streams_.EndEndpoint(endpoint, silent);
  noticed |= machine.files.EndIncarnation();
  // Who stops by itself is no victim of an end: what made it stop has been counted.
  if (how != Ending::kStopped) {
    machine.end_unnoticed = {.why = silent ? FaultKind::kPowerLoss : FaultKind::kCrash,
                             .victim = context_.effects.VictimAt(endpoint)};
  }
  if (noticed) EndNoticed(endpoint);
  context_.effects.Down(endpoint);
}

void SimUniverse::EndNoticed(EndpointId endpoint) {
  std::optional<Machine::Unnoticed>& ending = machines_[endpoint]->end_unnoticed;
  if (ending.has_value()) context_.effects.Effective(ending->why, endpoint, ending->victim);
  ending.reset();
}

void SimUniverse::End(EndpointId endpoint) { EndIncarnation(endpoint, Ending::kProcessEnded); }

void SimUniverse::Crash(EndpointId endpoint, Survival survival) {
  EndIncarnation(endpoint, Ending::kPowerLost);
  Machine& machine = *machines_[endpoint];
  machine.files.Crash(survival);
  machine.state = MachineState::kMachineDown;
}

// --- Faults ---

void SimUniverse::Partition(const std::vector<EndpointId>& left, const std::vector<EndpointId>& right, FaultKind why) {
  for (const EndpointId a : left) {
    for (const EndpointId b : right) {
      links_.Block(a, b, why);
      links_.Block(b, a, why);
    }
  }
}

void SimUniverse::Rejoin(const std::vector<EndpointId>& left, const std::vector<EndpointId>& right, FaultKind why) {
  for (const EndpointId a : left) {
    for (const EndpointId b : right) {
      links_.Unblock(a, b, why);
      links_.Unblock(b, a, why);
    }
  }
}

void SimUniverse::PauseUntil(EndpointId endpoint, int64_t time) {
  Machine& machine = *machines_[endpoint];
  if (machine.state != MachineState::kUp) return;
  machine.host->PauseUntil(time);
}

void SimUniverse::SetDrift(EndpointId endpoint, int64_t ppm) {
  Machine& machine = *machines_[endpoint];
  machine.clock.SetDrift(now(), ppm);
  if (machine.state == MachineState::kUp) machine.host->ClockChanged();
}

void SimUniverse::LeapClock(EndpointId endpoint, Duration by) {
  Machine& machine = *machines_[endpoint];
  if (machine.state == MachineState::kUp) context_.effects.At(endpoint).Effective(FaultKind::kClockLeap);
  machine.clock.Leap(now(), by);
  if (machine.state == MachineState::kUp) machine.host->ClockChanged();
}

void SimUniverse::JumpWall(EndpointId endpoint, Duration by) {
  machines_[endpoint]->clock.JumpWall(by);
}

bool SimUniverse::CorruptFile(EndpointId endpoint, std::string_view path, uint64_t offset, uint32_t bit) {
  const std::shared_ptr<Inode> file = disk(endpoint).Walk(path);
  if (file == nullptr || file->is_folder || !file->FlipBit(offset, bit)) return false;
  context_.effects.At(endpoint).Effective(FaultKind::kCorruption);
  disk(endpoint).Harm();
  return true;
}

void SimUniverse::ZeroTail(EndpointId endpoint, std::string_view path, uint64_t sectors) {
  CHECK(!IsUp(endpoint));
  const std::shared_ptr<Inode> file = disk(endpoint).Walk(path);
  if (file == nullptr || file->is_folder) return;
  for (uint64_t zeroed = file->ZeroTail(sectors); zeroed > 0; --zeroed) {
    context_.effects.At(endpoint).Effective(FaultKind::kZeroedTail);
    disk(endpoint).Harm();
  }
}

void SimUniverse::WipeDisk(EndpointId endpoint) {
  CHECK(!IsUp(endpoint));
  if (disk(endpoint).Wipe()) context_.effects.At(endpoint).Effective(FaultKind::kWipedDisk);
}

void SimUniverse::StallDiskUntil(EndpointId endpoint, int64_t time) {
  machines_[endpoint]->files.StallUntil(time);
}

}  // namespace detcd::sim
