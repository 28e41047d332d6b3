#include "checker/witness.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "checker/kv_model.h"
#include "checker/revision_order.h"

namespace detcd::checker {
namespace {

bool HasAnswer(const Operation& operation) {
  return operation.outcome == Outcome::kAnswered || operation.outcome == Outcome::kRefused;
}

bool IsError(const Operation& operation) {
  return operation.outcome == Outcome::kRefused || !operation.answer.error.empty();
}

// Whether the ranges of two operations may share a key.
bool Overlap(const Operation& a, const Operation& b) {
  return InRange(a.request.key, b.request.key, b.request.range_end) ||
         InRange(b.request.key, a.request.key, a.request.range_end);
}

// The store, replayed place by place.
class Replay {
 public:
  Replay(std::span<const Operation> history, Evidence evidence) : history_(history), evidence_(evidence) {}

  // What is wrong with `place` on the present state, or else its effect is applied.
  std::string Trouble(const Place& place) {
    Operation operation = history_[place.operation];
    if (evidence_ == Evidence::kValues) operation = WithoutRevisions(std::move(operation));
    const Request& request = operation.request;
    switch (place.part) {
      case Part::kEffect: return EffectTrouble(operation);
      case Part::kCurrent:
        if (std::string trouble = RevisionTrouble(operation.answer.header_revision); !trouble.empty()) return trouble;
        return PairsTrouble(operation);
      case Part::kPast:
        if (std::string trouble = RevisionTrouble(request.revision); !trouble.empty()) return trouble;
        return PairsTrouble(operation);
      case Part::kHeader:
        if (request.revision > revision_) return absl::StrFormat("reads the future of revision %d", revision_);
        return RevisionTrouble(operation.answer.header_revision);
      case Part::kError: return ErrorTrouble(operation);
    }
    return {};
  }

 private:
  std::vector<ObservedKeyValue> Live(const Request& request) const {
    std::vector<ObservedKeyValue> live;
    for (const auto& [key, kv] : pairs_) {
      if (!InRange(key, request.key, request.range_end)) continue;
      live.push_back(kv);
      if (evidence_ == Evidence::kValues) live.back() = {.key = kv.key, .value = kv.value};
    }
    return live;
  }

  std::string RevisionTrouble(int64_t wanted) const {
    if (evidence_ == Evidence::kValues || wanted == revision_) return {};
    return absl::StrFormat("stands at revision %d instead of %d", revision_, wanted);
  }

  std::string PairsTrouble(const Operation& operation) const {
    if (evidence_ == Evidence::kValues) return ValuesTrouble(operation.request, operation.answer, Live(operation.request));
    return RangeTrouble(operation.request, operation.answer, Live(operation.request));
  }

  std::string EffectTrouble(const Operation& operation) {
    const Request& request = operation.request;
    const Answer& answer = operation.answer;
    std::vector<ObservedKeyValue> before = Live(request);
    bool is_put = request.kind == OperationKind::kPut;
    if (is_put && request.ignore_value && before.empty()) return "keeps the value of a key that is not there";
    if (operation.outcome == Outcome::kAnswered) {
      auto count = static_cast<int64_t>(before.size());
      if (!is_put && answer.count != count) return absl::StrFormat("deletes %d keys", count);
      if (answer.kvs != (request.prev_kv ? before : std::vector<ObservedKeyValue>{})) return "shows wrong previous pairs";
    }
    if (is_put) {
      ++revision_;
      ObservedKeyValue& kv = pairs_[request.key];
      kv.key = request.key;
      if (!request.ignore_value) kv.value = request.value;
      if (kv.version == 0) kv.create_revision = revision_;
      kv.mod_revision = revision_;
      ++kv.version;
    } else if (!before.empty()) {
      ++revision_;
      for (const ObservedKeyValue& kv : before) pairs_.erase(kv.key);
    }
    return operation.outcome == Outcome::kAnswered ? RevisionTrouble(answer.header_revision) : "";
  }

  std::string ErrorTrouble(const Operation& operation) const {
    const Request& request = operation.request;
    const std::string& error = operation.answer.error;
    bool is_range = request.kind == OperationKind::kRange;
    bool holds = false;
    if (error == kErrorKeyNotFound) {
      holds = request.kind == OperationKind::kPut && request.ignore_value && Live(request).empty();
    } else if (error == kErrorFutureRevision) {
      holds = is_range && request.revision > revision_;
    } else if (error == kErrorCompacted) {
      holds = is_range && request.revision > 0 && request.revision < revision_;
    } else if (error == kErrorEmptyKey) {
      holds = request.key.empty();
    } else if (error == kErrorValueProvided) {
      holds = request.ignore_value && !request.value.empty();
    }
    return holds ? "" : "was refused without reason: " + error;
  }

