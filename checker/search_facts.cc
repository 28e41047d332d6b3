#include "checker/search_facts.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "checker/execution.h"
#include "checker/requests.h"

namespace detcd::checker {
namespace {

bool IsPlain(const Request& request) {
  return request.limit == 0 && request.sort_order == SortOrder::kNone && request.sort_target == SortTarget::kKey &&
         !request.keys_only && !request.count_only && !RestsOnRevisions(request);
}

// Whether `pairs` are all that is live in the fact's range.
bool ListsAll(const Fact& fact) {
  switch (fact.kind) {
    case FactKind::kPut: return fact.shows_pairs;
    case FactKind::kDelete: return fact.shows_pairs || fact.count == 0;
    case FactKind::kRange: return fact.plain;
    case FactKind::kAbsent: return true;
    case FactKind::kTxn: case FactKind::kTxnError: case FactKind::kRevision: case FactKind::kBelow:
    case FactKind::kAbove: case FactKind::kImpossible: return false;
  }
  return false;
}

// Whether the fact may need that one of the keys [first, last), all in its range, is not there.
bool ShowsAbsence(const Fact& other, uint32_t first, uint32_t last) {
  if (!ListsAll(other)) return other.kind != FactKind::kPut;  // its count may need the absence
  for (uint32_t key = first; key < last; ++key) {
    if (std::ranges::find(other.pairs, key, &FactPair::key) == other.pairs.end()) return true;
  }
  return false;
}

class Maker {
 public:
  Maker(std::span<const Operation> history, Evidence evidence) {
    result_.evidence = evidence;
    result_.history.assign(history.begin(), history.end());
    if (evidence == Evidence::kValues) {
      for (Operation& operation : result_.history) operation = WithoutRevisions(std::move(operation));
    }
  }

  Facts Make() && {
    NumberKeysAndValues();
    std::vector<Claim> claims = Claims(result_.history, result_.evidence);
    std::ranges::stable_sort(claims, {}, &Claim::call);
    std::vector<Fact> unanswered;
    for (const Claim& claim : claims) {
      Fact fact = MakeFact(claim);
      (claim.must ? result_.facts : unanswered).push_back(std::move(fact));
    }
    // What a transaction without an answer needs cannot be told from answers: it stays, and so does what it may need.
    for (bool txns : {true, false}) {
      for (Fact& fact : unanswered) {
        if ((fact.kind == FactKind::kTxn) == txns && (txns || CanBeNeeded(fact))) result_.facts.push_back(fact);
      }
    }
    std::ranges::stable_sort(result_.facts, {}, [](const Fact& fact) { return fact.claim.call; });
    LinkElders();
    if (result_.evidence == Evidence::kAll) FindAuthors();
    return std::move(result_);
  }

 private:
  void NumberPuts(const Request& request) {
    if (request.kind == OperationKind::kTxn) {
      for (const Request& operation : request.success) NumberPuts(operation);
      for (const Request& operation : request.failure) NumberPuts(operation);
    }
    if (request.kind != OperationKind::kPut) return;
    result_.keys.push_back(request.key);
    if (request.ignore_value) return;
    auto number = static_cast<uint32_t>(result_.values.size());
    if (result_.value_numbers.emplace(request.value, number).second) result_.values.push_back(request.value);
  }

  void NumberKeysAndValues() {
    for (const Operation& operation : result_.history) {
      NumberPuts(operation.request);
      if (operation.outcome == Outcome::kAnswered || operation.outcome == Outcome::kRefused) continue;
      if (GuessesNeeded(operation.request, result_.evidence) > kGuessesMax) result_.complete = false;
    }
    std::ranges::sort(result_.keys);
    result_.keys.erase(std::unique(result_.keys.begin(), result_.keys.end()), result_.keys.end());
  }

  uint32_t LowerBound(const std::string& key) const {
    return static_cast<uint32_t>(std::ranges::lower_bound(result_.keys, key) - result_.keys.begin());
  }
  uint32_t ValueNumber(const std::string& value) const {
    auto it = result_.value_numbers.find(value);
    return it == result_.value_numbers.end() ? kNoNumber : it->second;
  }

  void SetKeys(Fact& fact, const Request& request) const {
    if (request.kind == OperationKind::kTxn) return SetTxnKeys(fact, request);
    fact.first = LowerBound(request.key);
    if (request.range_end.empty() || request.kind == OperationKind::kPut) {
      bool known = fact.first < result_.keys.size() && result_.keys[fact.first] == request.key;
      fact.last = fact.first + (known ? 1 : 0);
    } else if (request.range_end == std::string(1, '\0')) {
      fact.last = static_cast<uint32_t>(result_.keys.size());
    } else {
      fact.last = std::max(fact.first, LowerBound(request.range_end));
    }
  }

