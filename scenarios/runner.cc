#include "scenarios/runner.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "checker/leader_lease.h"
#include "checker/report.h"
#include "checker/triage.h"
#include "core/base/check.h"
#include "scenarios/episode_faults.h"
#include "scenarios/expectations.h"
#include "scenarios/operations.h"
#include "scenarios/recorder.h"
#include "scenarios/settings.h"
#include "sim/world.h"

namespace detcd::scenario {
namespace {

using sim::EndpointId;
using sim::World;

// A run that takes more than this never ends by itself; the usual one takes a hundredth.
constexpr uint64_t kEventsMax = 3'000'000;
constexpr uint64_t kInboxMax = 100'000;
constexpr uint64_t kInboxCheckInterval = 4'096;  // events
// After every member has served: for calls under way to end and for the last entry to reach everybody.
constexpr Duration kSettleTime = Seconds(60);
// The control events that are not of the faults.
constexpr uint64_t kHealToken = EpisodeFaults::kTokenLimit;
constexpr uint64_t kStartToken = kHealToken + 1;  // of member 0; those of the others follow
// How long a world that owes no service is watched after the healing, in election timeouts.
constexpr int64_t kWatchElections = 10;

class Run final : private EpisodeListener {
 public:
  Run(const Scenario& scenario, const RunOptions& options)
      : scenario_(scenario),
        options_(options),
        world_(MakeWorldKnobs(scenario)),
        faults_(scenario, world_, *this) {
    if (options.story != StoryDepth::kShort) recorder_.emplace(world_);
    if (scenario.expectations_size() > 0 || options.measure.has_value()) expectations_.emplace(scenario, options.measure, world_);
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
      if (step.stopped) OnStopped(step.endpoint);
      if (step.is_control) OnControl(step.control);
      if (world_.counts().leader_changes != leaders_seen_) OnNewLeader();
      if (expectations_) expectations_->AfterStep(step);
      if (owes_no_service_ && !world_.violation().has_value() && (!step.running || universe.now() >= watch_until_)) {
        world_.FinishWithoutService();
        finished_ = true;
        return Ended();
      }
      if ((!step.running && !GoesOn()) || IsUnexpected()) return Ended();
      if (healed_ && world_.Settled()) {
        world_.Finish();
        if (expectations_ && !world_.violation().has_value()) expectations_->Finish();
        IsUnexpected();
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
    const Duration heal_at = Millis(scenario_.chaos_ms());
    faults_.Plan(heal_at);
    universe.ScheduleControl(heal_at.nanos, kHealToken);
    for (const Operation& operation : scenario_.operations()) {
      last_operation_id_ = std::max<uint64_t>(last_operation_id_, operation.id() + std::max(1u, operation.times()) - 1);
      if (operation.at_new_leader()) {
        waiting_.push_back(&operation);
        continue;
      }
      const Instant zero = universe.clock(world_.ClientEndpoint(operation.client() - 1)).Local(0);
      EachCall(operation, zero, operation.at_ms(), &sim::Client::Plan);
    }
  }

  // Plans each of the operation's calls, the first `at_ms` after `zero` of the client's clock.
  void EachCall(const Operation& operation, Instant zero, uint32_t at_ms, void (sim::Client::*plan)(sim::PlannedOperation)) {
    Operation call = operation;
    call.set_at_ms(at_ms);
    for (uint32_t times = std::max(1u, operation.times()); times > 0; --times) {
      (world_.client(operation.client() - 1).*plan)(MakeOperation(call, zero));
      call.set_id(call.id() + 1);
      call.set_at_ms(call.at_ms() + operation.every_ms());
    }
  }

  void OnTrace(const sim::TraceRecord& line) {
    if (options_.trace) options_.trace(sim::FormatTraceRecord(line));
    if (recorder_) recorder_->OnTrace(line);
  }

  // --- the plan ---

  void OnControl(uint64_t token) {
    if (token == kHealToken) return Heal();
    if (token >= kStartToken) return StartAgain(static_cast<uint32_t>(token - kStartToken));
    if (healed_) return;
    faults_.OnControl(token);
  }

  void OnNewLeader() {
    leaders_seen_ = world_.counts().leader_changes;
    if (healed_) return;
    faults_.OnNewLeader();
    sim::SimUniverse& universe = world_.universe();
    std::vector<const Operation*> still_waiting;
    for (const Operation* operation : waiting_) {
      if (Millis(operation->at_ms()).nanos > universe.now()) {
        still_waiting.push_back(operation);
        continue;
      }
      const Instant now = universe.clock(world_.ClientEndpoint(operation->client() - 1)).Local(universe.now());
      EachCall(*operation, now, operation->later_ms(), &sim::Client::PlanAhead);
    }
    waiting_ = std::move(still_waiting);
  }

  // Its disk made a member stop. It is started again, as long as it takes.
  void OnStopped(uint32_t member) {
    OnCrash(member, "stops by itself");
    if (!healed_) return faults_.OnStopped(member);
    sim::SimUniverse& universe = world_.universe();
    universe.ScheduleControl(universe.now() + kSupervisorPause.nanos, kStartToken + member);
  }
  void StartAgain(uint32_t member) {
    OnStart(member);
    world_.StartMember(member);
  }

  // EpisodeListener
  void OnEpisode(const Episode& episode, size_t place, bool begins) override {
    if (options_.trace) {
      options_.trace(absl::StrFormat("%12d us  world  episode %d %s: %s", world_.universe().now() / 1'000, episode.id(),
                                     begins ? "begins" : "ends", episode.ShortDebugString()));
    }
    if (recorder_) recorder_->OnEpisode(episode, place, begins);
    if (expectations_) expectations_->OnEpisode(episode, begins);
  }
  void OnCrash(uint32_t member, std::string_view how) override {
    if (recorder_) recorder_->OnCrash(member, how);
  }
  void OnStart(uint32_t member) override {
    if (recorder_) recorder_->OnStart(member);
  }

  // All faults end at once, those of settings too; what has begun and not ended ends with them.
  void Heal() {
    healed_ = true;
    sim::SimUniverse& universe = world_.universe();
    universe.HealNetwork();
    faults_.HealMachines();
    uint32_t left = 0;
    bool harmed = false;
    for (uint32_t member = 0; member < world_.members(); ++member) {
      harmed |= universe.disk(member).harmed();
      const bool given_up = scenario_.profile() == BEYOND && universe.disk(member).harmed();
      const bool lost = Has(scenario_.lost_members(), member);
      if (given_up && !lost) faults_.ArmPowerLoss();
      if (lost || given_up) {
        world_.LoseMember(member);
        continue;
      }
      ++left;
      if (!world_.IsUp(member)) StartAgain(member);
    }
    for (uint32_t client = 0; client < world_.clients(); ++client) world_.client(client).DropPlanned();
    owes_no_service_ = 2 * left <= world_.members() || (scenario_.profile() == NEGATIVE && harmed);
    if (owes_no_service_) {
      universe.effects().Healed();
      watch_until_ = universe.now() + kWatchElections * MakeWorldKnobs(scenario_).member.election_timeout.nanos;
      return;
    }
    const Duration longest_delay = LongestDelay(scenario_);
    const Duration longest_sync = LongestSync(scenario_);
    world_.BeginProbing(last_operation_id_ + 1, longest_delay, longest_sync);
    give_up_at_ = universe.now() + (checker::Bound({.election_timeout = MakeWorldKnobs(scenario_).member.election_timeout},
                                                   longest_delay, longest_sync) + kSettleTime).nanos;
  }

  // --- the end ---

  // Before the healing there is always something to happen: the healing.
  bool GoesOn() {
    return options_.past_violation && options_.measure.has_value() && !healed_ && world_.universe().now() < options_.measure->to;
  }

  bool IsUnexpected() {
    if (expectations_ && !failure_.has_value()) failure_ = expectations_->violation();
    return failure_.has_value();
  }

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
    if (healed_ && !owes_no_service_ && universe.now() > give_up_at_) {
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
            .checkpoints = universe.queue().checkpoints(),
            .events = universe.queue().popped(),
            .events_by_kind = universe.queue().popped_by_kind(),
            .virtual_ms = static_cast<uint64_t>(universe.now() / 1'000'000),
            .operations = counts.operations,
            .answered = counts.answered,
            .unknown = counts.unknown,
            .refused = counts.refused,
            .leader_changes = counts.leader_changes,
            .effects = universe.effects().counts(),
            .measured = expectations_ ? expectations_->measured() : std::vector<uint64_t>(),
            .profile = scenario_.profile()};
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
    if (scenario_.profile() == NEGATIVE) JudgeTheJudges(result);
    if (scenario_.profile() == CLOCKS && BlamesClocks()) result.reported = std::exchange(result.violation, std::nullopt);
    if (result.reported.has_value()) return result;
    if (!result.violation.has_value() && !finished_ && !(healed_ && world_.Settled())) {
      Fail("nothing happens any more", "no event is pending");
      result.violation = failure_;
    }
    if (!result.violation.has_value()) return result;
    result.verdict = result.violation->property == "convergence" ? Verdict::kNotLive : Verdict::kViolation;
    result.story = checker::Tell(*result.violation, world_.history()) + Story(*result.violation);
    if (options_.second_opinion) {
      const checker::Opinion opinion = checker::Classify(*result.violation, world_.history());
      if (opinion.triage == checker::Triage::kDisagreement) result.verdict = Verdict::kUndetermined;
      if (!opinion.sentence.empty()) result.story += "second opinion: " + opinion.sentence + "\n";
    }
    result.story += "\n" + world_.Describe();
    return result;
  }

