#include "tests/checker/history_generator.h"

#include <algorithm>
#include <map>
#include <utility>

#include "checker/revision_order.h"
#include "core/base/digest.h"
#include "core/proto/raft_internal.pb.h"

namespace detcd::checker {
namespace {

using State = SpecState;
using Kind = HistoryEvent::Kind;

const std::string kOpenEnd(1, '\0');

// The part of a range's answer that its options ask for, from all live pairs of its range in key order.
void SelectPairs(const Request& request, std::vector<ObservedKeyValue> pairs, Answer& answer) {
  answer.count = static_cast<int64_t>(pairs.size());
  if (request.count_only) return;
  std::erase_if(pairs, [&](const ObservedKeyValue& kv) { return kv.mod_revision < request.min_mod_revision; });
  if (request.sort_target == SortTarget::kMod) std::ranges::sort(pairs, {}, &ObservedKeyValue::mod_revision);
  if (request.sort_order == SortOrder::kDescend) std::ranges::reverse(pairs);
  if (request.limit > 0 && pairs.size() > static_cast<size_t>(request.limit)) {
    pairs.resize(static_cast<size_t>(request.limit));
    answer.more = true;
  }
  if (request.keys_only) {
    for (ObservedKeyValue& kv : pairs) kv.value.clear();
  }
  answer.kvs = std::move(pairs);
}

Request DrawRequest(Draws& draws, size_t number, const HistoryOptions& options, int64_t revision) {
  Request request;
  request.key = "k" + std::to_string(draws.Below(options.keys));
  uint64_t kind = draws.Below(10);
  if (kind < 4) {
    request.kind = OperationKind::kPut;
    request.ignore_value = draws.Chance(15);
    if (!request.ignore_value) {
      request.value = "v" + std::to_string(options.values == 0 ? number : draws.Below(options.values));
    }
    request.prev_kv = draws.Chance(40);
  } else if (kind < 6) {
    request.kind = OperationKind::kDelete;
    if (draws.Chance(30)) request.range_end = draws.Chance(50) ? "k2" : kOpenEnd;
    request.prev_kv = draws.Chance(40);
  } else {
    if (draws.Chance(50)) request.range_end = draws.Chance(50) ? "k2" : kOpenEnd;
    request.serializable = draws.Chance(20);
    if (draws.Chance(20)) request.limit = 1;
    if (draws.Chance(10)) request.keys_only = true;
    if (draws.Chance(10)) request.count_only = true;
    if (draws.Chance(10)) request.min_mod_revision = revision;
    if (draws.Chance(20)) request.sort_order = draws.Chance(50) ? SortOrder::kAscend : SortOrder::kDescend;
    if (request.sort_order != SortOrder::kNone && draws.Chance(50)) request.sort_target = SortTarget::kMod;
    if (draws.Chance(20)) request.revision = 1 + static_cast<int64_t>(draws.Below(static_cast<uint64_t>(revision) + 2));
  }
  return request;
}

}  // namespace

bool SpecWithin(const std::string& key, const Request& request) {
  if (request.range_end.empty()) return key == request.key;
  return key >= request.key && (request.range_end == kOpenEnd || key < request.range_end);
}

Answer RunSpec(const Request& request, SpecState& state, int64_t& revision) {
  Answer answer;
  std::vector<ObservedKeyValue> matching;
  for (const auto& [key, kv] : state) {
    if (SpecWithin(key, request)) matching.push_back(kv);
  }
  switch (request.kind) {
    case OperationKind::kRange: SelectPairs(request, std::move(matching), answer); break;
    case OperationKind::kDelete:
      answer.count = static_cast<int64_t>(matching.size());
      if (request.prev_kv) answer.kvs = matching;
      for (const ObservedKeyValue& kv : matching) state.erase(kv.key);
      if (!matching.empty()) ++revision;
      break;
    case OperationKind::kPut: {
      if (request.ignore_value && matching.empty()) {
        answer.error = "etcdserver: key not found";
        return answer;
      }
      if (request.prev_kv) answer.kvs = matching;
      ObservedKeyValue& kv = state[request.key];
      ++revision;
      kv.key = request.key;
      if (!request.ignore_value) kv.value = request.value;
      if (kv.version == 0) kv.create_revision = revision;
      ++kv.version;
      kv.mod_revision = revision;
      break;
    }
  }
  answer.header_revision = revision;
  return answer;
}

uint64_t Draws::Below(uint64_t limit) {
  state_ += 0x9E3779B97F4A7C15u;
  return MixWord(state_) % limit;
}

void History::Number() {
  for (size_t i = 0; i < events.size(); ++i) {
    Moment moment{.event = i + 1, .true_time = Instant{static_cast<int64_t>(i) * 1'000'000}};
    if (events[i].kind == Kind::kCall) operations[events[i].operation].call = moment;
    if (events[i].kind == Kind::kEnd) operations[events[i].operation].end = moment;
  }
}

Bytes Encode(const Request& request) {
  etcdserverpb::InternalRaftRequest encoded;
  if (request.kind == OperationKind::kPut) {
    encoded.mutable_put()->set_key(request.key);
    encoded.mutable_put()->set_value(request.value);
    encoded.mutable_put()->set_ignore_value(request.ignore_value);
  } else {
    encoded.mutable_delete_range()->set_key(request.key);
    encoded.mutable_delete_range()->set_range_end(request.range_end);
  }
  return Bytes::Copy(encoded.SerializeAsString());
}

History GenerateHistory(uint64_t seed, const HistoryOptions& options) {
  Draws draws(seed);
  History history;
  std::vector<State> states(2);  // by revision
  int64_t revision = 1;
  struct Client {
    std::optional<size_t> operation;
    bool done = false;  // took effect
  };
  std::vector<Client> clients(options.clients);
  std::vector<size_t> adrift;  // unknown to their clients and not in the log yet
  auto take_effect = [&](size_t index) {
    Operation& operation = history.operations[index];
    const Request& request = operation.request;
    if (request.kind != OperationKind::kRange) {
      history.events.push_back({.kind = Kind::kCommit, .committed = request});
      State state = states[static_cast<size_t>(revision)];
      int64_t before = revision;
      operation.answer = RunSpec(request, state, revision);
      if (revision > before) states.push_back(state);
      return;
    }
    int64_t at = revision;
    if (request.serializable) at = 1 + static_cast<int64_t>(draws.Below(static_cast<uint64_t>(revision)));
    if (request.revision > at) {
      operation.answer.error = "etcdserver: mvcc: required revision is a future revision";
      return;
    }
    int64_t from = request.revision > 0 ? request.revision : at;
    State state = states[static_cast<size_t>(from)];
    operation.answer = RunSpec(request, state, from);
    operation.answer.header_revision = at;
  };
  bool busy = true;
  while (busy) {
    if (!adrift.empty() && draws.Chance(15)) {
      size_t which = draws.Below(adrift.size());
      if (draws.Chance(70)) take_effect(adrift[which]);
      adrift.erase(adrift.begin() + static_cast<std::ptrdiff_t>(which));
    }
    auto number = static_cast<uint32_t>(draws.Below(clients.size()));
    Client& client = clients[number];
    if (!client.operation.has_value()) {
      if (history.operations.size() < options.operations) {
        size_t index = history.operations.size();
        Operation operation{.id = index + 1, .client = number};
        operation.request = DrawRequest(draws, index, options, revision);
        history.operations.push_back(operation);
        history.events.push_back({.kind = Kind::kCall, .operation = index});
        client = {.operation = index};
      }
    } else if (Operation& operation = history.operations[*client.operation];
               draws.Chance(options.unknown_percent / 2)) {
      operation.outcome = Outcome::kUnknown;
      history.events.push_back({.kind = Kind::kEnd, .operation = *client.operation});
      if (!client.done && operation.request.kind != OperationKind::kRange) adrift.push_back(*client.operation);
      client.operation.reset();
    } else if (!client.done) {
      if (operation.request.kind == OperationKind::kPut && draws.Chance(5)) {
        operation.answer.error = "etcdserver: too many requests";
      } else {
        take_effect(*client.operation);
      }
      client.done = true;
    } else {
      operation.outcome = operation.answer.error.empty() ? Outcome::kAnswered : Outcome::kRefused;
      history.events.push_back({.kind = Kind::kEnd, .operation = *client.operation});
      client.operation.reset();
    }
    busy = history.operations.size() < options.operations;
    for (const Client& other : clients) busy = busy || other.operation.has_value();
  }
  history.Number();
  return history;
}

std::optional<Violation> JudgeHistory(const History& history) {
  Verdict verdict;
  RevisionOrder judge(verdict);
  uint64_t index = 0;
  for (size_t i = 0; i < history.events.size() && !verdict.broken(); ++i) {
    const HistoryEvent& event = history.events[i];
    Moment moment{.event = i + 1};
    switch (event.kind) {
      case Kind::kCall: {
        Operation operation = history.operations[event.operation];
        operation.outcome = Outcome::kPending;
        operation.answer = {};
        judge.OnCall(operation);
        break;
      }
      case Kind::kEnd: judge.OnEnd(history.operations[event.operation]); break;
      case Kind::kCommit:
        judge.OnCommitted({.index = LogIndex(++index), .term = Term(1), .data = Encode(event.committed)}, moment);
        break;
    }
  }
  return verdict.violation();
}

}  // namespace detcd::checker
