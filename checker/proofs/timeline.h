// A counterexample of the lease and pre-vote models as a course of events on true time, from which scenarios/ makes a
// scenario. Times are in millionths of the election timeout, from the beginning of the model's run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace detcd::proofs {

inline constexpr int64_t kElectionTimeoutUnits = 1'000'000;

// What is weakened: it shapes what a simulated cluster must be put through.
enum class Weakness : uint8_t {
  kLeaseWithoutDrift,
  kNoWaitAfterRestart,
  kLeaseThroughTransfer,
  kPreVoteInContact,
};

enum class Happening : uint8_t {
  kRoundSent,          // the leader reads its clock and sends a round
  kRoundArrives,       // at a voter, which promises
  kRoundAcknowledged,  // its answer is at the leader
  kCrash,              // of a voter
  kStart,
  kTransferTried,      // by the leader
  kVote,               // a voter votes for the new leader
  kElected,
  kWriteAcknowledged,  // by the new leader
  kReadInvoked,        // by a client of the old leader
  kLeaseChecked,       // by the old leader: it answers from what it has
  kHealed,             // an isolated member is back
};

struct TimelineEvent {
  Happening happening = Happening::kRoundSent;
  unsigned member = 0;  // from 1
  int64_t at = 0;       // units, true time
};

struct Timeline {
  Weakness weakness = Weakness::kLeaseWithoutDrift;
  unsigned members = 3;
  unsigned old_leader = 1;
  unsigned new_leader = 2;               // of pre-vote: the member that disturbs
  int64_t lease = 0;                     // units on the leader's clock; 0: not about leases
  int64_t drift_ppm_max = 0;             // declared
  std::vector<int64_t> drift_ppm;        // of each member's clock
  std::vector<TimelineEvent> events;     // in order of time
};

}  // namespace detcd::proofs
