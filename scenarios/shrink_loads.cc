#include "scenarios/shrink_passes.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "scenarios/shrink_edits.h"

namespace detcd::scenario {
namespace {

// One client writes a key, another reads it, again and again. Reads are dense. Where writes are, a member that is slow never
// has all of them: some failures take that, others the contrary.
constexpr std::array<uint32_t, 2> kWritesEveryMs = {200, 20};
constexpr uint32_t kReadsEveryMs = 20;
constexpr uint32_t kCallsMax = 5'000;  // of one operation

uint32_t ClientsOf(const Scenario& scenario) { return std::max(1u, scenario.clients()); }
// Each call has an id, which names its random choices.
uint32_t CallsOf(const Operation& operation) { return std::max(1u, operation.times()); }

uint32_t NextId(const Scenario& scenario) {
  uint32_t next = 1;
  for (const Operation& operation : scenario.operations()) next = std::max(next, operation.id() + CallsOf(operation));
  return next;
}

Operation& AddSteady(Scenario& scenario, uint32_t client, uint32_t every_ms) {
  const uint32_t id = NextId(scenario);
  Operation& operation = *scenario.add_operations();
  operation.set_id(id);
  operation.set_client(client);
  operation.set_every_ms(every_ms);
  operation.set_times(std::clamp(scenario.chaos_ms() / every_ms, 1u, kCallsMax));
  return operation;
}

void SetSteadyLoad(Scenario& scenario, uint32_t writes_every_ms) {
  scenario.clear_operations();
  scenario.set_clients(std::max(scenario.clients(), 2u));
  AddSteady(scenario, 1, writes_every_ms).mutable_put()->set_key("k0");
  AddSteady(scenario, 2, kReadsEveryMs).mutable_range()->set_key("k0");
}

// The first clients all do the same, all at the same time: some failures take several that wait together.
void SetCrowd(Scenario& scenario, uint32_t clients, uint32_t every_ms, bool reads) {
  scenario.clear_operations();
  for (uint32_t client = 1; client <= clients; ++client) {
    Operation& steady = AddSteady(scenario, client, every_ms);
    if (reads) {
      steady.mutable_range()->set_key("k0");
    } else {
      steady.mutable_put()->set_key("k0");
    }
  }
}

enum class CallKind : uint8_t { kWrite, kRead, kOther };

CallKind KindOf(const Operation& operation) {
  if (operation.at_new_leader()) return CallKind::kOther;  // its moment is a part of it
  switch (operation.call_case()) {
    case Operation::kPut:
    case Operation::kDelete:
    case Operation::kTxn: return CallKind::kWrite;
    case Operation::kRange: return CallKind::kRead;
    case Operation::kCompact:
    case Operation::kHashKv:
    case Operation::CALL_NOT_SET: break;
  }
  return CallKind::kOther;
}

// Operations that may become one.
struct Fold {
  std::vector<uint32_t> ids;
  CallKind kind;
};

// By client and kind: all, or (`apart`) those that no call of another kind parts.
std::vector<Fold> Folds(const Scenario& scenario, bool apart) {
  std::map<std::pair<uint32_t, CallKind>, Fold> open;
  std::vector<Fold> folds;
  const auto close = [&](auto& entry) {
    if (entry.second.ids.size() > 1) folds.push_back(std::move(entry.second));
  };
  for (const Operation& operation : scenario.operations()) {
    const CallKind kind = KindOf(operation);
    if (apart) {
      for (auto place = open.begin(); place != open.end();) {
        const bool ends = place->first.first == operation.client() && place->first.second != kind;
        if (ends) close(*place);
        place = ends ? open.erase(place) : std::next(place);
      }
    }
    if (kind == CallKind::kOther) continue;
    Fold& fold = open[{operation.client(), kind}];
    fold.kind = kind;
    fold.ids.push_back(operation.id());
  }
  for (auto& entry : open) close(entry);
  return folds;
}

// One operation in the place of the first of `fold`, with `factor` times as many calls: from its time until the last's, or
// until something else that the client does.
void ApplyFold(Scenario& scenario, const Fold& fold, uint32_t factor) {
  std::set<uint32_t> gone(fold.ids.begin(), fold.ids.end());
  uint32_t calls = 0;
  uint32_t last_ms = 0;
  uint32_t end_ms = scenario.chaos_ms();
  std::string key;
  size_t found = 0;
  Operation* first = nullptr;
  for (Operation& operation : *scenario.mutable_operations()) {
    if (!gone.contains(operation.id())) {
      if (first != nullptr && operation.client() == first->client()) end_ms = std::min(end_ms, operation.at_ms());
      continue;
    }
    if (first == nullptr) first = &operation;
    ++found;
    calls += CallsOf(operation);
    last_ms = std::max(last_ms, operation.at_ms() + (CallsOf(operation) - 1) * operation.every_ms());
    if (!key.empty()) continue;
    if (operation.has_put()) key = operation.put().key();
    if (operation.has_range() && operation.range().range_end().empty()) key = operation.range().key();
  }
  if (found < 2) return;  // it would be no line less
  calls = std::min(calls * factor, kCallsMax);
  Operation folded;
  folded.set_id(NextId(scenario));
  folded.set_client(first->client());
  folded.set_at_ms(first->at_ms());
  folded.set_times(calls);
  last_ms = std::max(first->at_ms(), std::min(last_ms, end_ms));
  folded.set_every_ms((last_ms - first->at_ms()) / (calls - 1));
  if (key.empty()) key = "k0";
  if (fold.kind == CallKind::kRead) {
    folded.mutable_range()->set_key(key);
  } else {
    folded.mutable_put()->set_key(key);
  }
  gone.erase(first->id());
  *first = folded;
  RemoveOperations(scenario, gone);
}

}  // namespace

// The last part under a load that has a call at every moment. A failure that takes a call at the right moment of it needs
// no luck then, whatever else happens at other times; and hundreds of single calls, of which each that goes moves all that
// come after it, become two lines.
Edits LastPartOfSteadyLoad(const Scenario& scenario, uint32_t level) {
  Edits edits;
  if (scenario.operations_size() <= kFewLines) return edits;
  for (const ShrinkEdit& last_part : LastPart(scenario, level)) {
    for (const uint32_t every_ms : kWritesEveryMs) {
      edits.push_back([last_part, every_ms](Scenario& candidate) {
        const uint32_t before = candidate.chaos_ms();
        last_part(candidate);
        if (candidate.chaos_ms() != before) SetSteadyLoad(candidate, every_ms);
      });
    }
  }
  return edits;
}

// A load of few lines in the place of one of more.
Edits SteadyLoad(const Scenario& scenario, uint32_t) {
  Edits edits;
  const auto add = [&](uint32_t lines, auto load) {
    if (static_cast<uint32_t>(scenario.operations_size()) <= lines) return;
    edits.push_back([lines, load](Scenario& candidate) {
      if (static_cast<uint32_t>(candidate.operations_size()) > lines) load(candidate);
    });
  };
  for (const uint32_t every_ms : kWritesEveryMs) {
    add(2, [every_ms](Scenario& candidate) { SetSteadyLoad(candidate, every_ms); });
  }
  for (uint32_t clients = 2; clients < 2 * ClientsOf(scenario); clients *= 2) {
    const uint32_t crowd = std::min(clients, ClientsOf(scenario));
    for (const uint32_t every_ms : kWritesEveryMs) {
      for (const bool reads : {false, true}) {
        add(crowd, [=](Scenario& candidate) {
          if (crowd <= ClientsOf(candidate)) SetCrowd(candidate, crowd, every_ms, reads);
        });
      }
    }
  }
  return edits;
}

// A steady load in the place of a few calls that come at the right moment by luck, whoever leads or if a certain member
// does.
Edits SteadyAgain(const Scenario& scenario, uint32_t level) {
  Edits edits;
  if (scenario.operations_size() == 0 || scenario.operations_size() > kFewLines) return edits;
  Edits leads = FirstLeader(scenario, level);
  leads.insert(leads.begin(), [](Scenario&) {});
  for (const ShrinkEdit& lead : leads) {
    for (const uint32_t every_ms : kWritesEveryMs) {
      edits.push_back([lead, every_ms](Scenario& candidate) {
        lead(candidate);
        SetSteadyLoad(candidate, every_ms);
      });
    }
  }
  return edits;
}

// Many calls of a client become one that is repeated as often, or more often: first all at once, then those of one client,
// then those that follow each other.
Edits Repeats(const Scenario& scenario, uint32_t level) {
  constexpr uint32_t kMoreOften = 4;
  Edits edits;
  const std::vector<Fold> folds = Folds(scenario, level == 2);
  for (const uint32_t factor : {1u, kMoreOften}) {
    if (level == 0) {
      edits.push_back([folds, factor](Scenario& candidate) {
        for (const Fold& fold : folds) ApplyFold(candidate, fold, factor);
      });
      continue;
    }
    for (const Fold& fold : folds) {
      edits.push_back([fold, factor](Scenario& candidate) { ApplyFold(candidate, fold, factor); });
    }
  }
  return edits;
}

}  // namespace detcd::scenario
