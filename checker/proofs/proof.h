// A claim about a rule of ours, and its weakened twins. A proof that could not fail would be worth nothing: each rule is
// also shown without one of its parts, and then Z3 must find a run that breaks it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checker/proofs/timeline.h"

namespace detcd::proofs {

class Session;

enum class Answer : uint8_t {
  kProved,          // no run breaks the claim
  kCounterexample,  // one does, and is told
  kUndetermined,    // the budget ended, or Z3 cannot tell
};
std::string_view AnswerName(Answer answer);

struct Outcome {
  Answer answer = Answer::kUndetermined;
  std::vector<std::string> story;     // the counterexample, or why nothing is known; one sentence each
  std::optional<Timeline> timeline;   // of a counterexample that a simulated cluster can be put through
  uint64_t rlimit_used = 0;

  static Outcome Proved() { return {.answer = Answer::kProved}; }
};

struct Proof {
  std::string name;     // of the rule, with its weakening if any: `lease`, `lease/without-drift`
  std::string what;     // the claim; of a twin: what is taken away
  unsigned voters = 0;  // 0: of any number
  Answer expected = Answer::kProved;
  std::function<Outcome(Session&)> run;

  bool IsTwin() const { return expected == Answer::kCounterexample; }
};

// Enough for each of them several times over; what they use is told.
inline constexpr uint64_t kRlimitDefault = 400'000'000;

// All, each rule followed by its twins.
std::vector<Proof> AllProofs();
// Within the budget; every failure of Z3 becomes kUndetermined.
Outcome Run(const Proof& proof, uint64_t rlimit);

// One family each.
std::vector<Proof> ElectionProofs();
std::vector<Proof> LogMatchingProofs();
std::vector<Proof> PreVoteProofs();
std::vector<Proof> LeaseProofs();
std::vector<Proof> LeaseBoundProofs();
std::vector<Proof> QuorumProofs();

}  // namespace detcd::proofs
