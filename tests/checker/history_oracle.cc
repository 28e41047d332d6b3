#include "tests/checker/history_oracle.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace detcd::checker {
namespace {

using Kind = HistoryEvent::Kind;

bool SameEffect(const Request& a, const Request& b) { return Encode(a).view() == Encode(b).view(); }

class LogOracle {
 public:
  LogOracle(const History& history, LogEvidence evidence)
      : operations_(history.operations), done_(history.operations.size()), evidence_(evidence) {
    SpecState state;
    int64_t revision = 1;
    states_ = {state, state};
    made_.resize(2);
    committed_ = {0, 0};
    for (size_t i = 0; i < history.events.size(); ++i) {
      if (history.events[i].kind != Kind::kCommit) continue;
      int64_t before = revision;
      RunSpec(history.events[i].committed, state, revision);
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
    return operation.outcome == Outcome::kAnswered && SpecReadsLocally(operation.request);
  }
  // Has no place in the order: unknown reads, and errors that say nothing about the state.
  static bool HasNoPlace(const Operation& operation) {
    if (Floats(operation)) return true;
    if (operation.outcome == Outcome::kUnknown || operation.outcome == Outcome::kPending) {
      return !SpecProposes(operation.request);
    }
    if (operation.outcome != Outcome::kRefused) return false;
    bool about_state = operation.answer.error.find("too many requests") == std::string::npos &&
                       operation.answer.error.find("duplicate key") == std::string::npos;
    return SpecReadsLocally(operation.request) || !about_state;
  }

  bool SerializableIsRight(const Operation& operation) const {
    int64_t at = operation.answer.header_revision;
    if (at < 1 || at > last_ || committed_[static_cast<size_t>(at)] >= operation.end.event) return false;
    return AnswerAt(operation, at);
  }

  bool AnswerAt(const Operation& operation, int64_t at) const {
    int64_t from = operation.request.revision > 0 ? operation.request.revision : at;
    if (from > at) return false;
    SpecState state = states_[static_cast<size_t>(from)];
    Answer answer = RunSpec(operation.request, state, from);
    answer.header_revision = at;
    return answer == operation.answer;
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
    if (!SpecProposes(operation.request)) {
      if (committed_[static_cast<size_t>(revision)] >= operation.end.event) return false;
      if (!answered) return operation.request.revision > revision;  // a future revision
      return AnswerAt(operation, revision);
    }
    SpecState state = states_[static_cast<size_t>(revision)];
    next = revision;
    Answer answer = RunSpec(operation.request, state, next);
    if (next > revision) {
      if (next > last_) return false;
      bool same = evidence_ == LogEvidence::kRequests ? SameEffect(operation.request, made_[static_cast<size_t>(next)])
                                                      : state == states_[static_cast<size_t>(next)];
      if (!same) return false;
      if (operation.call.event >= committed_[static_cast<size_t>(next)]) return false;
    }
    if (!ended) return next > revision;
    return committed_[static_cast<size_t>(next)] < operation.end.event && answer == operation.answer;
  }

  const std::vector<Operation>& operations_;
  std::vector<bool> done_;
  const LogEvidence evidence_;
  std::vector<SpecState> states_;      // by revision, as the following
  std::vector<Request> made_;
  std::vector<uint64_t> committed_;  // event
  int64_t last_ = 1;
};

// Builds orders of the operations that do not float; what floats is held against the states of a complete one.
class ClientOracle {
 public:
  ClientOracle(std::span<const Operation> operations, bool revisions, uint64_t tries_max)
      : operations_(operations.begin(), operations.end()), done_(operations.size()), revisions_(revisions),
        tries_left_(tries_max) {
    states_.emplace_back();
  }

  std::optional<bool> Accepts() {
    // What comparisons of create, mod and version say is open by values: no oracle for that.
    auto tells = [](const Operation& operation) { return SpecTellsByValues(operation.request); };
    if (!revisions_ && !std::ranges::all_of(operations_, tells)) return std::nullopt;
    bool accepted = Extend();
    if (!accepted && tries_left_ == 0) return std::nullopt;
    return accepted;
  }

 private:
  static bool Ended(const Operation& operation) {
    return operation.outcome == Outcome::kAnswered || operation.outcome == Outcome::kRefused;
  }
  bool Floats(const Operation& operation) const {
    if (operation.outcome != Outcome::kAnswered || SpecProposes(operation.request)) return false;
    return SpecReadsLocally(operation.request) || (!revisions_ && operation.request.revision > 0);
  }
  bool HasPlace(const Operation& operation) const {
    if (Floats(operation)) return false;
    if (!Ended(operation)) return SpecProposes(operation.request);
    if (operation.outcome == Outcome::kAnswered) return true;
    if (operation.answer.error.find("key not found") != std::string::npos) return true;
    if (operation.answer.error.find("future revision") == std::string::npos) return false;
    return revisions_ && !operation.request.serializable;
  }

  int64_t revision() const { return static_cast<int64_t>(states_.size()); }
  const SpecState& StateAt(int64_t at) const { return states_[static_cast<size_t>(at - 1)]; }

