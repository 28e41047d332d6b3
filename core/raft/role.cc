#include "core/raft/role.h"

#include <utility>

#include "core/base/check.h"
#include "core/base/probe.h"
#include "core/raft/read_index.h"

namespace detcd::raft {
namespace {

constexpr std::string_view kPlace = "raft/role";

enum RoleKind : size_t { kFollower = 0, kPreCandidate = 1, kCandidate = 2, kLeader = 3 };

// kAllowed[from][to].
constexpr bool kAllowed[4][4] = {
    {true, true, true, false},   // from follower
    {true, true, true, false},   // from pre-candidate
    {true, true, true, true},    // from candidate
    {true, false, false, false}, // from leader
};

template <class NewRole>
NewRole& Enter(RaftState& raft, RoleKind to, NewRole role, Instant now, Output& output) {
  CHECK(kAllowed[raft.role.index()][to]);
  DropReads(raft, output);
  NewRole& entered = raft.role.emplace<NewRole>(std::move(role));
  CHECK(raft.role.index() == to);
  DrawElectionTimeout(raft, now);
  return entered;
}

void TraceRole(const RaftState& raft, std::string_view message) {
  Emit(*raft.trace, LogLevel::kInfo, kPlace, message,
       {TraceField::Id("member", raft.options.id.value), TraceField::Number("term", raft.term.value),
        TraceField::Id("leader", raft.LeaderId().value)});
}

}  // namespace

MemberId RaftState::LeaderId() const {
  if (const auto* follower = std::get_if<Follower>(&role)) return follower->leader;
  return std::holds_alternative<Leader>(role) ? options.id : MemberId();
}

MemberId RaftState::TransferTarget() const {
  const auto* leader = std::get_if<Leader>(&role);
  return leader != nullptr && leader->transfer ? leader->transfer->target : MemberId();
}

void DrawElectionTimeout(RaftState& raft, Instant now) {
  const Duration tick = raft.options.heartbeat_interval;
  const Duration base = raft.options.election_timeout;
  const uint64_t ticks = static_cast<uint64_t>(base.nanos / tick.nanos);
  raft.election_timeout_drawn = base + tick * static_cast<int64_t>(raft.random.Below(ticks));
  RestartElectionTimer(raft, now);
}

void RestartElectionTimer(RaftState& raft, Instant now) { raft.election_due = now + raft.election_timeout_drawn; }

void LearnLeader(RaftState& raft, MemberId leader) {
  auto& follower = std::get<Follower>(raft.role);
  CHECK(follower.leader.IsZero());
  follower.leader = leader;
  TraceRole(raft, "elected leader");
}

void BecomeFollower(RaftState& raft, Term term, MemberId leader, Instant now, Output& output) {
  CHECK(term >= raft.term);
  if (term > raft.term) {
    raft.term = term;
    raft.voted_for = MemberId();
  }
  if (std::holds_alternative<Leader>(raft.role)) PROBE("raft.leader_stepped_down");
  Enter(raft, kFollower, Follower{.leader = leader, .leader_contact = now, .reads_forwarded = {}}, now, output);
  TraceRole(raft, "became follower");
}

void BecomePreCandidate(RaftState& raft, Instant now, Output& output) {
  Enter(raft, kPreCandidate, PreCandidate{}, now, output);
  TraceRole(raft, "became pre-candidate");
}

void BecomeCandidate(RaftState& raft, Instant now, Output& output) {
  Enter(raft, kCandidate, Candidate{}, now, output);
  ++raft.term;
  raft.voted_for = raft.options.id;
  TraceRole(raft, "became candidate");
}

void BecomeLeader(RaftState& raft, Instant now, Output& output) {
  CHECK(raft.voted_for == raft.options.id);
  Leader& leader = Enter(raft, kLeader, Leader{}, now, output);
  leader.first_index_of_term = raft.log.last_index() + 1;
  leader.heartbeat_due = now + raft.options.heartbeat_interval;
  leader.quorum_check_due = now + raft.options.election_timeout;
  for (MemberId id : raft.voters.ids()) {
    Progress& progress = leader.progress[id];
    progress.next = leader.first_index_of_term;
    // Our own entries count once they are on our disk, and not before.
    if (id == raft.options.id) progress.match = raft.log.durable_index();
  }
  TraceRole(raft, "became leader");
}

}  // namespace detcd::raft
