#include "scenarios/shrink_passes.h"

#include <algorithm>
#include <map>
#include <set>

#include "scenarios/shrink_edits.h"

namespace detcd::scenario {
namespace {

constexpr uint32_t kCuts = 16;  // places at which a time is tried to be cut

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

}  // namespace

Edits Episodes(const Scenario& scenario, uint32_t level) { return RemoveChunks(scenario.episodes(), level, RemoveEpisodes); }
Edits Operations(const Scenario& scenario, uint32_t level) {
  return RemoveChunks(scenario.operations(), level, RemoveOperations);
}

// A client asks the members in turn: what goes in whole turns leaves every later operation with its member.
Edits Turns(const Scenario& scenario, uint32_t level) {
  Edits edits;
  const uint32_t members = MembersOf(scenario);
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

Edits Members(const Scenario& scenario, uint32_t) {
  const uint32_t members = MembersOf(scenario);
  Edits edits;
  for (uint32_t fewer = 1; fewer < members; fewer += 2) {
    edits.push_back([fewer](Scenario& candidate) { KeepMembers(candidate, fewer); });
  }
  return edits;
}

Edits LostMembers(const Scenario& scenario, uint32_t) {
  Edits edits = {[](Scenario& candidate) { candidate.clear_lost_members(); }};
  for (const uint32_t member : scenario.lost_members()) {
    edits.push_back([member](Scenario& candidate) {
      RemoveIf(*candidate.mutable_lost_members(), [&](uint32_t number) { return number == member; });
    });
  }
  return edits;
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
    const std::vector<MemberNumbers*> lists = MemberLists(copy);
    for (size_t which = 0; which < lists.size(); ++which) {
      for (const uint32_t member : *lists[which]) {
        edits.push_back([id = episode.id(), which, member](Scenario& candidate) {
          for (Episode& changed : *candidate.mutable_episodes()) {
            if (changed.id() != id) continue;
            MemberNumbers& list = *MemberLists(changed)[which];
            if (list.size() > 1) RemoveIf(list, [&](uint32_t number) { return number == member; });
          }
        });
      }
    }
  }
  return edits;
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

Edits Start(const Scenario& scenario, uint32_t) {
  Edits edits;
  for (uint32_t cut = kCuts - 1; cut >= 1; --cut) {
    const auto begin = static_cast<uint32_t>(uint64_t{scenario.chaos_ms()} * cut / kCuts);
    edits.push_back([begin](Scenario& candidate) {
      if (begin >= candidate.chaos_ms()) return;
      RemoveIf(*candidate.mutable_episodes(), [&](const Episode& episode) { return episode.at_ms() < begin; });
      RemoveCallsBefore(candidate, begin);
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

}  // namespace detcd::scenario
