#include "sim/member_watcher.h"

#include <algorithm>
#include <string>

#include "core/base/check.h"
#include "core/base/digest.h"
#include "core/raft/lease_reads.h"

namespace detcd::sim {

using checker::EntryMark;
using checker::MessageKind;
using checker::MessageObservation;

EntryMark MarkOf(const raft::Entry& entry) {
  return {.term = entry.term, .digest = DigestBytes(entry.data.view(), static_cast<uint64_t>(entry.type))};
}

void MemberWatcher::Started(uint32_t incarnation, bool pre_vote) {
  seen_.incarnation = incarnation;
  seen_.pre_vote = pre_vote;
  seen_.role = checker::Role::kFollower;  // nothing of what it was then is left, whatever it recovers
  seen_.leader = MemberId();
  if (recovered_) {
    last_before_ = LogIndex(shadow_.size());
    mark_before_ = shadow_.empty() ? EntryMark() : shadow_.back();
  }
  recovered_ = false;
  shadow_.clear();
}

void MemberWatcher::Observe(const member::Member& member, Instant local, bool behind, checker::Moment moment,
                            checker::Panel& panel) {
  const raft::RaftState* raft = member.raft();
  if (raft == nullptr) return;
  seen_.started = !recovered_;
  recovered_ = true;
  const auto role = static_cast<checker::Role>(raft->role.index());
  const MemberId leader = raft->LeaderId();
  changed_ = seen_.term != raft->term || seen_.voted_for != raft->voted_for ||
             (!seen_.started && (seen_.role != role || seen_.leader != leader));
  seen_.local_time = local;
  seen_.behind = behind;
  seen_.term = raft->term;
  seen_.voted_for = raft->voted_for;
  static_assert(std::variant_size_v<decltype(raft->role)> == 4);  // in the order of checker::Role
  seen_.role = role;
  seen_.leader = leader;
  if (role == checker::Role::kLeader || seen_.lease_end || !seen_.transfer_target.IsZero()) ShowLeading(*raft);
  seen_.durable_index = raft->log.durable_index();
  seen_.commit_index = raft->commit_index;
  seen_.applied_index = raft->applied_index;
  seen_.revision = member.store().revision();
  seen_.history_digest = member.store().history_digest();
  TakeLog(raft->log);
  kept_ = std::min(seen_.durable_index, seen_.last_index);
  kept_term_ = kept_.IsZero() ? Term() : shadow_[kept_.value - 1].term;
  panel.OnMember(seen_, moment);
  if (raft->commit_index.value > committed_.marks.size()) ShowCommitted(raft->log, moment, panel);
}

void MemberWatcher::ShowLeading(const raft::RaftState& raft) {
  seen_.lease_end.reset();
  seen_.transfer_target = MemberId();
  const auto* leader = std::get_if<raft::Leader>(&raft.role);
  if (leader == nullptr) return;
  if (raft.options.lease_reads) seen_.lease_end = raft::LeaseEnd(raft, *leader);
  if (!leader->transfer) return;
  seen_.transfer_target = leader->transfer->target;
  seen_.transfer_give_up = leader->transfer->give_up;
}

// Equal terms at one index are equal logs up to there (log matching, which F5 judges on what is shown here).
void MemberWatcher::TakeLog(const raft::RaftLog& log) {
  const LogIndex last = log.last_index();
  seen_.last_index = last;
  seen_.changed = {};
  seen_.changed_from = last + 1;
  if (!seen_.started && last.value == shadow_.size() && (shadow_.empty() || shadow_.back().term == log.last_term())) return;
  uint64_t same = std::min<uint64_t>(last.value, shadow_.size());
  while (same > 0 && shadow_[same - 1].term != *log.TermAt(LogIndex(same))) --same;
  changed_ |= same < shadow_.size();
  shadow_.resize(same);
  const LogIndex first_in_memory = log.first_in_memory();
  for (LogIndex index(same + 1); index <= last; ++index) {
    if (index >= first_in_memory) {
      shadow_.push_back(MarkOf(log.At(index)));
    } else {
      // Not in memory, so applied: its content is judged by its effects, its term here.
      CHECK(index.value <= committed_.marks.size());
      shadow_.push_back({.term = *log.TermAt(index), .digest = committed_.marks[index.value - 1].digest});
    }
  }
  if (seen_.started && !last_before_.IsZero()) {
    changed_ |= last < last_before_ || shadow_[last_before_.value - 1] != mark_before_;
  }
  seen_.changed_from = LogIndex(same + 1);
  seen_.changed = std::span<const EntryMark>(shadow_).subspan(same);
}

void MemberWatcher::ShowCommitted(const raft::RaftLog& log, checker::Moment moment, checker::Panel& panel) {
  for (LogIndex index(committed_.marks.size() + 1); index <= seen_.commit_index; ++index) {
    CHECK_MSG(index >= log.first_in_memory() && index <= log.last_index(), "a committed entry that nobody was seen to commit");
    const raft::Entry& entry = log.At(index);
    committed_.marks.push_back(shadow_[index.value - 1]);
    panel.OnCommitted({.index = index,
                       .term = entry.term,
                       .is_conf_change = entry.type != raft::EntryType::kNormal,
                       .data = entry.data},
                      moment);
  }
}

std::vector<checker::FinalKey> FinalKeys(const member::Member& member) {
  std::vector<checker::FinalKey> keys;
  using namespace std::string_view_literals;
  const mvcc::RangeResult all = member.store().Range({.key = "\0"sv, .end = "\0"sv}, {});
  for (const mvcc::KeyValue& kv : all.kvs) {
    keys.push_back({.key = std::string(kv.key.view()),
                    .value = std::string(kv.value.view()),
                    .create_revision = kv.create_revision,
                    .mod_revision = kv.mod_revision,
                    .version = kv.version});
  }
  return keys;
}

namespace {

struct BodyObserver {
  MessageObservation& seen;

