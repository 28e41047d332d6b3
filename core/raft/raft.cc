#include "core/raft/raft.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/base/probe.h"
#include "core/raft/election.h"
#include "core/raft/invariants.h"
#include "core/raft/leader_lease.h"
#include "core/raft/lease_reads.h"
#include "core/raft/read_index.h"
#include "core/raft/replication.h"
#include "core/raft/role.h"
#include "core/raft/send.h"
#include "core/raft/transfer.h"

namespace detcd::raft {
namespace {

constexpr std::string_view kPlace = "raft/raft";

void TraceIgnored(const RaftState& raft, const Message& message, std::string_view why) {
  Emit(*raft.trace, LogLevel::kInfo, kPlace, why,
       {TraceField::Text("kind", KindName(message)), TraceField::Id("from", message.from.value),
        TraceField::Number("message_term", message.term.value), TraceField::Number("term", raft.term.value)});
}

bool HasNoTerm(const Message& message) {
  return std::holds_alternative<Proposal>(message.body) || std::holds_alternative<ReadIndexRequest>(message.body);
}

bool IsFromLeader(const Message& message) {
  return std::holds_alternative<Append>(message.body) || std::holds_alternative<Heartbeat>(message.body);
}

bool IsAcceptable(const RaftState& raft, const Message& message) {
  if (message.to != raft.options.id) {
    PROBE("raft.message_for_another");
    TraceIgnored(raft, message, "ignored a message for another member");
    return false;
  }
  if (message.from == raft.options.id || !raft.voters.Contains(message.from)) {
    PROBE("raft.message_from_stranger");
    TraceIgnored(raft, message, "ignored a message from a stranger");
    return false;
  }
  if (message.term.IsZero() && !HasNoTerm(message)) {
    PROBE("raft.message_without_term");
    TraceIgnored(raft, message, "ignored a message without a term");
    return false;
  }
  return true;
}

// Vote messages of a higher term that leave our term alone: a pre-vote only asks, and its grant carries the term that
// we asked for ourselves.
bool KeepsTerm(const Message& message) {
  if (const auto* request = std::get_if<VoteRequest>(&message.body)) return request->pre_vote;
  if (const auto* response = std::get_if<VoteResponse>(&message.body)) return response->pre_vote && !response->reject;
  return false;
}

bool ReconcileHigherTerm(RaftState& raft, const Message& message, Instant now, Output& output) {
  if (const auto* request = std::get_if<VoteRequest>(&message.body)) {
    if (!request->transfer && HearsLeader(raft, now)) {
      PROBE("raft.vote_ignored_leader_live");
      TraceIgnored(raft, message, "ignored a vote request: lease is not expired");
      return false;
    }
    if (!request->transfer && IsBoundByPromise(raft, now)) {
      PROBE("raft.vote_ignored_promise");
      TraceIgnored(raft, message, "ignored a vote request: no vote was promised");
      return false;
    }
  }
  if (KeepsTerm(message)) return true;
  TraceIgnored(raft, message, "received a message with higher term");
  BecomeFollower(raft, message.term, IsFromLeader(message) ? message.from : MemberId(), now, output);
  return true;
}

void AnswerLowerTerm(RaftState& raft, const Message& message, Output& output) {
  TraceIgnored(raft, message, "ignored a message with lower term");
  if (IsFromLeader(message) && (raft.options.check_quorum || raft.options.pre_vote)) {
    // Its sender's term must rise, or a member whose term got ahead (while its votes are ignored, or its pre-votes
    // refused) could never be led again.
    PROBE("raft.append_of_lower_term_answered");
    Send(raft, message.from, raft.term, AppendResponse{}, Dependency::kTermAndVote, output);
    return;
  }
  const auto* request = std::get_if<VoteRequest>(&message.body);
  if (request != nullptr && request->pre_vote) {
    PROBE("raft.pre_vote_of_lower_term_refused");
    const VoteResponse refusal{.pre_vote = true, .reject = true};
    Send(raft, message.from, raft.term, refusal, Dependency::kTermAndVote, output);
  }
}

// Raft §5.1: terms are compared only here. True: the message is to be handled, in our term or as KeepsTerm says.
bool ReconcileTerm(RaftState& raft, const Message& message, Instant now, Output& output) {
  if (HasNoTerm(message) || message.term == raft.term) return true;
  if (message.term > raft.term) return ReconcileHigherTerm(raft, message, now, output);
  AnswerLowerTerm(raft, message, output);
  return false;
}

// A message from the leader of our term: follows it, and starts the election timer over. False: two lead one term.
bool FollowSender(RaftState& raft, const Message& message, Instant now, Output& output) {
  if (auto* follower = std::get_if<Follower>(&raft.role)) {
    if (follower->leader.IsZero()) LearnLeader(raft, message.from);
    if (follower->leader != message.from) {
      PROBE("raft.message_from_second_leader");
      TraceIgnored(raft, message, "ignored a message from a second leader of the term");
      return false;
    }
    follower->leader_contact = now;
    RestartElectionTimer(raft, now);
    return true;
  }
  if (std::holds_alternative<Leader>(raft.role)) {
    PROBE("raft.message_from_second_leader_to_leader");
    TraceIgnored(raft, message, "ignored a message from a second leader of the term");
    return false;
  }
  PROBE("raft.candidate_finds_leader");
  BecomeFollower(raft, raft.term, message.from, now, output);
  return true;
}

// One event on its way through the roles.
struct Dispatch {
  RaftState& raft;
  const Message& message;
  Instant now;
  Output& output;

