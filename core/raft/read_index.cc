#include "core/raft/read_index.h"

#include <algorithm>
#include <utility>

#include "core/base/limits.h"
#include "core/base/probe.h"
#include "core/raft/lease_reads.h"
#include "core/raft/output.h"
#include "core/raft/replication.h"
#include "core/raft/send.h"
#include "core/raft/state.h"

namespace detcd::raft {
namespace {

constexpr std::string_view kPlace = "raft/read_index";

void Answer(RaftState& raft, const ReadQueue::Read& read, Output& output) {
  if (read.asker == raft.options.id) {
    output.reads.push_back({.read = read.read, .index = read.index});
    return;
  }
  Send(raft, read.asker, raft.term, ReadIndexResponse{.read = read.read, .index = read.index}, Dependency::kTermAndVote,
       output);
}

// A leader's part of a read asked by `asker`, whose question was there at `now`. False: there is no room.
bool AskAsLeader(RaftState& raft, Leader& leader, MemberId asker, ReadId read, Instant now, Output& output) {
  if (leader.reads.Contains(read)) {
    PROBE("raft.read_asked_twice");
    return true;
  }
  if (leader.reads.size() >= kReadRoundsWaitingMax) return false;
  if (raft.commit_index < leader.first_index_of_term) {
    // Entries of former terms may be committed without our knowing yet (thesis §6.4, step 1). This holds for a single
    // voter too: the commit index it finds on its disk may be old.
    PROBE("raft.read_waits_for_commit_in_term");
    leader.reads.Add({.read = read, .asker = asker, .index = LogIndex()});
    return true;
  }
  const ReadQueue::Read started{.read = read, .asker = asker, .index = raft.commit_index};
  if (raft.voters.size() == 1) {
    Answer(raft, started, output);
    return true;
  }
  if (HoldsLease(raft, leader, now)) {
    PROBE("raft.read_by_lease");
    Answer(raft, started, output);
    return true;
  }
  leader.reads.Add(started);
  BroadcastHeartbeats(raft, output);
  return true;
}

}  // namespace

bool ReadQueue::Contains(ReadId read) const { return RoundOf(read).has_value(); }

void ReadQueue::StartWaiting(LogIndex index) {
  for (Read& read : reads_) {
    if (read.index.IsZero()) read.index = index;
  }
}

std::optional<uint64_t> ReadQueue::RoundOf(ReadId read) const {
  // Answers name recent rounds: search from the newest.
  for (size_t i = reads_.size(); i > 0; --i) {
    if (reads_[i - 1].read == read) return answered_ + i;
  }
  return std::nullopt;
}

std::optional<ReadQueue::Read> ReadQueue::PopUpTo(uint64_t round) {
  if (reads_.empty() || answered_ + 1 > round) return std::nullopt;
  Read read = reads_.front();
  reads_.pop_front();
  ++answered_;
  return read;
}

void StartRead(RaftState& raft, ReadId read, Instant now, Output& output) {
  if (auto* leader = std::get_if<Leader>(&raft.role)) {
    if (!AskAsLeader(raft, *leader, raft.options.id, read, now, output)) output.reads_dropped.push_back(read);
    return;
  }
  auto* follower = std::get_if<Follower>(&raft.role);
  if (follower == nullptr || follower->leader.IsZero()) {
    Emit(*raft.trace, LogLevel::kInfo, kPlace, "no leader; dropping index reading msg",
         {TraceField::Number("term", raft.term.value)});
    output.reads_dropped.push_back(read);
    return;
  }
  if (follower->reads_forwarded.size() >= kReadRoundsWaitingMax) {
    // The oldest has waited longest for an answer that was most likely lost.
    output.reads_dropped.push_back(follower->reads_forwarded.front());
    follower->reads_forwarded.erase(follower->reads_forwarded.begin());
  }
  follower->reads_forwarded.push_back(read);
  Send(raft, follower->leader, Term(), ReadIndexRequest{.read = read}, Dependency::kTermAndVote, output);
}

void StartWaitingReads(RaftState& raft, Output& output) {
  auto& leader = std::get<Leader>(raft.role);
  if (leader.reads.empty()) return;
  leader.reads.StartWaiting(raft.commit_index);
  if (raft.voters.size() > 1) {
    BroadcastHeartbeats(raft, output);
    return;
  }
  while (auto read = leader.reads.PopUpTo(leader.reads.newest_round())) Answer(raft, *read, output);
}

void DropReads(RaftState& raft, Output& output) {
  if (auto* leader = std::get_if<Leader>(&raft.role)) {
    for (const ReadQueue::Read& read : leader->reads.reads()) {
      // Other members hear of the change themselves.
      if (read.asker == raft.options.id) output.reads_dropped.push_back(read.read);
    }
    leader->reads = ReadQueue();
  } else if (auto* follower = std::get_if<Follower>(&raft.role)) {
    output.reads_dropped.insert(output.reads_dropped.end(), follower->reads_forwarded.begin(),
                                follower->reads_forwarded.end());
    follower->reads_forwarded.clear();
  }
}

void OnReadIndexRequest(RaftState& raft, MemberId from, const ReadIndexRequest& request, Instant now, Output& output) {
  auto* leader = std::get_if<Leader>(&raft.role);
  if (leader == nullptr) {
    PROBE("raft.read_request_at_non_leader");
    return;
  }
  if (!AskAsLeader(raft, *leader, from, request.read, now, output)) PROBE("raft.read_queue_full");
}

void OnReadIndexResponse(RaftState& raft, MemberId from, const ReadIndexResponse& response, Output& output) {
  auto* follower = std::get_if<Follower>(&raft.role);
  if (follower == nullptr || follower->leader != from) return;
  auto& waiting = follower->reads_forwarded;
  auto asked = std::find(waiting.begin(), waiting.end(), response.read);
  if (asked == waiting.end()) {
    PROBE("raft.read_answer_not_awaited");
    return;
  }
  waiting.erase(asked);
  output.reads.push_back({.read = response.read, .index = response.index});
}

void OnReadConfirmed(RaftState& raft, MemberId from, ReadId read, Output& output) {
  auto& leader = std::get<Leader>(raft.role);
  const std::optional<uint64_t> round = leader.reads.RoundOf(read);
  if (!round.has_value()) return;
  Progress& confirmer = leader.progress.at(from);
  if (*round <= confirmer.read_round_acked) return;
  confirmer.read_round_acked = *round;
  const uint64_t confirmed = raft.voters.ReachedByMajority([&](MemberId id) {
    return id == raft.options.id ? leader.reads.newest_round() : leader.progress.at(id).read_round_acked;
  });
  while (auto answered = leader.reads.PopUpTo(confirmed)) Answer(raft, *answered, output);
}

}  // namespace detcd::raft
