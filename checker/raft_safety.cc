#include "checker/raft_safety.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "core/base/check.h"
#include "core/base/digest.h"

namespace detcd::checker {
namespace {

uint64_t Extend(uint64_t chain, const EntryMark& entry) {
  return MixWord(MixWord(chain + 0x9E3779B97F4A7C15u) ^ MixWord(entry.term.value * 0xD6E8FEB86659FD93u + 1) ^
                 (entry.digest + 0xA0761D6478BD642Fu));
}

// Whether the message's term is its sender's own: votes asked for and pre-votes granted carry the term asked for, and
// forwarded requests carry none.
bool CarriesOwnTerm(const MessageObservation& message) {
  switch (message.kind) {
    case MessageKind::kPropose:
    case MessageKind::kReadIndex:
    case MessageKind::kPreVote: return false;
    case MessageKind::kPreVoteResponse: return message.reject;
    case MessageKind::kAppend:
    case MessageKind::kAppendResponse:
    case MessageKind::kVote:
    case MessageKind::kVoteResponse:
    case MessageKind::kHeartbeat:
    case MessageKind::kHeartbeatResponse:
    case MessageKind::kReadIndexResponse:
    case MessageKind::kTransferRequest:
    case MessageKind::kTimeoutNow: return true;
  }
  return false;
}

// Whether nothing that this judge looks at differs.
bool Same(const MemberObservation& a, const MemberObservation& b) {
  return a.term == b.term && a.voted_for == b.voted_for && a.role == b.role && a.last_index == b.last_index &&
         a.durable_index == b.durable_index && a.commit_index == b.commit_index &&
         a.applied_index == b.applied_index && a.incarnation == b.incarnation;
}

}  // namespace

RaftSafety::RaftSafety(const WorldObservation& world, Verdict& verdict)
    : verdict_(verdict), bootstrap_index_(world.bootstrap_index) {
  for (MemberId id : world.members) {
    members_.emplace_back();
    members_.back().id = id;
  }
}

RaftSafety::Member& RaftSafety::Of(MemberId id) {
  for (Member& member : members_) {
    if (member.id == id) return member;
  }
  CHECK_MSG(false, "a member that the world does not have");
}

uint64_t RaftSafety::ChainAt(const Member& member, LogIndex index) {
  return index.IsZero() ? 0 : member.log[index.value - 1].chain;
}

void RaftSafety::Broken(const char* property, const char* trouble, const Member& member, std::string what) {
  verdict_.Report(property, trouble, absl::StrFormat("member %x %s", member.id.value, what), now_);
}

void RaftSafety::OnSent(const MessageObservation& message, Moment moment) {
  if (!CarriesOwnTerm(message)) return;
  now_ = moment;
  Member& member = Of(message.from);
  member.sent_term = std::max(member.sent_term, message.term);
  if (message.kind == MessageKind::kAppendResponse && !message.reject) {
    member.unresolved.emplace_back(message.term, message.index);
    return;
  }
  MemberId vote;
  if (message.kind == MessageKind::kVote) vote = message.from;
  if (message.kind == MessageKind::kVoteResponse && !message.reject) vote = message.to;
  if (vote.IsZero()) return;
  auto [given, fresh] = member.votes.emplace(message.term, vote);
  if (!fresh && given->second != vote) {
    Broken("F2", "two votes in a term", member,
           absl::StrFormat("voted for %x and for %x in term %d", given->second.value, vote.value, message.term.value));
  }
}

void RaftSafety::OnMember(const MemberObservation& seen, Moment moment) {
  Member& member = Of(seen.member);
  if (member.seen && !seen.started && seen.changed.empty() && member.unresolved.empty() && Same(member.last, seen)) {
    return;
  }
  now_ = moment;
  if (!member.seen || seen.started || seen.incarnation != member.last.incarnation) {
    JudgeRecovery(member, seen);
  } else {
    JudgeProgress(member, seen);
    TakeLog(member, seen);
  }
  LogIndex committed_before = member.seen && !seen.started ? member.last.commit_index : LogIndex(0);
  bool was_leader = member.seen && !seen.started && member.last.role == Role::kLeader && member.last.term == seen.term;
  member.last = seen;
  member.last.changed = {};
  member.seen = true;
  if (verdict_.broken()) return;
  if (seen.applied_index > seen.commit_index || seen.commit_index > seen.last_index) {
    Broken("F10", "indexes out of order", member,
           absl::StrFormat("has applied %d, committed %d, last %d", seen.applied_index.value, seen.commit_index.value,
                           seen.last_index.value));
    return;
  }
  if (seen.role == Role::kLeader && !was_leader) JudgeLeader(member);
  size_t canon_before = canon_.size();
  JudgeCommit(member, committed_before);
  Resolve(member);
  LogIndex held_before = member.held;
  UpdateHeld(member);
  if (canon_.size() != canon_before) {
    for (Member& other : members_) UpdateHeld(other);
  }
  if (canon_.size() != canon_before || member.held < held_before) JudgeHolders();
}

// The first observation of an incarnation: what its disk kept.
void RaftSafety::JudgeRecovery(Member& member, const MemberObservation& seen) {
  member.unresolved.clear();
  member.log.clear();
  TakeLog(member, seen);
  if (seen.term < member.sent_term) {
    return Broken("F3", "a term forgotten", member,
                  absl::StrFormat("recovered term %d after sending a message of term %d", seen.term.value,
                                  member.sent_term.value));
  }
  auto vote = member.votes.find(seen.term);
  if (vote != member.votes.end() && vote->second != seen.voted_for) {
    return Broken("F2", "a vote forgotten", member,
                  absl::StrFormat("recovered vote %x in term %d after it had voted for %x", seen.voted_for.value,
                                  seen.term.value, vote->second.value));
  }
  auto last = LogIndex(member.log.size());
  bool complete = last >= member.kept && ChainAt(member, member.kept) == member.kept_chain;
  LogIndex lost = member.kept;
  // A later overwriting from a lower index takes the first new entry of an earlier one away as well.
  auto replaced_from = LogIndex(last.value + 1);
  for (const Overwritten& old : member.overwritten) {
    if (last >= old.first && ChainAt(member, old.first) != old.first_chain) {
      replaced_from = std::min(replaced_from, old.first);
    }
  }
  for (const Overwritten& old : member.overwritten) {
    bool has_old = last >= old.last && ChainAt(member, old.last) == old.last_chain;
    bool has_new = replaced_from <= last && replaced_from <= old.first;
    if (has_old || has_new) continue;
    complete = false;
    lost = old.last;
  }
  if (!complete) {
    return Broken("F19", "a durable entry forgotten", member,
                  absl::StrFormat("recovered a log up to %d without the entries up to %d, which were durable "
                                  "(acknowledged up to %d)",
                                  last.value, lost.value, member.acknowledged.value));
  }
  // From here on the recovered log is what its disk has; what was overwritten there cannot come back.
  std::erase_if(member.overwritten, [&](const Overwritten& old) {
    return last < old.last || ChainAt(member, old.last) != old.last_chain;
  });
}

void RaftSafety::JudgeProgress(const Member& member, const MemberObservation& seen) {
  const MemberObservation& before = member.last;
  if (seen.term < before.term) {
    Broken("F3", "a falling term", member,
           absl::StrFormat("fell from term %d to %d", before.term.value, seen.term.value));
  }
  if (seen.term == before.term && !before.voted_for.IsZero() && seen.voted_for != before.voted_for) {
    Broken("F2", "a changed vote", member,
           absl::StrFormat("changed its vote of term %d from %x to %x", seen.term.value, before.voted_for.value,
                           seen.voted_for.value));
  }
  if (seen.commit_index < before.commit_index || seen.applied_index < before.applied_index) {
    Broken("F10", "a falling index", member,
           absl::StrFormat("went back from commit %d, applied %d to commit %d, applied %d", before.commit_index.value,
                           before.applied_index.value, seen.commit_index.value, seen.applied_index.value));
  }
}

// Brings our copy of the log up to date and checks each changed entry against every other log (F5).
void RaftSafety::TakeLog(Member& member, const MemberObservation& seen) {
  LogIndex first = seen.changed_from;
  if (seen.changed.empty()) first = seen.last_index + 1;
  CHECK(!first.IsZero() && first.value <= member.log.size() + 1);
  CHECK(seen.changed.size() == seen.last_index.value + 1 - first.value);
  // Entries shown again unchanged are not an overwriting.
  size_t skip = 0;
  uint64_t chain = ChainAt(member, first - 1);
  while (skip < seen.changed.size() && first.value <= member.log.size()) {
    uint64_t next = Extend(chain, seen.changed[skip]);
    if (member.log[first.value - 1].chain != next) break;
    chain = next;
    ++first;
    ++skip;
  }
  if (first.value <= member.log.size()) Overwrite(member, seen, first);
  member.log.resize(first.value - 1);
  for (const EntryMark& entry : seen.changed.subspan(skip)) {
    Term before = member.log.empty() ? Term(0) : member.log.back().term;
    chain = Extend(chain, entry);
    member.log.push_back(Cell{entry.term, chain});
    auto [known, fresh] = prefixes_.emplace(std::pair(member.log.size(), entry.term.value), chain);
    if (!fresh && known->second != chain) {
      Broken("F5", "two logs with one index and term", member,
             absl::StrFormat("has an entry %d of term %d that differs, itself or before it, from another log's",
                             member.log.size(), entry.term.value));
    }
    if (entry.term < before || entry.term > seen.term) {
      Broken("F5", "terms of a log out of order", member,
             absl::StrFormat("has entry %d of term %d after an entry of term %d in its term %d", member.log.size(),
                             entry.term.value, before.value, seen.term.value));
    }
  }
}

// The log is about to lose the entries from `first` on.
void RaftSafety::Overwrite(Member& member, const MemberObservation& seen, LogIndex first) {
  const MemberObservation& before = member.last;
  if (before.role == Role::kLeader && seen.role == Role::kLeader && before.term == seen.term) {
    Broken("F4", "a leader changed its log", member,
           absl::StrFormat("as leader of term %d dropped its entry %d", seen.term.value, first.value));
  }
  if (first <= before.commit_index) {
    Broken("F7", "a committed entry overwritten", member,
           absl::StrFormat("dropped entry %d, committed up to %d", first.value, before.commit_index.value));
  }
  if (first <= member.acknowledged) {
    if (seen.term == member.acknowledged_in) {
      Broken("F19", "an acknowledged entry dropped in its term", member,
             absl::StrFormat("dropped entry %d, acknowledged up to %d in the same term %d", first.value,
                             member.acknowledged.value, seen.term.value));
    }
    member.acknowledged = first - 1;
  }
  if (first > member.kept) return;
  member.overwritten.push_back(Overwritten{
      .first = first, .last = member.kept, .first_chain = ChainAt(member, first), .last_chain = member.kept_chain});
  member.kept = first - 1;
  member.kept_chain = ChainAt(member, first - 1);
}

void RaftSafety::JudgeLeader(const Member& member) {
  auto [known, fresh] = leaders_.emplace(member.last.term, member.id);
  if (!fresh && known->second != member.id) {
    Broken("F1", "two leaders in a term", member,
           absl::StrFormat("leads term %d, as member %x does or did", member.last.term.value, known->second.value));
  }
  JudgeHasCommitted(member);
}

void RaftSafety::JudgeHasCommitted(const Member& leader) {
  size_t count = canon_.size();
  while (count > 0 && canon_[count - 1].committed_in >= leader.last.term) --count;
  if (count == 0) return;
  LogIndex index(count);
  if (leader.log.size() >= count && ChainAt(leader, index) == canon_[count - 1].chain) return;
  Broken("F6", "a leader without a committed entry", leader,
         absl::StrFormat("leads term %d without entry %d, committed in term %d (its log ends at %d)",
                         leader.last.term.value, count, canon_[count - 1].committed_in.value, leader.log.size()));
}

void RaftSafety::JudgeCommit(Member& member, LogIndex before) {
  const MemberObservation& seen = member.last;
  LogIndex commit = seen.commit_index;
  if (!commit.IsZero()) {
    // One comparison covers all indexes up to it, and a log that changed below its commit index too.
    LogIndex common = std::min(commit, committed());
    if (!common.IsZero() && ChainAt(member, common) != canon_[common.value - 1].chain) {
      Broken("F7", "two commits at an index", member,
             absl::StrFormat("holds entries up to %d to be committed that differ from those of others", common.value));
      return;
    }
  }
  if (seen.role == Role::kLeader && commit > before) {
    Term term = member.log[commit.value - 1].term;
    // An index committed while it was a follower is not its own doing: then others held it committed before.
    if (commit > committed()) {
      size_t holders = 0;
      for (const Member& other : members_) {
        LogIndex durable = other.last.durable_index;
        holders += other.seen && durable >= commit && other.log.size() >= commit.value &&
                   ChainAt(other, commit) == ChainAt(member, commit);
      }
      if (term != seen.term) {
        Broken("F8", "a commit of a former term", member,
               absl::StrFormat("as leader of term %d committed up to entry %d of term %d", seen.term.value,
                               commit.value, term.value));
      } else if (holders < members_.size() / 2 + 1) {
        Broken("F8", "a commit without a durable quorum", member,
               absl::StrFormat("as leader of term %d committed entry %d, durable on %d of %d members", seen.term.value,
                               commit.value, holders, members_.size()));
      }
    }
  }
  if (commit <= committed()) return;
  while (committed() < commit) {
    canon_.push_back(Committed{ChainAt(member, committed() + 1), seen.term});
  }
  for (const Member& other : members_) {
    if (other.seen && other.last.role == Role::kLeader && other.last.term > seen.term) JudgeHasCommitted(other);
  }
}

// Acknowledgements are judged against the log after the event that sent them; what is durable is to be kept.
void RaftSafety::Resolve(Member& member) {
  for (auto [term, index] : member.unresolved) {
    if (term != member.last.term) continue;  // held back in a queue into a later term: it binds nobody
    if (index > member.last.last_index || index > member.last.durable_index) {
      Broken("F19", "an acknowledgement before the disk", member,
             absl::StrFormat("acknowledged entry %d in term %d with only %d durable", index.value, term.value,
                             member.last.durable_index.value));
      break;
    }
    if (term > member.acknowledged_in) member.acknowledged = LogIndex(0);
    member.acknowledged_in = term;
    member.acknowledged = std::max(member.acknowledged, index);
  }
  member.unresolved.clear();
  LogIndex durable = std::min(member.last.durable_index, member.last.last_index);
  if (durable <= member.kept) return;
  member.kept = durable;
  member.kept_chain = ChainAt(member, durable);
  std::erase_if(member.overwritten, [&](const Overwritten& old) { return old.first <= durable; });
}

void RaftSafety::UpdateHeld(Member& member) {
  if (!member.seen) return;
  LogIndex limit = std::min({member.last.durable_index, LogIndex(member.log.size()), committed()});
  if (member.held > limit) member.held = limit;
  while (!member.held.IsZero() && ChainAt(member, member.held) != canon_[member.held.value - 1].chain) {
    member.held = member.held - 1;
  }
  while (member.held < limit && ChainAt(member, member.held + 1) == canon_[member.held.value].chain) ++member.held;
}

size_t RaftSafety::HoldersOf(LogIndex index) const {
  size_t holders = 0;
  for (const Member& member : members_) {
    // Who was never seen will begin with the bootstrap entries.
    const LogIndex held = member.seen ? member.held : bootstrap_index_;
    holders += held >= index;
  }
  return holders;
}

// A quorum is any majority: every one has a holder when those without are too few to be one.
void RaftSafety::JudgeHolders() {
  if (canon_.empty()) return;
  size_t without = members_.size() - HoldersOf(committed());
  if (without < members_.size() / 2 + 1) return;
  verdict_.Report("F9", "a committed entry on too few disks",
                  absl::StrFormat("entry %d is committed, and %d of %d members do not have it on disk",
                                  committed().value, without, members_.size()),
                  now_);
}

}  // namespace detcd::checker
