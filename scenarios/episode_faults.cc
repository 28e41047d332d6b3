#include "scenarios/episode_faults.h"

#include "core/io/random.h"
#include "scenarios/settings.h"

namespace detcd::scenario {
namespace {

using sim::EndpointId;
using sim::FaultKind;

// Members crash at an event near the time written, so that no crash point is out of reach.
constexpr uint64_t kCrashJitterNanos = 10'000'000;
// The processes of members start within this.
constexpr uint64_t kStartSpreadNanos = 50'000'000;

template <class Numbers>
std::vector<EndpointId> Endpoints(const Numbers& numbers, EndpointId first = 0) {
  std::vector<EndpointId> endpoints;
  for (const uint32_t number : numbers) endpoints.push_back(first + number - 1);
  return endpoints;
}

template <class Numbers>
std::vector<EndpointId> Others(const Numbers& group, uint32_t members) {
  std::vector<EndpointId> endpoints;
  for (EndpointId e = 0; e < members; ++e) {
    if (!Has(group, e)) endpoints.push_back(e);
  }
  return endpoints;
}

std::string_view CrashText(Survival survival) {
  switch (survival) {
    case NOTHING: return "power lost, nothing unsynced left";
    case EVERYTHING: return "process ends";
    default: return "power lost";
  }
}

}  // namespace

EpisodeFaults::EpisodeFaults(const Scenario& scenario, sim::World& world, EpisodeListener& listener)
    : scenario_(scenario),
      world_(world),
      universe_(world.universe()),
      listener_(listener),
      base_link_(MakeLink(scenario)),
      down_(world.members(), 1),
      active_(static_cast<size_t>(scenario.episodes_size())) {}

// --- The plan ---

uint64_t EpisodeFaults::Token(Control control, size_t episode, uint32_t member) {
  return static_cast<uint64_t>(control) << 56 | uint64_t{episode} << 16 | member;
}

void EpisodeFaults::Plan(Duration heal_at) {
  heal_at_ = heal_at;
  ArmSettings();
  for (const ClockSetting& clock : scenario_.clocks()) universe_.SetDrift(clock.member() - 1, clock.drift_ppm());
  RefreshLinks();
  KeyedRandom starts(scenario_.seed(), "scenario.start");
  for (uint32_t member = 0; member < world_.members(); ++member) {
    const auto at = static_cast<int64_t>(starts.Sub(member).Below(kStartSpreadNanos));
    universe_.ScheduleControl(at, Token(Control::kStart, 0, member));
  }
  for (size_t place = 0; place < active_.size(); ++place) {
    const Duration at = Millis(At(place).at_ms());
    if (at < heal_at) universe_.ScheduleControl(at.nanos, Token(Control::kBegin, place));
  }
}

void EpisodeFaults::OnControl(uint64_t token) {
  const size_t place = token >> 16 & 0xFFFF'FFFF;
  const auto member = static_cast<uint32_t>(token & 0xFFFF);
  switch (static_cast<Control>(token >> 56)) {
    case Control::kBegin: return TurnEpisode(place, true);
    case Control::kEnd: return TurnEpisode(place, false);
    case Control::kCrash: return CrashMember(place, member);
    case Control::kReset: return Reset(place);
    case Control::kStart:
    case Control::kRestart: return Up(member);
  }
}

void EpisodeFaults::TurnEpisode(size_t place, bool begins) {
  const Episode& episode = At(place);
  listener_.OnEpisode(episode, place, begins);
  active_[place] = begins;
  const Moment moment = {.episode = episode, .place = place, .begins = begins};
  switch (episode.fault_case()) {
    case Episode::kPartition: Turn(moment, episode.partition()); break;
    case Episode::kOneWay: Turn(moment, episode.one_way()); break;
    case Episode::kClientPartition: Turn(moment, episode.client_partition()); break;
    case Episode::kSlow: Turn(moment, episode.slow()); break;
    case Episode::kLoss: Turn(moment, episode.loss()); break;
    case Episode::kResets: Turn(moment, episode.resets()); break;
    case Episode::kCrash: return Turn(moment, episode.crash());  // each restart is an event of its own
    case Episode::kPause: Turn(moment, episode.pause()); break;
    case Episode::kSyncStall: Turn(moment, episode.sync_stall()); break;
    case Episode::kDrift: Turn(moment, episode.drift()); break;
    case Episode::kTransfer: Turn(moment, episode.transfer()); break;
    case Episode::FAULT_NOT_SET: break;
  }
  if (begins) universe_.ScheduleControl(EndOf(episode), Token(Control::kEnd, place));
}

KeyedRandom EpisodeFaults::Draws(const Episode& episode) const {
  return KeyedRandom(scenario_.seed(), "scenario.episode").Sub(episode.id());
}

int64_t EpisodeFaults::EndOf(const Episode& episode) const {
  return std::min(heal_at_, Millis(episode.at_ms()) + Millis(episode.for_ms())).nanos;
}

// --- Standing settings ---

void EpisodeFaults::ArmSettings() {
  sim::EffectLedger& effects = universe_.effects();
  const Links& links = scenario_.links();
  if (links.delay().kind() == Law::BIMODAL && links.delay().slow_ppm() > 0) effects.Armed(FaultKind::kDelaySpike);
  if (world_.members() > 1) ArmLoss(links.loss_ppm(), links.duplicate_ppm());
  const Law& sync = scenario_.disks().sync();
  if (sync.kind() == Law::BIMODAL && sync.slow_ppm() > 0) effects.Armed(FaultKind::kSlowSync);
  for (const ClockSetting& clock : scenario_.clocks()) {
    if (clock.drift_ppm() != 0) effects.Armed(FaultKind::kClockDrift);
  }
  if (scenario_.lost_members_size() > 0) ArmPowerLoss();
}

// Loss and duplication of peer messages; bytes of streams can only be late, and in the end reset.
void EpisodeFaults::ArmLoss(uint32_t loss_ppm, uint32_t duplicate_ppm) {
  sim::EffectLedger& effects = universe_.effects();
  if (loss_ppm > 0) effects.Armed(IsWire() ? FaultKind::kSegmentLoss : FaultKind::kMessageLoss);
  if (duplicate_ppm == 0 || IsWire()) return;
  effects.Armed(FaultKind::kMessageDuplicate);
  effects.Armed(FaultKind::kMessageReorder);
}

void EpisodeFaults::ArmPowerLoss() {
  sim::EffectLedger& effects = universe_.effects();
  effects.Armed(FaultKind::kPowerLoss);
  effects.Armed(FaultKind::kSectorLost);
  effects.Armed(FaultKind::kSizeLost);
  effects.Armed(FaultKind::kEntryLost);
}

// --- Network ---

void EpisodeFaults::Turn(const Moment& moment, const Partition& fault) {
  const std::vector<EndpointId> group = Endpoints(fault.group());
  const std::vector<EndpointId> others = Others(fault.group(), world_.members());
  if (!moment.begins) return universe_.Rejoin(group, others);
  if (!others.empty()) universe_.effects().Armed(FaultKind::kPartition);
  universe_.Partition(group, others);
}

void EpisodeFaults::Turn(const Moment& moment, const OneWay& fault) {
  const bool only_itself = fault.from_size() == 1 && fault.to_size() == 1 && fault.from(0) == fault.to(0);
  if (moment.begins && !only_itself) universe_.effects().Armed(FaultKind::kOneWay);
  for (const EndpointId from : Endpoints(fault.from())) {
    for (const EndpointId to : Endpoints(fault.to())) {
      moment.begins ? universe_.BlockOneWay(from, to) : universe_.UnblockOneWay(from, to);
    }
  }
}

void EpisodeFaults::Turn(const Moment& moment, const ClientPartition& fault) {
  const std::vector<EndpointId> clients = Endpoints(fault.clients(), world_.ClientEndpoint(0));
  const std::vector<EndpointId> members = Endpoints(fault.members());
  if (!moment.begins) return universe_.Rejoin(clients, members, FaultKind::kClientPartition);
  if (!clients.empty()) universe_.effects().Armed(FaultKind::kClientPartition);
  universe_.Partition(clients, members, FaultKind::kClientPartition);
}

void EpisodeFaults::Turn(const Moment& moment, const Slow&) {
  if (moment.begins) universe_.effects().Armed(FaultKind::kSlowLink);
  RefreshLinks();
}

void EpisodeFaults::Turn(const Moment& moment, const Loss& fault) {
  if (moment.begins && world_.members() > 1) ArmLoss(fault.loss_ppm(), fault.duplicate_ppm());
  RefreshLinks();
}

// Gives each link the law that the faults of the moment make; of several, the later one.
void EpisodeFaults::RefreshLinks() {
  const uint32_t endpoints = world_.members() + world_.clients();
  for (EndpointId from = 0; from < endpoints; ++from) {
    for (EndpointId to = 0; to < endpoints; ++to) {
      const bool among_members = from < world_.members() && to < world_.members();
      if (from == to || (from >= world_.members() && to >= world_.members())) continue;
      sim::LinkLaw law = base_link_;
      uint32_t loss_ppm = among_members ? scenario_.links().loss_ppm() : 0;
      uint32_t duplicate_ppm = among_members ? scenario_.links().duplicate_ppm() : 0;
      for (size_t place = 0; place < active_.size(); ++place) {
        if (!active_[place]) continue;
        const Episode& episode = At(place);
        if (episode.has_slow() && (Has(episode.slow().members(), from) || Has(episode.slow().members(), to))) {
          law.delay = MakeDelay(episode.slow().delay());
          law.slow = true;
        }
        if (episode.has_loss() && among_members && (Has(episode.loss().members(), from) || Has(episode.loss().members(), to))) {
          loss_ppm = std::max(loss_ppm, episode.loss().loss_ppm());
          duplicate_ppm = std::max(duplicate_ppm, episode.loss().duplicate_ppm());
        }
      }
      if (IsWire()) {
        law.segment_loss_permille = Permille(loss_ppm);
      } else {
        law.message_loss_permille = Permille(loss_ppm);
        law.message_duplicate_permille = Permille(duplicate_ppm);
        law.message_reorder_permille = Permille(duplicate_ppm);
      }
      universe_.links().SetLaw(from, to, law);
    }
  }
}

// Its end is found by its next reset.
void EpisodeFaults::Turn(const Moment& moment, const Resets&) {
  if (!moment.begins) return;
  if (IsWire()) universe_.effects().Armed(FaultKind::kStreamReset);
  resets_.push_back({.place = moment.place, .random = Draws(moment.episode)});
  ScheduleReset(resets_.back());
}

void EpisodeFaults::ScheduleReset(ResetPlan& plan) {
  const uint64_t interval = uint64_t{std::max(1u, At(plan.place).resets().interval_ms())} * 1'000'000;
  const auto pause = static_cast<int64_t>(plan.random.Between(uint64_t{1}, 2 * interval));
  universe_.ScheduleControl(universe_.now() + pause, Token(Control::kReset, plan.place));
}

void EpisodeFaults::Reset(size_t place) {
  if (!active_[place]) return;
  const Episode& episode = At(place);
  for (ResetPlan& plan : resets_) {
    if (plan.place != place) continue;
    const auto victim = plan.random.Below(static_cast<uint64_t>(episode.resets().members_size()));
    const EndpointId member = episode.resets().members(static_cast<int>(victim)) - 1;
    const auto other = static_cast<EndpointId>(plan.random.Below(world_.members() + world_.clients()));
    if (other != member) universe_.streams().ResetBetween(member, other);
    ScheduleReset(plan);
  }
}

// --- Members ---

void EpisodeFaults::Turn(const Moment& moment, const Crash& fault) {
  if (fault.survival() == EVERYTHING) {
    universe_.effects().Armed(FaultKind::kCrash);
  } else {
    ArmPowerLoss();
  }
  for (const EndpointId member : Endpoints(fault.members())) {
    const auto jitter = static_cast<int64_t>(Draws(moment.episode).Sub(member + 1).Below(kCrashJitterNanos));
    universe_.ScheduleControl(universe_.now() + jitter, Token(Control::kCrash, moment.place, member));
  }
}

void EpisodeFaults::CrashMember(size_t place, uint32_t member) {
  const Survival survival = At(place).crash().survival();
  const Crash::PreVote pre_vote = At(place).crash().pre_vote();
  if (pre_vote != Crash::AS_BEFORE) world_.SetPreVote(member, pre_vote == Crash::ON);
  if (down_[member]++ == 0) {
    listener_.OnCrash(member, CrashText(survival));
    // What leaves everything as it was done is the end of a process; the others cut the power.
    if (survival == EVERYTHING) {
      world_.EndMember(member);
    } else {
      world_.CrashMember(member, survival == NOTHING ? sim::Survival::kNothing : sim::Survival::kMixed);
    }
  }
  const int64_t at = std::max(EndOf(At(place)), universe_.now() + 1);
  universe_.ScheduleControl(at, Token(Control::kRestart, place, member));
}

void EpisodeFaults::Up(uint32_t member) {
  if (--down_[member] != 0) return;
  listener_.OnStart(member);
  world_.StartMember(member);
}

// Ends by itself.
void EpisodeFaults::Turn(const Moment& moment, const Pause& fault) {
  if (!moment.begins) return;
  universe_.effects().Armed(FaultKind::kPause);
  for (const EndpointId member : Endpoints(fault.members())) universe_.PauseUntil(member, EndOf(moment.episode));
}

// Ends by itself.
void EpisodeFaults::Turn(const Moment& moment, const SyncStall& fault) {
  if (!moment.begins) return;
  universe_.effects().Armed(FaultKind::kSyncStall);
  for (const EndpointId member : Endpoints(fault.members())) universe_.StallDiskUntil(member, EndOf(moment.episode));
}

void EpisodeFaults::Turn(const Moment& moment, const Drift& fault) {
  if (moment.begins && fault.drift_ppm() != 0) universe_.effects().Armed(FaultKind::kClockDrift);
  universe_.SetDrift(fault.member() - 1, moment.begins ? fault.drift_ppm() : BaseDrift(fault.member()));
}

// No fault, and as hard on the members as one: it needs no healing.
void EpisodeFaults::Turn(const Moment& moment, const Transfer& fault) {
  if (!moment.begins) return;
  if (world_.members() > 1) universe_.effects().Armed(FaultKind::kTransfer);
  for (const EndpointId member : Endpoints(fault.to())) world_.MoveLeader(member);
}

int32_t EpisodeFaults::BaseDrift(uint32_t member) const {
  int32_t ppm = 0;
  for (const ClockSetting& clock : scenario_.clocks()) {
    if (clock.member() == member) ppm = clock.drift_ppm();
  }
  return ppm;
}

}  // namespace detcd::scenario
