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

Request DrawRequest(Draws& draws, size_t number, const HistoryOptions& options, int64_t revision);

Condition DrawCondition(Draws& draws, size_t number, const HistoryOptions& options, int64_t revision) {
  Condition compare{.result = static_cast<CompareResult>(draws.Below(4)),
                     .target = static_cast<CompareTarget>(draws.Below(5)),
                     .key = "k" + std::to_string(draws.Below(options.keys))};
  if (options.conditions_on_values && compare.target < CompareTarget::kValue) compare.target = CompareTarget::kValue;
  if (draws.Chance(20)) compare.range_end = draws.Chance(50) ? "k2" : kOpenEnd;
  if (draws.Chance(50)) compare.result = CompareResult::kEqual;
  if (compare.target == CompareTarget::kValue) {
    compare.value = "v" + std::to_string(draws.Below(options.values == 0 ? number + 1 : options.values));
  } else if (draws.Chance(60)) {
    compare.number = static_cast<int64_t>(draws.Below(static_cast<uint64_t>(revision) + 1));
  }
  return compare;
}

Request DrawTxn(Draws& draws, size_t number, const HistoryOptions& options, int64_t revision, int depth) {
  Request request{.kind = OperationKind::kTxn};
  for (uint64_t i = draws.Below(3); i > 0; --i) request.compares.push_back(DrawCondition(draws, number, options, revision));
  const bool only_ranges = draws.Chance(20);
  HistoryOptions plain = options;
  plain.txn_percent = 0;
  for (std::vector<Request>* branch : {&request.success, &request.failure}) {
    for (uint64_t i = draws.Below(3); i > 0; --i) {
      if (depth > 0 && draws.Chance(15)) {
        branch->push_back(DrawTxn(draws, number, options, revision, depth - 1));
        continue;
      }
      Request operation = DrawRequest(draws, number, plain, revision);
      while (only_ranges && operation.kind != OperationKind::kRange) operation = DrawRequest(draws, number, plain, revision);
      operation.revision = 0;
      operation.min_mod_revision = 0;  // what rests on revisions is told by values of single ranges only
      operation.sort_target = SortTarget::kKey;
      if (only_ranges && draws.Chance(40)) operation.serializable = true;
      // A key that was open to a delete and is kept again has no value to keep: etcd itself stops there.
      operation.ignore_value = operation.ignore_value && branch->empty();
      if (operation.kind == OperationKind::kPut && !operation.ignore_value && operation.value.empty()) operation.value = "v0";
      branch->push_back(std::move(operation));
    }
  }
  return request;
}

