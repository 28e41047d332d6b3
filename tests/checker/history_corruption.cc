#include "tests/checker/history_corruption.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace detcd::checker {
namespace {

using Kind = HistoryEvent::Kind;
using Events = std::vector<HistoryEvent>;

// A history under the knife. Each way returns whether it found something to corrupt.
class Knife {
 public:
  Knife(History& history, Draws& draws) : history_(history), draws_(draws) {}

  bool SwapTwoAnswers() {
    Operation* a = Pick(Answered);
    Operation* b = Pick(Answered);
    if (a == nullptr || a == b || a->request.kind != b->request.kind) return false;
    std::swap(a->answer, b->answer);
    return true;
  }

  bool ReturnAtOnce() {
    Operation* victim = Pick(Answered);
    if (victim == nullptr) return false;
    Events& events = history_.events;
    auto end = Find(Kind::kEnd, *victim);
    HistoryEvent moved = *end;
    events.erase(end);
    events.insert(Find(Kind::kCall, *victim) + 1, moved);
    return true;
  }

  bool CallLate() {
    Operation* victim = Pick(Answered);
    if (victim == nullptr) return false;
    Events& events = history_.events;
    auto call = Find(Kind::kCall, *victim);
    HistoryEvent moved = *call;
    events.erase(call);
    events.insert(Find(Kind::kEnd, *victim), moved);
    return true;
  }

  bool DuplicateRevision() {
    auto commit = PickCommit();
    if (commit == history_.events.end()) return false;
    HistoryEvent twice = *commit;
    history_.events.insert(history_.events.begin() + Offset(draws_.Below(history_.events.size() + 1)), twice);
    return true;
  }

  // From some moment on all answers count one revision more than was made.
  bool SkipRevision() {
    Operation* first = Pick(Answered);
    if (first == nullptr || first->answer.header_revision < 2) return false;
    int64_t skipped = first->answer.header_revision;
    auto shift = [&](int64_t& revision) { revision += revision >= skipped ? 1 : 0; };
    for (Operation& operation : history_.operations) {
      if (operation.end.event < first->end.event) continue;
      shift(operation.answer.header_revision);
      for (ObservedKeyValue& kv : operation.answer.kvs) {
        shift(kv.create_revision);
        shift(kv.mod_revision);
      }
    }
    return true;
  }

  bool LoseWrite() {
    auto commit = PickCommit();
    if (commit == history_.events.end()) return false;
    history_.events.erase(commit);
    return true;
  }

  bool SwapTwoCommits() {
    auto a = PickCommit();
    auto b = PickCommit();
    if (a == b) return false;
    std::swap(a->committed, b->committed);
    return true;
  }

  // The answer of one revision earlier or later than the state was.
  bool ReadAtAnotherRevision(int64_t distance) {
    Operation* victim = Pick(AnsweredRange);
    if (victim == nullptr || victim->request.revision > 0) return false;
    int64_t wanted = victim->answer.header_revision + distance;
    SpecState state;
    int64_t revision = 1;
    for (const HistoryEvent& event : history_.events) {
      if (event.kind == Kind::kCommit && revision < wanted) RunSpec(event.committed, state, revision);
    }
    if (wanted < 1 || revision != wanted) return false;
    victim->answer = RunSpec(victim->request, state, revision);
    return true;
  }
  bool StaleRead() { return ReadAtAnotherRevision(-1); }
  bool ReadOfTheFuture() { return ReadAtAnotherRevision(1); }

  // The right content under another header, or the other way round.
  bool WrongHeader() {
    Operation* victim = Pick(Answered);
    if (victim == nullptr) return false;
    victim->answer.header_revision += Sign();
    return true;
  }

  bool WrongMetadata() {
    ObservedKeyValue* kv = PickPair(Answered);
    if (kv == nullptr) return false;
    int64_t* fields[] = {&kv->create_revision, &kv->mod_revision, &kv->version};
    *fields[draws_.Below(3)] += Sign();
    return true;
  }

