#include "core/raft/replication.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/probe.h"
#include "core/raft/lease_reads.h"
#include "core/raft/read_index.h"
#include "core/raft/role.h"
#include "core/raft/send.h"
#include "core/raft/transfer.h"

namespace detcd::raft {
namespace {

constexpr std::string_view kPlace = "raft/replication";

uint64_t DataBytes(const std::vector<Entry>& entries) {
  uint64_t bytes = 0;
  for (const Entry& entry : entries) bytes += entry.data.size();
  return bytes;
}

// Sends `entries`, which start at the follower's next.
void SendEntries(RaftState& raft, MemberId to, Progress& progress, std::vector<Entry> entries, Output& output) {
  const LogIndex prev = progress.next - 1;
  const uint64_t count = entries.size();
  const uint64_t bytes = DataBytes(entries);
  Append append{.prev_index = prev,
                .prev_term = *raft.log.TermAt(prev),
                .entries = std::move(entries),
                .commit = raft.commit_index};
  // In parallel with our own sync: our own copy does not count until it is durable (thesis §10.2.1).
  Send(raft, to, raft.term, std::move(append), Dependency::kTermAndVote, output);
  progress.OnSent(count, bytes, raft.commit_index);
}

enum class IfEmpty : uint8_t { kSkip, kSend };

// Sends what the follower needs next and its window allows. True: an append left, and there may be more to send.
bool TrySendAppend(RaftState& raft, MemberId to, Progress& progress, IfEmpty if_empty, Output& output) {
  if (progress.mode == Progress::Mode::kProbe && progress.probe_in_flight) return false;
  std::vector<Entry> entries;
  if (progress.next <= raft.log.last_index() &&
      progress.MayCarryEntries(raft.options.appends_in_flight_max, raft.options.append_bytes_in_flight_max)) {
    const LogIndex first_in_memory = raft.log.first_in_memory();
    if (progress.next < first_in_memory) {
      if (progress.fetching) return false;
      PROBE("raft.fetch_older_entries");
      progress.fetching = true;
      output.fetches.push_back({.follower = to,
                                .first = progress.next,
                                .last = first_in_memory - 1,
                                .bytes_max = static_cast<size_t>(raft.options.append_bytes_max)});
      return false;
    }
    entries = raft.log.Slice(progress.next, raft.log.last_index(), static_cast<size_t>(raft.options.append_bytes_max));
  }
  if (entries.empty() && if_empty == IfEmpty::kSkip) return false;
  SendEntries(raft, to, progress, std::move(entries), output);
  return true;
}

// Sends all that the window allows; an empty append where the commit index is news to the follower.
void SendAppends(RaftState& raft, MemberId to, Progress& progress, Output& output) {
  const bool commit_is_news = std::min(raft.commit_index, progress.next - 1) > progress.commit_sent;
  bool sent = TrySendAppend(raft, to, progress, commit_is_news ? IfEmpty::kSend : IfEmpty::kSkip, output);
  while (sent) sent = TrySendAppend(raft, to, progress, IfEmpty::kSkip, output);
}

void BroadcastAppends(RaftState& raft, Leader& leader, Output& output) {
  for (auto& [id, progress] : leader.progress) {
    if (id != raft.options.id) SendAppends(raft, id, progress, output);
  }
}

// Raft §5.3, §5.4.2: an entry is committed once it is durable on a majority and of the leader's own term; entries of
// former terms only through one of ours, because counting copies of those is not safe (figure 8).
bool AdvanceCommit(RaftState& raft, Leader& leader) {
  const LogIndex reached(
      raft.voters.ReachedByMajority([&](MemberId id) { return leader.progress.at(id).match.value; }));
  if (reached <= raft.commit_index) return false;
  if (raft.log.TermAt(reached) != raft.term) {
    PROBE("raft.commit_waits_for_own_term");
    return false;
  }
  for (LogIndex i = std::max(raft.commit_index + 1, leader.first_index_of_term); i <= reached; ++i) {
    leader.uncommitted_bytes -= raft.log.At(i).data.size();
  }
  raft.commit_index = reached;
  return true;
}

// After match rose anywhere.
void CommitAndTell(RaftState& raft, Leader& leader, Output& output) {
  const bool first_of_term = raft.commit_index < leader.first_index_of_term;
  if (!AdvanceCommit(raft, leader)) return;
  if (first_of_term) StartWaitingReads(raft, output);
  BroadcastAppends(raft, leader, output);
}

// Whether the entries of an append follow each other and their prev, in terms that its sender may have.
bool IsWellFormed(const Append& append, Term term) {
  LogIndex index = append.prev_index;
  Term previous = append.prev_term;
  for (const Entry& entry : append.entries) {
    if (entry.index != index + 1 || entry.index.IsZero() || entry.term < previous || entry.term.IsZero()) return false;
    ++index;
    previous = entry.term;
  }
  return previous <= term;
}

void CommitUpTo(RaftState& raft, LogIndex index) { raft.commit_index = std::max(raft.commit_index, index); }

}  // namespace

void TakeLead(RaftState& raft, Instant now, Output& output) {
  BecomeLeader(raft, now, output);
  std::vector<Entry> empty(1);
  // An empty entry is always let through.
  CHECK(AppendAsLeader(raft, std::move(empty), output));
}

bool AppendAsLeader(RaftState& raft, std::vector<Entry> entries, Output& output) {
  auto& leader = std::get<Leader>(raft.role);
  const uint64_t bytes = DataBytes(entries);
  // The first proposal passes whatever its size, and empty ones always: both could else wait for ever.
  if (bytes > 0 && leader.uncommitted_bytes > 0 &&
      leader.uncommitted_bytes + bytes > raft.options.uncommitted_bytes_max) {
    PROBE("raft.proposal_over_uncommitted_limit");
    return false;
  }
  leader.uncommitted_bytes += bytes;
  LogIndex index = raft.log.last_index();
  for (Entry& entry : entries) {
    entry.term = raft.term;
    entry.index = ++index;
  }
  raft.log.Append(std::move(entries));
  BroadcastAppends(raft, leader, output);
  return true;
}

void SendNextAppend(RaftState& raft, MemberId to, Output& output) {
  Progress& progress = std::get<Leader>(raft.role).progress.at(to);
  progress.probe_in_flight = false;
  TrySendAppend(raft, to, progress, IfEmpty::kSend, output);
}

void BroadcastHeartbeats(RaftState& raft, Output& output) {
  auto& leader = std::get<Leader>(raft.role);
  const ReadId read = leader.reads.newest();
  for (const auto& [id, progress] : leader.progress) {
    if (id == raft.options.id) continue;
    // Never above what is known to match: the follower would commit entries that are not ours.
    Send(raft, id, raft.term,
         Heartbeat{.commit = std::min(progress.match, raft.commit_index), .read = read, .round = leader.lease_round},
         Dependency::kTermAndVote, output);
  }
}

void OnOwnDurable(RaftState& raft, Output& output) {
  auto* leader = std::get_if<Leader>(&raft.role);
  if (leader == nullptr) return;
  auto own = leader->progress.find(raft.options.id);
  if (own == leader->progress.end() || raft.log.durable_index() <= own->second.match) return;
  own->second.match = raft.log.durable_index();
  own->second.next = std::max(own->second.next, own->second.match + 1);
  CommitAndTell(raft, *leader, output);
}

void OnFetched(RaftState& raft, MemberId follower, std::vector<Entry> entries, Output& output) {
  auto* leader = std::get_if<Leader>(&raft.role);
  if (leader == nullptr) return;
  auto found = leader->progress.find(follower);
  if (found == leader->progress.end()) return;
  Progress& progress = found->second;
  progress.fetching = false;
  if (entries.empty()) return;  // Asked again when the follower is heard.
  // Lost while we waited: acknowledgements move `next`, and a fetch of a former leadership may end only now. The terms
  // tell whether these are entries of our log (log matching).
  const bool wanted = entries.front().index == progress.next &&
                      std::all_of(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return raft.log.TermAt(entry.index) == entry.term; }) &&
                      progress.MayCarryEntries(raft.options.appends_in_flight_max, raft.options.append_bytes_in_flight_max);
  if (wanted) {
    SendEntries(raft, follower, progress, std::move(entries), output);
  } else {
    PROBE("raft.fetched_entries_not_wanted");
  }
  SendAppends(raft, follower, progress, output);
}