Request DrawRequest(Draws& draws, size_t number, const HistoryOptions& options, int64_t revision) {
  if (options.txn_percent > 0 && draws.Chance(options.txn_percent)) {
    return DrawTxn(draws, number, options, revision, 1);
  }
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

namespace {

template <typename T>
bool SpecHolds(CompareResult result, const T& have, const T& want) {
  bool outcomes[] = {have == want, have > want, have < want, have != want};
  return outcomes[static_cast<size_t>(result)];
}

bool SpecHolds(const Condition& compare, const SpecState& state) {
  Request range{.key = compare.key, .range_end = compare.range_end};
  bool any = false;
  for (const auto& [key, kv] : state) {
    if (!SpecWithin(key, range)) continue;
    any = true;
    const int64_t numbers[] = {kv.version, kv.create_revision, kv.mod_revision, 0, 0};
    bool holds = compare.target == CompareTarget::kValue
                     ? SpecHolds(compare.result, kv.value, compare.value)
                     : SpecHolds(compare.result, numbers[static_cast<size_t>(compare.target)], compare.number);
    if (!holds) return false;
  }
  return any || (compare.target != CompareTarget::kValue && SpecHolds(compare.result, int64_t{0}, compare.number));
}

// A transaction whose branches are chosen: the operations that run, in order, each with where its answer goes.
struct SpecStep {
  const Request* request;
  Answer* answer;
};

void SpecChoose(const Request& txn, const SpecState& state, Answer& answer) {
  answer.succeeded = std::ranges::all_of(txn.compares, [&](const Condition& c) { return SpecHolds(c, state); });
  const auto& branch = answer.succeeded ? txn.success : txn.failure;
  answer.responses.resize(branch.size());
  for (size_t i = 0; i < branch.size(); ++i) {
    answer.responses[i].kind = branch[i].kind;
    if (branch[i].kind == OperationKind::kTxn) SpecChoose(branch[i], state, answer.responses[i]);
  }
}

void SpecSteps(const Request& txn, Answer& answer, std::vector<SpecStep>& steps) {
  const auto& branch = answer.succeeded ? txn.success : txn.failure;
  for (size_t i = 0; i < branch.size(); ++i) {
    if (branch[i].kind == OperationKind::kTxn) {
      SpecSteps(branch[i], answer.responses[i], steps);
    } else {
      steps.push_back({&branch[i], &answer.responses[i]});
    }
  }
}

bool SpecPutsTwice(const std::vector<Request>& branch, std::vector<std::string>& puts, std::vector<const Request*>& deletes) {
  auto put = [&](const std::string& key) {
    bool twice = std::ranges::find(puts, key) != puts.end();
    for (const Request* deletion : deletes) twice = twice || (deletion->range_end != kOpenEnd && SpecWithin(key, *deletion));
    puts.push_back(key);
    return twice;
  };
  for (const Request& operation : branch) {
    if (operation.kind == OperationKind::kDelete) deletes.push_back(&operation);
  }
  for (const Request& operation : branch) {
    if (operation.kind != OperationKind::kTxn) continue;
    std::vector<std::string> then;
    std::vector<std::string> otherwise;
    std::vector<const Request*> inner;
    std::vector<const Request*> inner_otherwise;
    if (SpecPutsTwice(operation.success, then, inner) || SpecPutsTwice(operation.failure, otherwise, inner_otherwise)) return true;
    std::erase_if(otherwise, [&](const std::string& key) { return std::ranges::find(then, key) != then.end(); });
    for (const std::string& key : then) {
      if (put(key)) return true;
    }
    for (const std::string& key : otherwise) {
      if (put(key)) return true;
    }
    deletes.insert(deletes.end(), inner.begin(), inner.end());
    deletes.insert(deletes.end(), inner_otherwise.begin(), inner_otherwise.end());
  }
  for (const Request& operation : branch) {
    if (operation.kind == OperationKind::kPut && put(operation.key)) return true;
  }
  return false;
}

Answer RunSpecTxn(const Request& request, SpecState& state, int64_t& revision, const std::vector<SpecState>* past) {
  Answer answer;
  for (const auto* branch : {&request.success, &request.failure}) {
    std::vector<std::string> puts;
    std::vector<const Request*> deletes;
    if (SpecPutsTwice(*branch, puts, deletes)) return {.error = "etcdserver: duplicate key given in txn request"};
  }
  SpecChoose(request, state, answer);
  std::vector<SpecStep> steps;
  SpecSteps(request, answer, steps);
  for (const SpecStep& step : steps) {
    if (step.request->kind == OperationKind::kRange && step.request->revision > revision) {
      return {.error = "etcdserver: mvcc: required revision is a future revision"};
    }
    if (step.request->ignore_value && !state.contains(step.request->key)) return {.error = "etcdserver: key not found"};
  }
  int64_t next = revision;
  for (const SpecStep& step : steps) {
    int64_t before = revision;  // every change is of the same revision
    Answer one;
    if (step.request->revision > 0 && past != nullptr) {
      SpecState old = (*past)[static_cast<size_t>(step.request->revision)];
      int64_t any = step.request->revision;
      one = RunSpec(*step.request, old, any);
    } else {
      one = RunSpec(*step.request, state, before);
    }
    next = std::max(next, before);
    one.kind = step.request->kind;
    one.header_revision = next;
    *step.answer = std::move(one);
  }
  answer.header_revision = revision = next;
  return answer;
}

}  // namespace

bool SpecProposes(const Request& request) {
  if (request.kind != OperationKind::kTxn) return request.kind != OperationKind::kRange;
  for (const auto* branch : {&request.success, &request.failure}) {
    for (const Request& operation : *branch) {
      if (operation.kind != OperationKind::kRange) return true;
    }
  }
  return false;
}

bool SpecReadsLocally(const Request& request) {
  if (request.kind != OperationKind::kTxn) return request.serializable;
  if (SpecProposes(request)) return false;
  for (const auto* branch : {&request.success, &request.failure}) {
    for (const Request& operation : *branch) {
      if (!operation.serializable) return false;
    }
  }
  return true;
}

bool SpecMayTouch(const Request& writer, const Request& reader) {
  for (const Condition& compare : reader.compares) {
    if (SpecMayTouch(writer, {.key = compare.key, .range_end = compare.range_end})) return true;
  }
  for (const auto* branch : {&reader.success, &reader.failure}) {
    for (const Request& operation : *branch) {
      if (SpecMayTouch(writer, operation)) return true;
    }
  }
  for (const auto* branch : {&writer.success, &writer.failure}) {
    for (const Request& operation : *branch) {
      if (operation.kind != OperationKind::kRange && SpecMayTouch(operation, reader)) return true;
    }
  }
  if (writer.kind == OperationKind::kTxn || reader.kind == OperationKind::kTxn) return false;
  return SpecWithin(writer.key, reader) || SpecWithin(reader.key, writer);
}

bool SpecTellsByValues(const Request& request) {
  for (const Condition& compare : request.compares) {
    if (compare.target < CompareTarget::kValue) return false;
  }
  return std::ranges::all_of(request.success, SpecTellsByValues) && std::ranges::all_of(request.failure, SpecTellsByValues);
}

Answer RunSpec(const Request& request, SpecState& state, int64_t& revision, const std::vector<SpecState>* past) {
  if (request.kind == OperationKind::kTxn) return RunSpecTxn(request, state, revision, past);
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
    case OperationKind::kTxn: case OperationKind::kCompact: case OperationKind::kHashKv: break;
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

namespace {

void EncodeTxn(const Request& request, etcdserverpb::TxnRequest& txn);

void EncodePut(const Request& request, etcdserverpb::PutRequest& put) {
  put.set_key(request.key);
  put.set_value(request.value);
  put.set_ignore_value(request.ignore_value);
}

void EncodeDelete(const Request& request, etcdserverpb::DeleteRangeRequest& deletion) {
  deletion.set_key(request.key);
  deletion.set_range_end(request.range_end);
}

void EncodeOperation(const Request& request, etcdserverpb::RequestOp& operation) {
  switch (request.kind) {
    case OperationKind::kPut: EncodePut(request, *operation.mutable_request_put()); break;
    case OperationKind::kDelete: EncodeDelete(request, *operation.mutable_request_delete_range()); break;
    case OperationKind::kTxn: EncodeTxn(request, *operation.mutable_request_txn()); break;
    case OperationKind::kRange: case OperationKind::kCompact: case OperationKind::kHashKv:
      operation.mutable_request_range()->set_key(request.key);
      operation.mutable_request_range()->set_range_end(request.range_end);
      operation.mutable_request_range()->set_revision(request.revision);
      break;
  }
}

void EncodeTxn(const Request& request, etcdserverpb::TxnRequest& txn) {
  for (const Condition& compare : request.compares) {
    etcdserverpb::Compare& encoded = *txn.add_compare();
    encoded.set_result(static_cast<etcdserverpb::Compare::CompareResult>(compare.result));
    encoded.set_target(static_cast<etcdserverpb::Compare::CompareTarget>(compare.target));
    encoded.set_key(compare.key);
    encoded.set_range_end(compare.range_end);
    switch (compare.target) {
      case CompareTarget::kVersion: encoded.set_version(compare.number); break;
      case CompareTarget::kCreate: encoded.set_create_revision(compare.number); break;
      case CompareTarget::kMod: encoded.set_mod_revision(compare.number); break;
      case CompareTarget::kValue: encoded.set_value(compare.value); break;
      case CompareTarget::kLease: encoded.set_lease(compare.number); break;
    }
  }
  for (const Request& operation : request.success) EncodeOperation(operation, *txn.add_success());
  for (const Request& operation : request.failure) EncodeOperation(operation, *txn.add_failure());
}

}  // namespace

Bytes Encode(const Request& request) {
  etcdserverpb::InternalRaftRequest encoded;
  switch (request.kind) {
    case OperationKind::kPut: EncodePut(request, *encoded.mutable_put()); break;
    case OperationKind::kDelete: EncodeDelete(request, *encoded.mutable_delete_range()); break;
    case OperationKind::kTxn: EncodeTxn(request, *encoded.mutable_txn()); break;
    case OperationKind::kCompact:
      encoded.mutable_compaction()->set_revision(request.revision);
      encoded.mutable_compaction()->set_physical(request.physical);
      break;
    case OperationKind::kRange: case OperationKind::kHashKv: break;
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
    if (SpecProposes(request)) {
      SpecState scratch = states[static_cast<size_t>(revision)];
      int64_t any = revision;
      operation.answer = RunSpec(request, scratch, any);
      if (operation.answer.error.find("duplicate key") != std::string::npos) return;  // never proposed
      history.events.push_back({.kind = Kind::kCommit, .committed = request});
      State state = states[static_cast<size_t>(revision)];
      int64_t before = revision;
      operation.answer = RunSpec(request, state, revision);
      if (revision > before) states.push_back(state);
      return;
    }
    int64_t at = revision;
    if (SpecReadsLocally(request)) at = 1 + static_cast<int64_t>(draws.Below(static_cast<uint64_t>(revision)));
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
      if (!client.done && SpecProposes(operation.request)) adrift.push_back(*client.operation);
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