  void SetTxnKeys(Fact& fact, const Request& request) const {
    bool any = false;
    std::vector<KeyRange> ranges = ReadRanges(request);
    for (const KeyRange& written : WrittenRanges(request)) ranges.push_back(written);
    for (const KeyRange& range : ranges) {
      Fact one;
      SetKeys(one, {.key = range.key, .range_end = range.range_end});
      if (one.first == one.last) continue;
      fact.first = any ? std::min(fact.first, one.first) : one.first;
      fact.last = std::max(fact.last, one.last);
      any = true;
    }
  }

  std::vector<FactPair> NumberPairs(const std::vector<ObservedKeyValue>& kvs) const {
    std::vector<FactPair> pairs;
    for (const ObservedKeyValue& kv : kvs) {
      uint32_t key = LowerBound(kv.key);
      bool known = key < result_.keys.size() && result_.keys[key] == kv.key;
      pairs.push_back({known ? key : kNoNumber, ValueNumber(kv.value), kv.create_revision, kv.mod_revision, kv.version});
    }
    return pairs;
  }

  Fact MakeFact(const Claim& claim) const {
    const Operation& operation = result_.history[claim.place.operation];
    const Request& request = operation.request;
    const Answer& answer = operation.answer;
    bool revisions = result_.evidence == Evidence::kAll;
    Fact fact{.claim = claim, .answered = operation.outcome == Outcome::kAnswered, .count = answer.count};
    SetKeys(fact, request);
    fact.revision = answer.header_revision;
    switch (claim.place.part) {
      case Part::kEffect:
        if (request.kind == OperationKind::kTxn) {
          fact.kind = FactKind::kTxn;
          fact.reads_only = fact.answered && !SaysItChanged(request, answer);
          fact.pinned = fact.answered && revisions;
          break;
        }
        fact.kind = request.kind == OperationKind::kPut ? FactKind::kPut : FactKind::kDelete;
        fact.value = fact.kind == FactKind::kPut && !request.ignore_value ? ValueNumber(request.value) : kNoNumber;
        fact.ignore_value = request.ignore_value;
        fact.shows_pairs = request.prev_kv;
        fact.reads_only = fact.answered && fact.kind == FactKind::kDelete && fact.count == 0;
        fact.pinned = fact.answered && revisions;
        if (fact.answered) fact.pairs = NumberPairs(answer.kvs);
        if (!request.prev_kv && !fact.pairs.empty()) fact.kind = FactKind::kImpossible;
        break;
      case Part::kCurrent:
      case Part::kPast:
        if (claim.place.part == Part::kPast) fact.revision = request.revision;
        fact.pinned = revisions;
        fact.plain = IsPlain(request);
        fact.pairs = NumberPairs(answer.kvs);
        if (fact.plain && (answer.more || static_cast<size_t>(answer.count) != fact.pairs.size())) {
          fact.kind = FactKind::kImpossible;
        }
        break;
      case Part::kHeader:
        fact.kind = request.revision > answer.header_revision ? FactKind::kImpossible : FactKind::kRevision;
        fact.pinned = true;
        break;
      case Part::kError: fact.kind = MakeError(fact, request, answer.error); break;
    }
    if (fact.claim.place.part != Part::kError && !StaticError(request).empty()) fact.kind = FactKind::kImpossible;
    return fact;
  }

  static FactKind MakeError(Fact& fact, const Request& request, const std::string& error) {
    if (IsStaticError(error) || !StaticError(request).empty()) return FactKind::kImpossible;
    fact.revision = request.revision;
    switch (request.kind) {
      case OperationKind::kTxn: return FactKind::kTxnError;
      case OperationKind::kPut:
        if (error == kErrorKeyNotFound && (request.ignore_value || request.ignore_lease)) return FactKind::kAbsent;
        break;
      case OperationKind::kCompact:
        if (error == kErrorFutureRevision) return FactKind::kBelow;
        if (error == kErrorCompacted) --fact.revision;  // it may be that revision itself
        if (error == kErrorCompacted) return FactKind::kAbove;
        break;
      case OperationKind::kRange:
        if (error == kErrorFutureRevision) return FactKind::kBelow;
        if (error == kErrorCompacted && request.revision > 0) return FactKind::kAbove;
        break;
      case OperationKind::kDelete: case OperationKind::kHashKv: break;
    }
    return FactKind::kImpossible;
  }

