// The second opinion on a violation of linearizability: the general search looks at what clients saw, and says whether
// the data are wrong, or the revisions, or only the servers' log; and whether the two judges contradict each other.
// Runs only when a violation was found: a clean run pays nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "checker/history.h"
#include "checker/observation.h"

namespace detcd::checker {

// Steps of each of the two searches behind an opinion: a few seconds at most.
inline constexpr uint64_t kTriageStepsMax = 5'000'000;

enum class Triage : uint8_t {
  kNotAsked,      // the property is none of linearizability
  kDataAnomaly,   // values and counts alone fit no order of the operations
  kMetadataOnly,  // values and counts fit some order, revisions do not
  kLogOnly,       // all that clients saw fits some order; the log or a member's state shows the fault
  kUndetermined,  // the budget ended first
  kDisagreement,  // a violation that rests on clients' answers alone, and yet an order that explains them: one judge errs
};

struct Opinion {
  Triage triage = Triage::kNotAsked;
  std::string sentence;  // empty when not asked
  uint64_t steps = 0;
};

// `history`: all operations up to the violation, among them those it names.
Opinion Classify(const Violation& violation, std::span<const Operation> history, uint64_t steps_max = kTriageStepsMax);

}  // namespace detcd::checker
