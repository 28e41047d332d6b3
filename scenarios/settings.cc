#include "scenarios/settings.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_format.h"
#include "core/raft/leader_lease.h"
#include "scenarios/metrics.h"
#include "scenarios/operations.h"
#include "scenarios/runner.h"

namespace detcd::scenario {
namespace {

constexpr uint32_t kMembersMax = 9;
constexpr uint32_t kClientsMax = 64;
constexpr uint32_t kTimeMaxMs = 3'600'000;
constexpr uint64_t kDelayMaxUs = 60'000'000;
constexpr int32_t kDriftMaxPpm = 500'000;
constexpr uint32_t kRepetitionsMax = 100'000;

Duration MillisOr(uint32_t ms, uint32_t otherwise) { return Millis(ms != 0 ? ms : otherwise); }

int64_t LeaseDrift(const Knobs& knobs, int64_t drift_ppm_max) {
  return knobs.lease_drift_ppm() != 0 ? knobs.lease_drift_ppm() : std::max(raft::kClockDriftPpmMax, drift_ppm_max);
}

Duration Longest(const Law& law) { return MakeDelay(law).max; }

}  // namespace

sim::DelayLaw MakeDelay(const Law& law) {
  const Duration min = Micros(static_cast<int64_t>(law.min_us()));
  const Duration max = Micros(static_cast<int64_t>(law.max_us()));
  switch (law.kind()) {
    case Law::EXPONENTIAL:
      return {.shape = sim::DelayShape::kExponential, .min = min, .mean = max - min, .max = min + (max - min) * 10};
    case Law::BIMODAL:
      return {.shape = sim::DelayShape::kBimodal, .min = min, .mean = min, .max = max, .slow_permille = Permille(law.slow_ppm())};
    default:
      return sim::DelayLaw::Uniform(min, max);
  }
}

sim::LinkLaw MakeLink(const Scenario& scenario) {
  sim::LinkLaw law = sim::UniverseKnobs().link;
  if (scenario.links().has_delay()) law.delay = MakeDelay(scenario.links().delay());
  return law;
}

sim::WorldKnobs MakeWorldKnobs(const Scenario& scenario) {
  const Knobs& knobs = scenario.knobs();
  sim::WorldKnobs world;
  world.fidelity = scenario.fidelity() == WIRE ? sim::Fidelity::kWire : sim::Fidelity::kDirect;
  world.members = scenario.members() != 0 ? scenario.members() : 3;
  world.clients = scenario.clients() != 0 ? scenario.clients() : 1;

  world.universe.seed = scenario.seed();
  world.universe.link = MakeLink(scenario);
  if (scenario.disks().has_write()) world.universe.disk.write = MakeDelay(scenario.disks().write());
  if (scenario.disks().has_sync()) world.universe.disk.sync = MakeDelay(scenario.disks().sync());
  world.universe.processor.turn_events_max = std::max(1u, knobs.turn_events_max());
  world.universe.processor.by_source_permille = Permille(knobs.by_source_ppm());
  world.universe.processor.service = sim::DelayLaw::Constant(Micros(knobs.event_cost_us()));
  if (knobs.socket_buffer_bytes() != 0) world.universe.streams.buffer_bytes = knobs.socket_buffer_bytes();

  world.member.heartbeat_interval = MillisOr(knobs.heartbeat_ms(), 100);
  world.member.election_timeout = MillisOr(knobs.election_timeout_ms(), 1000);
  world.member.pre_vote = !knobs.no_pre_vote();
  world.member.check_quorum = !knobs.no_check_quorum();
  world.member.wal_segment_bytes = knobs.wal_segment_bytes();
  world.member.append_bytes_max = knobs.append_bytes_max();
  world.member.appends_in_flight_max = knobs.appends_in_flight_max();
  world.member.uncommitted_bytes_max = knobs.uncommitted_bytes_max();
  world.member.log_entries_in_memory_max = knobs.log_entries_in_memory_max();

  for (const uint32_t member : knobs.no_pre_vote_members()) world.no_pre_vote.insert(member - 1);

  world.client_try_timeout = MillisOr(knobs.client_timeout_ms(), 5000);
  world.client_total_timeout = world.client_try_timeout * 3;
  for (const ClockSetting& clock : scenario.clocks()) {
    world.clock_drift_ppm_max = std::max<int64_t>(world.clock_drift_ppm_max, std::abs(clock.drift_ppm()));
  }
  for (const Episode& episode : scenario.episodes()) {
    world.clock_drift_ppm_max = std::max<int64_t>(world.clock_drift_ppm_max, std::abs(episode.drift().drift_ppm()));
  }
  world.member.lease_reads = knobs.lease_reads();
  world.member.clock_drift_ppm_max = LeaseDrift(knobs, world.clock_drift_ppm_max);
  for (const uint32_t member : knobs.no_lease_reads()) world.no_lease_reads.push_back(member - 1);
  world.harmed_may_stop = scenario.profile() == BEYOND || scenario.profile() == NEGATIVE;
  return world;
}

Duration LongestDelay(const Scenario& scenario) {
  const sim::WorldKnobs knobs = MakeWorldKnobs(scenario);
  Duration longest = knobs.universe.link.delay.max;
  for (const Episode& episode : scenario.episodes()) {
    if (episode.has_slow()) longest = std::max(longest, Longest(episode.slow().delay()));
  }
  // What waits on a blocked path is tried again after at most this.
  if (scenario.fidelity() == WIRE) longest = longest + knobs.universe.streams.retransmit_max;
  return longest;
}

Duration LongestSync(const Scenario& scenario) { return MakeWorldKnobs(scenario).universe.disk.sync.max; }

bool MayLastUntilLeader(const Episode& episode) {
  switch (episode.fault_case()) {
    // Over at once, or planned to the end when they begin.
    case Episode::kCrash: case Episode::kCrashLoop: case Episode::kBlackout: case Episode::kZeroedTail: case Episode::kWipedDisk:
    case Episode::kSyncStall: case Episode::kClog: case Episode::kTransfer: case Episode::kCorruption: case Episode::kClockLeap:
    case Episode::kWallJump: case Episode::FAULT_NOT_SET:
      return false;
    case Episode::kPartition: case Episode::kOneWay: case Episode::kClientPartition: case Episode::kSlow: case Episode::kLoss:
    case Episode::kResets: case Episode::kPause: case Episode::kDrift: case Episode::kBridge: case Episode::kRing:
    case Episode::kHalfOpen: case Episode::kBitFlips: case Episode::kDiskErrors: case Episode::kFullDisk:
    case Episode::kClockFreeze: case Episode::kSlowProcessor: case Episode::kLyingDrive: case Episode::kMisdirectedWrites:
      return true;
  }
  return false;
}

// --- What cannot be run ----------------------------------------------------------------------------------------------

namespace {

class Inspector {
 public:
  explicit Inspector(const Scenario& scenario)
      : scenario_(scenario),
        members_(scenario.members() != 0 ? scenario.members() : 3),
        clients_(scenario.clients() != 0 ? scenario.clients() : 1) {}

