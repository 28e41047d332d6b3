// What several reductions do to a scenario: changes that leave it one that can be run, and the same to its reader but for
// what they name. Members and clients are numbered from 1.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "scenarios/shrink.h"

namespace detcd::scenario {

using MemberNumbers = google::protobuf::RepeatedField<uint32_t>;
using Edits = std::vector<ShrinkEdit>;

// Above it the parts of single operations are not yet worth a run.
inline constexpr int kOperationsToEditMax = 60;
// So many lines of operations are as easy to read as a steady load.
inline constexpr int kFewLines = 8;

template <class List, class Gone>
void RemoveIf(List& list, Gone gone) {
  list.erase(std::remove_if(list.begin(), list.end(), gone), list.end());
}

uint32_t MembersOf(const Scenario& scenario);
uint32_t ElectionTimeoutMs(const Scenario& scenario);

void RemoveEpisodes(Scenario& scenario, const std::set<uint32_t>& ids);
void RemoveOperations(Scenario& scenario, const std::set<uint32_t>& ids);

// The lists of members that a fault names.
std::vector<MemberNumbers*> MemberLists(Episode& episode);
// The laws of all that takes time, in a fixed order.
std::vector<Law*> Laws(Scenario& scenario);
// Keeps members 1 to `members`, and of the faults, clocks and losses what they leave.
void KeepMembers(Scenario& scenario, uint32_t members);
// Gives every member the number that `numbers` has for it. Requires: a permutation of all members.
void RenumberMembers(Scenario& scenario, const std::map<uint32_t, uint32_t>& numbers);
// One client less in what faults name; a fault of no client is one less.
void ForgetClient(Scenario& scenario, uint32_t client);

// The first or the last `kept` calls of a repeated operation, each with its time and its id, which names its random
// choices; one is no longer repeated. Requires: 0 < kept <= its times.
void KeepFirstCalls(Operation& operation, uint32_t kept);
void KeepLastCalls(Operation& operation, uint32_t kept);
// What would begin before `from_ms` goes.
void RemoveCallsBefore(Scenario& scenario, uint32_t from_ms);

// The end comes at `end_ms`; what would begin later goes.
void CutEnd(Scenario& scenario, uint32_t end_ms);
// Everything from `from_ms` on happens `by_ms` earlier. Requires: by_ms <= from_ms.
void MoveEarlier(Scenario& scenario, uint32_t from_ms, uint32_t by_ms);

}  // namespace detcd::scenario
