#include "checker/range_rules.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"

namespace detcd::checker {
namespace {

constexpr std::string_view kFromKey("\0", 1);

// Three-way comparison of two pairs by the sort target.
int CompareBy(SortTarget target, const ObservedKeyValue& a, const ObservedKeyValue& b) {
  auto three_way = [](const auto& x, const auto& y) { return x < y ? -1 : (y < x ? 1 : 0); };
  switch (target) {
    case SortTarget::kKey: return three_way(a.key, b.key);
    case SortTarget::kVersion: return three_way(a.version, b.version);
    case SortTarget::kCreate: return three_way(a.create_revision, b.create_revision);
    case SortTarget::kMod: return three_way(a.mod_revision, b.mod_revision);
    case SortTarget::kValue: return three_way(a.value, b.value);
  }
  return 0;
}

bool HasFilter(const Request& request) {
  return request.max_mod_revision != 0 || request.min_mod_revision != 0 || request.max_create_revision != 0 ||
         request.min_create_revision != 0;
}

bool Passes(const Request& request, const ObservedKeyValue& kv) {
  if (request.max_mod_revision != 0 && kv.mod_revision > request.max_mod_revision) return false;
  if (request.min_mod_revision != 0 && kv.mod_revision < request.min_mod_revision) return false;
  if (request.max_create_revision != 0 && kv.create_revision > request.max_create_revision) return false;
  return request.min_create_revision == 0 || kv.create_revision >= request.min_create_revision;
}

std::string Show(const ObservedKeyValue& kv) {
  return absl::StrFormat("%s=%s (create %d, mod %d, version %d)", kv.key, kv.value, kv.create_revision,
                         kv.mod_revision, kv.version);
}

// Whether `got` is what is left of `pairs` (any order) after sorting and keeping the first `size`: equal sort values
// may stand in any order, also across the cut, so each position must have the right sort value, and each pair must be
// one of `pairs` not shown before.
std::string SequenceTrouble(const Request& request, std::vector<ObservedKeyValue> pairs, size_t size,
                            const std::vector<ObservedKeyValue>& got) {
  std::map<std::string_view, const ObservedKeyValue*> by_key;
  std::vector<const ObservedKeyValue*> order;
  for (const ObservedKeyValue& kv : pairs) {
    by_key[kv.key] = &kv;
    order.push_back(&kv);
  }
  // A stream without an order comes in key order, whatever the target (semantics.md 4).
  bool sorted = request.sort_order != SortOrder::kNone || (request.sort_target != SortTarget::kKey && !request.streamed);
  if (sorted) {
    std::sort(order.begin(), order.end(), [&](const ObservedKeyValue* a, const ObservedKeyValue* b) {
      int c = CompareBy(request.sort_target, *a, *b);
      if (c == 0) return a->key < b->key;
      return request.sort_order == SortOrder::kDescend ? c > 0 : c < 0;
    });
  }
  if (got.size() != size) {
    std::string first = order.size() > got.size() ? Show(*order[got.size()]) : std::string("nothing");
    return absl::StrFormat("%d pairs instead of %d; expected next: %s", got.size(), size, first);
  }
  for (size_t i = 0; i < size; ++i) {
    auto known = by_key.find(got[i].key);
    if (known == by_key.end()) return absl::StrFormat("%s, which is not there (or twice)", Show(got[i]));
    ObservedKeyValue expected = *known->second;
    if (sorted ? CompareBy(request.sort_target, expected, *order[i]) != 0 : expected.key != order[i]->key) {
      return absl::StrFormat("%s where %s belongs", Show(got[i]), Show(*order[i]));
    }
    if (request.keys_only) expected.value.clear();
    if (!(got[i] == expected)) return absl::StrFormat("%s instead of %s", Show(got[i]), Show(expected));
    by_key.erase(known);
  }
  return {};
}

void Strip(Answer& answer) {
  answer.header_revision = 0;
  for (ObservedKeyValue& kv : answer.kvs) kv.create_revision = kv.mod_revision = kv.version = 0;
  for (Answer& response : answer.responses) Strip(response);
}

}  // namespace

bool InRange(std::string_view candidate, std::string_view key, std::string_view range_end) {
  if (range_end.empty()) return candidate == key;
  return candidate >= key && (range_end == kFromKey || candidate < range_end);
}

std::string RangeTrouble(const Request& request, const Answer& answer, std::vector<ObservedKeyValue> pairs) {
  auto count = static_cast<int64_t>(pairs.size());
  if (answer.count != count) return absl::StrFormat("count %d instead of %d", answer.count, count);
  if (request.count_only) {
    return answer.kvs.empty() && !answer.more ? "" : "pairs or `more` in an answer to count_only";
  }
  size_t limit = request.limit > 0 ? static_cast<size_t>(request.limit) : 0;
  if (request.sort_order != SortOrder::kNone || HasFilter(request)) {
    std::erase_if(pairs, [&](const ObservedKeyValue& kv) { return !Passes(request, kv); });
  } else if (limit != 0 && pairs.size() > limit + 1) {
    pairs.resize(limit + 1);  // without order or filter etcd reads limit + 1 keys, and sorts those
  }
  bool more = limit != 0 && pairs.size() > limit;
  if (answer.more != more) return more ? "`more` is missing" : "`more` is set though nothing was cut";
  size_t size = more ? limit : pairs.size();
  return SequenceTrouble(request, std::move(pairs), size, answer.kvs);
}

Operation WithoutRevisions(Operation operation) {
  Strip(operation.answer);
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

}  // namespace detcd::checker