  // A member went on from a disk that lacks what it counted on: silence about it is the failure.
  void JudgeTheJudges(RunResult& result) {
    bool harmed = false;
    for (uint32_t member = 0; member < world_.members(); ++member) harmed |= world_.universe().disk(member).harmed();
    if (world_.violation().has_value()) {
      const bool is_judges = world_.violation()->property != "member stopped" && world_.violation()->property != "convergence";
      if (harmed && is_judges) result.reported = std::exchange(result.violation, std::nullopt);
    } else if (!result.violation.has_value() && !world_.loss().empty()) {
      result.violation = checker::Violation{.property = "negative",
                                            .signature = "negative: a loss that no judge reported",
                                            .sentence = "a loss that no judge reported: " + world_.loss(),
                                            .moment = world_.Now()};
    }
  }

  // Whether the judge's word is about what leases exclude only while clocks neither leap nor stop, and one did.
  bool BlamesClocks() {
    if (!scenario_.knobs().lease_reads() || !world_.violation().has_value()) return false;
    const sim::EffectCounts& effects = world_.universe().effects().counts();
    if (effects.armed(sim::FaultKind::kClockLeap) + effects.armed(sim::FaultKind::kClockFreeze) == 0) return false;
    const checker::Violation& violation = *world_.violation();
    return violation.property == "F15" || violation.property == "K4" || checker::LeaderLease::IsOfExclusion(violation);
  }

  const Scenario& scenario_;
  const RunOptions& options_;
  World world_;
  std::optional<Recorder> recorder_;
  EpisodeFaults faults_;
  std::optional<Expectations> expectations_;
  uint64_t last_operation_id_ = 0;
  std::vector<const Operation*> waiting_;  // for the next leader, in the order of the scenario
  uint64_t leaders_seen_ = 0;
  bool healed_ = false;
  bool finished_ = false;
  bool owes_no_service_ = false;  // after the healing
  int64_t watch_until_ = 0;
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
