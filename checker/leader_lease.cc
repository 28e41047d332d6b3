#include "checker/leader_lease.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "core/base/check.h"

namespace detcd::checker {
namespace {

// Rounds whose acknowledgement may still leave: a later one has promised at least as long.
constexpr size_t kRoundsMax = 64;
constexpr uint64_t kTermsKept = 64;
constexpr std::string_view kAgainstAPromise = "against a promise";

}  // namespace

LeaderLease::LeaderLease(const WorldObservation& world, Verdict& verdict) : world_(world), verdict_(verdict) {
  for (MemberId id : world.members) {
    members_.emplace_back();
    members_.back().id = id;
  }
}

LeaderLease::Member& LeaderLease::Of(MemberId id) {
  for (Member& member : members_) {
    if (member.id == id) return member;
  }
  CHECK_MSG(false, "a member that the world does not have");
}

void LeaderLease::OnDelivered(const MessageObservation& message, Moment) {
  if (world_.clocks == nullptr) return;
  if (message.kind == MessageKind::kHeartbeat && message.round != 0) {
    Member& voter = Of(message.to);
    voter.arrived.emplace(message.round, world_.clocks->Local(voter.id));
    if (voter.arrived.size() > kRoundsMax) voter.arrived.erase(voter.arrived.begin());
  } else if (message.kind == MessageKind::kVote && message.transfer) {
    Of(message.to).transfers.emplace(message.from, message.term);
  }
}

void LeaderLease::OnSent(const MessageObservation& message, Moment moment) {
  if (world_.clocks == nullptr) return;
  Member& sender = Of(message.from);
  if (message.kind == MessageKind::kHeartbeatResponse && message.round != 0) {
    const auto arrived = sender.arrived.find(message.round);
    if (arrived == sender.arrived.end()) return;  // long ago: what it promised is over
    Instant& until = sender.promised_until[message.term];
    until = std::max(until, arrived->second + world_.election_timeout);
  } else if (message.kind == MessageKind::kVoteResponse && !message.reject) {
    if (sender.transfers.contains({message.to, message.term})) return;
    JudgeVote(sender, message.term, "a vote against a promise", moment);
  } else if (message.kind == MessageKind::kVote && !message.transfer) {
    JudgeVote(sender, message.term, "a candidacy against a promise", moment);
  }
}

void LeaderLease::JudgeVote(const Member& voter, Term term, std::string_view trouble, Moment moment) {
  const Instant local = world_.clocks->Local(voter.id);
  for (const auto& [promised_to, until] : voter.promised_until) {
    if (promised_to >= term || local >= until) continue;
    verdict_.Report("F14", trouble,
                    absl::StrFormat("member %x voted in term %d, though it had promised the leader of term %d to vote for "
                                    "nobody for another %d us of its clock",
                                    voter.id.value, term.value, promised_to.value, (until - local).nanos / 1'000),
                    moment);
  }
}

void LeaderLease::JudgeElection(MemberId leader, Term term, Moment moment) {
  for (const Member& holder : members_) {
    if (!holder.lease_end || holder.term >= term || world_.clocks->Local(holder.id) >= *holder.lease_end) continue;
    verdict_.Report("F14", "a leader elected during another's lease",
                    absl::StrFormat("member %x leads term %d while member %x holds the lease of term %d for another %d us "
                                    "of its clock",
                                    leader.value, term.value, holder.id.value, holder.term.value,
                                    (*holder.lease_end - world_.clocks->Local(holder.id)).nanos / 1'000),
                    moment);
  }
}

bool LeaderLease::IsOfExclusion(const Violation& violation) {
  return violation.property == "F14" && !violation.signature.ends_with(kAgainstAPromise);
}

void LeaderLease::OnMember(const MemberObservation& seen, Moment moment) {
  if (world_.clocks == nullptr) return;
  Member& member = Of(seen.member);
  if (seen.term != member.term) {
    // A vote may leave long after it was cast, in a later term; a promise that is over binds nothing.
    std::erase_if(member.transfers, [&](const auto& asked) { return asked.second + kTermsKept < seen.term; });
    std::erase_if(member.promised_until, [&](const auto& promise) { return promise.second <= seen.local_time; });
  }
  const bool elected = seen.role == Role::kLeader && (member.role != Role::kLeader || member.term != seen.term);
  member.term = seen.term;
  member.role = seen.role;
  member.lease_end = seen.role == Role::kLeader ? seen.lease_end : std::nullopt;
  if (elected) {
    if (seen.term > led_term_) {
      led_term_ = seen.term;
      led_by_ = seen.member;
    }
    JudgeElection(seen.member, seen.term, moment);
  }
  if (member.lease_end && seen.local_time < *member.lease_end && seen.term < led_term_) {
    verdict_.Report("F14", "a lease in the time of a later leader",
                    absl::StrFormat("member %x holds the lease of term %d for another %d us of its clock, though member %x "
                                    "leads or has led term %d",
                                    seen.member.value, seen.term.value, (*member.lease_end - seen.local_time).nanos / 1'000,
                                    led_by_.value, led_term_.value),
                    moment);
  }
}

}  // namespace detcd::checker
