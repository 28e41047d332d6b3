#include "checker/witness.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "checker/execution.h"
#include "checker/requests.h"

namespace detcd::checker {
namespace {

bool HasAnswer(const Operation& operation) {
  return operation.outcome == Outcome::kAnswered || operation.outcome == Outcome::kRefused;
}

bool IsError(const Operation& operation) {
  return operation.outcome == Outcome::kRefused || !operation.answer.error.empty();
}

// The store, replayed place by place.
class Replay final : public StateView {
 public:
  Replay(std::span<const Operation> history, Evidence evidence) : history_(history), evidence_(evidence) {}

  // What is wrong with `place` on the present state, or else its effect is applied.
  std::string Trouble(const Place& place) {
    Operation operation = history_[place.operation];
    if (evidence_ == Evidence::kValues) operation = WithoutRevisions(std::move(operation));
    const Request& request = operation.request;
    switch (place.part) {
      case Part::kEffect: return EffectTrouble(operation, place.guess);
      case Part::kCurrent:
        if (std::string trouble = RevisionTrouble(operation.answer.header_revision); !trouble.empty()) return trouble;
        return PairsTrouble(operation);
      case Part::kPast:
        if (std::string trouble = RevisionTrouble(request.revision); !trouble.empty()) return trouble;
        return PairsTrouble(operation);
      case Part::kHeader:
        if (request.revision > revision_) return absl::StrFormat("is about the future of revision %d", revision_);
        return RevisionTrouble(operation.answer.header_revision);
      case Part::kError: return ErrorTrouble(operation);
    }
    return {};
  }

  int64_t revision() const override { return revision_; }
  std::vector<ObservedKeyValue> Live(const std::string& key, const std::string& range_end) const override {
    std::vector<ObservedKeyValue> live;
    for (const auto& [name, kv] : pairs_) {
      if (InRange(name, key, range_end)) live.push_back(kv);
    }
    return live;
  }
  std::optional<std::vector<ObservedKeyValue>> LiveAt(const std::string&, const std::string&, int64_t) const override {
    return std::nullopt;
  }
  int64_t compact_revision() const override { return -1; }
  Evidence evidence() const override { return evidence_; }

 private:
  std::string RevisionTrouble(int64_t wanted) const {
    if (evidence_ == Evidence::kValues || wanted == revision_) return {};
    return absl::StrFormat("stands at revision %d instead of %d", revision_, wanted);
  }

  std::string PairsTrouble(const Operation& operation) const {
    const Request& request = operation.request;
    std::vector<ObservedKeyValue> live = Live(request.key, request.range_end);
    if (evidence_ == Evidence::kValues) return ValuesTrouble(request, operation.answer, std::move(live));
    return RangeTrouble(request, operation.answer, std::move(live));
  }

  std::string EffectTrouble(const Operation& operation, uint32_t guess) {
    const bool answered = operation.outcome == Outcome::kAnswered;
    const Answer* answer = answered ? &operation.answer : nullptr;
    if (std::string_view error = StaticError(operation.request); !error.empty()) return absl::StrFormat("had to be refused: %s", error);
    Execution execution = Execute(operation.request, *this, answer, guess);
    if (!execution.error.empty()) return "had to be refused: " + execution.error;
    if (!execution.trouble.empty()) return execution.trouble;
    if (answered && execution.changes.empty() == SaysItChanged(operation.request, operation.answer)) {
      return "says wrongly whether it changed anything";
    }
    if (!execution.changes.empty()) ++revision_;
    for (Change& change : execution.changes) {
      if (change.now.has_value()) pairs_[change.key] = *std::move(change.now);
      if (!change.now.has_value()) pairs_.erase(change.key);
    }
    return answered ? RevisionTrouble(operation.answer.header_revision) : "";
  }

  std::string ErrorTrouble(const Operation& operation) const {
    const Request& request = operation.request;
    const std::string& error = operation.answer.error;
    const std::string_view earned = StaticError(request);
    bool holds = false;
    if (IsStaticError(error) || !earned.empty()) {
      holds = error == earned;
    } else if (request.kind == OperationKind::kCompact) {
      holds = error == kErrorFutureRevision ? request.revision > revision_ : request.revision <= revision_;
    } else {
      holds = MayFail(request, *this, error);
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
  if (IsStaticError(error)) return error != StaticError(request);
  // A stream may be overtaken by a compaction on its way.
  if (error == kErrorCompacted && request.streamed && request.revision <= 0) return false;
  return error == kErrorKeyNotFound || error == kErrorFutureRevision || error == kErrorCompacted;
}

std::vector<Claim> Claims(std::span<const Operation> history, Evidence evidence) {
  std::vector<Claim> claims;
  bool revisions = evidence == Evidence::kAll;
  for (size_t i = 0; i < history.size(); ++i) {
    const Operation& operation = history[i];
    const Request& request = operation.request;
    bool is_range = request.kind == OperationKind::kRange;
    bool is_compaction = request.kind == OperationKind::kCompact;
    if (request.kind == OperationKind::kHashKv) continue;
    if (!HasAnswer(operation) && !StaticError(request).empty()) continue;  // it was or will be refused
    Claim claim{.place = {i, is_range ? Part::kCurrent : Part::kEffect}, .call = operation.call.event};
    if (!HasAnswer(operation)) {
      claim.must = false;
      if (ReadsOnly(request) || is_compaction) continue;
      const uint32_t guesses = 1u << std::min(GuessesNeeded(request, evidence), kGuessesMax);
      for (claim.place.guess = 0; claim.place.guess < guesses; ++claim.place.guess) claims.push_back(claim);
      continue;
    }
    claim.end = operation.end.event;
    claim.floating = ReadsLocally(request);
    if (IsError(operation)) {
      claim.place.part = Part::kError;
      const std::string& error = operation.answer.error;
      bool of_revisions = error == kErrorFutureRevision || error == kErrorCompacted;
      if (SpeaksOfState(request, error) && (revisions || !of_revisions)) claims.push_back(claim);
    } else if (is_compaction) {
      claim.place.part = Part::kHeader;
      if (revisions) claims.push_back(claim);
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

std::string OrderTrouble(std::span<const Operation> history, Evidence evidence, std::span<const Place> order) {
  auto key_of = [](const Place& place) { return std::tuple(place.operation, place.part, place.guess); };
  std::map<std::tuple<size_t, Part, uint32_t>, Claim> open;
  std::set<size_t> guessed;     // operations without an answer that have a place
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
    if (!claim.must && !guessed.insert(place.operation).second) return who + " takes effect twice";
    auto too_late = [&](size_t change) {
      const Operation& other = history[change];
      return other.call.event > claim.end && (evidence == Evidence::kAll || MayTouch(other.request, history[place.operation].request));
    };
    if (claim.floating ? std::ranges::any_of(changes, too_late) : claim.end < latest_call) {
      return who + " stands behind one called after its end";
    }
    if (std::string trouble = replay.Trouble(place); !trouble.empty()) return who + " " + trouble;
    if (claim.floating) continue;
    latest_call = std::max(latest_call, claim.call);
    const Operation& operation = history[place.operation];
    bool idle = operation.outcome == Outcome::kAnswered && !SaysItChanged(operation.request, operation.answer);
    if (place.part == Part::kEffect && !idle) changes.push_back(place.operation);
  }
  for (const auto& [key, claim] : open) {
    if (claim.must) return Describe(history[std::get<0>(key)]) + " has no place";
  }
  return {};
}

}  // namespace detcd::checker
