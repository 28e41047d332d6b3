#include "checker/read_rounds.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/check.h"
#include "core/base/limits.h"

namespace detcd::checker {
namespace {

// Reads that a leader certainly has room for; the rest is for those of its own clients, which nobody sees.
constexpr size_t kAsksMax = kReadRoundsWaitingMax / 2;

bool Matters(MessageKind kind) {
  return kind == MessageKind::kHeartbeat || kind == MessageKind::kHeartbeatResponse ||
         kind == MessageKind::kReadIndex || kind == MessageKind::kReadIndexResponse;
}

}  // namespace

ReadRounds::ReadRounds(const WorldObservation& world, Verdict& verdict) : world_(world), verdict_(verdict) {
  for (MemberId id : world.members) {
    members_.emplace_back();
    members_.back().id = id;
  }
}

ReadRounds::Member& ReadRounds::Of(MemberId id) {
  for (Member& member : members_) {
    if (member.id == id) return member;
  }
  CHECK_MSG(false, "a member that the world does not have");
}

ReadRounds::Event& ReadRounds::EventOf(Member& member, Moment moment) {
  return member.last.number != 0 && member.last.moment.event == moment.event ? member.last : member.now;
}

void ReadRounds::OnSent(const MessageObservation& message, Moment moment) {
  if (Matters(message.kind)) EventOf(Of(message.from), moment).left.push_back(message);
}

void ReadRounds::OnDelivered(const MessageObservation& message, Moment moment) {
  if (Matters(message.kind)) EventOf(Of(message.to), moment).arrived.push_back(message);
}

void ReadRounds::OnMember(const MemberObservation& seen, Moment moment) {
  Member& member = Of(seen.member);
  if (seen.started) {
    member = Member{.id = seen.member, .state = {.term = seen.term, .voted_for = seen.voted_for}};
    return;
  }
  if (member.last.number != 0) Judge(member, member.last);
  member.now.number = member.last.number + 1;
  std::swap(member.last, member.now);
  member.now.arrived.clear();
  member.now.left.clear();
  Event& event = member.last;
  event.moment = moment;
  event.after = {.term = seen.term,
                 .voted_for = seen.voted_for,
                 .role = seen.role,
                 .leader = seen.leader,
                 .commit_index = seen.commit_index};
  const auto first = std::ranges::find(seen.changed, seen.term, &EntryMark::term);
  const bool none = first == seen.changed.end();
  const auto place = static_cast<uint64_t>(first - seen.changed.begin());
  event.first_of_term = none ? LogIndex() : seen.changed_from + place;
}

void ReadRounds::Judge(Member& member, const Event& event) {
  JudgeFollower(member, event);
  const bool leads_on = event.after.role == Role::kLeader && member.state.role == Role::kLeader &&
                        event.after.term == member.state.term;
  if (leads_on) {
    JudgeLeader(member, event);
  } else {
    member.asks.clear();
    member.rounds.clear();
    member.rounds_begun = 0;
    member.first_of_term = event.first_of_term;
  }
  member.state = event.after;
}

// --- Confirmed ---

void ReadRounds::JudgeFollower(Member& member, const Event& event) {
  const State& before = member.state;
  const State& after = event.after;
  const bool steady = after.term == before.term && after.voted_for == before.voted_for && after.role == before.role &&
                      after.leader == before.leader;
  if (!steady) member.heard = member.prompt = false;
  if (after.term != before.term) member.owed.clear();
  for (const MessageObservation& message : event.arrived) {
    if (message.kind != MessageKind::kHeartbeat || message.term != after.term) continue;
    member.owed.push_back(event.number);
    member.heard |= steady;
  }
  for (const MessageObservation& message : event.left) {
    const bool answers = message.kind == MessageKind::kHeartbeatResponse && message.term == after.term;
    if (answers && !member.owed.empty()) member.owed.pop_front();
  }
  if (member.prompt && !member.owed.empty() && event.number >= member.owed.front() + world_.turn_events_max) {
    verdict_.Report("F20", "a heartbeat without an answer",
                    absl::StrFormat("member %x did not answer a heartbeat of member %x, its leader in term %d, in the "
                                    "turn in which it arrived",
                                    member.id.value, after.leader.value, after.term.value),
                    event.moment);
  }
  member.prompt = member.prompt || (member.heard && member.owed.empty());
}

// --- Asked, Answered ---

void ReadRounds::JudgeLeader(Member& member, const Event& event) {
  if (event.arrived.empty() && event.left.empty() && member.asks.empty()) return;
  TakeConfirmations(member, event);
  TakeAsks(member, event);
  TakeSent(member, event);
  JudgeAsks(member, event);
}

// Only rounds of earlier events can be confirmed in this one.
void ReadRounds::TakeConfirmations(Member& member, const Event& event) {
  for (const MessageObservation& message : event.arrived) {
    if (message.kind != MessageKind::kHeartbeatResponse || message.term != event.after.term) continue;
    const auto named = std::ranges::find(member.rounds, message.read, &Round::read);
    if (named == member.rounds.end()) continue;
    for (auto round = member.rounds.begin(); round <= named; ++round) round->confirmed.insert(message.from);
  }
  while (!member.rounds.empty() && member.rounds.front().confirmed.size() >= world_.members.size() / 2) {
    for (Ask& ask : member.asks) {
      if (ask.round == member.rounds.front().number) ask.due = DueOf(event);
    }
    member.rounds.pop_front();
  }
}

void ReadRounds::TakeAsks(Member& member, const Event& event) {
  for (const MessageObservation& message : event.arrived) {
    if (message.kind != MessageKind::kReadIndex || member.asks.size() + member.rounds.size() >= kAsksMax) continue;
    const bool known = std::ranges::any_of(
        member.asks, [&](const Ask& ask) { return ask.asker == message.from && ask.read == message.read; });
    if (!known) member.asks.push_back({.asker = message.from, .read = message.read});
  }
  if (member.first_of_term.IsZero() || event.after.commit_index < member.first_of_term) return;
  for (Ask& ask : member.asks) {
    if (ask.round == 0 && ask.due == 0) ask.due = DueOf(event);
  }
}

// The newest round that begins in an event is behind all that was asked until then. One that is older may have begun
// before the question.
void ReadRounds::TakeSent(Member& member, const Event& event) {
  const uint64_t begun_before = member.rounds_begun;
  for (const MessageObservation& message : event.left) {
    if (message.term != event.after.term) continue;
    if (message.kind == MessageKind::kReadIndexResponse) {
      std::erase_if(member.asks,
                    [&](const Ask& ask) { return ask.asker == message.to && ask.read == message.read; });
    } else if (message.kind == MessageKind::kHeartbeat && message.read != 0 &&
               std::ranges::find(member.rounds, message.read, &Round::read) == member.rounds.end()) {
      member.rounds.push_back({.number = ++member.rounds_begun, .read = message.read, .confirmed = {}});
    }
  }
  const bool begun = member.rounds_begun > begun_before && WereAllAsked(member, event, member.rounds.back().read);
  for (Ask& ask : member.asks) {
    if (ask.round != 0 || (!begun && !WereAllAsked(member, event, ask.read))) continue;
    ask.round = member.rounds_begun;
    ask.due = 0;
  }
}

bool ReadRounds::WereAllAsked(const Member& member, const Event& event, uint64_t read) const {
  std::set<MemberId> asked = {member.id};
  for (const MessageObservation& message : event.left) {
    if (message.kind == MessageKind::kHeartbeat && message.read == read) asked.insert(message.to);
  }
  return asked.size() == world_.members.size();
}

void ReadRounds::JudgeAsks(Member& member, const Event& event) {
  for (const Ask& ask : member.asks) {
    if (ask.due == 0 || event.number < ask.due) continue;
    const std::string who =
        absl::StrFormat("member %x, leader of term %d, committed up to %d of which its term has those from %d,",
                        member.id.value, event.after.term.value, event.after.commit_index.value,
                        member.first_of_term.value);
    if (ask.round != 0) {
      verdict_.Report("F20", "a confirmed read without an answer",
                      absl::StrFormat("%s did not answer read %d of member %x in the turn in which a quorum had "
                                      "confirmed that it leads",
                                      who, ask.read, ask.asker.value),
                      event.moment);
    } else {
      verdict_.Report("F20", "a read that nobody was asked to confirm",
                      absl::StrFormat("%s neither answered read %d of member %x in its turn nor asked all others "
                                      "whether it still leads",
                                      who, ask.read, ask.asker.value),
                      event.moment);
    }
  }
}

}  // namespace detcd::checker
