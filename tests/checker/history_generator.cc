#include "tests/checker/history_generator.h"

#include <algorithm>
#include <map>
#include <utility>

#include "checker/revision_order.h"
#include "core/base/digest.h"
#include "core/proto/raft_internal.pb.h"

namespace detcd::checker {
namespace {

using State = std::map<std::string, ObservedKeyValue>;
using Kind = HistoryEvent::Kind;

const std::string kOpenEnd(1, '\0');

bool Within(const std::string& key, const Request& request) {
  if (request.range_end.empty()) return key == request.key;
  return key >= request.key && (request.range_end == kOpenEnd || key < request.range_end);
}

// The specification: the answer to `request` on `state` at `revision`; changes both when the request does.
Answer Run(const Request& request, State& state, int64_t& revision) {
  Answer answer;
  std::vector<ObservedKeyValue> matching;
  for (const auto& [key, kv] : state) {
    if (Within(key, request)) matching.push_back(kv);
  }
  switch (request.kind) {
    case OperationKind::kRange:
      answer.count = static_cast<int64_t>(matching.size());
      answer.kvs = matching;
      if (request.limit > 0 && matching.size() > static_cast<size_t>(request.limit)) {
        answer.kvs.resize(static_cast<size_t>(request.limit));
        answer.more = true;
      }
      break;
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

bool SameAnswer(const Answer& a, const Answer& b) {
  return a.error == b.error && a.header_revision == b.header_revision && a.kvs == b.kvs && a.count == b.count &&
         a.more == b.more;
}

bool SameEffect(const Request& a, const Request& b) {
  return a.kind == b.kind && a.key == b.key && a.range_end == b.range_end && a.value == b.value &&
         a.ignore_value == b.ignore_value;
}

Request DrawRequest(Draws& draws, size_t number, size_t keys, int64_t revision) {
  Request request;
  request.key = "k" + std::to_string(draws.Below(keys));
  uint64_t kind = draws.Below(10);
  if (kind < 4) {
    request.kind = OperationKind::kPut;
    request.ignore_value = draws.Chance(15);
    if (!request.ignore_value) request.value = "v" + std::to_string(number);
    request.prev_kv = draws.Chance(40);
  } else if (kind < 6) {
    request.kind = OperationKind::kDelete;
    if (draws.Chance(30)) request.range_end = draws.Chance(50) ? "k2" : kOpenEnd;
    request.prev_kv = draws.Chance(40);
  } else {
    if (draws.Chance(50)) request.range_end = draws.Chance(50) ? "k2" : kOpenEnd;
    request.serializable = draws.Chance(20);
    if (draws.Chance(20)) request.limit = 1;
    if (draws.Chance(20)) request.revision = 1 + static_cast<int64_t>(draws.Below(static_cast<uint64_t>(revision) + 2));
  }
  return request;
}

}  // namespace

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
      operation.answer = Run(request, state, revision);
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
    operation.answer = Run(request, state, from);
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
        operation.request = DrawRequest(draws, index, options.keys, revision);
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

std::optional<std::string> Corrupt(History& history, Draws& draws) {
  std::vector<size_t> answered;
  std::vector<size_t> commits;
  std::vector<size_t> refused;
  std::vector<size_t> unknown;
  for (size_t i = 0; i < history.operations.size(); ++i) {
    const Operation& operation = history.operations[i];
    if (operation.outcome == Outcome::kAnswered) answered.push_back(i);
    if (operation.outcome == Outcome::kRefused && operation.request.kind == OperationKind::kPut) refused.push_back(i);
    if (operation.outcome == Outcome::kUnknown && operation.request.kind != OperationKind::kRange) unknown.push_back(i);
  }
  for (size_t i = 0; i < history.events.size(); ++i) {
    if (history.events[i].kind == Kind::kCommit) commits.push_back(i);
  }
  if (answered.empty()) return std::nullopt;
  auto pick = [&](const std::vector<size_t>& from) { return from[draws.Below(from.size())]; };
  auto event_of = [&](Kind kind, size_t operation) {
    return std::ranges::find_if(history.events,
                                [&](const HistoryEvent& e) { return e.kind == kind && e.operation == operation; });
  };
  Operation& victim = history.operations[pick(answered)];
  size_t index = static_cast<size_t>(victim.id - 1);
  std::string name;
  switch (draws.Below(13)) {
    case 0: {
      Operation& other = history.operations[pick(answered)];
      if (other.request.kind != victim.request.kind || other.id == victim.id) return std::nullopt;
      std::swap(other.answer, victim.answer);
      name = "swap two answers";
      break;
    }
    case 1: {
      auto end = event_of(Kind::kEnd, index);
      HistoryEvent moved = *end;
      history.events.erase(end);
      history.events.insert(event_of(Kind::kCall, index) + 1, moved);
      name = "return at once";
      break;
    }
    case 2: {
      auto call = event_of(Kind::kCall, index);
      HistoryEvent moved = *call;
      history.events.erase(call);
      history.events.insert(event_of(Kind::kEnd, index), moved);
      name = "call late";
      break;
    }
    case 3: {
      if (commits.empty()) return std::nullopt;
      HistoryEvent twice = history.events[pick(commits)];
      auto place = static_cast<std::ptrdiff_t>(draws.Below(history.events.size() + 1));
      history.events.insert(history.events.begin() + place, twice);
      name = "duplicate a revision";
      break;
    }
    case 4:
      if (commits.empty()) return std::nullopt;
      history.events.erase(history.events.begin() + static_cast<std::ptrdiff_t>(pick(commits)));
      name = "lose a write";
      break;
    case 5: {
      if (victim.request.kind != OperationKind::kRange || victim.answer.header_revision < 2) return std::nullopt;
      State state;
      int64_t revision = 1;
      for (const HistoryEvent& event : history.events) {
        if (event.kind != Kind::kCommit || revision == victim.answer.header_revision - 1) continue;
        Run(event.committed, state, revision);
      }
      if (victim.request.revision > 0) return std::nullopt;
      victim.answer = Run(victim.request, state, revision);
      name = "stale read";
      break;
    }
    case 6: {
      if (victim.answer.kvs.empty()) return std::nullopt;
      ObservedKeyValue& kv = victim.answer.kvs[draws.Below(victim.answer.kvs.size())];
      int64_t* fields[] = {&kv.create_revision, &kv.mod_revision, &kv.version};
      *fields[draws.Below(3)] += draws.Chance(50) ? 1 : -1;
      name = "wrong metadata";
      break;
    }
    case 7:
      if (unknown.empty()) return std::nullopt;
      history.events.push_back({.kind = Kind::kCommit, .committed = history.operations[pick(unknown)].request});
      name = "apply an unknown operation (again)";
      break;
    case 8:
      if (refused.empty()) return std::nullopt;
      history.events.push_back({.kind = Kind::kCommit, .committed = history.operations[pick(refused)].request});
      name = "apply a refused operation";
      break;
    case 9:
      if (victim.request.kind != OperationKind::kRange) return std::nullopt;
      victim.answer.kvs.push_back({.key = "k9", .value = "v", .create_revision = 2, .mod_revision = 2, .version = 1});
      ++victim.answer.count;
      name = "resurrect a key";
      break;
    case 10:
      victim.answer.header_revision += draws.Chance(50) ? 1 : -1;
      name = "wrong header revision";
      break;
    case 11:
      victim.answer.count += draws.Chance(50) ? 1 : -1;
      if (victim.request.kind == OperationKind::kPut) return std::nullopt;
      name = "wrong count";
      break;
    default:
      victim.outcome = Outcome::kRefused;
      victim.answer = Answer{.error = "etcdserver: too many requests"};
      name = "refuse an answered operation";
      break;
  }
  history.Number();
  return name;
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

namespace {

// Tries every order, one operation after the other.
class Oracle {
 public:
  explicit Oracle(const History& history) : operations_(history.operations), done_(history.operations.size()) {
    State state;
    int64_t revision = 1;
    states_ = {state, state};
    made_.resize(2);
    committed_ = {0, 0};
    for (size_t i = 0; i < history.events.size(); ++i) {
      if (history.events[i].kind != Kind::kCommit) continue;
      int64_t before = revision;
      Run(history.events[i].committed, state, revision);
      if (revision == before) continue;
      states_.push_back(state);
      made_.push_back(history.events[i].committed);
      committed_.push_back(i + 1);
    }
    last_ = revision;
  }

  bool Accepts() {
    for (const Operation& operation : operations_) {
      if (Floats(operation) && !SerializableIsRight(operation)) return false;
    }
    return Extend(1);
  }

 private:
  static bool Floats(const Operation& operation) {
    return operation.outcome == Outcome::kAnswered && operation.request.serializable;
  }
  // Has no place in the order: unknown reads, and errors that say nothing about the state.
  static bool HasNoPlace(const Operation& operation) {
    if (Floats(operation)) return true;
    if (operation.outcome == Outcome::kUnknown || operation.outcome == Outcome::kPending) {
      return operation.request.kind == OperationKind::kRange;
    }
    if (operation.outcome != Outcome::kRefused) return false;
    bool about_state = operation.answer.error.find("too many") == std::string::npos;
    return operation.request.serializable || !about_state;
  }

  bool SerializableIsRight(const Operation& operation) const {
    int64_t at = operation.answer.header_revision;
    if (at < 1 || at > last_ || committed_[static_cast<size_t>(at)] >= operation.end.event) return false;
    return AnswerAt(operation, at);
  }

  bool AnswerAt(const Operation& operation, int64_t at) const {
    int64_t from = operation.request.revision > 0 ? operation.request.revision : at;
    if (from > at) return false;
    State state = states_[static_cast<size_t>(from)];
    Answer answer = Run(operation.request, state, from);
    answer.header_revision = at;
    return SameAnswer(answer, operation.answer);
  }

  bool Extend(int64_t revision) {
    bool complete = revision == last_;
    for (size_t i = 0; i < operations_.size(); ++i) {
      const Operation& operation = operations_[i];
      bool must = operation.outcome == Outcome::kAnswered || operation.outcome == Outcome::kRefused;
      if (!HasNoPlace(operation) && must && !done_[i]) complete = false;
    }
    if (complete) return true;
    for (size_t i = 0; i < operations_.size(); ++i) {
      if (done_[i] || HasNoPlace(operations_[i]) || !EarlierAreDone(operations_[i])) continue;
      int64_t next = revision;
      if (!Fits(operations_[i], revision, next)) continue;
      done_[i] = true;
      if (Extend(next)) return true;
      done_[i] = false;
    }
    return false;
  }

  bool EarlierAreDone(const Operation& operation) const {
    for (size_t i = 0; i < operations_.size(); ++i) {
      const Operation& other = operations_[i];
      bool ended = other.outcome == Outcome::kAnswered || other.outcome == Outcome::kRefused;
      if (ended && !HasNoPlace(other) && !done_[i] && other.end.event < operation.call.event) return false;
    }
    return true;
  }

  bool Fits(const Operation& operation, int64_t revision, int64_t& next) const {
    bool answered = operation.outcome == Outcome::kAnswered;
    bool ended = answered || operation.outcome == Outcome::kRefused;
    if (operation.request.kind == OperationKind::kRange) {
      if (committed_[static_cast<size_t>(revision)] >= operation.end.event) return false;
      if (!answered) return operation.request.revision > revision;  // a future revision
      return AnswerAt(operation, revision);
    }
    State state = states_[static_cast<size_t>(revision)];
    next = revision;
    Answer answer = Run(operation.request, state, next);
    if (next > revision) {
      if (next > last_ || !SameEffect(operation.request, made_[static_cast<size_t>(next)])) return false;
      if (operation.call.event >= committed_[static_cast<size_t>(next)]) return false;
    }
    if (!ended) return next > revision;
    return committed_[static_cast<size_t>(next)] < operation.end.event && SameAnswer(answer, operation.answer);
  }

  const std::vector<Operation>& operations_;
  std::vector<bool> done_;
  std::vector<State> states_;      // by revision, as the following
  std::vector<Request> made_;
  std::vector<uint64_t> committed_;  // event
  int64_t last_ = 1;
};

}  // namespace

bool OracleAccepts(const History& history) { return Oracle(history).Accepts(); }

}  // namespace detcd::checker
