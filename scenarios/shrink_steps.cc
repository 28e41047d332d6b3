#include "scenarios/shrink_steps.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <google/protobuf/descriptor.h>

namespace detcd::scenario {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Numbers = google::protobuf::RepeatedField<uint32_t>;
using Edits = std::vector<ShrinkEdit>;

constexpr uint32_t kListLevels = 13;
constexpr uint32_t kTurnLevels = 6;
constexpr uint32_t kCuts = 16;            // places at which a time is tried to be cut
constexpr int kOperationsToEditMax = 60;  // above it the parts of single operations are not yet worth a run

// --- Lists ---

template <class List, class Gone>
void RemoveIf(List& list, Gone gone) {
  list.erase(std::remove_if(list.begin(), list.end(), gone), list.end());
}

void RemoveEpisodes(Scenario& scenario, const std::set<uint32_t>& ids) {
  RemoveIf(*scenario.mutable_episodes(), [&](const Episode& episode) { return ids.contains(episode.id()); });
}

void RemoveOperations(Scenario& scenario, const std::set<uint32_t>& ids) {
  RemoveIf(*scenario.mutable_operations(), [&](const Operation& operation) { return ids.contains(operation.id()); });
}

// Chunks of `list` of a size halved at each level, the last first: what comes late is rarely a reason.
template <class List>
Edits RemoveChunks(const List& list, uint32_t level, void (*remove)(Scenario&, const std::set<uint32_t>&)) {
  Edits edits;
  const int size = 1 << (kListLevels - 1 - level);
  if (size >= 2 * list.size()) return edits;
  for (int end = list.size(); end > 0; end -= size) {
    std::set<uint32_t> ids;
    for (int i = std::max(0, end - size); i < end; ++i) ids.insert(list.Get(i).id());
    edits.push_back([ids, remove](Scenario& scenario) { remove(scenario, ids); });
  }
  return edits;
}

Edits Episodes(const Scenario& scenario, uint32_t level) { return RemoveChunks(scenario.episodes(), level, RemoveEpisodes); }
Edits Operations(const Scenario& scenario, uint32_t level) {
  return RemoveChunks(scenario.operations(), level, RemoveOperations);
}

// A client asks the members in turn: what goes in whole turns leaves every later operation with its member.
Edits Turns(const Scenario& scenario, uint32_t level) {
  Edits edits;
  const uint32_t members = scenario.members() != 0 ? scenario.members() : 3;
  const size_t size = size_t{members} << (kTurnLevels - 1 - level);
  const size_t step = level + 1 == kTurnLevels ? 1 : size / 2;
  std::map<uint32_t, std::vector<uint32_t>> ids_of;  // by client
  for (const Operation& operation : scenario.operations()) ids_of[operation.client()].push_back(operation.id());
  for (const auto& [client, ids] : ids_of) {
    for (size_t end = ids.size(); end >= size; end -= step) {
      const std::set<uint32_t> gone(ids.begin() + static_cast<ptrdiff_t>(end - size), ids.begin() + static_cast<ptrdiff_t>(end));
      edits.push_back([gone](Scenario& candidate) { RemoveOperations(candidate, gone); });
    }
  }
  return edits;
}

Edits Families(const Scenario& scenario, uint32_t) {
  std::set<Episode::FaultCase> families;
  for (const Episode& episode : scenario.episodes()) families.insert(episode.fault_case());
  Edits edits;
  for (const Episode::FaultCase family : families) {
    edits.push_back([family](Scenario& candidate) {
      RemoveIf(*candidate.mutable_episodes(), [&](const Episode& episode) { return episode.fault_case() == family; });
    });
  }
  return edits;
}

Edits Wire(const Scenario&, uint32_t) {
  return {[](Scenario& scenario) {
    scenario.set_fidelity(DIRECT);
    RemoveIf(*scenario.mutable_episodes(), [](const Episode& episode) { return episode.has_resets(); });
  }};
}

// --- Members and clients ---

// The lists of members that a fault names.
std::vector<Numbers*> MemberLists(Episode& episode) {
  switch (episode.fault_case()) {
    case Episode::kPartition: return {episode.mutable_partition()->mutable_group()};
    case Episode::kOneWay: return {episode.mutable_one_way()->mutable_from(), episode.mutable_one_way()->mutable_to()};
    case Episode::kClientPartition: return {episode.mutable_client_partition()->mutable_members()};
    case Episode::kSlow: return {episode.mutable_slow()->mutable_members()};
    case Episode::kLoss: return {episode.mutable_loss()->mutable_members()};
    case Episode::kResets: return {episode.mutable_resets()->mutable_members()};
    case Episode::kCrash: return {episode.mutable_crash()->mutable_members()};
    case Episode::kPause: return {episode.mutable_pause()->mutable_members()};
    case Episode::kSyncStall: return {episode.mutable_sync_stall()->mutable_members()};
    case Episode::kTransfer: return {episode.mutable_transfer()->mutable_to()};
    case Episode::kDrift:
    case Episode::FAULT_NOT_SET: break;
  }
  return {};
}

// Keeps members 1 to `members`, and of the faults what they leave.
void KeepMembers(Scenario& scenario, uint32_t members) {
  scenario.set_members(members);
  RemoveIf(*scenario.mutable_clocks(), [&](const ClockSetting& clock) { return clock.member() > members; });
  RemoveIf(*scenario.mutable_episodes(), [&](Episode& episode) {
    bool empty = episode.has_drift() && episode.drift().member() > members;
    for (Numbers* list : MemberLists(episode)) {
      RemoveIf(*list, [&](uint32_t member) { return member > members; });
      empty |= list->empty();
    }
    return empty;
  });
}

Edits Members(const Scenario& scenario, uint32_t) {
  const uint32_t members = scenario.members() != 0 ? scenario.members() : 3;
  Edits edits;
  for (uint32_t fewer = 1; fewer < members; fewer += 2) {
    edits.push_back([fewer](Scenario& candidate) { KeepMembers(candidate, fewer); });
  }
  return edits;
}

// One client less in what faults name; a fault of no client is one less.
void ForgetClient(Scenario& scenario, uint32_t client) {
  RemoveIf(*scenario.mutable_episodes(), [&](Episode& episode) {
    if (!episode.has_client_partition()) return false;
    Numbers& clients = *episode.mutable_client_partition()->mutable_clients();
    RemoveIf(clients, [&](uint32_t number) { return number == client; });
    return clients.empty();
  });
}

Edits Clients(const Scenario& scenario, uint32_t) {
  Edits edits;
  const uint32_t clients = scenario.clients() != 0 ? scenario.clients() : 1;
  for (uint32_t client = clients; client >= 1; --client) {
    edits.push_back([client](Scenario& candidate) {
      RemoveIf(*candidate.mutable_operations(), [&](const Operation& operation) { return operation.client() == client; });
      ForgetClient(candidate, client);
    });
  }
  // What one client does, an earlier one may do as well.
  for (uint32_t client = clients; client >= 2; --client) {
    for (uint32_t earlier = 1; earlier < client; ++earlier) {
      edits.push_back([client, earlier](Scenario& candidate) {
        for (Operation& operation : *candidate.mutable_operations()) {
          if (operation.client() == client) operation.set_client(earlier);
        }
        ForgetClient(candidate, client);
      });
    }
  }
  edits.push_back([](Scenario& candidate) {
    uint32_t last = 1;
    for (const Operation& operation : candidate.operations()) last = std::max(last, operation.client());
    if (last >= candidate.clients()) return;
    for (uint32_t client = last + 1; client <= candidate.clients(); ++client) ForgetClient(candidate, client);
    candidate.set_clients(last);
  });
  return edits;
}

// Takes single members out of single faults.
Edits Groups(const Scenario& scenario, uint32_t) {
  Edits edits;
  for (const Episode& episode : scenario.episodes()) {
    Episode copy = episode;
    const std::vector<Numbers*> lists = MemberLists(copy);
    for (size_t which = 0; which < lists.size(); ++which) {
      for (const uint32_t member : *lists[which]) {
        edits.push_back([id = episode.id(), which, member](Scenario& candidate) {
          for (Episode& changed : *candidate.mutable_episodes()) {
            if (changed.id() != id) continue;
            Numbers& list = *MemberLists(changed)[which];
            if (list.size() > 1) RemoveIf(list, [&](uint32_t number) { return number == member; });
          }
        });
      }
    }
  }
  return edits;
}

// --- Times ---

// The end comes at `end_ms`; what would begin later goes.
void CutEnd(Scenario& scenario, uint32_t end_ms) {
  scenario.set_chaos_ms(end_ms);
  RemoveIf(*scenario.mutable_episodes(), [&](const Episode& episode) { return episode.at_ms() >= end_ms; });
  RemoveIf(*scenario.mutable_operations(), [&](const Operation& operation) { return operation.at_ms() > end_ms; });
}

Edits End(const Scenario& scenario, uint32_t) {
  Edits edits;
  const uint32_t chaos = scenario.chaos_ms();
  for (uint32_t cut = 1; cut < kCuts; ++cut) {
    const auto end = static_cast<uint32_t>(uint64_t{chaos} * cut / kCuts);
    edits.push_back([end](Scenario& candidate) {
      if (end < candidate.chaos_ms()) CutEnd(candidate, end);
    });
  }
  return edits;
}

// Everything from `from_ms` on happens `by_ms` earlier.
void MoveEarlier(Scenario& scenario, uint32_t from_ms, uint32_t by_ms) {
  const auto moved = [&](uint32_t at) { return at < from_ms ? at : at - by_ms; };
  for (Episode& episode : *scenario.mutable_episodes()) episode.set_at_ms(moved(episode.at_ms()));
  for (Operation& operation : *scenario.mutable_operations()) operation.set_at_ms(moved(operation.at_ms()));
  scenario.set_chaos_ms(moved(scenario.chaos_ms()));
}

Edits Start(const Scenario& scenario, uint32_t) {
  Edits edits;
  for (uint32_t cut = kCuts - 1; cut >= 1; --cut) {
    const auto begin = static_cast<uint32_t>(uint64_t{scenario.chaos_ms()} * cut / kCuts);
    edits.push_back([begin](Scenario& candidate) {
      if (begin >= candidate.chaos_ms()) return;
      RemoveIf(*candidate.mutable_episodes(), [&](const Episode& episode) { return episode.at_ms() < begin; });
      RemoveIf(*candidate.mutable_operations(), [&](const Operation& operation) { return operation.at_ms() < begin; });
      MoveEarlier(candidate, begin, begin);
    });
  }
  return edits;
}

// Spans in which the plan does nothing, the last first: those before it stay where they are.
Edits Gaps(const Scenario& scenario, uint32_t) {
  std::set<uint32_t> times = {0, scenario.chaos_ms()};
  for (const Episode& episode : scenario.episodes()) times.insert({episode.at_ms(), episode.at_ms() + episode.for_ms()});
  for (const Operation& operation : scenario.operations()) times.insert(operation.at_ms());
  Edits edits;
  uint32_t before = 0;
  if (times.size() > static_cast<size_t>(kOperationsToEditMax)) return edits;
  for (const uint32_t time : times) {
    const uint32_t gap = time - before;
    for (const uint32_t keep : {gap / 2, gap / 8, uint32_t{10}}) {
      if (gap < 40 || keep >= gap) continue;
      edits.push_back([time, by = gap - keep](Scenario& candidate) {
        if (time <= candidate.chaos_ms()) MoveEarlier(candidate, time, by);
      });
    }
    before = time;
  }
  std::reverse(edits.begin(), edits.end());
  return edits;
}

uint32_t RoundedDown(uint32_t number, uint32_t unit) { return number < unit ? number : number - number % unit; }

Edits Lengths(const Scenario& scenario, uint32_t) {
  Edits edits;
  for (const uint32_t divisor : {8u, 2u}) {
    for (const Episode& episode : scenario.episodes()) {
      edits.push_back([id = episode.id(), length = episode.for_ms() / divisor](Scenario& candidate) {
        for (Episode& changed : *candidate.mutable_episodes()) {
          if (changed.id() == id) changed.set_for_ms(std::min(changed.for_ms(), length));
        }
      });
    }
  }
  return edits;
}

// Round numbers, the roundest first: all together, then each.
Edits Rounding(const Scenario& scenario, uint32_t level) {
  constexpr std::array<uint32_t, 3> kUnits = {1'000, 100, 10};
  const uint32_t unit = kUnits[level];
  const auto round_episode = [unit](Episode& episode) {
    episode.set_at_ms(RoundedDown(episode.at_ms(), unit));
    episode.set_for_ms(RoundedDown(episode.for_ms(), unit));
  };
  const auto round_operation = [unit](Operation& operation) { operation.set_at_ms(RoundedDown(operation.at_ms(), unit)); };
  Edits edits = {[=](Scenario& candidate) {
                   for (Episode& episode : *candidate.mutable_episodes()) round_episode(episode);
                   for (Operation& operation : *candidate.mutable_operations()) round_operation(operation);
                 },
                 [=](Scenario& candidate) { candidate.set_chaos_ms(RoundedDown(candidate.chaos_ms(), unit)); }};
  for (const Episode& episode : scenario.episodes()) {
    edits.push_back([=, id = episode.id()](Scenario& candidate) {
      for (Episode& changed : *candidate.mutable_episodes()) {
        if (changed.id() == id) round_episode(changed);
      }
    });
  }
  if (scenario.operations_size() > kOperationsToEditMax) return edits;
  for (const Operation& operation : scenario.operations()) {
    edits.push_back([=, id = operation.id()](Scenario& candidate) {
      for (Operation& changed : *candidate.mutable_operations()) {
        if (changed.id() == id) round_operation(changed);
      }
    });
  }
  return edits;
}

// --- Settings ---

// All laws, in a fixed order.
std::vector<Law*> Laws(Scenario& scenario) {
  std::vector<Law*> laws;
  if (scenario.links().has_delay()) laws.push_back(scenario.mutable_links()->mutable_delay());
  if (scenario.disks().has_write()) laws.push_back(scenario.mutable_disks()->mutable_write());
  if (scenario.disks().has_sync()) laws.push_back(scenario.mutable_disks()->mutable_sync());
  for (Episode& episode : *scenario.mutable_episodes()) {
    if (episode.has_slow()) laws.push_back(episode.mutable_slow()->mutable_delay());
  }
  return laws;
}

bool IsConstant(const Law& law) { return law.kind() == Law::UNIFORM && law.min_us() == law.max_us(); }

Edits Constants(const Scenario& scenario, uint32_t) {
  Scenario copy = scenario;
  const size_t count = Laws(copy).size();
  Edits edits;
  for (size_t which = 0; which < count; ++which) {
    for (const uint64_t part : {0u, 1u, 2u}) {
      edits.push_back([which, part](Scenario& candidate) {
        Law& law = *Laws(candidate)[which];
        if (IsConstant(law)) return;
        const uint64_t us = law.min_us() + (law.max_us() - law.min_us()) * part / 2;
        law.Clear();
        law.set_min_us(us);
        law.set_max_us(us);
      });
    }
  }
  return edits;
}

// Absent and empty mean the same.
void DropIfEmpty(Scenario& scenario) {
  if (scenario.links().ByteSizeLong() == 0) scenario.clear_links();
  if (scenario.knobs().ByteSizeLong() == 0) scenario.clear_knobs();
}

Edits Losses(const Scenario& scenario, uint32_t) {
  Edits edits = {[](Scenario& candidate) {
                   candidate.mutable_links()->clear_loss_ppm();
                   candidate.mutable_links()->clear_duplicate_ppm();
                   DropIfEmpty(candidate);
                 },
                 [](Scenario& candidate) {
                   candidate.mutable_links()->clear_loss_ppm();
                   DropIfEmpty(candidate);
                 },
                 [](Scenario& candidate) {
                   candidate.mutable_links()->clear_duplicate_ppm();
                   DropIfEmpty(candidate);
                 },
                 [](Scenario& candidate) { candidate.clear_clocks(); }};
  for (const ClockSetting& clock : scenario.clocks()) {
    edits.push_back([member = clock.member()](Scenario& candidate) {
      RemoveIf(*candidate.mutable_clocks(), [&](const ClockSetting& other) { return other.member() == member; });
    });
  }
  return edits;
}

std::vector<const FieldDescriptor*> SetFields(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  return fields;
}

Edits Settings(const Scenario& scenario, uint32_t) {
  Edits edits = {[](Scenario& candidate) { candidate.clear_verify(); },
                 [](Scenario& candidate) { candidate.clear_knobs(); },
                 [](Scenario& candidate) {
                   candidate.mutable_knobs()->clear_heartbeat_ms();
                   candidate.mutable_knobs()->clear_election_timeout_ms();
                   DropIfEmpty(candidate);
                 }};
  for (const FieldDescriptor* field : SetFields(scenario.knobs())) {
    edits.push_back([field](Scenario& candidate) {
      candidate.mutable_knobs()->GetReflection()->ClearField(candidate.mutable_knobs(), field);
      DropIfEmpty(candidate);
    });
  }
  return edits;
}

// --- Operations ---

Message* Call(Operation& operation) {
  switch (operation.call_case()) {
    case Operation::kPut: return operation.mutable_put();
    case Operation::kRange: return operation.mutable_range();
    case Operation::kDelete: return operation.mutable_delete_();
    case Operation::kTxn: return operation.mutable_txn();
    case Operation::kCompact: return operation.mutable_compact();
    case Operation::kHashKv: return operation.mutable_hash_kv();
    case Operation::CALL_NOT_SET: break;
  }
  return nullptr;
}

// Clears a field of calls: of one operation, or of all when `id` is 0.
ShrinkEdit ClearCallField(const FieldDescriptor* field, uint32_t id) {
  return [field, id](Scenario& candidate) {
    for (Operation& operation : *candidate.mutable_operations()) {
      if (id != 0 && operation.id() != id) continue;
      Message* call = Call(operation);
      if (call != nullptr && call->GetDescriptor() == field->containing_type()) call->GetReflection()->ClearField(call, field);
    }
  };
}

Edits CallFields(const Scenario& scenario, uint32_t level) {
  Edits edits;
  std::set<std::pair<std::string, const FieldDescriptor*>> all;  // by name: addresses give no order
  for (const Operation& operation : scenario.operations()) {
    Operation copy = operation;
    const Message* call = Call(copy);
    if (call == nullptr) continue;
    for (const FieldDescriptor* field : SetFields(*call)) {
      if (field->name() == "key") continue;
      if (level == 1) edits.push_back(ClearCallField(field, operation.id()));
      all.insert({field->full_name(), field});
    }
  }
  if (level == 1) return scenario.operations_size() <= kOperationsToEditMax ? edits : Edits();
  for (const auto& [name, field] : all) edits.push_back(ClearCallField(field, 0));
  return edits;
}

// A read of many keys becomes a read of one that is written.
Edits OneKey(const Scenario& scenario, uint32_t) {
  Edits edits;
  if (scenario.operations_size() > kOperationsToEditMax) return edits;
  std::set<std::string> keys;
  for (const Operation& operation : scenario.operations()) {
    if (operation.has_put()) keys.insert(operation.put().key());
  }
  for (const Operation& operation : scenario.operations()) {
    if (operation.range().range_end().empty()) continue;
    for (const std::string& key : keys) {
      edits.push_back([id = operation.id(), key](Scenario& candidate) {
        for (Operation& changed : *candidate.mutable_operations()) {
          if (changed.id() != id || changed.range().range_end().empty()) continue;
          changed.mutable_range()->set_key(key);
          changed.mutable_range()->clear_range_end();
        }
      });
    }
  }
  return edits;
}

// --- Second chances ---

// A failure that takes luck may not survive the loss of a line only because every draw after it is another. So each edit
// is tried under other base seeds too, of which the result keeps the one that failed.
constexpr uint64_t kSecondSeeds = 3;

std::vector<ShrinkEdit> Reseeded(const std::vector<ShrinkEdit>& edits) {
  std::vector<ShrinkEdit> reseeded;
  for (const ShrinkEdit& edit : edits) {
    for (uint64_t more = 1; more <= kSecondSeeds; ++more) {
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

ShrinkPass Reseeded(const ShrinkPass& pass) {
  return {pass.name + ", other seeds", pass.levels,
          [edits = pass.edits](const Scenario& scenario, uint32_t level) { return Reseeded(edits(scenario, level)); }};
}

// The members that faults name become the first ones, so that the others can go.
Edits NamedMembers(const Scenario& scenario, uint32_t) {
  const uint32_t members = scenario.members() != 0 ? scenario.members() : 3;
  std::set<uint32_t> named;
  Scenario copy = scenario;
  for (Episode& episode : *copy.mutable_episodes()) {
    for (const Numbers* list : MemberLists(episode)) named.insert(list->begin(), list->end());
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
      if (fewer >= candidate.members()) return;
      for (Episode& episode : *candidate.mutable_episodes()) {
        for (Numbers* list : MemberLists(episode)) {
          for (uint32_t& member : *list) member = numbers.at(member);
          std::sort(list->begin(), list->end());
        }
        if (episode.has_drift()) episode.mutable_drift()->set_member(numbers.at(episode.drift().member()));
      }
      for (ClockSetting& clock : *candidate.mutable_clocks()) clock.set_member(numbers.at(clock.member()));
      KeepMembers(candidate, fewer);
    });
  }
  return edits;
}

// --- Hardening ---

// Election timeouts are drawn from [T, 2T) of a member's own clock: one clock that is fast at first, alone or among slow
// ones, decides who leads first. Only at first, because clocks decide much else.
constexpr int32_t kFirstLeaderPpm = 400'000;

void AddDrift(Scenario& scenario, uint32_t member, int32_t ppm) {
  uint32_t id = 0;
  for (const Episode& episode : scenario.episodes()) id = std::max(id, episode.id());
  Episode& episode = *scenario.add_episodes();
  episode.set_id(id + 1);
  episode.set_for_ms((scenario.knobs().election_timeout_ms() != 0 ? scenario.knobs().election_timeout_ms() : 1'000) * 3 / 2);
  episode.mutable_drift()->set_member(member);
  episode.mutable_drift()->set_drift_ppm(ppm);
}

Edits FirstLeader(const Scenario& scenario, uint32_t) {
  Edits edits;
  const uint32_t members = scenario.members() != 0 ? scenario.members() : 3;
  for (const bool others_slow : {false, true}) {
    for (uint32_t leader = 1; leader <= members; ++leader) {
      edits.push_back([leader, members, others_slow](Scenario& candidate) {
        AddDrift(candidate, leader, kFirstLeaderPpm);
        for (uint32_t member = 1; member <= members && others_slow; ++member) {
          if (member != leader) AddDrift(candidate, member, -kFirstLeaderPpm);
        }
      });
    }
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
      for (Operation& operation : *candidate.mutable_operations()) operation.set_at_ms(operation.at_ms() * factor);
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

}  // namespace

ShrinkPasses MakeShrinkPasses() {
  ShrinkPasses passes;
  passes.reductions = {
      {"byte streams", 1, Wire},
      {"fault families", 1, Families},
      {"the end", 1, End},
      {"episodes", kListLevels, Episodes},
      {"operations", kListLevels, Operations},
      {"the beginning", 1, Start},
      {"turns of operations", kTurnLevels, Turns},
      {"members", 1, Members},
      {"clients", 1, Clients},
      {"losses and drifts", 1, Losses},
      {"settings", 1, Settings},
      {"constant latencies", 1, Constants},
      {"members of faults", 1, Groups},
      {"idle spans", 1, Gaps},
      {"lengths of faults", 1, Lengths},
      {"options of calls", 2, CallFields},
      {"reads of one key", 1, OneKey},
      {"round numbers", 3, Rounding},
  };
  passes.second_chances = {
      Reseeded(ShrinkPass{"members that faults name", 1, NamedMembers}),
      Reseeded(ShrinkPass{"fault families", 1, Families}),
      Reseeded(ShrinkPass{"the end", 1, End}),
      Reseeded(ShrinkPass{"the beginning", 1, Start}),
      Reseeded(ShrinkPass{"episodes", kListLevels, Episodes}),
      Reseeded(ShrinkPass{"turns of operations", kTurnLevels, Turns}),
      Reseeded(ShrinkPass{"operations", kListLevels, Operations}),
      Reseeded(ShrinkPass{"clients", 1, Clients}),
      Reseeded(ShrinkPass{"settings", 1, Settings}),
      Reseeded(ShrinkPass{"constant latencies", 1, Constants}),
  };
  passes.hardenings = {
      {"who leads first", 1, FirstLeader},
      {"more time", 1, Slower},
      {"longer faults", 1, LongerFaults},
      Reseeded(ShrinkPass{"who leads first", 1, FirstLeader}),
      Reseeded(ShrinkPass{"more time", 1, Slower}),
      Reseeded(ShrinkPass{"longer faults", 1, LongerFaults}),
  };
  return passes;
}

}  // namespace detcd::scenario