  void operator()(Proposal& proposal) const {
    // A proposal is not passed on from member to member: its leader has changed, and its proposer will hear of that.
    if (!std::holds_alternative<Leader>(raft.role)) {
      PROBE("raft.forwarded_proposal_dropped");
      TraceIgnored(raft, message, "no leader; dropping proposal");
      return;
    }
    if (!raft.TransferTarget().IsZero()) {
      PROBE("raft.forwarded_proposal_during_transfer");
      TraceIgnored(raft, message, "leadership is being transferred; dropping proposal");
      return;
    }
    const auto is_normal = [](const Entry& entry) { return entry.type == EntryType::kNormal; };
    if (!std::all_of(proposal.entries.begin(), proposal.entries.end(), is_normal)) {
      PROBE("raft.forwarded_conf_change_dropped");
      TraceIgnored(raft, message, "the configuration does not change in this release; dropping proposal");
      return;
    }
    if (!proposal.entries.empty()) AppendAsLeader(raft, std::move(proposal.entries), output);
  }
  void operator()(Append& append) const {
    if (FollowSender(raft, message, now, output)) OnAppend(raft, message.from, append, output);
  }
  void operator()(Heartbeat& heartbeat) const {
    if (FollowSender(raft, message, now, output)) OnHeartbeat(raft, message.from, heartbeat, now, output);
  }
  void operator()(AppendResponse& response) const {
    NoteHeard();
    OnAppendResponse(raft, message.from, response, output);
  }
  void operator()(HeartbeatResponse& response) const {
    NoteHeard();
    OnHeartbeatResponse(raft, message.from, response, output);
  }
  void operator()(VoteRequest& request) const { OnVoteRequest(raft, message, request, now, output); }
  void operator()(VoteResponse& response) const { OnVoteResponse(raft, message, response, now, output); }
  void operator()(ReadIndexRequest& request) const { OnReadIndexRequest(raft, message.from, request, now, output); }
  void operator()(ReadIndexResponse& response) const { OnReadIndexResponse(raft, message.from, response, output); }
  void operator()(TransferRequest&) const {
    if (!std::holds_alternative<Leader>(raft.role)) {
      PROBE("raft.transfer_asked_of_no_leader");
      TraceIgnored(raft, message, "no leader; dropping leader transfer msg");
      return;
    }
    StartTransfer(raft, message.from, now, output);
  }
  void operator()(TimeoutNow&) const { OnTimeoutNow(raft, message.from, now, output); }

