#include "scenarios/shrink_passes.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include "scenarios/scenario_text.h"
#include "scenarios/shrink_edits.h"

namespace detcd::scenario {
namespace {

// A failure that takes luck may not survive the loss of a line only because every draw after it is another. So each edit
// is tried under other base seeds too, of which the result keeps the one that failed.
std::vector<ShrinkEdit> Reseeded(const std::vector<ShrinkEdit>& edits, uint64_t seeds) {
  std::vector<ShrinkEdit> reseeded;
  for (const ShrinkEdit& edit : edits) {
    for (uint64_t more = 1; more <= seeds; ++more) {
      reseeded.push_back([edit, more](Scenario& candidate) {
        const std::string before = candidate.SerializeAsString();
        edit(candidate);
        // An edit with nothing left to do must not become a change of the seed alone: that never ends.
        if (candidate.SerializeAsString() != before) candidate.set_seed(candidate.seed() + more);
      });
    }
  }
  return reseeded;
}

// Election timeouts are drawn from [T, 2T) of a member's own clock: one clock that is fast at first, alone or among slow
// ones, decides who leads first. Only at first, because clocks decide much else.
constexpr int32_t kStrongDriftPpm = 400'000;

constexpr uint32_t kOftenPpm = 300'000;
constexpr int32_t kDriftFactor = 4;

uint32_t Often(uint32_t ppm) { return ppm == 0 ? 0 : std::max(ppm, kOftenPpm); }

void ScaleLaw(Law& law, uint64_t factor) {
  law.set_min_us(law.min_us() * factor);
  law.set_max_us(law.max_us() * factor);
}

Episode& AddEpisode(Scenario& scenario) {
  uint32_t id = 0;
  for (const Episode& episode : scenario.episodes()) id = std::max(id, episode.id());
  Episode& episode = *scenario.add_episodes();
  episode.set_id(id + 1);
  return episode;
}

void AddDrift(Scenario& scenario, uint32_t member, int32_t ppm, uint32_t for_ms) {
  Episode& episode = AddEpisode(scenario);
  episode.set_for_ms(for_ms);
  episode.mutable_drift()->set_member(member);
  episode.mutable_drift()->set_drift_ppm(ppm);
}

// Once somebody leads, `leader` does, and the rest of the plan waits for that.
void AddTransfer(Scenario& scenario, uint32_t leader, uint32_t timeout_ms) {
  const uint32_t at_ms = 3 * timeout_ms;
  uint32_t first_ms = scenario.chaos_ms();
  for (const Episode& episode : scenario.episodes()) first_ms = std::min(first_ms, episode.at_ms());
  const uint32_t later_ms = at_ms + timeout_ms - std::min(first_ms, at_ms + timeout_ms);
  for (Episode& episode : *scenario.mutable_episodes()) episode.set_at_ms(episode.at_ms() + later_ms);
  for (Operation& operation : *scenario.mutable_operations()) operation.set_at_ms(operation.at_ms() + later_ms);
  scenario.set_chaos_ms(scenario.chaos_ms() + later_ms);
  Episode& episode = AddEpisode(scenario);
  episode.set_at_ms(at_ms);
  episode.mutable_transfer()->add_to(leader);
}

// Every member's number becomes that of one `by` places further.
void TurnMembers(Scenario& scenario, uint32_t by) {
  const uint32_t members = MembersOf(scenario);
  std::map<uint32_t, uint32_t> numbers;
  for (uint32_t member = 1; member <= members; ++member) numbers[member] = (member - 1 + by) % members + 1;
  RenumberMembers(scenario, numbers);
}

// The plan `times` times in all; `turning`: each time its faults hit the next members.
void Repeat(Scenario& scenario, uint32_t times, bool turning) {
  const uint32_t period = scenario.chaos_ms() + 3 * ElectionTimeoutMs(scenario);
  const auto calls = [](const Operation& operation) { return std::max(1u, operation.times()); };  // an id for each
  Scenario once = scenario;
  uint32_t operation_id = 0;
  for (const Operation& operation : once.operations()) {
    operation_id = std::max(operation_id, operation.id() + calls(operation) - 1);
  }
  for (uint32_t time = 1; time < times; ++time) {
    if (turning) TurnMembers(once, 1);
    for (const Episode& episode : once.episodes()) {
      Episode again = episode;
      again.set_at_ms(episode.at_ms() + time * period);
      Episode& added = AddEpisode(scenario);
      again.set_id(added.id());
      added = again;
    }
    for (const Operation& operation : once.operations()) {
      Operation& again = *scenario.add_operations();
      again = operation;
      again.set_id(operation_id + 1);
      again.set_at_ms(operation.at_ms() + time * period);
      operation_id += calls(operation);
    }
  }
  scenario.set_chaos_ms(scenario.chaos_ms() + (times - 1) * period);
}

// How often its faults may come in all, so that it is still read at a glance.
uint32_t TimesThatStaySmall(const Scenario& scenario) {
  constexpr uint64_t kTimesMax = 8;
  const ScenarioSize size = SizeOf(scenario);
  const auto episodes = static_cast<uint64_t>(scenario.episodes_size());
  const uint64_t other_lines = size.fault_lines - episodes;
  if (episodes == 0 || other_lines >= kSmallFaultLines) return 1;
  uint64_t times = std::min(kTimesMax, (kSmallFaultLines - other_lines) / episodes);
  if (size.operations > 0) times = std::min(times, kSmallOperations / 2 / size.operations);
  return static_cast<uint32_t>(times);
}

}  // namespace

ShrinkPass Reseeded(const ShrinkPass& pass, uint64_t seeds) {
  return {pass.name + ", other seeds", pass.levels,
          [edits = pass.edits, seeds](const Scenario& scenario, uint32_t level) { return Reseeded(edits(scenario, level), seeds); }};
}

// The members that faults name become the first ones, so that the others can go.
Edits NamedMembers(const Scenario& scenario, uint32_t) {
  const uint32_t members = MembersOf(scenario);
  std::set<uint32_t> named;
  Scenario copy = scenario;
  for (Episode& episode : *copy.mutable_episodes()) {
    for (const MemberNumbers* list : MemberLists(episode)) named.insert(list->begin(), list->end());
    if (episode.has_drift()) named.insert(episode.drift().member());
  }
  std::map<uint32_t, uint32_t> numbers;
  for (const uint32_t member : named) numbers.insert({member, static_cast<uint32_t>(numbers.size() + 1)});
  for (uint32_t member = 1; member <= members; ++member) {
    numbers.insert({member, static_cast<uint32_t>(numbers.size() + 1)});
  }
  Edits edits;
  for (uint32_t fewer = 1; fewer < members; fewer += 2) {
    edits.push_back([numbers, fewer](Scenario& candidate) {
      if (fewer >= MembersOf(candidate)) return;
      RenumberMembers(candidate, numbers);
      KeepMembers(candidate, fewer);
    });
  }
  return edits;
}

// What happened in the last part alone, after the time that a first leader takes. What came before is often no more than
// the way to a state that a fresh cluster reaches too, if another member leads it: so the members change places, and
// the seed changes. A short part is cheap, and worth more tries.
Edits LastPart(const Scenario& scenario, uint32_t level) {
  constexpr uint32_t kElections = 3;  // in election timeouts, until somebody has been elected
  constexpr uint32_t kParts = 16;
  constexpr uint32_t kLongLeads = 10;
  Edits edits;
  const uint32_t chaos = scenario.chaos_ms();
  const uint32_t lead = kElections * ElectionTimeoutMs(scenario);
  const uint32_t part = chaos / (kParts >> level);
  const uint32_t from = chaos - part;
  const bool short_one = chaos <= kLongLeads * lead && scenario.operations_size() <= kFewLines;
  if (from <= lead || short_one) return edits;
  const uint32_t members = MembersOf(scenario);
  for (uint64_t more = 0; more < (kParts >> level); ++more) {
    for (uint32_t turn = 0; turn < members; ++turn) {
      edits.push_back([=](Scenario& candidate) {
        if (candidate.chaos_ms() != chaos) return;  // an earlier one was taken
        RemoveCallsBefore(candidate, from);
        RemoveIf(*candidate.mutable_episodes(), [&](const Episode& episode) { return episode.at_ms() + episode.for_ms() < from; });
        for (Episode& episode : *candidate.mutable_episodes()) {
          if (episode.at_ms() >= from) continue;
          episode.set_for_ms(episode.at_ms() + episode.for_ms() - from);
          episode.set_at_ms(from);
        }
        MoveEarlier(candidate, from, from - lead);
        TurnMembers(candidate, turn);
        candidate.set_seed(candidate.seed() + more);
      });
    }
  }
  return edits;
}

// By a transfer before everything else, or by the clocks.
Edits FirstLeader(const Scenario& scenario, uint32_t) {
  Edits edits;
  const uint32_t members = MembersOf(scenario);
  const uint32_t timeout_ms = ElectionTimeoutMs(scenario);
  for (uint32_t leader = 1; leader <= members; ++leader) {
    edits.push_back([leader, timeout_ms](Scenario& candidate) { AddTransfer(candidate, leader, timeout_ms); });
  }
  const uint32_t first_ms = timeout_ms * 3 / 2;
  for (const bool others_slow : {false, true}) {
    for (uint32_t leader = 1; leader <= members; ++leader) {
      edits.push_back([leader, members, others_slow, first_ms](Scenario& candidate) {
        AddDrift(candidate, leader, kStrongDriftPpm, first_ms);
        for (uint32_t member = 1; member <= members && others_slow; ++member) {
          if (member != leader) AddDrift(candidate, member, -kStrongDriftPpm, first_ms);
        }
      });
    }
  }
  return edits;
}

// What must race with the first steps of a leader begins with them, whenever they come: one fault, or all calls at once
// or one by one.
Edits AtNewLeaders(const Scenario& scenario, uint32_t) {
  Edits edits;
  for (const Episode& episode : scenario.episodes()) {
    edits.push_back([id = episode.id()](Scenario& candidate) {
      for (Episode& changed : *candidate.mutable_episodes()) {
        if (changed.id() == id) changed.set_at_new_leader(true);
      }
    });
  }
  if (scenario.operations_size() > kFewLines) return edits;
  edits.push_back([](Scenario& candidate) {
    for (Operation& changed : *candidate.mutable_operations()) changed.set_at_new_leader(true);
  });
  for (const Operation& operation : scenario.operations()) {
    edits.push_back([id = operation.id()](Scenario& candidate) {
      for (Operation& changed : *candidate.mutable_operations()) {
        if (changed.id() == id) changed.set_at_new_leader(true);
      }
    });
  }
  return edits;
}

// More time between the steps of the plan, and for its faults.
Edits Slower(const Scenario&, uint32_t) {
  Edits edits;
  for (const uint32_t factor : {2u, 4u}) {
    edits.push_back([factor](Scenario& candidate) {
      candidate.set_chaos_ms(candidate.chaos_ms() * factor);
      for (Episode& episode : *candidate.mutable_episodes()) {
        episode.set_at_ms(episode.at_ms() * factor);
        episode.set_for_ms(episode.for_ms() * factor);
      }
      for (Operation& operation : *candidate.mutable_operations()) {
        operation.set_at_ms(operation.at_ms() * factor);
        operation.set_every_ms(operation.every_ms() * factor);
      }
    });
  }
  return edits;
}

Edits LongerFaults(const Scenario& scenario, uint32_t) {
  Edits edits;
  for (const Episode& episode : scenario.episodes()) {
    for (const uint32_t factor : {2u, 8u}) {
      edits.push_back([id = episode.id(), length = (episode.for_ms() + 10) * factor](Scenario& candidate) {
        for (Episode& changed : *candidate.mutable_episodes()) {
          if (changed.id() == id) changed.set_for_ms(length);
        }
        candidate.set_chaos_ms(candidate.chaos_ms() + length);
      });
    }
  }
  return edits;
}

// Each fault hits every member. (A partition of all parts nobody, so it is left alone, as are ways and drifts.)
Edits WiderFaults(const Scenario& scenario, uint32_t) {
  Edits edits;
  const uint32_t members = MembersOf(scenario);
  for (const Episode& episode : scenario.episodes()) {
    if (episode.has_partition() || episode.has_one_way()) continue;
    edits.push_back([id = episode.id(), members](Scenario& candidate) {
      for (Episode& changed : *candidate.mutable_episodes()) {
        if (changed.id() != id) continue;
        for (MemberNumbers* list : MemberLists(changed)) {
          list->Clear();
          for (uint32_t member = 1; member <= members; ++member) list->Add(member);
        }
      }
    });
  }
  return edits;
}

// All that is planned happens again and again, with time to recover between: what takes luck once may take none in many
// tries. Or each time to the next members, so that it hits whoever leads.
Edits Again(const Scenario&, uint32_t) {
  Edits edits;
  for (const bool turning : {false, true}) {
    for (const uint32_t times : {2u, 4u, 8u}) {
      edits.push_back([times, turning](Scenario& candidate) { Repeat(candidate, times, turning); });
    }
  }
  return edits;
}

// What happens with some chance, happens often; clocks that drift, drift further. Each alone, then all.
Edits StrongerChances(const Scenario&, uint32_t) {
  const ShrinkEdit losses = [](Scenario& candidate) {
    if (candidate.links().loss_ppm() != 0) candidate.mutable_links()->set_loss_ppm(Often(candidate.links().loss_ppm()));
  };
  const ShrinkEdit duplicates = [](Scenario& candidate) {
    if (candidate.links().duplicate_ppm() != 0) candidate.mutable_links()->set_duplicate_ppm(Often(candidate.links().duplicate_ppm()));
  };
  const ShrinkEdit slow_calls = [](Scenario& candidate) {
    for (Law* law : Laws(candidate)) {
      if (law->kind() == Law::BIMODAL) law->set_slow_ppm(Often(law->slow_ppm()));
    }
  };
  const ShrinkEdit drifts = [](Scenario& candidate) {
    for (ClockSetting& clock : *candidate.mutable_clocks()) {
      clock.set_drift_ppm(std::clamp(clock.drift_ppm() * kDriftFactor, -kStrongDriftPpm, kStrongDriftPpm));
    }
  };
  return {losses, duplicates, slow_calls, drifts, [=](Scenario& candidate) {
            for (const ShrinkEdit& edit : {losses, duplicates, slow_calls, drifts}) edit(candidate);
          }};
}

// What takes time takes longer: a moment between two steps becomes a span that something else falls into. Each law
// alone, then all.
Edits SlowerLaws(const Scenario& scenario, uint32_t) {
  Scenario copy = scenario;
  const size_t count = Laws(copy).size();
  Edits edits;
  for (const uint64_t factor : {4u, 16u}) {
    for (size_t which = 0; which <= count; ++which) {
      edits.push_back([=](Scenario& candidate) {
        const std::vector<Law*> laws = Laws(candidate);
        for (size_t i = 0; i < laws.size(); ++i) {
          if (which == i || which == count) ScaleLaw(*laws[i], factor);
        }
      });
    }
  }
  return edits;
}

// Several of these at once, where no one of them helps alone: whom it hits, how often, how long steps and faults take,
// and chances are each a part of the luck. What was not needed, reductions take away again.
Edits Harder(const Scenario& scenario, uint32_t level) {
  const uint32_t timeout_ms = ElectionTimeoutMs(scenario);
  const ShrinkEdit strong = StrongerChances(scenario, level).back();
  Edits whom = {[](Scenario&) {}};
  const uint32_t most = TimesThatStaySmall(scenario);
  for (const uint32_t times : {most, most / 2}) {
    if (times > 1) whom.push_back([times](Scenario& candidate) { Repeat(candidate, times, true); });
  }
  for (uint32_t leader = 1; leader <= MembersOf(scenario); ++leader) {
    whom.push_back([leader, timeout_ms](Scenario& candidate) { AddTransfer(candidate, leader, timeout_ms); });
  }
  Edits edits;
  for (const uint64_t slow : {1u, 4u, 16u}) {
    for (const uint32_t longer : {1u, 2u}) {
      for (const bool stronger : {true, false}) {
        for (const ShrinkEdit& hits : whom) {
          edits.push_back([=](Scenario& candidate) {
            for (Law* law : Laws(candidate)) ScaleLaw(*law, slow);
            for (Episode& episode : *candidate.mutable_episodes()) episode.set_for_ms(episode.for_ms() * longer);
            if (stronger) strong(candidate);
            hits(candidate);
          });
        }
      }
    }
  }
  return edits;
}

// Some bugs show while clocks disagree: one that is slow or fast all the time makes that while longer.
Edits StrongDrifts(const Scenario& scenario, uint32_t) {
  Edits edits;
  for (const int32_t ppm : {-kStrongDriftPpm, kStrongDriftPpm}) {
    for (uint32_t member = 1; member <= MembersOf(scenario); ++member) {
      edits.push_back([member, ppm](Scenario& candidate) { AddDrift(candidate, member, ppm, candidate.chaos_ms()); });
    }
  }
  return edits;
}

}  // namespace detcd::scenario
