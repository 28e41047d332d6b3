#include "checker/pre_vote.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "core/base/check.h"

namespace detcd::checker {
namespace {

constexpr size_t kAskedMax = 64;  // requests remembered a member; older ones are answered or lost by then

bool IsGrant(const MessageObservation& message) {
  return !message.reject &&
         (message.kind == MessageKind::kPreVoteResponse || message.kind == MessageKind::kVoteResponse);
}

// Whether the message's term makes its receiver move to it (reference/peer.md 20).
bool RaisesTerm(const MessageObservation& message) {
  if (message.kind == MessageKind::kPreVote) return false;
  return message.kind != MessageKind::kPreVoteResponse || message.reject;
}

}  // namespace

PreVote::PreVote(const WorldObservation& world, Verdict& verdict) : world_(world), verdict_(verdict) {
  for (MemberId id : world.members) {
    members_.emplace_back();
    members_.back().id = id;
  }
}

PreVote::Member& PreVote::Of(MemberId id) {
  for (Member& member : members_) {
    if (member.id == id) return member;
  }
  CHECK_MSG(false, "a member that the world does not have");
}

void PreVote::OnSent(const MessageObservation& message, Moment moment) {
  if (message.kind == MessageKind::kReadIndex) {
    reads_.emplace(std::pair(message.from, message.read), committed_);
  } else if (message.kind == MessageKind::kReadIndexResponse) {
    auto asked = reads_.find(std::pair(message.to, message.read));
    if (asked == reads_.end()) {
      verdict_.Report("F15", "a read index that nobody asked for",
                      absl::StrFormat("member %x answered read %d, which member %x did not ask", message.from.value,
                                      message.read, message.to.value),
                      moment);
    } else if (message.index < asked->second) {
      verdict_.Report("F15", "a stale read index",
                      absl::StrFormat("member %x in term %d answered read %d of member %x with index %d though %d was "
                                      "committed before the question",
                                      message.from.value, message.term.value, message.read, message.to.value,
                                      message.index.value, asked->second.value),
                      moment);
    }
    const Member& sender = Of(message.from);
    if (sender.seen && !sender.led.contains(message.term)) {
      verdict_.Report("F15", "a read index of no leader",
                      absl::StrFormat("member %x answered read %d in term %d, which it never led", message.from.value,
                                      message.read, message.term.value),
                      moment);
    }
  } else if (IsGrant(message)) {
    Of(message.from).granted.push_back(message);
  } else {
    JudgeTransfer(message, moment);
  }
}

void PreVote::JudgeTransfer(const MessageObservation& message, Moment moment) {
  const Member& sender = Of(message.from);
  if (!sender.seen) return;
  if (message.kind == MessageKind::kTimeoutNow && !sender.led.contains(message.term)) {
    verdict_.Report("F12", "a transfer by no leader",
                    absl::StrFormat("member %x told member %x to campaign against term %d, which it never led",
                                    message.from.value, message.to.value, message.term.value),
                    moment);
  }
  const bool asks = message.kind == MessageKind::kVote || message.kind == MessageKind::kPreVote;
  if (asks && message.transfer && sender.told_term + 1 != message.term) {
    verdict_.Report("F12", "a transfer that no leader began",
                    absl::StrFormat("member %x asked member %x for its vote for term %d as the target of a transfer, which "
                                    "the leader of the term before did not tell it to do",
                                    message.from.value, message.to.value, message.term.value),
                    moment);
  }
}

void PreVote::OnDelivered(const MessageObservation& message, Moment) { Of(message.to).arrived.push_back(message); }

void PreVote::OnMember(const MemberObservation& seen, Moment moment) {
  committed_ = std::max(committed_, seen.commit_index);
  Member& member = Of(seen.member);
  if (!member.seen || seen.started || member.incarnation != seen.incarnation) {
    MemberId id = member.id;
    std::set<Term> led = std::move(member.led);
    member = Member{.id = id, .seen = true, .incarnation = seen.incarnation, .term = seen.term};
    member.led = std::move(led);
    member.heard_term = seen.term;
    member.local_time = seen.local_time;
  }
  member.term_in_event = member.term;
  member.leader_in_event = member.leader;
  member.told_in_event = Term();
  for (const MessageObservation& message : member.arrived) TakeArrived(member, seen, message);
  for (const MessageObservation& grant : member.granted) JudgeGrant(member, grant, moment);
  member.arrived.clear();
  member.granted.clear();
  if (seen.term != member.term) JudgeTerm(member, seen, moment);
  JudgeLeader(member, seen, moment);
  member.term = seen.term;
  member.role = seen.role;
  member.leader = seen.leader;
  member.local_time = seen.local_time;
}

void PreVote::TakeArrived(Member& member, const MemberObservation& seen, const MessageObservation& message) {
  if (RaisesTerm(message)) member.heard_term = std::max(member.heard_term, message.term);
  switch (message.kind) {
    case MessageKind::kAppend:
    case MessageKind::kHeartbeat:
      if (message.term >= member.term_in_event) {
        member.leader_contact = seen.local_time;
        member.leader_in_event = message.from;
      }
      break;
    case MessageKind::kPreVoteResponse:
      if (!message.reject) member.grants[message.term].insert(message.from);
      break;
    case MessageKind::kPreVote:
    case MessageKind::kVote: {
      Duration silence = seen.local_time - member.leader_contact;
      bool led = !member.leader_in_event.IsZero() && member.leader_in_event != member.id;
      if (member.asked.size() == kAskedMax) member.asked.erase(member.asked.begin());
      member.asked.push_back(Asked{.candidate = message.from,
                                   .term = message.term,
                                   .pre_vote = message.kind == MessageKind::kPreVote,
                                   .leader_live = led && !message.transfer &&
                                                  silence < world_.election_timeout - world_.heartbeat_interval,
                                   .raises_term = message.term > member.term_in_event,
                                   .silence = silence});
      break;
    }
    case MessageKind::kTimeoutNow:
      member.told_term = std::max(member.told_term, message.term);
      member.told_in_event = std::max(member.told_in_event, message.term);
      break;
    case MessageKind::kPropose:
    case MessageKind::kAppendResponse:
    case MessageKind::kVoteResponse:
    case MessageKind::kHeartbeatResponse:
    case MessageKind::kReadIndex:
    case MessageKind::kReadIndexResponse:
    case MessageKind::kTransferRequest: break;
  }
  if (member.role == Role::kLeader && message.term == member.term) member.contact[message.from] = seen.local_time;
  // A higher term makes it a follower that knows no leader but the one that sent an append or a heartbeat. What the
  // member's term did not follow was ignored: a vote asked for while a leader lived.
  if (RaisesTerm(message) && message.term > member.term_in_event && message.term <= seen.term) {
    const bool ignored = message.kind == MessageKind::kVote && member.asked.back().leader_live;
    if (ignored) return;
    member.term_in_event = message.term;
    const bool leads = message.kind == MessageKind::kAppend || message.kind == MessageKind::kHeartbeat;
    if (!leads) member.leader_in_event = MemberId();
  }
}

// A grant needs one request that could be granted; it may leave long after the request came.
void PreVote::JudgeGrant(const Member& member, const MessageObservation& grant, Moment moment) {
  if (!world_.check_quorum) return;
  bool pre_vote = grant.kind == MessageKind::kPreVoteResponse;
  const Asked* refused = nullptr;
  for (const Asked& asked : member.asked) {
    if (asked.candidate != grant.to || asked.term != grant.term || asked.pre_vote != pre_vote) continue;
    if (!asked.leader_live || !asked.raises_term) return;
    refused = &asked;
  }
  if (refused == nullptr) {
    if (member.asked.size() == kAskedMax) return;
    verdict_.Report("F12", "a vote that nobody asked for",
                    absl::StrFormat("member %x granted member %x a %s for term %d that it did not ask for",
                                    member.id.value, grant.to.value, pre_vote ? "pre-vote" : "vote", grant.term.value),
                    moment);
    return;
  }
  verdict_.Report("F12", "a vote against a live leader",
                  absl::StrFormat("member %x granted member %x a %s for term %d, %d ms after it heard from its leader",
                                  member.id.value, grant.to.value, pre_vote ? "pre-vote" : "vote", grant.term.value,
                                  refused->silence.millis()),
                  moment);
}

void PreVote::JudgeTerm(Member& member, const MemberObservation& seen, Moment moment) {
  bool campaigned = seen.role == Role::kCandidate || (seen.role == Role::kLeader && seen.term > member.heard_term);
  const bool told = !member.told_in_event.IsZero() && member.told_in_event + 1 == seen.term;
  if (campaigned && seen.pre_vote && !told) {
    std::set<MemberId> granted = member.grants[seen.term];
    granted.insert(member.id);
    if (granted.size() < quorum()) {
      verdict_.Report("F12", "a candidate without pre-votes",
                      absl::StrFormat("member %x moved to term %d as candidate with %d of the %d pre-votes it needs",
                                      member.id.value, seen.term.value, granted.size(), quorum()),
                      moment);
    }
  } else if (!campaigned && seen.term > member.heard_term) {
    verdict_.Report("F12", "a term from nowhere",
                    absl::StrFormat("member %x moved from term %d to %d, which no message brought", member.id.value,
                                    member.term.value, seen.term.value),
                    moment);
  }
  member.grants.erase(member.grants.begin(), member.grants.upper_bound(seen.term));
}

void PreVote::JudgeLeader(Member& member, const MemberObservation& seen, Moment moment) {
  if (seen.role != Role::kLeader) return;
  if (member.role != Role::kLeader || member.term != seen.term) {
    member.led.insert(seen.term);
    member.overdue = false;
    member.contact.clear();
    for (MemberId id : world_.members) member.contact[id] = seen.local_time;
  }
  if (!world_.check_quorum) return;
  Instant limit = seen.local_time - world_.election_timeout * 2;
  size_t in_contact = 0;
  for (const auto& [id, at] : member.contact) in_contact += id == member.id || at >= limit;
  if (in_contact >= quorum()) {
    member.overdue = false;
    return;
  }
  if (!member.overdue) {
    member.overdue = true;
    member.overdue_local = seen.local_time;
    member.overdue_true = moment.true_time;
    return;
  }
  if (seen.behind) return;  // its timer may be among what waits for a slow processor
  if (seen.local_time - member.overdue_local <= world_.heartbeat_interval) return;
  if (moment.true_time - member.overdue_true <= world_.heartbeat_interval) return;
  verdict_.Report("F13", "a leader without a quorum",
                  absl::StrFormat("member %x still leads term %d, in contact with %d of the %d members of a quorum for "
                                  "more than two election timeouts of its clock",
                                  member.id.value, seen.term.value, in_contact, quorum()),
                  moment);
}

}  // namespace detcd::checker