  std::span<const Operation> history_;
  const Evidence evidence_;
  std::map<std::string, ObservedKeyValue> pairs_;
  int64_t revision_ = 1;
};

}  // namespace

bool SpeaksOfState(const Request& request, const std::string& error) {
  // What can be told from the request alone counts too, when it is false: then no state explains it.
  if (error == kErrorEmptyKey) return !request.key.empty();
  if (error == kErrorValueProvided) return !request.ignore_value || request.value.empty();
  return error == kErrorKeyNotFound || error == kErrorFutureRevision || error == kErrorCompacted;
}

std::vector<Claim> Claims(std::span<const Operation> history, Evidence evidence) {
  std::vector<Claim> claims;
  bool revisions = evidence == Evidence::kAll;
  for (size_t i = 0; i < history.size(); ++i) {
    const Operation& operation = history[i];
    const Request& request = operation.request;
    bool is_range = request.kind == OperationKind::kRange;
    Claim claim{.place = {i, is_range ? Part::kCurrent : Part::kEffect}, .call = operation.call.event};
    if (!HasAnswer(operation)) {
      claim.must = false;
      if (!is_range) claims.push_back(claim);
      continue;
    }
    claim.end = operation.end.event;
    claim.floating = is_range && request.serializable;
    if (IsError(operation)) {
      claim.place.part = Part::kError;
      const std::string& error = operation.answer.error;
      bool of_revisions = error == kErrorFutureRevision || error == kErrorCompacted;
      if (SpeaksOfState(request, error) && (revisions || !of_revisions)) claims.push_back(claim);
    } else if (is_range && request.revision > 0) {
      claim.place.part = Part::kHeader;
      if (revisions) claims.push_back(claim);
      claim.place.part = Part::kPast;
      claim.floating = true;
      claims.push_back(claim);
    } else {
      claims.push_back(claim);
    }
  }
  return claims;
}

Operation WithoutRevisions(Operation operation) {
  operation.answer.header_revision = 0;
  for (ObservedKeyValue& kv : operation.answer.kvs) kv.create_revision = kv.mod_revision = kv.version = 0;
  return operation;
}

bool RestsOnRevisions(const Request& request) {
  return request.min_mod_revision != 0 || request.max_mod_revision != 0 || request.min_create_revision != 0 ||
         request.max_create_revision != 0 || request.sort_target == SortTarget::kVersion ||
         request.sort_target == SortTarget::kCreate || request.sort_target == SortTarget::kMod;
}

std::string ValuesTrouble(const Request& request, const Answer& answer, std::vector<ObservedKeyValue> pairs) {
  if (!RestsOnRevisions(request)) return RangeTrouble(request, answer, std::move(pairs));
  auto count = static_cast<int64_t>(pairs.size());
  if (answer.count != count) return absl::StrFormat("count %d instead of %d", answer.count, count);
  for (const ObservedKeyValue& expected : answer.kvs) {
    auto same = std::ranges::find(pairs, expected.key, &ObservedKeyValue::key);
    if (same == pairs.end() || expected.value != (request.keys_only ? "" : same->value)) {
      return absl::StrFormat("%s=%s, which is not there (or twice)", expected.key, expected.value);
    }
    pairs.erase(same);
  }
  return {};
}

std::string OrderTrouble(std::span<const Operation> history, Evidence evidence, std::span<const Place> order) {
  auto key_of = [](const Place& place) { return std::pair(place.operation, place.part); };
  std::map<std::pair<size_t, Part>, Claim> open;
  for (const Claim& claim : Claims(history, evidence)) open.emplace(key_of(claim.place), claim);
  Replay replay(history, evidence);
  uint64_t latest_call = 0;     // of the places so far that do not float
  std::vector<size_t> changes;  // operations so far that take effect
  for (const Place& place : order) {
    auto it = open.find(key_of(place));
    if (it == open.end()) return absl::StrFormat("operation at %d has a place too many", place.operation);
    const Claim claim = it->second;
    open.erase(it);
    const std::string who = Describe(history[place.operation]);
    auto too_late = [&](size_t change) {
      const Operation& other = history[change];
      return other.call.event > claim.end && (evidence == Evidence::kAll || Overlap(other, history[place.operation]));
    };
    if (claim.floating ? std::ranges::any_of(changes, too_late) : claim.end < latest_call) {
      return who + " stands behind one called after its end";
    }
    if (std::string trouble = replay.Trouble(place); !trouble.empty()) return who + " " + trouble;
    if (claim.floating) continue;
    latest_call = std::max(latest_call, claim.call);
    const Operation& operation = history[place.operation];
    bool idle = operation.outcome == Outcome::kAnswered && operation.request.kind == OperationKind::kDelete &&
                operation.answer.count == 0;
    if (place.part == Part::kEffect && !idle) changes.push_back(place.operation);
  }
  for (const auto& [key, claim] : open) {
    if (claim.must) return Describe(history[key.first]) + " has no place";
  }
  return {};
}

}  // namespace detcd::checker