  void NoteHeard() const {
    if (auto* leader = std::get_if<Leader>(&raft.role)) leader->progress.at(message.from).heard = now;
  }
};

// When a timer that was due at `due` is due again: on its grid, without a burst after a pause.
Instant NextOnGrid(Instant due, Duration interval, Instant now) {
  const Instant next = due + interval;
  return next > now ? next : now + interval;
}

// Thesis §6.2: a leader that hears from no majority stops leading, so that its clients look elsewhere. Times, not marks
// since the last check: a check that a pause has made late must not count what was heard before the pause.
bool QuorumIsActive(const RaftState& raft, const Leader& leader, Instant now) {
  return raft.voters.HasMajority([&](MemberId id) {
    const std::optional<Instant>& heard = leader.progress.at(id).heard;
    return id == raft.options.id || (heard.has_value() && now - *heard <= raft.options.election_timeout);
  });
}

void OnLeaderTimer(RaftState& raft, Leader& leader, Instant now, Output& output) {
  if (raft.options.check_quorum && now >= leader.quorum_check_due) {
    if (!QuorumIsActive(raft, leader, now)) {
      PROBE("raft.leader_lost_quorum");
      Emit(*raft.trace, LogLevel::kWarn, kPlace, "stepped down to follower since quorum is not active",
           {TraceField::Id("member", raft.options.id.value), TraceField::Number("term", raft.term.value)});
      BecomeFollower(raft, raft.term, MemberId(), now, output);
      return;
    }
    leader.quorum_check_due = NextOnGrid(leader.quorum_check_due, raft.options.election_timeout, now);
  }
  if (leader.transfer && now >= leader.transfer->give_up) EndTransfer(raft, leader, "took too long");
  if (now >= leader.heartbeat_due) {
    if (raft.options.lease_reads) leader.lease_round = RoundId(static_cast<uint64_t>(now.nanos));
    BroadcastHeartbeats(raft, output);
    leader.heartbeat_due = NextOnGrid(leader.heartbeat_due, raft.options.heartbeat_interval, now);
  }
}

}  // namespace

RaftState MakeRaft(const RaftOptions& options, const HardState& hard_state, RaftLog log, LogIndex applied_index,
                   VoterSet voters, KeyedRandom random, Trace& trace, Instant now) {
  CHECK(!options.id.IsZero());
  CHECK(options.heartbeat_interval > Duration());
  CHECK(options.election_timeout >= options.heartbeat_interval * 5);
  CHECK(options.election_timeout.nanos % options.heartbeat_interval.nanos == 0);
  if (options.lease_reads) {
    const std::string trouble =
        LeaseTrouble(options.election_timeout, options.heartbeat_interval, options.clock_drift_ppm_max);
    CHECK_MSG(trouble.empty(), trouble);
  }
  CHECK(options.append_bytes_max > 0 && options.appends_in_flight_max > 0 && options.append_bytes_in_flight_max > 0);
  RaftState raft{.options = options,
                 .trace = &trace,
                 .term = hard_state.term,
                 .voted_for = hard_state.vote,
                 .commit_index = std::max(hard_state.commit, applied_index),
                 .applied_index = applied_index,
                 .log = std::move(log),
                 .voters = std::move(voters),
                 .role = Follower{},
                 .election_due = now,
                 .election_timeout_drawn = options.election_timeout,
                 .random = random,
                 .collected = hard_state};
  // A crash may keep the entries of a batch and take the hard state behind them. Who wrote an entry of a term was in that
  // term, and without the state its vote there was not durable, so it was never said.
  if (raft.log.last_term() > raft.term) {
    PROBE("raft.term_from_log");
    raft.term = raft.log.last_term();
    raft.voted_for = MemberId();
  }
  DrawElectionTimeout(raft, now);
  // What was promised before is forgotten (rule 4 of leader_lease.h). A single voter is nobody else's.
  if (options.lease_reads && raft.voters.size() > 1) raft.promised_until = now + options.election_timeout;
  CheckInvariants(raft);
  return raft;
}

void Step(RaftState& raft, Message message, Instant now, Output& output) {
  const Marks before = MarksOf(raft);
  if (IsAcceptable(raft, message) && ReconcileTerm(raft, message, now, output)) {
    std::visit(Dispatch{raft, message, now, output}, message.body);
  }
  CheckStep(raft, before);
}

Instant NextDeadline(const RaftState& raft) {
  const auto* leader = std::get_if<Leader>(&raft.role);
  if (leader == nullptr) return raft.election_due;
  Instant due = leader->heartbeat_due;
  if (raft.options.check_quorum) due = std::min(due, leader->quorum_check_due);
  if (leader->transfer) due = std::min(due, leader->transfer->give_up);
  return due;
}

void OnTimer(RaftState& raft, Instant now, Output& output) {
  const Marks before = MarksOf(raft);
  if (auto* leader = std::get_if<Leader>(&raft.role)) {
    OnLeaderTimer(raft, *leader, now, output);
  } else if (now >= raft.election_due) {
    Campaign(raft, now, output);
  }
  CheckStep(raft, before);
}

ProposeResult Propose(RaftState& raft, std::vector<Entry> entries, Instant /*now*/, Output& output) {
  CHECK(!entries.empty());
  const Marks before = MarksOf(raft);
  ProposeResult result = ProposeResult::kNoLeader;
  if (!raft.TransferTarget().IsZero()) {
    PROBE("raft.proposal_during_transfer");
    result = ProposeResult::kTransferring;
  } else if (std::holds_alternative<Leader>(raft.role)) {
    const bool appended = AppendAsLeader(raft, std::move(entries), output);
    result = appended ? ProposeResult::kAppended : ProposeResult::kOverloaded;
  } else if (MemberId leader = raft.LeaderId(); !leader.IsZero()) {
    Send(raft, leader, Term(), Proposal{.entries = std::move(entries)}, Dependency::kTermAndVote, output);
    result = ProposeResult::kForwarded;
  }
  CheckStep(raft, before);
  return result;
}

void RequestRead(RaftState& raft, ReadId read, Instant now, Output& output) {
  CHECK(!read.IsZero());
  const Marks before = MarksOf(raft);
  StartRead(raft, read, now, output);
  CheckStep(raft, before);
}

void TransferLeadership(RaftState& raft, MemberId target, Instant now, Output& output) {
  const Marks before = MarksOf(raft);
  if (std::holds_alternative<Leader>(raft.role)) StartTransfer(raft, target, now, output);
  CheckStep(raft, before);
}

void Collect(RaftState& raft, Output& output) {
  const HardState current{.term = raft.term, .vote = raft.voted_for, .commit = raft.commit_index};
  if (current != raft.collected) {
    if (current.term != raft.collected.term || current.vote != raft.collected.vote) output.must_sync = true;
    output.hard_state = current;
    raft.collected = current;
  }
  if (!raft.log.HasUnwritten()) return;
  CHECK(output.entries.empty());
  output.entries = raft.log.TakeUnwritten();
  output.must_sync = true;
}

void AcknowledgeDurable(RaftState& raft, Term term, LogIndex index, Instant /*now*/, Output& output) {
  const Marks before = MarksOf(raft);
  if (raft.log.MarkDurable(term, index)) OnOwnDurable(raft, output);
  CheckStep(raft, before);
}

void AcknowledgeVote(RaftState& raft, Term term, Instant now, Output& output) {
  const Marks before = MarksOf(raft);
  OnOwnVoteDurable(raft, term, now, output);
  CheckStep(raft, before);
}

void AcknowledgeApplied(RaftState& raft, LogIndex index) {
  CHECK(index >= raft.applied_index && index <= raft.commit_index);
  raft.applied_index = index;
  raft.log.Trim(index, raft.options.log_entries_in_memory_max, raft.options.log_bytes_in_memory_max);
  CheckInvariants(raft);
}

void SupplyEntries(RaftState& raft, MemberId follower, std::vector<Entry> entries, Instant /*now*/, Output& output) {
  const Marks before = MarksOf(raft);
  OnFetched(raft, follower, std::move(entries), output);
  CheckStep(raft, before);
}

void ReportUnreachable(RaftState& raft, MemberId peer, Output& /*output*/) {
  auto* leader = std::get_if<Leader>(&raft.role);
  if (leader == nullptr || peer == raft.options.id) return;
  auto found = leader->progress.find(peer);
  if (found == leader->progress.end() || found->second.mode != Progress::Mode::kReplicate) return;
  PROBE("raft.follower_unreachable");
  found->second.BecomeProbe();
  CheckInvariants(raft);
}

}  // namespace detcd::raft
