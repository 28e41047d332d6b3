// Holds the judges of linearizability against each other and against oracles that try every order.
#pragma once

#include <cstdint>
#include <string>

#include "tests/checker/history_generator.h"

namespace detcd::checker {

// What the judges said of one history.
struct Comparison {
  std::string corruption;         // how the history was corrupted; `nothing`
  std::string mismatch;           // empty: all agree; else who contradicts whom
  History history;
  bool judge_accepts = false;     // revision_order, with the log
  bool answers_are_legal = false; // the search, revisions included, without the log
  bool values_are_legal = false;  // the search by values
  bool oracle_gave_up = false;    // an oracle tried too often; what it would say is not compared
  bool differs_by_request = false;  // only the requests in the log show the fault, not the states that they left
  uint64_t steps = 0;             // of all searches
};

// Makes the history of `seed`, of at most `operations_max` operations, corrupts it (nine of ten), and compares:
// - revision_order with every order that explains answers and log;
// - the search, with and without revisions, with every order that explains the answers;
// - the search, once the log is made visible as reads, with every order that explains answers and the log's states;
//   it differs from revision_order only where a request of the log was another's, with the same effect;
// - their implications: legal with the log, legal by answers, legal by values; and the triage of what is refused.
Comparison CompareJudges(uint64_t seed, size_t operations_max);

// The history for people.
std::string Story(const History& history);

}  // namespace detcd::checker
