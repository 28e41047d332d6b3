#include "scenarios/runner.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "absl/strings/str_format.h"
#include "checker/report.h"
#include "checker/triage.h"
#include "core/base/check.h"
#include "scenarios/recorder.h"
#include "scenarios/settings.h"
#include "sim/world.h"

namespace detcd::scenario {
namespace {

using sim::EndpointId;
using sim::FaultKind;
using sim::LinkLaw;
using sim::World;

// A run that takes more than this never ends by itself; the usual one takes a hundredth.
constexpr uint64_t kEventsMax = 3'000'000;
constexpr uint64_t kInboxMax = 100'000;
constexpr uint64_t kInboxCheckInterval = 4'096;  // events
// After every member has served: for calls under way to end and for the last entry to reach everybody.
constexpr Duration kSettleTime = Seconds(60);
// Members crash at an event near the time written, so that no crash point is out of reach.
constexpr uint64_t kCrashJitterNanos = 10'000'000;
// The processes of members start within this.
constexpr uint64_t kStartSpreadNanos = 50'000'000;

// The world's own events, as tokens of control events.
enum class Control : uint8_t { kStart, kBegin, kEnd, kCrash, kRestart, kReset, kHeal };

uint64_t Token(Control control, size_t episode, uint32_t member = 0) {
  return static_cast<uint64_t>(control) << 56 | uint64_t{episode} << 16 | member;
}

class Run {
 public:
  Run(const Scenario& scenario, const RunOptions& options)
      : scenario_(scenario),
        options_(options),
        world_(MakeWorldKnobs(scenario)),
        base_link_(MakeLink(scenario)),
        heal_at_(Millis(scenario.chaos_ms())),
        down_(world_.members()),
        active_(static_cast<size_t>(scenario.episodes_size())) {
    if (options.story != StoryDepth::kShort) recorder_.emplace(world_);
  }

  RunResult Go() {
    Prepare();
    while (true) {
      sim::SimUniverse& universe = world_.universe();
      if (options_.stop_at_event != 0 && universe.queue().popped() + 1 == options_.stop_at_event) {
        if (!options_.at_stop) return Stopped();
        options_.at_stop();
      }
      const sim::WorldStep step = world_.Step();
      if (recorder_) recorder_->AfterStep(step);
      if (step.is_control) OnControl(step.control);
      if (!step.running) return Ended();
      if (healed_ && world_.Settled()) {
        world_.Finish();
        return Ended();
      }
      if (OverBudget()) return Ended();
    }
  }

  World& world() { return world_; }

  // The lanes and what they follow from, as asked for; ends with a newline.
  std::string Story(const checker::Violation& violation) const {
    if (!recorder_) return "";
    const RunRecord record = recorder_->Record();
    std::string text = "\n" + LaneDiagram(record, world_.clients(), violation);
    if (options_.story == StoryDepth::kCauses) text += "\nwhat it follows from:\n" + CausalPast(record, world_.clients(), violation);
    return text;
  }

 private:
  // --- before the first event ---

  void Prepare() {
    sim::SimUniverse& universe = world_.universe();
    if (options_.trace || recorder_) {
      universe.trace().Enable(options_.trace ? LogLevel::kDebug : LogLevel::kWarn, 1);
      universe.trace().SetSink([](void* context, const sim::TraceRecord& line) { static_cast<Run*>(context)->OnTrace(line); }, this);
    }
    if (options_.event) {
      universe.queue().SetSink(
          [](void* context, const sim::EventRecord& record) { static_cast<Run*>(context)->options_.event(record); }, this);
    }
    ArmSettings();
    for (const ClockSetting& clock : scenario_.clocks()) universe.SetDrift(clock.member() - 1, clock.drift_ppm());
    RefreshLinks();
    KeyedRandom starts(scenario_.seed(), "scenario.start");
    for (uint32_t member = 0; member < world_.members(); ++member) {
      down_[member] = 1;
      const auto at = static_cast<int64_t>(starts.Sub(member).Below(kStartSpreadNanos));
      universe.ScheduleControl(at, Token(Control::kStart, 0, member));
    }
    for (int i = 0; i < scenario_.episodes_size(); ++i) {
      const Episode& episode = scenario_.episodes(i);
      const Duration at = Millis(episode.at_ms());
      if (at >= heal_at_) continue;
      universe.ScheduleControl(at.nanos, Token(Control::kBegin, static_cast<size_t>(i)));
    }
    universe.ScheduleControl(heal_at_.nanos, Token(Control::kHeal, 0));
    for (const Operation& operation : scenario_.operations()) {
      const uint32_t client = operation.client() - 1;
      const Instant zero = universe.clock(world_.ClientEndpoint(client)).Local(0);
      world_.client(client).Plan(MakeOperation(operation, zero));
      last_operation_id_ = std::max<uint64_t>(last_operation_id_, operation.id());
    }
  }