  bool Extend() {
    if (tries_left_ == 0) return false;
    --tries_left_;
    bool complete = true;
    for (size_t i = 0; i < operations_.size(); ++i) {
      if (HasPlace(operations_[i]) && Ended(operations_[i]) && !done_[i]) complete = false;
    }
    if (complete && std::ranges::all_of(operations_, [&](const Operation& o) { return !Floats(o) || FloatingFits(o); })) {
      return true;
    }
    for (size_t i = 0; i < operations_.size(); ++i) {
      if (done_[i] || !HasPlace(operations_[i]) || !EarlierAreDone(operations_[i])) continue;
      SpecState state = StateAt(revision());
      int64_t next = revision();
      if (!Fits(operations_[i], state, next)) continue;
      bool changes = next > revision();
      done_[i] = true;
      if (changes) {
        states_.push_back(state);
        authors_.push_back(i);
      }
      if (Extend()) return true;
      if (changes) {
        states_.pop_back();
        authors_.pop_back();
      }
      done_[i] = false;
    }
    return false;
  }

  bool EarlierAreDone(const Operation& operation) const {
    for (size_t i = 0; i < operations_.size(); ++i) {
      const Operation& other = operations_[i];
      if (HasPlace(other) && Ended(other) && !done_[i] && other.end.event < operation.call.event) return false;
    }
    return true;
  }

  bool Fits(const Operation& operation, SpecState& state, int64_t& next) const {
    const Request& request = operation.request;
    if (!SpecProposes(request)) {
      if (operation.outcome == Outcome::kRefused) return request.revision > revision();
      if (revisions_ && operation.answer.header_revision != revision()) return false;
      if (request.revision > revision()) return false;
      return Shows(operation, StateAt(request.revision > 0 ? request.revision : revision()));
    }
    Answer answer = RunSpec(request, state, next);
    if (!Ended(operation)) return next > revision();
    return Agrees(operation, StateAt(revision()), answer);
  }

  bool Shows(const Operation& operation, const SpecState& state) const {
    SpecState copy = state;
    int64_t any = operation.answer.header_revision;
    return Agrees(operation, state, RunSpec(operation.request, copy, any));
  }

  // Whether the answer that was got on `state` is the right one, or may be, where only values count.
  bool Agrees(const Operation& operation, SpecState state, const Answer& right) const {
    const Request& request = operation.request;
    const Answer& got = operation.answer;
    if (revisions_) return right == got;
    if (request.kind == OperationKind::kTxn) return SameValues(right, got);
    if (right.error != got.error || right.count != got.count) return false;
    if (request.min_mod_revision == 0 && request.sort_target == SortTarget::kKey) {
      return right.more == got.more && std::ranges::equal(right.kvs, got.kvs, SameValue);
    }
    // Which of the live pairs, and in which order, rests on revisions.
    Request plain{.kind = request.kind, .key = request.key, .range_end = request.range_end, .keys_only = request.keys_only};
    int64_t any = 0;
    std::vector<ObservedKeyValue> live = RunSpec(plain, state, any).kvs;
    for (const ObservedKeyValue& kv : got.kvs) {
      auto same = std::ranges::find_if(live, [&](const ObservedKeyValue& other) { return SameValue(kv, other); });
      if (same == live.end()) return false;
      live.erase(same);
    }
    return true;
  }
  static bool SameValues(const Answer& a, const Answer& b) {
    return a.error == b.error && a.count == b.count && a.more == b.more && a.succeeded == b.succeeded &&
           a.kind == b.kind && std::ranges::equal(a.kvs, b.kvs, SameValue) &&
           std::ranges::equal(a.responses, b.responses, SameValues);
  }
  static bool SameValue(const ObservedKeyValue& a, const ObservedKeyValue& b) {
    return a.key == b.key && a.value == b.value;
  }

  // Some state shows it, and what made that state was called before the end. Without revisions only authors of the
  // keys that are read count.
  bool FloatingFits(const Operation& operation) const {
    for (int64_t at = 1; at <= revision(); ++at) {
      if (at > 1) {
        const Operation& author = operations_[authors_[static_cast<size_t>(at - 2)]];
        bool counts = revisions_ || SpecMayTouch(author.request, operation.request);
        if (counts && author.call.event > operation.end.event) return false;
      }
      if (revisions_ && operation.answer.header_revision != at) continue;
      if (revisions_ && operation.request.revision > at) continue;
      bool past = revisions_ && operation.request.revision > 0;
      if (Shows(operation, StateAt(past ? operation.request.revision : at))) return true;
    }
    return false;
  }

  const std::vector<Operation> operations_;
  std::vector<bool> done_;
  const bool revisions_;
  uint64_t tries_left_;
  std::vector<SpecState> states_;  // after each change, the first is empty
  std::vector<size_t> authors_;    // of the second state and on
};

}  // namespace

bool LogOracleAccepts(const History& history, LogEvidence evidence) { return LogOracle(history, evidence).Accepts(); }

std::optional<bool> ClientOracleAccepts(std::span<const Operation> operations, bool revisions, uint64_t tries_max) {
  return ClientOracle(operations, revisions, tries_max).Accepts();
}

}  // namespace detcd::checker
