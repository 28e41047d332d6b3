// F16, leadership transfer from outside (thesis 3.10): while a leader hands its leadership over it takes no proposal; it
// tells the target to campaign only when the target has all that the leader had when the transfer began; and it gives up
// after one election timeout of its clock.
//
// The give-up is judged as F13 is: once seen to be overdue, one heartbeat interval, both of the member's clock and of
// true time, may pass, since a pause or a leap may queue other events before the timer.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "checker/observation.h"
#include "checker/verdict.h"

namespace detcd::checker {

class LeaderTransfer {
 public:
  LeaderTransfer(const WorldObservation& world, Verdict& verdict) : world_(world), verdict_(verdict) {}

  // Before its receiver is observed after the same event.
  void OnDelivered(const MessageObservation& message) {
    if (message.kind == MessageKind::kTimeoutNow) told_.push_back(message);
  }
  void OnMember(const MemberObservation& seen, Moment moment) {
    // Transfers are rare: most events cost no more than this.
    if (seen.transfer_target.IsZero() && under_way_.empty() && told_.empty()) return;
    JudgeTold(seen, moment);
    JudgeTransfer(seen, moment);
  }

 private:
  // One transfer as its leader shows it.
  struct Transfer {
    Term term;
    MemberId target;
    Instant give_up;
    Instant started;        // when it was first seen, on the leader's clock
    LogIndex last_index;    // of the leader, then
    std::optional<Instant> overdue_local;
    Instant overdue_true;
  };

  void JudgeTold(const MemberObservation& seen, Moment moment);
  void JudgeTransfer(const MemberObservation& seen, Moment moment);

  const WorldObservation world_;
  Verdict& verdict_;
  std::map<MemberId, Transfer> under_way_;                    // by leader
  std::vector<MessageObservation> told_;                      // in this event, whom a leader told to campaign
  std::map<std::pair<Term, MemberId>, LogIndex> wanted_;      // by target: the log's end when the term's first transfer began
};

}  // namespace detcd::checker
