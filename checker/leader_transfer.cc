#include "checker/leader_transfer.h"

#include "absl/strings/str_format.h"

namespace detcd::checker {

// Of a transfer that was never seen to be under way nothing is known to be wanted.
void LeaderTransfer::JudgeTold(const MemberObservation& seen, Moment moment) {
  for (const MessageObservation& message : told_) {
    if (message.to != seen.member || seen.started) continue;
    const auto wanted = wanted_.find({message.term, message.to});
    if (wanted == wanted_.end() || seen.last_index >= wanted->second) continue;
    // It campaigns in the next term. Where it is in a later one, or in the next and did not campaign for that, the word came
    // too late to be heard, and the leader there may have taken what it had.
    const bool campaigned = seen.role == Role::kCandidate || seen.role == Role::kLeader;
    const bool heard = seen.term <= message.term || (seen.term == message.term + 1 && campaigned);
    if (!heard) continue;
    verdict_.Report("F16", "a target that is behind",
                    absl::StrFormat("member %x, leader of term %d, told member %x to campaign, whose log ends at %d, while its "
                                    "own ended at %d when the transfer began",
                                    message.from.value, message.term.value, message.to.value, seen.last_index.value,
                                    wanted->second.value),
                    moment);
  }
  std::erase_if(told_, [&](const MessageObservation& message) { return message.to == seen.member; });
}

void LeaderTransfer::JudgeTransfer(const MemberObservation& seen, Moment moment) {
  if (seen.started || seen.role != Role::kLeader || seen.transfer_target.IsZero()) {
    under_way_.erase(seen.member);
    return;
  }
  Transfer& transfer = under_way_[seen.member];
  if (transfer.term != seen.term || transfer.target != seen.transfer_target || transfer.give_up != seen.transfer_give_up) {
    transfer = Transfer{.term = seen.term,
                        .target = seen.transfer_target,
                        .give_up = seen.transfer_give_up,
                        .started = seen.local_time,
                        .last_index = seen.last_index};
    wanted_.emplace(std::pair(seen.term, seen.transfer_target), seen.last_index);
    return;
  }
  if (seen.last_index != transfer.last_index) {
    verdict_.Report("F16", "a proposal during a transfer",
                    absl::StrFormat("the log of member %x, leader of term %d, went from %d to %d while it handed its "
                                    "leadership to member %x",
                                    seen.member.value, seen.term.value, transfer.last_index.value, seen.last_index.value,
                                    transfer.target.value),
                    moment);
  }
  if (seen.local_time <= transfer.started + world_.election_timeout) return;
  if (!transfer.overdue_local) {
    transfer.overdue_local = seen.local_time;
    transfer.overdue_true = moment.true_time;
    return;
  }
  if (seen.behind) return;  // its timer may be among what waits for a slow processor
  if (seen.local_time - *transfer.overdue_local <= world_.heartbeat_interval) return;
  if (moment.true_time - transfer.overdue_true <= world_.heartbeat_interval) return;
  verdict_.Report("F16", "a transfer without end",
                  absl::StrFormat("member %x, leader of term %d, hands its leadership to member %x for more than an election "
                                  "timeout of its clock",
                                  seen.member.value, seen.term.value, transfer.target.value),
                  moment);
}

}  // namespace detcd::checker
