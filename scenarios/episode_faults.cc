#include "scenarios/episode_faults.h"

#include <memory>
#include <string>

#include "core/io/random.h"
#include "core/wal/segment.h"
#include "scenarios/settings.h"

namespace detcd::scenario {
namespace {

using sim::EndpointId;
using sim::FaultKind;

// Members crash at an event near the time written, so that no crash point is out of reach.
constexpr uint64_t kCrashJitterNanos = 10'000'000;
// How long an episode that lasts until the next leader waits for one, in election timeouts.
constexpr int64_t kLeaderAwaitedElections = 4;
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

// The paths of the segments of a member's log, oldest first.
std::vector<std::string> Segments(const sim::SimDisk& disk) {
  std::vector<std::string> segments;
  const std::shared_ptr<sim::Inode> folder = disk.Walk("member/wal");
  if (folder == nullptr || !folder->is_folder) return segments;
  for (const auto& [name, file] : folder->entries()) {
    if (wal::ParseSegmentName(name)) segments.push_back("member/wal/" + name);
  }
  return segments;
}

std::string NewestSegment(const sim::SimDisk& disk) {
  const std::vector<std::string> segments = Segments(disk);
  return segments.empty() ? std::string() : segments.back();
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
      active_(static_cast<size_t>(scenario.episodes_size())),
      counted_from_(active_.size()) {}

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
    const Control control = At(place).at_new_leader() ? Control::kWait : Control::kBegin;
    if (at < heal_at) universe_.ScheduleControl(at.nanos, Token(control, place));
  }
}

void EpisodeFaults::OnControl(uint64_t token) {
  const size_t place = token >> 16 & 0xFFFF'FFFF;
  const auto member = static_cast<uint32_t>(token & 0xFFFF);
  switch (static_cast<Control>(token >> 56)) {
    case Control::kWait: return waiting_.push_back(place);
    case Control::kBegin: return TurnEpisode(place, true);
    case Control::kEnd:
      // Of an episode that lasts until a leader: the end that was planned for want of one.
      if (active_[place]) TurnEpisode(place, false);
      return;
    case Control::kCrash: return CrashMember(place, member);
    case Control::kReset: return Reset(place);
    case Control::kRestart: return Restart(place, member);
    case Control::kStart:
    case Control::kSupervise: return Up(member);
  }
}

void EpisodeFaults::OnNewLeader() {
  for (const size_t place : waiting_) universe_.ScheduleControl(universe_.now(), Token(Control::kBegin, place));
  waiting_.clear();
  for (const size_t place : outlasting_) {
    if (!active_[place]) continue;
    counted_from_[place] = universe_.now();
    if (At(place).has_pause()) PauseMembers(place);
    universe_.ScheduleControl(EndOf(place), Token(Control::kEnd, place));
  }
  outlasting_.clear();
}

void EpisodeFaults::TurnEpisode(size_t place, bool begins) {
  const Episode& episode = At(place);
  listener_.OnEpisode(episode, place, begins);
  active_[place] = begins;
  if (begins) counted_from_[place] = universe_.now();
  if (begins && episode.until_new_leader()) {
    counted_from_[place] += kLeaderAwaitedElections * world_.knobs().member.election_timeout.nanos;
    outlasting_.push_back(place);
  }
  const Moment moment = {.episode = episode, .place = place, .begins = begins};
  switch (episode.fault_case()) {
    case Episode::kPartition: Turn(moment, episode.partition()); break;
    case Episode::kOneWay: Turn(moment, episode.one_way()); break;
    case Episode::kClientPartition: Turn(moment, episode.client_partition()); break;
    case Episode::kSlow: Turn(moment, episode.slow()); break;
    case Episode::kLoss: Turn(moment, episode.loss()); break;
    case Episode::kResets: Turn(moment, episode.resets()); break;
    // Each restart is an event of its own.
    case Episode::kCrash: return Turn(moment, episode.crash());
    case Episode::kCrashLoop: return Turn(moment, episode.crash_loop());
    case Episode::kBlackout: return Turn(moment, episode.blackout());
    case Episode::kZeroedTail: return Turn(moment, episode.zeroed_tail());
    case Episode::kWipedDisk: return Turn(moment, episode.wiped_disk());
    case Episode::kPause: Turn(moment, episode.pause()); break;
    case Episode::kSyncStall: Turn(moment, episode.sync_stall()); break;
    case Episode::kDrift: Turn(moment, episode.drift()); break;
    case Episode::kTransfer: Turn(moment, episode.transfer()); break;
    case Episode::kBridge: Turn(moment, episode.bridge()); break;
    case Episode::kRing: Turn(moment, episode.ring()); break;
    case Episode::kClog: Turn(moment, episode.clog()); break;
    case Episode::kHalfOpen: Turn(moment, episode.half_open()); break;
    case Episode::kBitFlips: Turn(moment, episode.bit_flips()); break;
    case Episode::kDiskErrors: Turn(moment, episode.disk_errors()); break;
    case Episode::kFullDisk: Turn(moment, episode.full_disk()); break;
    case Episode::kCorruption: Turn(moment, episode.corruption()); break;
    case Episode::kClockLeap: Turn(moment, episode.clock_leap()); break;
    case Episode::kClockFreeze: Turn(moment, episode.clock_freeze()); break;
    case Episode::kWallJump: Turn(moment, episode.wall_jump()); break;
    case Episode::kSlowProcessor: Turn(moment, episode.slow_processor()); break;
    case Episode::kLyingDrive: Turn(moment, episode.lying_drive()); break;
    case Episode::kMisdirectedWrites: Turn(moment, episode.misdirected_writes()); break;
    case Episode::FAULT_NOT_SET: break;
  }
  if (begins) universe_.ScheduleControl(EndOf(place), Token(Control::kEnd, place));
}

KeyedRandom EpisodeFaults::Draws(const Episode& episode) const {
  return KeyedRandom(scenario_.seed(), "scenario.episode").Sub(episode.id());
}

int64_t EpisodeFaults::EndOf(size_t place) const {
  return std::min(heal_at_.nanos, counted_from_[place] + Millis(At(place).for_ms()).nanos);
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
  if (scenario_.knobs().by_source_ppm() > 0) effects.Armed(FaultKind::kOvertaking);
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

void EpisodeFaults::ArmCrash(Survival survival) {
  survival == EVERYTHING ? universe_.effects().Armed(FaultKind::kCrash) : ArmPowerLoss();
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

void EpisodeFaults::Turn(const Moment& moment, const Bridge& fault) {
  const std::vector<EndpointId> left = Endpoints(fault.left());
  const std::vector<EndpointId> right = Endpoints(fault.right());
  if (!moment.begins) return universe_.Rejoin(left, right, FaultKind::kBridge);
  if (left != right || left.size() > 1) universe_.effects().Armed(FaultKind::kBridge);
  universe_.Partition(left, right, FaultKind::kBridge);
}

void EpisodeFaults::Turn(const Moment& moment, const Ring& fault) {
  const std::vector<EndpointId> ring = Endpoints(fault.members());
  if (ring.size() < 4) return;
  if (moment.begins) universe_.effects().Armed(FaultKind::kRing);
  for (size_t a = 0; a < ring.size(); ++a) {
    for (size_t b = a + 2; b < ring.size(); ++b) {
      if (a == 0 && b + 1 == ring.size()) continue;  // the ring is closed
      moment.begins ? universe_.Partition({ring[a]}, {ring[b]}, FaultKind::kRing)
                    : universe_.Rejoin({ring[a]}, {ring[b]}, FaultKind::kRing);
    }
  }
}

void EpisodeFaults::Turn(const Moment& moment, const Clog& fault) {
  const bool only_itself = fault.from_size() == 1 && fault.to_size() == 1 && fault.from(0) == fault.to(0);
  if (moment.begins && !only_itself) universe_.effects().Armed(FaultKind::kClog);
  RefreshLinks();
}

void EpisodeFaults::Turn(const Moment& moment, const BitFlips& fault) {
  if (moment.begins && IsWire() && fault.flip_ppm() > 0) universe_.effects().Armed(FaultKind::kBitFlip);
  RefreshLinks();
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
        if (episode.has_clog() && Has(episode.clog().from(), from) && Has(episode.clog().to(), to)) {
          law.clogged_until = std::max(law.clogged_until, EndOf(place));
        }
        if (episode.has_bit_flips() && (Has(episode.bit_flips().members(), from) || Has(episode.bit_flips().members(), to))) {
          law.flip_permille = std::max(law.flip_permille, Permille(episode.bit_flips().flip_ppm()));
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

void EpisodeFaults::Turn(const Moment& moment, const Resets&) {
  if (moment.begins && IsWire()) universe_.effects().Armed(FaultKind::kStreamReset);
  BeginResets(moment);
}

void EpisodeFaults::Turn(const Moment& moment, const HalfOpen&) {
  if (moment.begins && IsWire()) universe_.effects().Armed(FaultKind::kHalfOpen);
  BeginResets(moment);
}

// Their end is found by their next reset.
void EpisodeFaults::BeginResets(const Moment& moment) {
  if (!moment.begins) return;
  resets_.push_back({.place = moment.place, .random = Draws(moment.episode)});
  ScheduleReset(resets_.back());
}

void EpisodeFaults::ScheduleReset(ResetPlan& plan) {
  const Episode& episode = At(plan.place);
  const uint32_t interval_ms = episode.has_resets() ? episode.resets().interval_ms() : episode.half_open().interval_ms();
  const uint64_t interval = uint64_t{std::max(1u, interval_ms)} * 1'000'000;
  const auto pause = static_cast<int64_t>(plan.random.Between(uint64_t{1}, 2 * interval));
  universe_.ScheduleControl(universe_.now() + pause, Token(Control::kReset, plan.place));
}

void EpisodeFaults::Reset(size_t place) {
  if (!active_[place]) return;
  const Episode& episode = At(place);
  const auto& members = episode.has_resets() ? episode.resets().members() : episode.half_open().members();
  for (ResetPlan& plan : resets_) {
    if (plan.place != place) continue;
    const auto victim = plan.random.Below(static_cast<uint64_t>(members.size()));
    const EndpointId member = members.Get(static_cast<int>(victim)) - 1;
    const auto other = static_cast<EndpointId>(plan.random.Below(world_.members() + world_.clients()));
    if (other != member) {
      episode.has_resets() ? universe_.streams().ResetBetween(member, other) : universe_.streams().CutAt(member, other);
    }
    ScheduleReset(plan);
  }
}

// --- Members ---

void EpisodeFaults::Turn(const Moment& moment, const Crash& fault) {
  ArmCrash(fault.survival());
  for (const EndpointId member : Endpoints(fault.members())) {
    const auto jitter = static_cast<int64_t>(Draws(moment.episode).Sub(member + 1).Below(kCrashJitterNanos));
    universe_.ScheduleControl(universe_.now() + jitter, Token(Control::kCrash, moment.place, member));
  }
}

// The first end is now; a member that is up is ended again after each start, until the episode is over.
void EpisodeFaults::Turn(const Moment& moment, const CrashLoop& fault) {
  ArmCrash(fault.survival());
  universe_.effects().Armed(FaultKind::kCrashLoop);
  for (const EndpointId member : Endpoints(fault.members())) CrashMember(moment.place, member);
}

void EpisodeFaults::Turn(const Moment& moment, const Blackout&) {
  ArmPowerLoss();
  universe_.effects().Armed(FaultKind::kBlackout);
  for (EndpointId member = 0; member < world_.members(); ++member) {
    if (world_.IsUp(member)) universe_.effects().At(member).Effective(FaultKind::kBlackout);
  }
  for (EndpointId member = 0; member < world_.members(); ++member) CrashMember(moment.place, member);
}

void EpisodeFaults::Turn(const Moment& moment, const ZeroedTail& fault) {
  ArmPowerLoss();
  universe_.effects().Armed(FaultKind::kZeroedTail);
  for (const EndpointId member : Endpoints(fault.members())) CrashMember(moment.place, member);
}

void EpisodeFaults::Turn(const Moment& moment, const WipedDisk& fault) {
  ArmPowerLoss();
  universe_.effects().Armed(FaultKind::kWipedDisk);
  for (const EndpointId member : Endpoints(fault.members())) CrashMember(moment.place, member);
}

void EpisodeFaults::TakeDown(uint32_t member, Survival survival, std::string_view how) {
  listener_.OnCrash(member, how.empty() ? CrashText(survival) : how);
  // What leaves everything as it was done is the end of a process; the others cut the power.
  if (survival == EVERYTHING) {
    world_.EndMember(member);
  } else {
    world_.CrashMember(member, survival == NOTHING ? sim::Survival::kNothing : sim::Survival::kMixed);
  }
}

void EpisodeFaults::CrashMember(size_t place, uint32_t member) {
  const Episode& episode = At(place);
  const bool was_up = down_[member]++ == 0;
  int64_t restart_at = std::max(EndOf(place), universe_.now() + 1);
  switch (episode.fault_case()) {
    case Episode::kCrashLoop:
      if (was_up && world_.InStartUp(member)) universe_.effects().At(member).Effective(FaultKind::kCrashLoop);
      if (was_up) TakeDown(member, episode.crash_loop().survival());
      restart_at = universe_.now() + 1;
      break;
    case Episode::kBlackout:
      if (was_up) TakeDown(member, episode.blackout().survival());
      break;
    case Episode::kZeroedTail:
      TakeDown(member, NOTHING, "power lost, the end of the log comes back as zeros");
      universe_.ZeroTail(member, NewestSegment(universe_.disk(member)), std::max(1u, episode.zeroed_tail().sectors()));
      break;
    case Episode::kWipedDisk:
      TakeDown(member, NOTHING, "power lost, the disk comes back empty");
      universe_.WipeDisk(member);
      break;
    case Episode::kLyingDrive:
      TakeDown(member, NOTHING, "power lost, nothing left since the drive began to lie");
      restart_at = universe_.now() + 1;
      break;
    case Episode::kMisdirectedWrites:
      if (was_up) TakeDown(member, EVERYTHING);
      restart_at = universe_.now() + 1;
      break;
    default:
      if (episode.crash().pre_vote() != Crash::AS_BEFORE) world_.SetPreVote(member, episode.crash().pre_vote() == Crash::ON);
      if (was_up) TakeDown(member, episode.crash().survival());
  }
  universe_.ScheduleControl(restart_at, Token(Control::kRestart, place, member));
}

void EpisodeFaults::Restart(size_t place, uint32_t member) {
  Up(member);
  const Episode& episode = At(place);
  if (!episode.has_crash_loop()) return;
  const uint64_t up = uint64_t{std::max(1u, episode.crash_loop().up_ms())} * 1'000'000;
  KeyedRandom random = Draws(episode).Sub(member + 1).Sub(static_cast<uint64_t>(universe_.now()));
  const int64_t again = universe_.now() + static_cast<int64_t>(random.Between(uint64_t{1}, 2 * up));
  if (again < EndOf(place)) universe_.ScheduleControl(again, Token(Control::kCrash, place, member));
}

void EpisodeFaults::Up(uint32_t member) {
  if (--down_[member] != 0) return;
  listener_.OnStart(member);
  world_.StartMember(member);
}

void EpisodeFaults::OnStopped(uint32_t member) {
  ++down_[member];
  universe_.ScheduleControl(universe_.now() + kSupervisorPause.nanos, Token(Control::kSupervise, 0, member));
}

// Ends by itself.
void EpisodeFaults::Turn(const Moment& moment, const Pause& fault) {
  if (!moment.begins) return;
  universe_.effects().Armed(FaultKind::kPause);
  if (fault.members_size() > 0) PauseMembers(moment.place);
}

// Each until the last of the episodes that pause it.
void EpisodeFaults::PauseMembers(size_t changed) {
  for (const EndpointId member : Endpoints(At(changed).pause().members())) {
    int64_t until = 0;
    for (size_t place = 0; place < active_.size(); ++place) {
      if (active_[place] && Has(At(place).pause().members(), member)) until = std::max(until, EndOf(place));
    }
    universe_.PauseUntil(member, until);
  }
}

// Ends by itself.
void EpisodeFaults::Turn(const Moment& moment, const SyncStall& fault) {
  if (!moment.begins) return;
  universe_.effects().Armed(FaultKind::kSyncStall);
  for (const EndpointId member : Endpoints(fault.members())) universe_.StallDiskUntil(member, EndOf(moment.place));
}

void EpisodeFaults::Turn(const Moment& moment, const Drift& fault) {
  if (moment.begins && fault.drift_ppm() != 0) universe_.effects().Armed(FaultKind::kClockDrift);
  universe_.SetDrift(fault.member() - 1, DriftOf(fault.member() - 1));
}

void EpisodeFaults::Turn(const Moment& moment, const ClockFreeze& fault) {
  if (moment.begins) universe_.effects().Armed(FaultKind::kClockFreeze);
  for (const EndpointId member : Endpoints(fault.members())) universe_.SetDrift(member, DriftOf(member));
}

void EpisodeFaults::Turn(const Moment& moment, const ClockLeap& fault) {
  if (!moment.begins || fault.by_ms() == 0) return;
  universe_.effects().Armed(FaultKind::kClockLeap);
  for (const EndpointId member : Endpoints(fault.members())) universe_.LeapClock(member, Millis(fault.by_ms()));
}

void EpisodeFaults::Turn(const Moment& moment, const WallJump& fault) {
  if (!moment.begins || fault.by_ms() == 0) return;
  if (IsWire()) universe_.effects().Armed(FaultKind::kWallJump);  // only HTTP/1 answers say the time of day
  for (const EndpointId member : Endpoints(fault.members())) universe_.JumpWall(member, Millis(fault.by_ms()));
}

void EpisodeFaults::Turn(const Moment& moment, const SlowProcessor& fault) {
  if (moment.begins && fault.cost_us() > 0) universe_.effects().Armed(FaultKind::kSlowProcessor);
  RefreshProcessors();
}

void EpisodeFaults::RefreshProcessors() {
  for (EndpointId member = 0; member < world_.members(); ++member) {
    uint32_t cost_us = 0;
    for (size_t place = 0; place < active_.size(); ++place) {
      if (!active_[place] || !Has(At(place).slow_processor().members(), member)) continue;
      cost_us = std::max(cost_us, At(place).slow_processor().cost_us());
    }
    universe_.SetSlowness(member, Micros(cost_us));
  }
}

// No fault, and as hard on the members as one: it needs no healing.
void EpisodeFaults::Turn(const Moment& moment, const Transfer& fault) {
  if (!moment.begins) return;
  if (world_.members() > 1) universe_.effects().Armed(FaultKind::kTransfer);
  for (const EndpointId member : Endpoints(fault.to())) world_.MoveLeader(member);
}

// Of several episodes the later one; a clock that stands still in one stands still.
int64_t EpisodeFaults::DriftOf(EndpointId member) const {
  int64_t ppm = 0;
  for (const ClockSetting& clock : scenario_.clocks()) {
    if (clock.member() == member + 1) ppm = clock.drift_ppm();
  }
  for (size_t place = 0; place < active_.size(); ++place) {
    if (!active_[place]) continue;
    const Episode& episode = At(place);
    if (episode.has_clock_freeze() && Has(episode.clock_freeze().members(), member)) return sim::kFrozenPpm;
    if (episode.has_drift() && episode.drift().member() == member + 1) ppm = episode.drift().drift_ppm();
  }
  return ppm;
}

// --- Disks ---

void EpisodeFaults::Turn(const Moment& moment, const DiskErrors& fault) {
  sim::EffectLedger& effects = universe_.effects();
  if (moment.begins && fault.read_ppm() + fault.write_ppm() > 0) effects.Armed(FaultKind::kDeviceError);
  if (moment.begins && fault.sync_ppm() > 0) {
    effects.Armed(FaultKind::kSyncError);
    effects.Armed(FaultKind::kSectorLost);
  }
  RefreshDisks();
}

void EpisodeFaults::Turn(const Moment& moment, const FullDisk& fault) {
  if (moment.begins) universe_.effects().Armed(FaultKind::kNoSpace);
  for (const EndpointId member : Endpoints(fault.members())) {
    if (moment.begins) {
      universe_.disk(member).LimitTo(fault.left_bytes());
      continue;
    }
    bool still_full = false;
    for (size_t place = 0; place < active_.size(); ++place) still_full |= active_[place] && Has(At(place).full_disk().members(), member);
    if (!still_full) universe_.disk(member).Unlimit();
  }
}

void EpisodeFaults::Turn(const Moment& moment, const Corruption& fault) {
  if (!moment.begins) return;
  universe_.effects().Armed(FaultKind::kCorruption);
  for (const EndpointId member : Endpoints(fault.members())) {
    KeyedRandom random = Draws(moment.episode).Sub(member + 1);
    for (uint32_t bit = 0; bit < std::max(1u, fault.bits()); ++bit) FlipStoredBit(member, random);
  }
}

// The last segment may not be known to be the last: the one before it may become it in a power loss. Those before both
// are whole and were synced, so that whatever changes in them is damage.
void EpisodeFaults::FlipStoredBit(EndpointId member, KeyedRandom& random) {
  const std::vector<std::string> segments = Segments(universe_.disk(member));
  if (segments.size() < 3) return;
  const std::string& path = segments[random.Below(segments.size() - 2)];
  const std::shared_ptr<sim::Inode> file = universe_.disk(member).Walk(path);
  if (file->size() == 0) return;
  const uint64_t offset = random.Below(file->size());
  universe_.CorruptFile(member, path, offset, static_cast<uint32_t>(random.Below(8)));
}

// The drive is found out at the end.
void EpisodeFaults::Turn(const Moment& moment, const LyingDrive& fault) {
  if (moment.begins) {
    ArmPowerLoss();
    universe_.effects().Armed(FaultKind::kLyingSync);
  } else {
    for (const EndpointId member : Endpoints(fault.members())) CrashMember(moment.place, member);
  }
  RefreshDisks();
}

// Only who reads finds them out.
void EpisodeFaults::Turn(const Moment& moment, const MisdirectedWrites& fault) {
  if (moment.begins) {
    universe_.effects().Armed(FaultKind::kCrash);
    if (fault.write_ppm() > 0) universe_.effects().Armed(FaultKind::kMisdirectedWrite);
  } else {
    for (const EndpointId member : Endpoints(fault.members())) CrashMember(moment.place, member);
  }
  RefreshDisks();
}

void EpisodeFaults::RefreshDisks() {
  for (EndpointId member = 0; member < world_.members(); ++member) {
    sim::DiskKnobs& knobs = universe_.disk_knobs(member);
    knobs.read_error_permille = knobs.write_error_permille = knobs.sync_error_permille = 0;
    knobs.misdirect_permille = 0;
    knobs.sync_lies = false;
    for (size_t place = 0; place < active_.size(); ++place) {
      if (!active_[place]) continue;
      const DiskErrors& errors = At(place).disk_errors();
      knobs.sync_lies |= Has(At(place).lying_drive().members(), member);
      if (Has(At(place).misdirected_writes().members(), member)) {
        knobs.misdirect_permille = std::max(knobs.misdirect_permille, Permille(At(place).misdirected_writes().write_ppm()));
      }
      if (!Has(errors.members(), member)) continue;
      knobs.read_error_permille = std::max(knobs.read_error_permille, Permille(errors.read_ppm()));
      knobs.write_error_permille = std::max(knobs.write_error_permille, Permille(errors.write_ppm()));
      knobs.sync_error_permille = std::max(knobs.sync_error_permille, Permille(errors.sync_ppm()));
    }
  }
}

void EpisodeFaults::HealMachines() {
  std::fill(active_.begin(), active_.end(), false);
  RefreshDisks();
  RefreshProcessors();
  for (EndpointId member = 0; member < world_.members(); ++member) {
    universe_.disk(member).Unlimit();
    if (universe_.clock(member).drift_ppm() != 0) universe_.SetDrift(member, 0);
  }
}

}  // namespace detcd::scenario
