#include "checker/convergence.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace detcd::checker {
namespace {

std::string RoleText(const MemberObservation& seen) {
  switch (seen.role) {
    case Role::kFollower:
      return seen.leader.IsZero() ? std::string("follows nobody") : absl::StrFormat("follows %x", seen.leader.value);
    case Role::kPreCandidate: return "asks for pre-votes";
    case Role::kCandidate: return "asks for votes";
    case Role::kLeader: return "leads";
  }
  return {};
}

}  // namespace

Duration Bound(const WorldObservation& world, Duration longest_delay, Duration longest_sync) {
  return world.election_timeout * 30 + (longest_delay + longest_sync) * 4;
}

Convergence::Convergence(const WorldObservation& world, Verdict& verdict) : verdict_(verdict) {
  for (MemberId id : world.members) {
    members_.emplace_back();
    members_.back().last.member = id;
  }
}

void Convergence::OnHealed(Moment moment, Duration bound) {
  healed_ = moment.true_time;
  bound_ = bound;
  converged_ = false;
  for (Member& member : members_) member.put = member.read = false;
}

void Convergence::OnLost(MemberId id) {
  std::erase_if(members_, [&](const Member& member) { return member.last.member == id; });
}

void Convergence::OnProbe(MemberId id, ProbeKind kind, bool ok, Moment moment) {
  if (!healed_.has_value() || converged_) return;
  Judge(moment);
  converged_ = true;
  for (Member& member : members_) {
    if (member.last.member == id && ok) (kind == ProbeKind::kPut ? member.put : member.read) = true;
    converged_ = converged_ && member.put && member.read;
  }
}

void Convergence::OnMember(const MemberObservation& seen, Moment moment) {
  for (Member& member : members_) {
    if (member.last.member != seen.member) continue;
    member.last.term = seen.term;
    member.last.role = seen.role;
    member.last.leader = seen.leader;
    member.last.commit_index = seen.commit_index;
    member.last.applied_index = seen.applied_index;
    member.last.last_index = seen.last_index;
  }
  if (healed_.has_value() && !converged_) Judge(moment);
}

void Convergence::Finish(Moment moment) {
  if (healed_.has_value() && !converged_) {
    bound_ = Duration{-1};
    Judge(moment);
  }
}

bool Convergence::converged() const { return converged_; }

void Convergence::Judge(Moment moment) {
  if (moment.true_time - *healed_ <= bound_) return;
  std::string sentence =
      absl::StrFormat("%d ms after healing some members do not serve", (moment.true_time - *healed_).millis());
  const char* trouble = "no leader";
  for (const Member& member : members_) {
    const MemberObservation& last = member.last;
    if (last.role == Role::kLeader) trouble = "a leader, but no service";
    sentence += absl::StrFormat("; member %x %s in term %d, commit %d, applied %d, last %d", last.member.value,
                                RoleText(last), last.term.value, last.commit_index.value, last.applied_index.value,
                                last.last_index.value);
    if (!member.put) sentence += ", waits for a put";
    if (!member.read) sentence += ", waits for a read";
  }
  verdict_.Report("convergence", trouble, std::move(sentence), moment);
}

}  // namespace detcd::checker