void OnAppendResponse(RaftState& raft, MemberId from, const AppendResponse& response, Output& output) {
  auto* leader = std::get_if<Leader>(&raft.role);
  if (leader == nullptr) return;
  Progress& progress = leader->progress.at(from);
  if (response.reject) {
    // The follower named its newest entry that might match; where our log has only newer terms there, all of those are
    // skipped at once (Raft §5.3, the optimisation of the last but one paragraph, from both sides).
    LogIndex newest_shared = response.hint_index;
    if (!response.hint_term.IsZero()) newest_shared = raft.log.NewestAtMost(response.hint_index, response.hint_term);
    if (!progress.OnRefused(response.index, newest_shared)) return;
    Emit(*raft.trace, LogLevel::kDebug, kPlace, "decreased progress",
         {TraceField::Id("follower", from.value), TraceField::Number("rejected", response.index.value),
          TraceField::Number("next", progress.next.value)});
    TrySendAppend(raft, from, progress, IfEmpty::kSend, output);
    return;
  }
  if (response.index > raft.log.last_index()) {
    PROBE("raft.append_response_beyond_our_log");
    Emit(*raft.trace, LogLevel::kWarn, kPlace, "ignored an acknowledgement of entries that we do not have",
         {TraceField::Id("from", from.value), TraceField::Number("index", response.index.value)});
    return;
  }
  if (!progress.OnAccepted(response.index)) return;
  CommitAndTell(raft, *leader, output);
  SendAppends(raft, from, progress, output);
  if (raft.TransferTarget() == from) TellTargetIfCaughtUp(raft, *leader, output);
}