  bool WrongPreviousPair() {
    ObservedKeyValue* kv = PickPair([](const Operation& operation) {
      return Answered(operation) && operation.request.kind != OperationKind::kRange &&
             operation.request.kind != OperationKind::kTxn;
    });
    if (kv == nullptr) return false;
    kv->value = AnyValue();
    return true;
  }

  bool WrongValue() {
    ObservedKeyValue* kv = PickPair(AnsweredRange);
    if (kv == nullptr) return false;
    kv->value = AnyValue();
    return true;
  }

  bool DropPair() {
    Operation* victim = Pick(AnsweredRange);
    if (victim == nullptr || victim->answer.kvs.empty()) return false;
    victim->answer.kvs.erase(victim->answer.kvs.begin() + Offset(draws_.Below(victim->answer.kvs.size())));
    --victim->answer.count;
    return true;
  }

  // A read shows a key that an operation before had deleted, as it was, or one that never was.
  bool ResurrectKey() {
    Operation* victim = Pick(AnsweredRange);
    if (victim == nullptr || victim->request.keys_only || victim->request.count_only) return false;
    ObservedKeyValue risen{.key = "k9", .value = "v", .create_revision = 2, .mod_revision = 2, .version = 1};
    SpecState state;
    int64_t revision = 1;
    for (const HistoryEvent& event : history_.events) {
      if (event.kind != Kind::kCommit || revision >= victim->answer.header_revision) continue;
      SpecState before = state;
      RunSpec(event.committed, state, revision);
      for (const auto& [key, kv] : before) {
        if (!state.contains(key) && SpecWithin(key, victim->request)) risen = kv;
      }
    }
    auto& kvs = victim->answer.kvs;
    if (std::ranges::find(kvs, risen.key, &ObservedKeyValue::key) != kvs.end()) return false;
    kvs.insert(std::ranges::lower_bound(kvs, risen.key, {}, &ObservedKeyValue::key), risen);
    ++victim->answer.count;
    return true;
  }

  bool ApplyUnknownTwice() {
    Operation* victim = Pick([](const Operation& operation) {
      return operation.outcome == Outcome::kUnknown && SpecProposes(operation.request) && !IsDuplicate(operation);
    });
    if (victim == nullptr) return false;
    size_t times = 1 + draws_.Below(2);  // it may have been applied once already
    for (size_t i = 0; i < times; ++i) history_.events.push_back({.kind = Kind::kCommit, .committed = victim->request});
    return true;
  }

  bool ApplyRefused() {
    Operation* victim = Pick([](const Operation& operation) {
      return operation.outcome == Outcome::kRefused && SpecProposes(operation.request) && !IsDuplicate(operation);
    });
    if (victim == nullptr) return false;
    auto from = Find(Kind::kCall, *victim) - history_.events.begin() + 1;
    auto place = from + Offset(draws_.Below(history_.events.size() - static_cast<size_t>(from) + 1));
    history_.events.insert(history_.events.begin() + place, {.kind = Kind::kCommit, .committed = victim->request});
    return true;
  }

  bool RefuseAnswered() {
    Operation* victim = Pick(Answered);
    if (victim == nullptr) return false;
    victim->outcome = Outcome::kRefused;
    victim->answer = Answer{.error = "etcdserver: too many requests"};
    return true;
  }

  // Says of an unknown operation that it succeeded, at some revision.
  bool AnswerUnknown() {
    Operation* victim = Pick([](const Operation& operation) {
      return operation.outcome == Outcome::kUnknown && operation.request.kind == OperationKind::kPut &&
             !operation.request.prev_kv;
    });
    if (victim == nullptr) return false;
    victim->outcome = Outcome::kAnswered;
    victim->answer = Answer{.header_revision = 2 + static_cast<int64_t>(draws_.Below(history_.operations.size()))};
    return true;
  }

  bool WrongCount() {
    Operation* victim = Pick([](const Operation& operation) {
      return Answered(operation) && operation.request.kind != OperationKind::kPut &&
             operation.request.kind != OperationKind::kTxn;
    });
    if (victim == nullptr) return false;
    victim->answer.count += Sign();
    return true;
  }

