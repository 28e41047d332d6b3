// All judges behind one door. The simulator tells it everything in the order of the world's events; the first violation
// stands, and everything after it is ignored.
//
// Within one event, in any order: OnDelivered, OnSent, OnMember (the member after the event), OnCommitted; then OnCall
// and OnEnd of clients. An entry is shown committed before an answer that rests on it ends. After a crash the first
// OnMember of the new incarnation has `started` and the whole log, and comes before any of its messages.
// Puts and reads that probe for liveness are operations too: OnCall and OnEnd tell of them as of any other.
#pragma once

#include <optional>
#include <span>

#include "checker/convergence.h"
#include "checker/durability.h"
#include "checker/equal_effects.h"
#include "checker/history.h"
#include "checker/leader_lease.h"
#include "checker/leader_transfer.h"
#include "checker/observation.h"
#include "checker/pre_vote.h"
#include "checker/raft_safety.h"
#include "checker/read_rounds.h"
#include "checker/revision_order.h"
#include "checker/verdict.h"

namespace detcd::checker {

class Panel {
 public:
  explicit Panel(const WorldObservation& world);
  Panel(const Panel&) = delete;
  Panel& operator=(const Panel&) = delete;

  void OnMember(const MemberObservation& seen, Moment moment);
  void OnSent(const MessageObservation& message, Moment moment);
  void OnDelivered(const MessageObservation& message, Moment moment);
  void OnCommitted(const CommittedEntry& entry, Moment moment);
  // At `operation.call` and `operation.end`.
  void OnCall(const Operation& operation);
  void OnEnd(const Operation& operation);
  // All faults are over; `longest_delay` and `longest_sync` are those still under way or possible from now on.
  void OnHealed(Moment moment, Duration longest_delay, Duration longest_sync);
  // After OnHealed: `member` will never run again. It owes neither service nor a final state.
  void OnLost(MemberId member);
  void OnProbe(MemberId member, ProbeKind kind, bool ok, Moment moment);
  void OnFinal(MemberId member, std::span<const FinalKey> keys, Moment moment);
  // The end of the run: what was never shown is missed now.
  std::optional<Violation> Finish(Moment moment);

  // The first violation so far.
  const std::optional<Violation>& violation() const { return verdict_.violation(); }
  // After OnHealed: every member has served.
  bool converged() const { return convergence_.converged(); }
  const KvModel& model() const { return revision_order_.model(); }

 private:
  const WorldObservation world_;
  Verdict verdict_;
  RaftSafety raft_safety_;
  PreVote pre_vote_;
  LeaderLease leader_lease_;
  LeaderTransfer leader_transfer_;
  ReadRounds read_rounds_;
  EqualEffects equal_effects_;
  RevisionOrder revision_order_;
  Durability durability_;
  Convergence convergence_;
  LogIndex committed_;  // shown by OnCommitted
};

}  // namespace detcd::checker