  // What the standing settings make possible.
  void ArmSettings() {
    sim::Effects& effects = world_.universe().effects();
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
  void ArmLoss(uint32_t loss_ppm, uint32_t duplicate_ppm) {
    sim::Effects& effects = world_.universe().effects();
    if (loss_ppm > 0) effects.Armed(IsWire() ? FaultKind::kSegmentLoss : FaultKind::kMessageLoss);
    if (duplicate_ppm == 0 || IsWire()) return;
    effects.Armed(FaultKind::kMessageDuplicate);
    effects.Armed(FaultKind::kMessageReorder);
  }

  void ArmPowerLoss() {
    sim::Effects& effects = world_.universe().effects();
    effects.Armed(FaultKind::kPowerLoss);
    effects.Armed(FaultKind::kSectorLost);
    effects.Armed(FaultKind::kSizeLost);
    effects.Armed(FaultKind::kEntryLost);
  }

  // Once for each kind that an episode makes possible. One that blocks or hits nobody (a group of all members) arms
  // nothing.
  void Arm(const Episode& episode) {
    sim::Effects& effects = world_.universe().effects();
    switch (episode.fault_case()) {
      case Episode::kPartition:
        if (!Others(episode.partition().group()).empty()) effects.Armed(FaultKind::kPartition);
        break;
      case Episode::kOneWay: {
        const OneWay& way = episode.one_way();
        const bool only_itself = way.from_size() == 1 && way.to_size() == 1 && way.from(0) == way.to(0);
        if (!only_itself) effects.Armed(FaultKind::kOneWay);
        break;
      }
      case Episode::kClientPartition:
        if (episode.client_partition().clients_size() > 0) effects.Armed(FaultKind::kClientPartition);
        break;
      case Episode::kSlow:
        effects.Armed(FaultKind::kSlowLink);
        break;
      case Episode::kLoss:
        if (world_.members() > 1) ArmLoss(episode.loss().loss_ppm(), episode.loss().duplicate_ppm());
        break;
      case Episode::kResets:
        if (IsWire()) effects.Armed(FaultKind::kStreamReset);
        break;
      case Episode::kCrash:
        if (episode.crash().survival() == EVERYTHING) {
          effects.Armed(FaultKind::kCrash);
          break;
        }
        ArmPowerLoss();
        break;
      case Episode::kPause:
        effects.Armed(FaultKind::kPause);
        break;
      case Episode::kSyncStall:
        effects.Armed(FaultKind::kSyncStall);
        break;
      case Episode::kDrift:
        if (episode.drift().drift_ppm() != 0) effects.Armed(FaultKind::kClockDrift);
        break;
      case Episode::FAULT_NOT_SET:
        break;
    }
  }

  void OnTrace(const sim::TraceRecord& line) {
    if (options_.trace) options_.trace(sim::FormatTraceRecord(line));
    if (recorder_) recorder_->OnTrace(line);
  }

  // --- the plan ---

  void OnControl(uint64_t token) {
    const auto control = static_cast<Control>(token >> 56);
    const size_t episode = token >> 16 & 0xFFFF'FFFF;
    const auto member = static_cast<uint32_t>(token & 0xFFFF);
    if (healed_) return;
    switch (control) {
      case Control::kStart: return Up(member);
      case Control::kBegin: return Begin(episode);
      case Control::kEnd: return End(episode);
      case Control::kCrash: return Crash(episode, member);
      case Control::kRestart: return Up(member);
      case Control::kReset: return Reset(episode);
      case Control::kHeal: return Heal();
    }
  }

  KeyedRandom Draws(const Episode& episode) const {
    return KeyedRandom(scenario_.seed(), "scenario.episode").Sub(episode.id());
  }
  int64_t EndOf(const Episode& episode) const {
    return std::min(heal_at_, Millis(episode.at_ms()) + Millis(episode.for_ms())).nanos;
  }

  void Begin(size_t index) {
    const Episode& episode = scenario_.episodes(static_cast<int>(index));
    Say("begins", episode);
    if (recorder_) recorder_->OnEpisode(episode, index, true);
    sim::SimUniverse& universe = world_.universe();
    active_[index] = true;
    Arm(episode);
    switch (episode.fault_case()) {
      case Episode::kPartition:
        universe.Partition(Endpoints(episode.partition().group()), Others(episode.partition().group()));
        break;
      case Episode::kOneWay:
        for (const uint32_t from : episode.one_way().from()) {
          for (const uint32_t to : episode.one_way().to()) universe.BlockOneWay(from - 1, to - 1);
        }
        break;
      case Episode::kClientPartition:
        universe.Partition(ClientEndpoints(episode.client_partition().clients()),
                           Endpoints(episode.client_partition().members()), FaultKind::kClientPartition);
        break;
      case Episode::kSlow:
      case Episode::kLoss:
        RefreshLinks();
        break;
      case Episode::kResets:
        resets_.push_back({.episode = index, .random = Draws(episode)});
        ScheduleReset(resets_.back());
        break;
      case Episode::kCrash:
        for (const uint32_t member : episode.crash().members()) {
          const auto jitter = static_cast<int64_t>(Draws(episode).Sub(member).Below(kCrashJitterNanos));
          universe.ScheduleControl(universe.now() + jitter, Token(Control::kCrash, index, member - 1));
        }
        return;  // each restart is an event of its own
      case Episode::kPause:
        for (const uint32_t member : episode.pause().members()) universe.PauseUntil(member - 1, EndOf(episode));
        break;
      case Episode::kSyncStall:
        for (const uint32_t member : episode.sync_stall().members()) universe.StallDiskUntil(member - 1, EndOf(episode));
        break;
      case Episode::kDrift:
        universe.SetDrift(episode.drift().member() - 1, episode.drift().drift_ppm());
        break;
      case Episode::FAULT_NOT_SET:
        break;
    }
    universe.ScheduleControl(EndOf(episode), Token(Control::kEnd, index));
  }

  void End(size_t index) {
    const Episode& episode = scenario_.episodes(static_cast<int>(index));
    Say("ends", episode);
    if (recorder_) recorder_->OnEpisode(episode, index, false);
    sim::SimUniverse& universe = world_.universe();
    active_[index] = false;
    switch (episode.fault_case()) {
      case Episode::kPartition:
        universe.Rejoin(Endpoints(episode.partition().group()), Others(episode.partition().group()));
        break;
      case Episode::kOneWay:
        for (const uint32_t from : episode.one_way().from()) {
          for (const uint32_t to : episode.one_way().to()) universe.UnblockOneWay(from - 1, to - 1);
        }
        break;
      case Episode::kClientPartition:
        universe.Rejoin(ClientEndpoints(episode.client_partition().clients()),
                        Endpoints(episode.client_partition().members()), FaultKind::kClientPartition);
        break;
      case Episode::kSlow:
      case Episode::kLoss:
        RefreshLinks();
        break;
      case Episode::kDrift:
        universe.SetDrift(episode.drift().member() - 1, BaseDrift(episode.drift().member()));
        break;
      case Episode::kResets:     // its next reset finds it over
      case Episode::kCrash:
      case Episode::kPause:      // both end by themselves
      case Episode::kSyncStall:
      case Episode::FAULT_NOT_SET:
        break;
    }
  }

  void Crash(size_t index, uint32_t member) {
    const Episode& episode = scenario_.episodes(static_cast<int>(index));
    if (down_[member]++ == 0) {
      if (recorder_) recorder_->OnCrash(member, CrashText(episode.crash().survival()));
      // What leaves everything as it was done is the end of a process; the others cut the power.
      if (episode.crash().survival() == EVERYTHING) {
        world_.EndMember(member);
      } else {
        world_.CrashMember(member, episode.crash().survival() == NOTHING ? sim::Survival::kNothing : sim::Survival::kMixed);
      }
    }
    const int64_t at = std::max(EndOf(episode), world_.universe().now() + 1);
    world_.universe().ScheduleControl(at, Token(Control::kRestart, index, member));
  }

  static std::string_view CrashText(Survival survival) {
    switch (survival) {
      case NOTHING: return "power lost, nothing unsynced left";
      case EVERYTHING: return "process ends";
      default: return "power lost";
    }
  }

  void Up(uint32_t member) {
    if (--down_[member] == 0) Start(member);
  }

  void Start(uint32_t member) {
    if (recorder_) recorder_->OnStart(member);
    world_.StartMember(member);
  }

  struct Resets {
    size_t episode = 0;
    KeyedRandom random;
  };

  void ScheduleReset(Resets& resets) {
    const Episode& episode = scenario_.episodes(static_cast<int>(resets.episode));
    const uint64_t interval = uint64_t{std::max(1u, episode.resets().interval_ms())} * 1'000'000;
    const auto pause = static_cast<int64_t>(resets.random.Between(uint64_t{1}, 2 * interval));
    world_.universe().ScheduleControl(world_.universe().now() + pause, Token(Control::kReset, resets.episode));
  }

  void Reset(size_t index) {
    if (!active_[index]) return;
    const Episode& episode = scenario_.episodes(static_cast<int>(index));
    for (Resets& resets : resets_) {
      if (resets.episode != index) continue;
      const auto victim = resets.random.Below(static_cast<uint64_t>(episode.resets().members_size()));
      const EndpointId member = episode.resets().members(static_cast<int>(victim)) - 1;
      const auto other = static_cast<EndpointId>(resets.random.Below(world_.members() + world_.clients()));
      if (other != member) world_.universe().streams().ResetBetween(member, other);
      ScheduleReset(resets);
    }
  }

  void Heal() {
    healed_ = true;
    sim::SimUniverse& universe = world_.universe();
    universe.HealNetwork();
    for (uint32_t member = 0; member < world_.members(); ++member) {
      if (universe.clock(member).drift_ppm() != 0) universe.SetDrift(member, 0);
      if (Has(scenario_.lost_members(), member)) {
        world_.LoseMember(member);
      } else if (!world_.IsUp(member)) {
        Start(member);
      }
    }
    for (uint32_t client = 0; client < world_.clients(); ++client) world_.client(client).DropPlanned();
    const Duration longest_delay = LongestDelay(scenario_);
    const Duration longest_sync = LongestSync(scenario_);
    world_.BeginProbing(last_operation_id_ + 1, longest_delay, longest_sync);
    give_up_at_ = universe.now() + (checker::Bound({.election_timeout = MakeWorldKnobs(scenario_).member.election_timeout},
                                                   longest_delay, longest_sync) + kSettleTime).nanos;
  }

  // --- links ---

  bool IsWire() const { return scenario_.fidelity() == WIRE; }

  template <class Numbers>
  static bool Has(const Numbers& numbers, EndpointId endpoint) {
    return std::find(numbers.begin(), numbers.end(), endpoint + 1) != numbers.end();
  }

  // Gives each link the law that the faults of the moment make; of several, the later one.
  void RefreshLinks() {
    const uint32_t endpoints = world_.members() + world_.clients();
    for (EndpointId from = 0; from < endpoints; ++from) {
      for (EndpointId to = 0; to < endpoints; ++to) {
        const bool among_members = from < world_.members() && to < world_.members();
        if (from == to || (from >= world_.members() && to >= world_.members())) continue;
        LinkLaw law = base_link_;
        uint32_t loss_ppm = among_members ? scenario_.links().loss_ppm() : 0;
        uint32_t duplicate_ppm = among_members ? scenario_.links().duplicate_ppm() : 0;
        for (size_t i = 0; i < active_.size(); ++i) {
          if (!active_[i]) continue;
          const Episode& episode = scenario_.episodes(static_cast<int>(i));
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
        world_.universe().links().SetLaw(from, to, law);
      }
    }
  }

  template <class Numbers>
  static std::vector<EndpointId> Endpoints(const Numbers& numbers) {
    std::vector<EndpointId> endpoints;
    for (const uint32_t number : numbers) endpoints.push_back(number - 1);
    return endpoints;
  }
  template <class Numbers>
  std::vector<EndpointId> Others(const Numbers& group) const {
    std::vector<EndpointId> endpoints;
    for (EndpointId e = 0; e < world_.members(); ++e) {
      if (!Has(group, e)) endpoints.push_back(e);
    }
    return endpoints;
  }
  template <class Numbers>
  std::vector<EndpointId> ClientEndpoints(const Numbers& numbers) const {
    std::vector<EndpointId> endpoints;
    for (const uint32_t number : numbers) endpoints.push_back(world_.ClientEndpoint(number - 1));
    return endpoints;
  }

  int32_t BaseDrift(uint32_t member) const {
    int32_t ppm = 0;
    for (const ClockSetting& clock : scenario_.clocks()) {
      if (clock.member() == member) ppm = clock.drift_ppm();
    }
    return ppm;
  }

  // --- the end ---

  bool OverBudget() {
    sim::SimUniverse& universe = world_.universe();
    const uint64_t events = universe.queue().popped();
    if (events > kEventsMax) {
      Fail("more events than any run needs", absl::StrFormat("%d events at %d ms", events, universe.now() / 1'000'000));
    } else if (events % kInboxCheckInterval == 0) {
      for (EndpointId e = 0; e < world_.members() + world_.clients(); ++e) {
        if (!universe.IsUp(e) || universe.LastHost(e).inbox_size() <= kInboxMax) continue;
        Fail("an inbox grows without bound",
             absl::StrFormat("%d events wait at endpoint %d", universe.LastHost(e).inbox_size(), e + 1));
      }
    }
    if (healed_ && universe.now() > give_up_at_) {
      Fail("the world does not settle", "after healing every member served, but logs or clients never came to rest");
    }
    return failure_.has_value();
  }

  void Fail(std::string_view trouble, std::string sentence) {
    if (failure_.has_value()) return;
    failure_ = checker::Violation{.property = "convergence",
                                  .signature = absl::StrFormat("convergence: %s", trouble),
                                  .sentence = absl::StrFormat("%s: %s", trouble, sentence),
                                  .moment = world_.Now()};
  }

  RunResult Numbers() {
    sim::SimUniverse& universe = world_.universe();
    const sim::WorldCounts& counts = world_.counts();
    return {.digest = universe.digest(),
            .events = universe.queue().popped(),
            .events_by_kind = universe.queue().popped_by_kind(),
            .virtual_ms = static_cast<uint64_t>(universe.now() / 1'000'000),
            .operations = counts.operations,
            .answered = counts.answered,
            .unknown = counts.unknown,
            .refused = counts.refused,
            .leader_changes = counts.leader_changes,
            .effects = universe.effects()};
  }

  RunResult Stopped() {
    RunResult result = Numbers();
    result.story = absl::StrFormat("stopped before event %d at %d us\n%s", options_.stop_at_event,
                                   world_.universe().now() / 1'000, world_.Describe());
    return result;
  }

  RunResult Ended() {
    RunResult result = Numbers();
    result.violation = world_.violation().has_value() ? world_.violation() : failure_;
    if (!result.violation.has_value() && !(healed_ && world_.Settled())) {
      Fail("nothing happens any more", "no event is pending");
      result.violation = failure_;
    }
    if (!result.violation.has_value()) return result;
    result.verdict = result.violation->property == "convergence" ? Verdict::kNotLive : Verdict::kViolation;
    result.story = checker::Tell(*result.violation, world_.history()) + Story(*result.violation);
    const checker::Opinion opinion = checker::Classify(*result.violation, world_.history());
    if (opinion.triage == checker::Triage::kDisagreement) result.verdict = Verdict::kUndetermined;
    if (!opinion.sentence.empty()) result.story += "second opinion: " + opinion.sentence + "\n";
    result.story += "\n" + world_.Describe();
    return result;
  }

  void Say(std::string_view what, const Episode& episode) {
    if (!options_.trace) return;
    options_.trace(absl::StrFormat("%12d us  world  episode %d %s: %s", world_.universe().now() / 1'000, episode.id(), what,
                                   episode.ShortDebugString()));
  }

  const Scenario& scenario_;
  const RunOptions& options_;
  World world_;
  std::optional<Recorder> recorder_;
  const LinkLaw base_link_;
  const Duration heal_at_;
  std::vector<uint32_t> down_;       // by member: why it is down, counted
  std::vector<bool> active_;         // by episode
  std::vector<Resets> resets_;
  uint64_t last_operation_id_ = 0;
  bool healed_ = false;
  int64_t give_up_at_ = 0;
  std::optional<checker::Violation> failure_;
};

struct HookContext {
  uint64_t seed = 0;
  Run* run = nullptr;
};

void PrintWhere(void* context, std::string_view) {
  const auto* where = static_cast<const HookContext*>(context);
  sim::SimUniverse& universe = where->run->world().universe();
  std::fprintf(stderr, "seed %llu, event %llu, %lld us\n", static_cast<unsigned long long>(where->seed),
               static_cast<unsigned long long>(universe.queue().popped()), static_cast<long long>(universe.now() / 1'000));
  // The state of the members is whole, but for the one that broke its own rule.
  const checker::Violation violation = {.property = "crash", .moment = where->run->world().Now()};
  std::fprintf(stderr, "%s", where->run->Story(violation).c_str());
}

}  // namespace

RunResult RunScenario(const Scenario& scenario, const RunOptions& options) {
  CHECK_MSG(CheckScenario(scenario).empty(), CheckScenario(scenario));
  SetVerify(scenario.verify());
  auto run = std::make_unique<Run>(scenario, options);
  HookContext context = {.seed = scenario.seed(), .run = run.get()};
  SetCheckHook(PrintWhere, &context);
  RunResult result = run->Go();
  run.reset();
  SetCheckHook(nullptr, nullptr);
  return result;
}

}  // namespace detcd::scenario
