#include "core/raft/invariants.h"

#include "core/base/check.h"

namespace detcd::raft {
namespace {

bool LogIsConsistent(const RaftState& raft) {
  const RaftLog& log = raft.log;
  Term previous;
  uint64_t bytes = 0;
  for (LogIndex i = log.first_in_memory(); i <= log.last_index(); ++i) {
    const Entry& entry = log.At(i);
    if (entry.index != i || entry.term < previous || log.TermAt(i) != entry.term) return false;
    previous = entry.term;
    bytes += entry.data.size();
  }
  return bytes == log.bytes_in_memory();
}

void CheckRole(const RaftState&, const Follower& follower) {
  // Only a leader can be asked.
  if (!follower.reads_forwarded.empty()) CHECK(!follower.leader.IsZero());
}

void CheckRole(const RaftState& raft, const PreCandidate&) { CHECK(raft.voters.Contains(raft.options.id)); }

void CheckRole(const RaftState& raft, const Candidate&) { CHECK(raft.voted_for == raft.options.id); }

void CheckRole(const RaftState& raft, const Leader& leader) {
  const LogIndex last = raft.log.last_index();
  CHECK(raft.voted_for == raft.options.id);
  // Its term has an entry from the start, and it is the newest term there is.
  CHECK(raft.log.last_term() == raft.term);
  CHECK(raft.log.TermAt(leader.first_index_of_term) == raft.term);
  CHECK(leader.progress.size() == raft.voters.size());
  if (leader.transfer) {
    CHECK(leader.transfer->target != raft.options.id);
    CHECK(raft.voters.Contains(leader.transfer->target));
    CHECK(leader.transfer_tried);
  }
  if (!raft.options.lease_reads) CHECK(leader.lease_round.IsZero());
  auto voter = raft.voters.ids().begin();  // as many, and both ascend
  for (const auto& [id, progress] : leader.progress) {
    CHECK(id == *voter++);
    CHECK(progress.match < progress.next);
    CHECK(progress.match <= last);
    CHECK(progress.next <= last + 1);
    if (progress.mode == Progress::Mode::kProbe) CHECK(progress.in_flight.empty());
    // F19: our own entries count only when they are durable.
    if (id == raft.options.id) CHECK(progress.match <= raft.log.durable_index());
  }
}

}  // namespace

Marks MarksOf(const RaftState& raft) {
  return {.term = raft.term,
          .voted_for = raft.voted_for,
          .commit_index = raft.commit_index,
          .promised_until = raft.promised_until,
          .last_index = raft.log.last_index(),
          .leads = std::holds_alternative<Leader>(raft.role)};
}

void CheckInvariants(const RaftState& raft) {
  const RaftLog& log = raft.log;
  const LogIndex first_in_memory = log.first_in_memory();
  const LogIndex last = log.last_index();
  CHECK(raft.applied_index <= raft.commit_index);
  CHECK(raft.commit_index <= last);
  CHECK(log.durable_index() <= log.handed_index());
  CHECK(log.handed_index() <= last);
  // What is not applied, or not durable, is in memory.
  CHECK(first_in_memory <= raft.applied_index + 1);
  CHECK(first_in_memory <= log.durable_index() + 1);
  CHECK(log.last_term() <= raft.term);
  if (!raft.options.lease_reads) CHECK(!raft.promised_until.has_value());
  CHECK(raft.collected.term <= raft.term);
  CHECK(raft.collected.commit <= raft.commit_index);
  CHECK(raft.election_timeout_drawn >= raft.options.election_timeout);
  CHECK(raft.election_timeout_drawn <= raft.options.election_timeout * 2 - raft.options.heartbeat_interval);
  std::visit([&](const auto& role) { CheckRole(raft, role); }, raft.role);
  VERIFY(LogIsConsistent(raft));
}

void CheckStep(const RaftState& raft, const Marks& before) {
  CHECK(raft.term >= before.term);
  CHECK(raft.commit_index >= before.commit_index);
  CHECK(raft.promised_until >= before.promised_until);
  if (raft.term == before.term) {
    if (!before.voted_for.IsZero()) CHECK(raft.voted_for == before.voted_for);
    if (before.leads) CHECK(raft.log.last_index() >= before.last_index);
  }
  CheckInvariants(raft);
}

}  // namespace detcd::raft
