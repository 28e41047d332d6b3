#include "checker/triage.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "checker/search.h"

namespace detcd::checker {
namespace {

// Of linearizability, and judged by what operations answered: the K properties and what reads show. R3 is about one
// member, not about the order of operations.
bool IsAsked(std::string_view property) {
  return property.starts_with("K") || property == "R1" || property == "R2";
}

// Whether the violation follows from clients' answers without the log: then no order may explain these. Two answers
// that claim one revision, a change at revision 1, and two answers in an order that real time forbids; errors have
// their place from the log.
bool RestsOnClientsAlone(const Violation& violation, std::span<const Operation> history) {
  if (violation.property == "K1" || violation.property == "K3") return true;
  if (violation.property != "K4" || violation.operations.size() != 2) return false;
  return std::ranges::all_of(violation.operations, [&](uint64_t id) {
    auto it = std::ranges::find(history, id, &Operation::id);
    return it != history.end() && it->outcome == Outcome::kAnswered && it->answer.error.empty();
  });
}

Opinion Undetermined(uint64_t steps, std::string_view question, const SearchResult& result) {
  if (!result.trouble.empty()) {
    return {Triage::kDisagreement,
            absl::StrFormat("checker failure: the search found an order that does not hold (%s)", result.trouble), steps};
  }
  return {Triage::kUndetermined, absl::StrFormat("undetermined after %d steps: %s", steps, question), steps};
}

}  // namespace

Opinion Classify(const Violation& violation, std::span<const Operation> history, uint64_t steps_max) {
  if (!IsAsked(violation.property)) return {};
  SearchResult all = Search(history, {.evidence = Evidence::kAll, .steps_max = steps_max});
  if (all.verdict == SearchVerdict::kLegal) {
    if (RestsOnClientsAlone(violation, history)) {
      return {Triage::kDisagreement,
              "checker failure: the judge by revisions refuses answers that the search explains, and one of them errs",
              all.steps};
    }
    return {Triage::kLogOnly,
            "fault in the log only: what clients saw, revisions included, is linearizable by itself", all.steps};
  }
  if (all.verdict == SearchVerdict::kUndetermined && !all.trouble.empty()) return Undetermined(all.steps, "", all);
  SearchResult values = Search(history, {.evidence = Evidence::kValues, .steps_max = steps_max});
  uint64_t steps = all.steps + values.steps;
  switch (values.verdict) {
    case SearchVerdict::kIllegal:
      return {Triage::kDataAnomaly, "data anomaly: no order of the operations explains the values that clients saw", steps};
    case SearchVerdict::kUndetermined: return Undetermined(steps, "are the values linearizable?", values);
    case SearchVerdict::kLegal: break;
  }
  if (all.verdict == SearchVerdict::kUndetermined) {
    return Undetermined(steps, "the values are linearizable; are they with their revisions?", all);
  }
  return {Triage::kMetadataOnly, "metadata only: the values that clients saw are linearizable, their revisions are not",
          steps};
}

}  // namespace detcd::checker