  // --- transactions ---

  bool TakeTheOtherBranch() {
    Operation* victim = Pick(AnsweredTxn);
    if (victim == nullptr) return false;
    victim->answer.succeeded = !victim->answer.succeeded;
    return true;
  }

  // The answer of the other branch on the same state, as if the comparisons had come out the other way.
  bool RunTheOtherBranch() {
    Operation* victim = Pick(AnsweredTxn);
    if (victim == nullptr) return false;
    const Answer before = victim->answer;
    Request forced{.kind = OperationKind::kTxn};
    forced.success = before.succeeded ? victim->request.failure : victim->request.success;
    SpecState state;
    int64_t revision = 1;
    for (const HistoryEvent& event : history_.events) {
      if (event.kind == Kind::kCommit && revision < before.header_revision) RunSpec(event.committed, state, revision);
    }
    Answer other = RunSpec(forced, state, revision);
    other.succeeded = !before.succeeded;
    other.header_revision = before.header_revision;
    if (!other.error.empty()) return false;
    victim->answer = std::move(other);
    return true;
  }

  // The log holds the operations of a transaction one by one.
  bool SplitTxn() {
    auto commit = PickCommit();
    if (commit == history_.events.end() || commit->committed.kind != OperationKind::kTxn) return false;
    const std::vector<Request> steps = commit->committed.success;
    if (steps.empty()) return false;
    auto place = history_.events.erase(commit) - history_.events.begin();
    for (const Request& step : steps) {
      if (!SpecProposes(step)) continue;
      history_.events.insert(history_.events.begin() + place++, {.kind = Kind::kCommit, .committed = step});
    }
    return true;
  }

  // One operation of a transaction is not done, in the log.
  bool LoseAStep() {
    auto commit = PickCommit();
    if (commit == history_.events.end() || commit->committed.success.empty()) return false;
    std::vector<Request>& steps = commit->committed.success;
    steps.erase(steps.begin() + Offset(draws_.Below(steps.size())));
    return true;
  }

  bool WrongResponse() {
    Operation* victim = Pick(AnsweredTxn);
    if (victim == nullptr || victim->answer.responses.empty()) return false;
    Answer& response = victim->answer.responses[draws_.Below(victim->answer.responses.size())];
    switch (draws_.Below(3)) {
      case 0: response.header_revision += Sign(); break;
      case 1:
        if (response.kind != OperationKind::kRange && response.kind != OperationKind::kDelete) return false;
        response.count += Sign();
        break;
      default:
        if (response.kvs.empty()) return false;
        response.kvs.front().value = AnyValue();
    }
    return true;
  }

  bool SwapResponses() {
    Operation* victim = Pick(AnsweredTxn);
    if (victim == nullptr || victim->answer.responses.size() < 2) return false;
    std::swap(victim->answer.responses[0], victim->answer.responses[1]);
    return true;
  }

  bool PreviousPairOutOfNothing() {
    Operation* victim = Pick([](const Operation& operation) {
      return Answered(operation) && operation.request.kind == OperationKind::kPut && operation.answer.kvs.empty();
    });
    if (victim == nullptr) return false;
    victim->answer.kvs.push_back({victim->request.key, AnyValue(), 2, 2, 1});
    return true;
  }

  bool DropPreviousPair() {
    Operation* victim = Pick([](const Operation& operation) {
      return Answered(operation) && operation.request.prev_kv && !operation.answer.kvs.empty();
    });
    if (victim == nullptr) return false;
    victim->answer.kvs.pop_back();
    return true;
  }

 private:
  static bool Answered(const Operation& operation) { return operation.outcome == Outcome::kAnswered; }
  static bool AnsweredRange(const Operation& operation) {
    return Answered(operation) && operation.request.kind == OperationKind::kRange;
  }
  static bool AnsweredTxn(const Operation& operation) {
    return Answered(operation) && operation.request.kind == OperationKind::kTxn;
  }
  // Such a transaction is never proposed.
  static bool IsDuplicate(const Operation& operation) {
    SpecState state;
    int64_t revision = 1;
    return RunSpec(operation.request, state, revision).error.find("duplicate key") != std::string::npos;
  }
  static std::ptrdiff_t Offset(size_t index) { return static_cast<std::ptrdiff_t>(index); }

