#include "checker/leader_transfer.h"

#include "absl/strings/str_format.h"
#include "core/base/check.h"

namespace detcd::checker {

LeaderTransfer::LeaderTransfer(const WorldObservation& world, Verdict& verdict) : world_(world), verdict_(verdict) {
  for (MemberId id : world.members) {
    members_.emplace_back();
    members_.back().id = id;
  }
}

LeaderTransfer::Member& LeaderTransfer::Of(MemberId id) {
  for (Member& member : members_) {
    if (member.id == id) return member;
  }
  CHECK_MSG(false, "a member that the world does not have");
}

// A transfer that began in this event is not known yet if its leader is told of afterwards; then its term has none, or an
// earlier one to the same target, of which less was wanted.
void LeaderTransfer::OnSent(const MessageObservation& message, Moment moment) {
  if (message.kind != MessageKind::kTimeoutNow) return;
  const Member& leader = Of(message.from);
  const Member& target = Of(message.to);
  // In a later term the target may have lost what it had in this one.
  if (leader.term != message.term || target.term != message.term) return;
  const auto wanted = leader.wanted.find(message.to);
  if (wanted == leader.wanted.end() || target.last_index >= wanted->second) return;
  verdict_.Report("F16", "a target that is behind",
                  absl::StrFormat("member %x, leader of term %d, told member %x to campaign, whose log ends at %d, while its "
                                  "own ended at %d when the transfer began",
                                  message.from.value, message.term.value, message.to.value, target.last_index.value,
                                  wanted->second.value),
                  moment);
}

void LeaderTransfer::OnMember(const MemberObservation& seen, Moment moment) {
  Member& member = Of(seen.member);
  if (seen.started || seen.incarnation != member.incarnation || seen.term != member.term) {
    member = Member{.id = member.id, .incarnation = seen.incarnation, .term = seen.term};
  }
  JudgeTransfer(member, seen, moment);
  member.last_index = seen.last_index;
}

void LeaderTransfer::JudgeTransfer(Member& leader, const MemberObservation& seen, Moment moment) {
  if (seen.role != Role::kLeader || seen.transfer_target.IsZero()) {
    leader.transfer.reset();
    return;
  }
  if (!leader.transfer || leader.transfer->target != seen.transfer_target ||
      leader.transfer->give_up != seen.transfer_give_up) {
    leader.transfer = Transfer{.target = seen.transfer_target,
                               .give_up = seen.transfer_give_up,
                               .started = seen.local_time,
                               .last_index = seen.last_index};
    leader.wanted.emplace(seen.transfer_target, seen.last_index);
    return;
  }
  Transfer& transfer = *leader.transfer;
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
  if (seen.local_time - *transfer.overdue_local <= world_.heartbeat_interval) return;
  if (moment.true_time - transfer.overdue_true <= world_.heartbeat_interval) return;
  verdict_.Report("F16", "a transfer without end",
                  absl::StrFormat("member %x, leader of term %d, hands its leadership to member %x for more than an election "
                                  "timeout of its clock",
                                  seen.member.value, seen.term.value, transfer.target.value),
                  moment);
}

}  // namespace detcd::checker
