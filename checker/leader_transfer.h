// F16, leadership transfer from outside (thesis 3.10): while a leader hands its leadership over it takes no proposal; it
// tells the target to campaign only when the target has all that the leader had when the transfer began; and it gives up
// after one election timeout of its clock.
//
// The give-up is judged as F13 is: once seen to be overdue, one heartbeat interval, both of the member's clock and of
// true time, may pass, since a pause or a leap may queue other events before the timer.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "checker/observation.h"
#include "checker/verdict.h"

namespace detcd::checker {

class LeaderTransfer {
 public:
  LeaderTransfer(const WorldObservation& world, Verdict& verdict);

  void OnSent(const MessageObservation& message, Moment moment);
  void OnMember(const MemberObservation& seen, Moment moment);

 private:
  // One transfer as its leader shows it.
  struct Transfer {
    MemberId target;
    Instant give_up;
    Instant started;        // when it was first seen, on the leader's clock
    LogIndex last_index;    // of the leader, then
    std::optional<Instant> overdue_local;
    Instant overdue_true;
  };
  struct Member {
    MemberId id;
    uint32_t incarnation = 0;
    Term term;
    LogIndex last_index;
    std::optional<Transfer> transfer;
    std::map<MemberId, LogIndex> wanted;  // in this term, of each target: the log's end when the first transfer to it began
  };

  Member& Of(MemberId id);
  void JudgeTransfer(Member& leader, const MemberObservation& seen, Moment moment);

  const WorldObservation world_;
  Verdict& verdict_;
  std::vector<Member> members_;
};

}  // namespace detcd::checker