void OnHeartbeatResponse(RaftState& raft, MemberId from, const HeartbeatResponse& response, Output& output) {
  auto* leader = std::get_if<Leader>(&raft.role);
  if (leader == nullptr) return;
  Progress& progress = leader->progress.at(from);
  if (progress.mode == Progress::Mode::kProbe && progress.probe_in_flight) {
    // The probe is lost, or still on a slow way. Asked again without its entries, which leave once the follower has
    // answered: sent with each heartbeat, as etcd does, copies of a large append fill a way that carries less than one
    // of them in a heartbeat interval, and all that follows waits behind them.
    PROBE("raft.probe_asked_again");
    progress.probe_in_flight = false;
    SendEntries(raft, from, progress, {}, output);
  } else if (progress.match < raft.log.last_index() || progress.mode == Progress::Mode::kProbe) {
    // An append, empty if need be: where earlier ones were lost, its refusal tells.
    TrySendAppend(raft, from, progress, IfEmpty::kSend, output);
  }
  OnRoundAcknowledged(raft, progress, response.round);
  if (!response.read.IsZero()) OnReadConfirmed(raft, from, response.read, output);
}

void OnAppend(RaftState& raft, MemberId from, Append& append, Output& output) {
  const auto answer = [&](const AppendResponse& response) {
    // It claims that entries are durable here; entries below our commit index may be on others' disks only.
    Send(raft, from, raft.term, response, Dependency::kLog, output);
  };
  if (!IsWellFormed(append, raft.term)) {
    PROBE("raft.append_malformed");
    Emit(*raft.trace, LogLevel::kWarn, kPlace, "ignored a malformed append",
         {TraceField::Id("from", from.value), TraceField::Number("index", append.prev_index.value)});
    return;
  }
  if (append.prev_index < raft.commit_index) {
    PROBE("raft.append_below_commit");
    answer({.index = raft.commit_index});
    return;
  }
  if (raft.log.TermAt(append.prev_index) == append.prev_term) {
    const LogIndex last = raft.log.AppendFromLeader(append.prev_index, std::move(append.entries), raft.commit_index);
    CommitUpTo(raft, std::min(append.commit, last));
    answer({.index = last});
    return;
  }
  PROBE("raft.append_refused");
  const LogIndex hint = raft.log.NewestAtMost(append.prev_index, append.prev_term);
  Emit(*raft.trace, LogLevel::kDebug, kPlace, "rejected MsgApp",
       {TraceField::Id("from", from.value), TraceField::Number("logterm", append.prev_term.value),
        TraceField::Number("index", append.prev_index.value), TraceField::Number("hint", hint.value)});
  answer({.index = append.prev_index, .reject = true, .hint_index = hint, .hint_term = *raft.log.TermAt(hint)});
}

void OnHeartbeat(RaftState& raft, MemberId from, const Heartbeat& heartbeat, Instant now, Output& output) {
  if (heartbeat.commit <= raft.log.last_index()) {
    CommitUpTo(raft, heartbeat.commit);
  } else {
    // The leader was told that we have entries which we do not: our disk lost them. What we have may not be theirs.
    PROBE("raft.heartbeat_commit_beyond_log");
    Emit(*raft.trace, LogLevel::kError, kPlace, "the leader's commit index is beyond our log: entries are lost",
         {TraceField::Number("commit", heartbeat.commit.value),
          TraceField::Number("last", raft.log.last_index().value)});
  }
  Send(raft, from, raft.term,
       HeartbeatResponse{.read = heartbeat.read, .round = PromiseFor(raft, heartbeat.round, now)},
       Dependency::kTermAndVote, output);
}

}  // namespace detcd::raft
