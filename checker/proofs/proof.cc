#include "checker/proofs/proof.h"

#include <iterator>

#include "checker/proofs/session.h"

namespace detcd::proofs {

std::string_view AnswerName(Answer answer) {
  switch (answer) {
    case Answer::kProved: return "proved";
    case Answer::kCounterexample: return "counterexample";
    case Answer::kUndetermined: return "undetermined";
  }
  return "";
}

std::vector<Proof> AllProofs() {
  std::vector<Proof> all;
  for (auto* family : {ElectionProofs, LogMatchingProofs, PreVoteProofs, LeaseProofs, LeaseBoundProofs, QuorumProofs}) {
    std::vector<Proof> proofs = family();
    std::move(proofs.begin(), proofs.end(), std::back_inserter(all));
  }
  return all;
}

Outcome Run(const Proof& proof, uint64_t rlimit) {
  Session session(rlimit);
  Outcome outcome;
  try {
    outcome = proof.run(session);
  } catch (const Undetermined& undetermined) {
    outcome = {.answer = Answer::kUndetermined, .story = {undetermined.reason}};
  } catch (const z3::exception& error) {
    outcome = {.answer = Answer::kUndetermined, .story = {std::string("Z3: ") + error.msg()}};
  }
  outcome.rlimit_used = session.used();
  return outcome;
}

}  // namespace detcd::proofs
