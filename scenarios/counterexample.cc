#include "scenarios/counterexample.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/raft/leader_lease.h"

namespace detcd::scenario {
namespace {

using proofs::Happening;
using proofs::Timeline;
using proofs::TimelineEvent;
using proofs::Weakness;

// Clients: readers that reach the old leader only, then writers that do not reach it. Several, because a client tries
// members in turn and waits for those it does not reach.
constexpr uint32_t kReaders = 6;
constexpr uint32_t kWriters = 3;
constexpr uint32_t kClientTimeoutMs = 100;
constexpr const char* kKey = "k";

std::string NoteOf(Weakness weakness) {
  switch (weakness) {
    case Weakness::kLeaseWithoutDrift:
      return "The lease is the election timeout, without the drift factor: a slow leader still answers reads when fast voters, "
             "cut off from it, have elected another.";
    case Weakness::kNoWaitAfterRestart:
      return "A voter acknowledges a round, crashes, starts, and votes at once: its promise is forgotten, and the old leader's "
             "lease still lasts.";
    case Weakness::kLeaseThroughTransfer:
      return "A leader asks another member to campaign and is cut off: the transfer's election ignores promises, and the old "
             "leader's lease still lasts.";
    case Weakness::kPreVoteInContact:
      return "A member that was cut off reaches the others again before it hears the leader, and asks for pre-votes. Granted by one "
             "that hears its leader, it would raise the term and end the leader's.";
  }
  return "";
}

// Lays the model's run over a scenario. Times of the model begin at `base_ms`, when a leader has long been elected.
class Writer {
 public:
  Writer(const Timeline& timeline, const CounterexampleKnobs& knobs) : timeline_(timeline), knobs_(knobs) {}

  Scenario Write() {
    base_ms_ = 7 * knobs_.election_timeout_ms;
    scenario_.set_format_version(1);
    scenario_.set_seed(knobs_.seed);
    scenario_.set_note(NoteOf(timeline_.weakness) + " From `detcd-sim prove`.");
    scenario_.set_members(timeline_.members);
    scenario_.mutable_knobs()->set_election_timeout_ms(knobs_.election_timeout_ms);
    scenario_.mutable_knobs()->set_heartbeat_ms(knobs_.election_timeout_ms / 10);
    scenario_.mutable_knobs()->set_client_timeout_ms(kClientTimeoutMs);
    if (timeline_.weakness != Weakness::kPreVoteInContact) {
      scenario_.mutable_knobs()->set_lease_reads(true);
      const int64_t drift_ppm = std::max(timeline_.drift_ppm_max, raft::kClockDriftPpmMax);
      scenario_.mutable_knobs()->set_lease_drift_ppm(static_cast<uint32_t>(drift_ppm));
    }
    Clocks();
    Lead();
    if (timeline_.weakness == Weakness::kPreVoteInContact) {
      Returning();
    } else {
      StaleRead();
    }
    return scenario_;
  }

 private:
  uint32_t AtMs(int64_t units) const {
    return static_cast<uint32_t>(base_ms_ + units * knobs_.election_timeout_ms / proofs::kElectionTimeoutUnits);
  }
  std::optional<TimelineEvent> First(Happening happening) const {
    for (const TimelineEvent& event : timeline_.events) {
      if (event.happening == happening) return event;
    }
    return std::nullopt;
  }
  uint32_t AtMs(Happening happening) const { return AtMs(First(happening).value_or(TimelineEvent{}).at); }

  Episode& AddEpisode(uint32_t from_ms, uint32_t to_ms) {
    Episode& episode = *scenario_.add_episodes();
    episode.set_id(static_cast<uint32_t>(scenario_.episodes_size()));
    episode.set_at_ms(from_ms);
    episode.set_for_ms(std::max(from_ms + 1, to_ms) - from_ms);
    return episode;
  }
  Operation& AddOperation(uint32_t client, uint32_t at_ms, uint32_t times = 1) {
    Operation& operation = *scenario_.add_operations();
    operation.set_id(next_operation_id_);
    operation.set_client(client);
    operation.set_at_ms(at_ms);
    next_operation_id_ += times;
    return operation;
  }
  // One every `every_ms`, from `from_ms` until before `to_ms`.
  Operation& AddOperations(uint32_t client, uint32_t from_ms, uint32_t to_ms, uint32_t every_ms) {
    const uint32_t times = (to_ms - from_ms + every_ms - 1) / every_ms;
    Operation& operation = AddOperation(client, from_ms, times);
    operation.set_times(times);
    operation.set_every_ms(every_ms);
    return operation;
  }

  // Whoever was the first to lead, the old leader leads long before the model's run begins, with no transfer in its term.
  void Lead() {
    const uint32_t at_ms = 3 * knobs_.election_timeout_ms;
    AddEpisode(at_ms, at_ms).mutable_transfer()->add_to(timeline_.old_leader);
  }