  std::string Inspect() {
    if (scenario_.format_version() != 1) {
      return absl::StrFormat("format_version: want 1, got %d", scenario_.format_version());
    }
    Number("members", scenario_.members(), kMembersMax);
    Number("clients", scenario_.clients(), kClientsMax);
    Number("chaos_ms", scenario_.chaos_ms(), kTimeMaxMs);
    CheckKnobs(scenario_.knobs());
    if (!Fidelity_IsValid(scenario_.fidelity())) Complain("fidelity", "is no known fidelity");
    if (!Profile_IsValid(scenario_.profile())) Complain("profile", "is no known profile");
    CheckLaw("links.delay", scenario_.links().delay());
    Number("links.loss_ppm", scenario_.links().loss_ppm(), 1'000'000);
    Number("links.duplicate_ppm", scenario_.links().duplicate_ppm(), 1'000'000);
    CheckLaw("disks.write", scenario_.disks().write());
    CheckLaw("disks.sync", scenario_.disks().sync());
    for (int i = 0; i < scenario_.clocks_size(); ++i) {
      const std::string where = absl::StrFormat("clocks[%d]", i);
      Member(where + ".member", scenario_.clocks(i).member());
      Drift(where + ".drift_ppm", scenario_.clocks(i).drift_ppm());
    }
    for (int i = 0; i < scenario_.episodes_size(); ++i) CheckEpisode(absl::StrFormat("episodes[%d]", i), scenario_.episodes(i));
    if (scenario_.lost_members_size() > 0) Members("lost_members", scenario_.lost_members());
    Number("lost_members", static_cast<uint64_t>(scenario_.lost_members_size()), (members_ - 1) / 2);
    for (int i = 0; i < scenario_.operations_size(); ++i) {
      CheckOperation(absl::StrFormat("operations[%d]", i), scenario_.operations(i));
    }
    for (int i = 0; i < scenario_.expectations_size(); ++i) {
      CheckExpectation(absl::StrFormat("expectations[%d]", i), scenario_.expectations(i));
    }
    return complaint_;
  }