  int64_t Sign() { return draws_.Chance(50) ? 1 : -1; }

  std::string AnyValue() { return "v" + std::to_string(draws_.Below(history_.operations.size() + 1)); }

  template <typename Predicate>
  Operation* Pick(const Predicate& predicate) {
    std::vector<Operation*> candidates;
    for (Operation& operation : history_.operations) {
      if (predicate(operation)) candidates.push_back(&operation);
    }
    return candidates.empty() ? nullptr : candidates[draws_.Below(candidates.size())];
  }

  template <typename Predicate>
  ObservedKeyValue* PickPair(const Predicate& predicate) {
    Operation* victim =
        Pick([&](const Operation& operation) { return predicate(operation) && !operation.answer.kvs.empty(); });
    return victim == nullptr ? nullptr : &victim->answer.kvs[draws_.Below(victim->answer.kvs.size())];
  }

  Events::iterator PickCommit() {
    std::vector<Events::iterator> commits;
    for (auto it = history_.events.begin(); it != history_.events.end(); ++it) {
      if (it->kind == Kind::kCommit) commits.push_back(it);
    }
    return commits.empty() ? history_.events.end() : commits[draws_.Below(commits.size())];
  }

  Events::iterator Find(Kind kind, const Operation& operation) {
    return std::ranges::find_if(history_.events, [&](const HistoryEvent& event) {
      return event.kind == kind && event.operation == operation.id - 1;
    });
  }

  History& history_;
  Draws& draws_;
};

struct Way {
  std::string_view name;
  bool (Knife::*apply)();
};

constexpr Way kWays[] = {
    {"swap two answers", &Knife::SwapTwoAnswers},
    {"return at once", &Knife::ReturnAtOnce},
    {"call late", &Knife::CallLate},
    {"duplicate a revision", &Knife::DuplicateRevision},
    {"skip a revision", &Knife::SkipRevision},
    {"stale read", &Knife::StaleRead},
    {"wrong metadata", &Knife::WrongMetadata},
    {"wrong previous pair", &Knife::WrongPreviousPair},
    {"resurrect a key", &Knife::ResurrectKey},
    {"apply an unknown operation again", &Knife::ApplyUnknownTwice},
    {"apply a refused operation", &Knife::ApplyRefused},
    {"lose a write", &Knife::LoseWrite},
    {"swap two commits", &Knife::SwapTwoCommits},
    {"read of the future", &Knife::ReadOfTheFuture},
    {"wrong header revision", &Knife::WrongHeader},
    {"wrong value", &Knife::WrongValue},
    {"drop a pair", &Knife::DropPair},
    {"wrong count", &Knife::WrongCount},
    {"refuse an answered operation", &Knife::RefuseAnswered},
    {"answer an unknown operation", &Knife::AnswerUnknown},
    {"take the other branch", &Knife::TakeTheOtherBranch},
    {"run the other branch", &Knife::RunTheOtherBranch},
    {"split a transaction", &Knife::SplitTxn},
    {"lose a step of a transaction", &Knife::LoseAStep},
    {"wrong response in a transaction", &Knife::WrongResponse},
    {"swap two responses", &Knife::SwapResponses},
    {"previous pair out of nothing", &Knife::PreviousPairOutOfNothing},
    {"drop a previous pair", &Knife::DropPreviousPair},
};

constexpr auto kNames = [] {
  std::array<std::string_view, std::size(kWays)> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kWays[i].name;
  return names;
}();

}  // namespace

std::span<const std::string_view> CorruptionNames() { return kNames; }

std::optional<std::string_view> Corrupt(History& history, Draws& draws) {
  const Way& way = kWays[draws.Below(std::size(kWays))];
  if (!(Knife(history, draws).*way.apply)()) return std::nullopt;
  history.Number();
  return way.name;
}

}  // namespace detcd::checker
