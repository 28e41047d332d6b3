#include "scenarios/shrink_passes.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include <google/protobuf/descriptor.h>

#include "scenarios/shrink_edits.h"

namespace detcd::scenario {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

uint32_t RoundedDown(uint32_t number, uint32_t unit) { return number < unit ? number : number - number % unit; }

bool IsConstant(const Law& law) { return law.kind() == Law::UNIFORM && law.min_us() == law.max_us(); }

// Absent and empty mean the same.
void DropIfEmpty(Scenario& scenario) {
  if (scenario.links().ByteSizeLong() == 0) scenario.clear_links();
  if (scenario.knobs().ByteSizeLong() == 0) scenario.clear_knobs();
}

std::vector<const FieldDescriptor*> SetFields(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  return fields;
}

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

}  // namespace

// One expectation alone; then without one of its bounds.
Edits Expected(const Scenario& scenario, uint32_t) {
  Edits edits;
  const int count = scenario.expectations_size();
  for (int kept = 0; count > 1 && kept < count; ++kept) {
    edits.push_back([kept](Scenario& candidate) {
      if (kept >= candidate.expectations_size()) return;
      const Expectation alone = candidate.expectations(kept);
      candidate.clear_expectations();
      *candidate.add_expectations() = alone;
    });
  }
  if (count != 1) return edits;
  for (const FieldDescriptor* field : SetFields(scenario.expectations(0))) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    edits.push_back([field](Scenario& candidate) {
      if (candidate.expectations_size() != 1) return;
      Expectation& expected = *candidate.mutable_expectations(0);
      expected.GetReflection()->ClearField(&expected, field);
    });
  }
  return edits;
}

// Repeated operations: once, a quarter or half as often; then three quarters, each time the last or the first of them, or
// half as dense.
Edits Repetitions(const Scenario& scenario, uint32_t level) {
  Edits edits;
  const auto change = [&](uint32_t id, uint32_t times, auto to) {
    edits.push_back([=](Scenario& candidate) {
      for (Operation& operation : *candidate.mutable_operations()) {
        if (operation.id() == id && operation.times() == times) to(operation);
      }
    });
  };
  for (const Operation& operation : scenario.operations()) {
    const uint32_t times = operation.times();
    if (times < 2) continue;
    const std::vector<uint32_t> parts = level == 0 ? std::vector<uint32_t>{1, times / 4, times / 2}
                                                   : std::vector<uint32_t>{times - std::max(1u, times / 4)};
    for (const uint32_t kept : parts) {
      if (kept == 0 || kept == times) continue;
      change(operation.id(), times, [kept](Operation& changed) { KeepLastCalls(changed, kept); });
      change(operation.id(), times, [kept](Operation& changed) { KeepFirstCalls(changed, kept); });
    }
    if (level == 0) continue;
    change(operation.id(), times, [](Operation& changed) {
      changed.set_every_ms(changed.every_ms() * 2);
      KeepFirstCalls(changed, changed.times() / 2);
    });
  }
  return edits;
}

// Fixed moments in the place of those that wait for a leader.
Edits Moments(const Scenario& scenario, uint32_t) {
  Edits edits;
  for (const Episode& episode : scenario.episodes()) {
    const auto change = [&](auto to) {
      edits.push_back([id = episode.id(), to](Scenario& candidate) {
        for (Episode& changed : *candidate.mutable_episodes()) {
          if (changed.id() == id) to(changed);
        }
      });
    };
    if (episode.until_new_leader()) change([](Episode& changed) { changed.clear_until_new_leader(); });
    if (episode.at_new_leader()) change([](Episode& changed) { changed.clear_at_new_leader(); });
  }
  if (scenario.operations_size() > kOperationsToEditMax) return edits;
  for (const Operation& operation : scenario.operations()) {
    const auto change = [&](auto to) {
      edits.push_back([id = operation.id(), to](Scenario& candidate) {
        for (Operation& changed : *candidate.mutable_operations()) {
          if (changed.id() == id) to(changed);
        }
      });
    };
    if (operation.later_ms() != 0) change([](Operation& changed) { changed.clear_later_ms(); });
    if (operation.at_new_leader()) {
      change([](Operation& changed) {
        changed.clear_at_new_leader();
        changed.clear_later_ms();
      });
    }
  }
  return edits;
}

Edits Wire(const Scenario&, uint32_t) {
  return {[](Scenario& scenario) {
    scenario.set_fidelity(DIRECT);
    RemoveIf(*scenario.mutable_episodes(), [](const Episode& episode) {
      return episode.has_resets() || episode.has_half_open() || episode.has_bit_flips();
    });
  }};
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

Edits Settings(const Scenario& scenario, uint32_t) {
  Edits edits = {[](Scenario& candidate) { candidate.clear_verify(); },
                 [](Scenario& candidate) { candidate.clear_profile(); },
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

// Half of a client's writes, each larger: some bugs need so many bytes, and do not mind in how many pieces.
Edits LargerValues(const Scenario& scenario, uint32_t level) {
  constexpr std::array<uint32_t, 4> kBytes = {8'000, 2'000, 500, 100};
  Edits edits;
  if (level >= kBytes.size()) return edits;
  for (const uint32_t kept_of : {8u, 4u, 2u}) {
    if (static_cast<uint32_t>(scenario.operations_size()) < kept_of) continue;
    edits.push_back([kept_of, bytes = kBytes[level]](Scenario& candidate) {
      // Without fewer operations it would only undo what clears values.
      if (static_cast<uint32_t>(candidate.operations_size()) < kept_of) return;
      std::set<uint32_t> gone;
      for (int i = 0; i < candidate.operations_size(); ++i) {
        Operation& operation = *candidate.mutable_operations(i);
        if (static_cast<uint32_t>(i) % kept_of != 0) {
          gone.insert(operation.id());
        } else if (operation.has_put() && operation.put().value().empty()) {
          operation.mutable_put()->set_value_bytes(std::max(operation.put().value_bytes(), bytes));
        }
      }
      RemoveOperations(candidate, gone);
    });
  }
  return edits;
}

// A limit near its least is met by fewer operations.
Edits TightLimits(const Scenario&, uint32_t) {
  constexpr uint64_t kSegmentBytesMin = 1'024;
  Edits edits;
  for (const uint64_t bytes : {kSegmentBytesMin, 2 * kSegmentBytesMin, 4 * kSegmentBytesMin}) {
    edits.push_back([bytes](Scenario& candidate) {
      if (candidate.knobs().wal_segment_bytes() > bytes) candidate.mutable_knobs()->set_wal_segment_bytes(bytes);
    });
  }
  return edits;
}

}  // namespace detcd::scenario