 private:
  void Complain(const std::string& where, const std::string& what) {
    if (complaint_.empty()) complaint_ = where + ": " + what;
  }
  void Number(const std::string& where, uint64_t number, uint64_t most) {
    if (number > most) Complain(where, absl::StrFormat("want at most %d, got %d", most, number));
  }
  void Member(const std::string& where, uint32_t member) {
    if (member < 1 || member > members_) Complain(where, absl::StrFormat("want 1 to %d, got %d", members_, member));
  }
  template <class Numbers>
  void Members(const std::string& where, const Numbers& members) {
    std::set<uint32_t> seen;
    if (members.empty()) Complain(where, "names no member");
    for (const uint32_t member : members) {
      Member(where, member);
      if (!seen.insert(member).second) Complain(where, absl::StrFormat("names %d twice", member));
    }
  }
  void Drift(const std::string& where, int32_t ppm) {
    if (ppm < -kDriftMaxPpm || ppm > kDriftMaxPpm) {
      Complain(where, absl::StrFormat("want %d to %d, got %d", -kDriftMaxPpm, kDriftMaxPpm, ppm));
    }
  }
  void CheckLaw(const std::string& where, const Law& law) {
    if (!Law::Kind_IsValid(law.kind())) Complain(where + ".kind", "is no known law");
    Number(where + ".max_us", law.max_us(), kDelayMaxUs);
    if (law.max_us() < law.min_us()) {
      Complain(where, absl::StrFormat("max_us %d is below min_us %d", law.max_us(), law.min_us()));
    }
    Number(where + ".slow_ppm", law.slow_ppm(), 1'000'000);
  }