  // kValues: whether some answer shows what `fact`, itself without one, may have done. What it overwrote does not need
  // it: an answer shows the present value of a key, its presence, or its absence, never what it was before. With
  // revisions it is decided revision by revision.
  bool CanBeNeeded(const Fact& fact) const {
    if (result_.evidence == Evidence::kAll) return true;
    if (fact.kind == FactKind::kPut && fact.ignore_value) return false;  // it leaves all values as they are
    for (const Fact& other : result_.facts) {
      uint32_t first = std::max(fact.first, other.first);
      uint32_t last = std::min(fact.last, other.last);
      if (first >= last || other.claim.end < fact.claim.call) continue;
      if (other.kind == FactKind::kTxn || other.kind == FactKind::kTxnError) return true;
      if (fact.kind == FactKind::kPut ? ShowsPresence(other, fact) : ShowsAbsence(other, first, last)) return true;
    }
    return false;
  }

  void LinkElders() {
    std::map<std::pair<std::string, uint32_t>, uint32_t> latest;  // by effect and guess
    for (uint32_t i = 0; i < result_.facts.size(); ++i) {
      Fact& fact = result_.facts[i];
      if (fact.claim.must) continue;
      const std::string effect = EffectText(result_.history[fact.claim.place.operation].request);
      auto [it, fresh] = latest.emplace(std::pair(effect, fact.claim.place.guess), i);
      if (!fresh) fact.elder = std::exchange(it->second, i);
    }
  }

  void FindAuthors() {
    for (uint32_t i = 0; i < result_.facts.size(); ++i) {
      const Fact& fact = result_.facts[i];
      if (fact.pinned) result_.revision_max = std::max(result_.revision_max, fact.revision);
      if (fact.pinned && !fact.reads_only) result_.authors[fact.revision].owner = i;
      const Operation& operation = result_.history[fact.claim.place.operation];
      if (!fact.answered) continue;
      for (const ShownPair& pair : ShownPairs(operation.request, operation.answer)) {
        result_.revision_max = std::max(result_.revision_max, pair.kv->mod_revision);
        Author& author = result_.authors[pair.kv->mod_revision];
        author.key = NumberPairs({*pair.kv}).front().key;
        if (pair.has_value) author.value = ValueNumber(pair.kv->value);
      }
      if (fact.kind == FactKind::kAbove) result_.revision_max = std::max(result_.revision_max, fact.revision + 1);
      if (fact.kind == FactKind::kTxnError) {
        result_.revision_max = std::max(result_.revision_max, HighestAsked(operation.request) + 1);
      }
    }
    // A key that was not found may need one more delete each.
    result_.revision_max += std::ranges::count_if(result_.facts, [](const Fact& fact) {
      return fact.kind == FactKind::kAbsent || fact.kind == FactKind::kTxnError;
    });
  }

  Facts result_;
};

}  // namespace

bool ShowsPresence(const Fact& fact, const Fact& put) {
  if (fact.first > put.first || put.first >= fact.last) return false;
  if (fact.kind == FactKind::kTxn || fact.kind == FactKind::kTxnError) return true;
  if (!ListsAll(fact)) return fact.kind != FactKind::kPut || fact.ignore_value;  // its count may need the presence
  return std::ranges::any_of(
      fact.pairs, [&](const FactPair& pair) { return pair.key == put.first && pair.value == put.value; });
}

Facts MakeFacts(std::span<const Operation> history, Evidence evidence) { return Maker(history, evidence).Make(); }

std::vector<std::vector<uint32_t>> Parts(const Facts& facts) {
  auto count = static_cast<uint32_t>(facts.facts.size());
  if (facts.evidence == Evidence::kAll) {
    std::vector<uint32_t> all(count);
    std::iota(all.begin(), all.end(), 0u);
    return {all};
  }
  std::vector<uint32_t> group(facts.keys.size());  // by key: a smaller key of its part, or itself
  std::iota(group.begin(), group.end(), 0u);
  auto root = [&](uint32_t key) {
    while (group[key] != key) key = group[key] = group[group[key]];
    return key;
  };
  for (const Fact& fact : facts.facts) {
    for (uint32_t key = fact.first + 1; key < fact.last; ++key) {
      uint32_t a = root(fact.first);
      uint32_t b = root(key);
      group[std::max(a, b)] = std::min(a, b);
    }
  }
  std::map<uint32_t, std::vector<uint32_t>> parts;  // what touches no key at all: a part of its own
  for (uint32_t i = 0; i < count; ++i) {
    const Fact& fact = facts.facts[i];
    parts[fact.first < fact.last ? root(fact.first) : kNoNumber].push_back(i);
  }
  std::vector<std::vector<uint32_t>> result;
  for (auto& [key, part] : parts) result.push_back(std::move(part));
  return result;
}

}  // namespace detcd::checker