  void operator()(const raft::Proposal& m) {
    seen.kind = MessageKind::kPropose;
    seen.entry_count = m.entries.size();
  }
  void operator()(const raft::Append& m) {
    seen.kind = MessageKind::kAppend;
    seen.index = m.prev_index;
    seen.log_term = m.prev_term;
    seen.entry_count = m.entries.size();
    seen.commit = m.commit;
  }
  void operator()(const raft::AppendResponse& m) {
    seen.kind = MessageKind::kAppendResponse;
    seen.index = m.index;
    seen.reject = m.reject;
  }
  void operator()(const raft::VoteRequest& m) {
    seen.kind = m.pre_vote ? MessageKind::kPreVote : MessageKind::kVote;
    seen.index = m.last_index;
    seen.log_term = m.last_term;
    seen.transfer = m.transfer;
  }
  void operator()(const raft::VoteResponse& m) {
    seen.kind = m.pre_vote ? MessageKind::kPreVoteResponse : MessageKind::kVoteResponse;
    seen.reject = m.reject;
  }
  void operator()(const raft::Heartbeat& m) {
    seen.kind = MessageKind::kHeartbeat;
    seen.commit = m.commit;
    seen.read = m.read.value;
    seen.round = m.round.value;
  }
  void operator()(const raft::HeartbeatResponse& m) {
    seen.kind = MessageKind::kHeartbeatResponse;
    seen.read = m.read.value;
    seen.round = m.round.value;
  }
  void operator()(const raft::ReadIndexRequest& m) {
    seen.kind = MessageKind::kReadIndex;
    seen.read = m.read.value;
  }
  void operator()(const raft::ReadIndexResponse& m) {
    seen.kind = MessageKind::kReadIndexResponse;
    seen.index = m.index;
    seen.read = m.read.value;
  }
  void operator()(const raft::TransferRequest&) { seen.kind = MessageKind::kTransferRequest; }
  void operator()(const raft::TimeoutNow&) { seen.kind = MessageKind::kTimeoutNow; }
};

}  // namespace

MessageObservation Observe(const raft::Message& message) {
  MessageObservation seen = {.from = message.from, .to = message.to, .term = message.term};
  std::visit(BodyObserver{seen}, message.body);
  return seen;
}

}  // namespace detcd::sim