  void CheckKnobs(const Knobs& knobs) {
    Number("knobs.heartbeat_ms", knobs.heartbeat_ms(), 100'000);
    Number("knobs.election_timeout_ms", knobs.election_timeout_ms(), 100'000);
    const uint32_t heartbeat = knobs.heartbeat_ms() != 0 ? knobs.heartbeat_ms() : 100;
    const uint32_t election = knobs.election_timeout_ms() != 0 ? knobs.election_timeout_ms() : 1000;
    if (election < heartbeat * 5 || election % heartbeat != 0) {
      Complain("knobs.election_timeout_ms",
               absl::StrFormat("want a multiple of heartbeat_ms %d, at least 5 of them, got %d", heartbeat, election));
    }
    if (knobs.wal_segment_bytes() != 0 && knobs.wal_segment_bytes() < 1'024) {
      Complain("knobs.wal_segment_bytes", absl::StrFormat("want 0 or at least 1024, got %d", knobs.wal_segment_bytes()));
    }
    Number("knobs.wal_segment_bytes", knobs.wal_segment_bytes(), uint64_t{1} << 30);
    CheckLeases(knobs, Millis(election), Millis(heartbeat));
    Number("knobs.append_bytes_max", knobs.append_bytes_max(), uint64_t{1} << 30);
    Number("knobs.turn_events_max", knobs.turn_events_max(), 10'000);
    Number("knobs.by_source_ppm", knobs.by_source_ppm(), 1'000'000);
    Number("knobs.event_cost_us", knobs.event_cost_us(), 1'000'000);
    Number("knobs.client_timeout_ms", knobs.client_timeout_ms(), kTimeMaxMs);
    if (knobs.no_pre_vote_members_size() > 0) Members("knobs.no_pre_vote_members", knobs.no_pre_vote_members());
    if (knobs.socket_buffer_bytes() != 0 && knobs.socket_buffer_bytes() < 64) {
      Complain("knobs.socket_buffer_bytes", absl::StrFormat("want 0 or at least 64, got %d", knobs.socket_buffer_bytes()));
    }
  }

  void CheckLeases(const Knobs& knobs, Duration election_timeout, Duration heartbeat_interval) {
    if (knobs.no_lease_reads_size() > 0) Members("knobs.no_lease_reads", knobs.no_lease_reads());
    if (!knobs.lease_reads() || !complaint_.empty()) return;
    const std::string trouble =
        raft::LeaseTrouble(election_timeout, heartbeat_interval, LeaseDrift(knobs, kDriftMaxPpm));
    if (!trouble.empty()) Complain("knobs.lease_reads", trouble);
  }

  void CheckEpisode(const std::string& where, const Episode& episode) {
    if (!episodes_.insert(episode.id()).second) Complain(where + ".id", absl::StrFormat("%d is not unique", episode.id()));
    Number(where + ".at_ms", episode.at_ms(), kTimeMaxMs);
    Number(where + ".for_ms", episode.for_ms(), kTimeMaxMs);
    if (episode.until_new_leader() && !MayLastUntilLeader(episode)) {
      Complain(where + ".until_new_leader", "the end of this fault is planned when it begins");
    }
    switch (episode.fault_case()) {
      case Episode::kPartition: return Members(where + ".partition.group", episode.partition().group());
      case Episode::kOneWay:
        Members(where + ".one_way.from", episode.one_way().from());
        return Members(where + ".one_way.to", episode.one_way().to());
      case Episode::kClientPartition:
        for (const uint32_t client : episode.client_partition().clients()) Client(where + ".client_partition.clients", client);
        return Members(where + ".client_partition.members", episode.client_partition().members());
      case Episode::kSlow:
        Members(where + ".slow.members", episode.slow().members());
        return CheckLaw(where + ".slow.delay", episode.slow().delay());
      case Episode::kLoss:
        Members(where + ".loss.members", episode.loss().members());
        Number(where + ".loss.loss_ppm", episode.loss().loss_ppm(), 1'000'000);
        return Number(where + ".loss.duplicate_ppm", episode.loss().duplicate_ppm(), 1'000'000);
      case Episode::kResets: return Members(where + ".resets.members", episode.resets().members());
      case Episode::kCrash:
        if (!Survival_IsValid(episode.crash().survival())) Complain(where + ".crash.survival", "is no known survival");
        if (!Crash::PreVote_IsValid(episode.crash().pre_vote())) Complain(where + ".crash.pre_vote", "is no known setting");
        return Members(where + ".crash.members", episode.crash().members());
      case Episode::kPause: return Members(where + ".pause.members", episode.pause().members());
      case Episode::kSyncStall: return Members(where + ".sync_stall.members", episode.sync_stall().members());
      case Episode::kDrift:
        Member(where + ".drift.member", episode.drift().member());
        return Drift(where + ".drift.drift_ppm", episode.drift().drift_ppm());
      case Episode::kTransfer: return Members(where + ".transfer.to", episode.transfer().to());
      case Episode::kBridge:
        Members(where + ".bridge.left", episode.bridge().left());
        return Members(where + ".bridge.right", episode.bridge().right());
      case Episode::kRing: return Members(where + ".ring.members", episode.ring().members());
      case Episode::kClog:
        Members(where + ".clog.from", episode.clog().from());
        return Members(where + ".clog.to", episode.clog().to());
      case Episode::kHalfOpen: return Members(where + ".half_open.members", episode.half_open().members());
      case Episode::kBitFlips:
        Members(where + ".bit_flips.members", episode.bit_flips().members());
        return Number(where + ".bit_flips.flip_ppm", episode.bit_flips().flip_ppm(), 1'000'000);
      case Episode::kDiskErrors:
        Members(where + ".disk_errors.members", episode.disk_errors().members());
        Number(where + ".disk_errors.read_ppm", episode.disk_errors().read_ppm(), 1'000'000);
        Number(where + ".disk_errors.write_ppm", episode.disk_errors().write_ppm(), 1'000'000);
        return Number(where + ".disk_errors.sync_ppm", episode.disk_errors().sync_ppm(), 1'000'000);
      case Episode::kFullDisk:
        Members(where + ".full_disk.members", episode.full_disk().members());
        return Number(where + ".full_disk.left_bytes", episode.full_disk().left_bytes(), uint64_t{1} << 40);
      case Episode::kCorruption:
        Members(where + ".corruption.members", episode.corruption().members());
        return Number(where + ".corruption.bits", episode.corruption().bits(), 1'000);
      case Episode::kClockLeap:
        Members(where + ".clock_leap.members", episode.clock_leap().members());
        return Number(where + ".clock_leap.by_ms", episode.clock_leap().by_ms(), kTimeMaxMs);
      case Episode::kClockFreeze: return Members(where + ".clock_freeze.members", episode.clock_freeze().members());
      case Episode::kWallJump: return Members(where + ".wall_jump.members", episode.wall_jump().members());
      case Episode::kSlowProcessor:
        Members(where + ".slow_processor.members", episode.slow_processor().members());
        return Number(where + ".slow_processor.cost_us", episode.slow_processor().cost_us(), 1'000'000);
      case Episode::kCrashLoop:
        if (!Survival_IsValid(episode.crash_loop().survival())) Complain(where + ".crash_loop.survival", "is no known survival");
        Number(where + ".crash_loop.up_ms", episode.crash_loop().up_ms(), kTimeMaxMs);
        return Members(where + ".crash_loop.members", episode.crash_loop().members());
      case Episode::kBlackout:
        if (episode.blackout().survival() != MIXED && episode.blackout().survival() != NOTHING) {
          Complain(where + ".blackout.survival", "want MIXED or NOTHING");
        }
        return;
      case Episode::kLyingDrive: return Members(where + ".lying_drive.members", episode.lying_drive().members());
      case Episode::kZeroedTail:
        Members(where + ".zeroed_tail.members", episode.zeroed_tail().members());
        return Number(where + ".zeroed_tail.sectors", episode.zeroed_tail().sectors(), 1'000'000);
      case Episode::kMisdirectedWrites:
        Members(where + ".misdirected_writes.members", episode.misdirected_writes().members());
        return Number(where + ".misdirected_writes.write_ppm", episode.misdirected_writes().write_ppm(), 1'000'000);
      case Episode::kWipedDisk: return Members(where + ".wiped_disk.members", episode.wiped_disk().members());
      case Episode::FAULT_NOT_SET: return;  // an episode of which nothing is left is benign
    }
  }

  void Client(const std::string& where, uint32_t client) {
    if (client < 1 || client > clients_) Complain(where, absl::StrFormat("want 1 to %d, got %d", clients_, client));
  }

  void CheckOperation(const std::string& where, const Operation& operation) {
    Number(where + ".times", operation.times(), kRepetitionsMax);
    Number(where + ".every_ms", operation.every_ms(), kTimeMaxMs);
    if (!complaint_.empty()) return;
    const uint32_t times = std::max(1u, operation.times());
    for (uint32_t i = 0; i < times; ++i) {
      if (operation.id() != 0 && operations_.insert(operation.id() + i).second) continue;
      return Complain(where + ".id", absl::StrFormat("%d is zero or not unique", operation.id() + i));
    }
    Client(where + ".client", operation.client());
    Number(where + ".at_ms", operation.at_ms(), kTimeMaxMs);
    Number(where + ".cancel_after_ms", operation.cancel_after_ms(), kTimeMaxMs);
    if (const std::string trouble = CallTrouble(operation); !trouble.empty()) Complain(where, trouble);
    Number(where + ".later_ms", operation.later_ms(), kTimeMaxMs);
    if (operation.at_new_leader()) return;
    // Operations of one client are begun in the order of the file.
    uint32_t& before = at_[operation.client()];
    if (operation.at_ms() < before) Complain(where + ".at_ms", "is before that of an earlier operation of its client");
    const uint64_t last = operation.at_ms() + uint64_t{times - 1} * operation.every_ms();
    Number(where + ".times", last, kTimeMaxMs);
    before = static_cast<uint32_t>(last);
  }

  void CheckExpectation(const std::string& where, const Expectation& expectation) {
    if (!Expectation::Phase_IsValid(expectation.phase())) Complain(where + ".phase", "is no known phase");
    if (expectation.phase() != Expectation::WHOLE_RUN && (expectation.from_ms() != 0 || expectation.to_ms() != 0)) {
      Complain(where + ".phase", "excludes from_ms and to_ms");
    }
    if (expectation.to_ms() != 0 && expectation.to_ms() <= expectation.from_ms()) {
      Complain(where + ".to_ms", absl::StrFormat("want more than from_ms %d, got %d", expectation.from_ms(), expectation.to_ms()));
    }
    if (expectation.member() != 0) Member(where + ".member", expectation.member());
    for (const MetricRow& row : kMetrics) {
      const Bounds* bounds = BoundsOf(expectation, row);
      if (bounds == nullptr) continue;
      const std::string field = where + "." + std::string(row.name);
      if (bounds->has_min() && bounds->has_max() && bounds->max() < bounds->min()) {
        Complain(field, absl::StrFormat("max %d is below min %d", bounds->max(), bounds->min()));
      }
      if (expectation.member() != 0 && !row.of_members) Complain(field, "is of all members together");
    }
  }

  const Scenario& scenario_;
  const uint32_t members_;
  const uint32_t clients_;
  std::string complaint_;
  std::set<uint32_t> episodes_;
  std::set<uint32_t> operations_;
  std::map<uint32_t, uint32_t> at_;
};

}  // namespace

std::string CheckScenario(const Scenario& scenario) { return Inspector(scenario).Inspect(); }

}  // namespace detcd::scenario
