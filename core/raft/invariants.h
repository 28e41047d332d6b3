// What always holds of one member's state, and what holds between two steps. Checked after every step in every build;
// whole scans of the log under VERIFY.
#pragma once

#include <optional>

#include "core/base/time.h"
#include "core/base/types.h"
#include "core/raft/state.h"

namespace detcd::raft {

// What a step may only move in one direction.
struct Marks {
  Term term;
  MemberId voted_for;
  LogIndex commit_index;
  std::optional<Instant> promised_until;
  LogIndex last_index;
  bool leads = false;
};
Marks MarksOf(const RaftState& raft);

// Crashes unless `raft` is consistent in itself.
void CheckInvariants(const RaftState& raft);
// As above, and unless it follows from `before` by steps: the term, the commit index and a promise never fall, one vote in
// a term, a leader's log only grows (Raft §5.3, leader append-only).
void CheckStep(const RaftState& raft, const Marks& before);

}  // namespace detcd::raft