  void Clocks() {
    for (uint32_t member = 1; member <= timeline_.members; ++member) {
      if (const int64_t drift_ppm = timeline_.drift_ppm[member - 1]; drift_ppm != 0) {
        ClockSetting& clock = *scenario_.add_clocks();
        clock.set_member(member);
        clock.set_drift_ppm(static_cast<int32_t>(drift_ppm));
      }
    }
  }

  // The old leader cut off from what is the model's moment on; reads there, writes elsewhere, until its lease is over.
  void StaleRead() {
    const bool transfer = timeline_.weakness == Weakness::kLeaseThroughTransfer;
    const uint32_t cut_ms = AtMs(transfer ? Happening::kTransferTried : Happening::kRoundAcknowledged);
    // The run of the model and as much again, so that elections that take longer than the model's are seen to be harmless.
    const uint32_t end_ms = AtMs(Happening::kLeaseChecked) + knobs_.election_timeout_ms;
    const uint32_t clients = kReaders + kWriters;
    scenario_.set_clients(clients);
    scenario_.set_chaos_ms(end_ms + knobs_.election_timeout_ms);

    // A candidate that knows of no promise, because it has heard no leader for long.
    if (timeline_.weakness == Weakness::kNoWaitAfterRestart) {
      AddEpisode(base_ms_ - 3 * knobs_.election_timeout_ms, cut_ms).mutable_partition()->add_group(timeline_.new_leader);
    }
    if (transfer) {
      // What makes the other campaign is still sent.
      OneWay& unheard = *AddEpisode(cut_ms, end_ms).mutable_one_way();
      for (uint32_t member = 1; member <= timeline_.members; ++member) {
        if (member != timeline_.old_leader) unheard.add_from(member);
      }
      unheard.add_to(timeline_.old_leader);
    } else {
      AddEpisode(cut_ms, end_ms).mutable_partition()->add_group(timeline_.old_leader);
    }
    if (const auto crash = First(Happening::kCrash)) {
      AddEpisode(AtMs(crash->at), AtMs(Happening::kStart)).mutable_crash()->add_members(crash->member);
    }
    ClientPartition& readers = *AddEpisode(cut_ms, end_ms).mutable_client_partition();
    ClientPartition& writers = *AddEpisode(cut_ms, end_ms).mutable_client_partition();
    for (uint32_t client = 1; client <= clients; ++client) (client <= kReaders ? readers : writers).add_clients(client);
    for (uint32_t member = 1; member <= timeline_.members; ++member) {
      (member == timeline_.old_leader ? writers : readers).add_members(member);
    }
    if (transfer) {
      const uint32_t at_ms = AtMs(Happening::kTransferTried);
      AddEpisode(at_ms, at_ms).mutable_transfer()->add_to(timeline_.new_leader);
    }

    // A value to be stale, which the new leader has as well; then writes from the cut on and reads from the first write of the model on.
    AddOperation(kReaders + 1, base_ms_ - 7 * knobs_.election_timeout_ms / 2).mutable_put()->set_key(kKey);
    const uint32_t pace_ms = std::max(1u, knobs_.election_timeout_ms / 20);
    for (uint32_t writer = 1; writer <= kWriters; ++writer) {
      AddOperations(kReaders + writer, cut_ms, end_ms, pace_ms).mutable_put()->set_key(kKey);
    }
    const uint32_t reads_ms = std::min(AtMs(Happening::kWriteAcknowledged), AtMs(Happening::kReadInvoked));
    for (uint32_t reader = 1; reader <= kReaders; ++reader) {
      AddOperations(reader, reads_ms, end_ms, pace_ms).mutable_range()->set_key(kKey);
    }
  }

  // The visitor is away for as long as in the model; the others go on. When it is back, the leader's way to it stays cut
  // until it has surely asked: in the model it asks first.
  void Returning() {
    const uint32_t back_ms = AtMs(Happening::kHealed);
    AddEpisode(base_ms_, back_ms).mutable_partition()->add_group(timeline_.new_leader);
    const uint32_t end_ms = back_ms + 3 * knobs_.election_timeout_ms;
    OneWay& unheard = *AddEpisode(back_ms, back_ms + 2 * knobs_.election_timeout_ms).mutable_one_way();
    unheard.add_from(timeline_.old_leader);
    unheard.add_to(timeline_.new_leader);
    scenario_.set_clients(1);
    scenario_.set_chaos_ms(end_ms);
    // Reads, so that its log is not behind: a vote would be refused for that alone.
    AddOperation(1, base_ms_ - 2 * knobs_.election_timeout_ms).mutable_put()->set_key(kKey);
    AddOperations(1, base_ms_, end_ms, knobs_.election_timeout_ms / 5).mutable_range()->set_key(kKey);
  }

  const Timeline& timeline_;
  CounterexampleKnobs knobs_;
  Scenario scenario_;
  uint32_t base_ms_ = 0;
  uint32_t next_operation_id_ = 1;
};

}  // namespace

Scenario ScenarioOf(const Timeline& timeline, const CounterexampleKnobs& knobs) { return Writer(timeline, knobs).Write(); }

}  // namespace detcd::scenario
