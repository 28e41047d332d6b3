#include "core/raft/election.h"

#include "core/base/check.h"
#include "core/base/probe.h"
#include "core/raft/lease_reads.h"
#include "core/raft/replication.h"
#include "core/raft/role.h"
#include "core/raft/send.h"

namespace detcd::raft {
namespace {

constexpr std::string_view kPlace = "raft/election";

bool HasUnappliedConfChange(const RaftState& raft) {
  for (LogIndex i = raft.applied_index + 1; i <= raft.commit_index; ++i) {
    if (raft.log.At(i).type != EntryType::kNormal) return true;
  }
  return false;
}

// Why a vote is asked for: what the request says beside its term.
enum class Election : uint8_t { kPreVote, kVote, kTransfer };

void AskForVotes(RaftState& raft, Election election, Output& output) {
  const bool pre_vote = election == Election::kPreVote;
  const Term term = pre_vote ? raft.term + 1 : raft.term;
  const VoteRequest request{.pre_vote = pre_vote,
                            .last_index = raft.log.last_index(),
                            .last_term = raft.log.last_term(),
                            .transfer = election == Election::kTransfer};
  for (MemberId id : raft.voters.ids()) {
    if (id == raft.options.id) continue;
    Emit(*raft.trace, LogLevel::kInfo, kPlace, pre_vote ? "sent MsgPreVote request" : "sent MsgVote request",
         {TraceField::Number("term", raft.term.value), TraceField::Number("logterm", request.last_term.value),
          TraceField::Number("index", request.last_index.value), TraceField::Id("to", id.value)});
    Send(raft, id, term, request, Dependency::kTermAndVote, output);
  }
}

void RunElection(RaftState& raft, Election election, Instant now, Output& output) {
  BecomeCandidate(raft, now, output);
  auto& answers = std::get<Candidate>(raft.role).answers;
  answers[raft.options.id] = true;
  AskForVotes(raft, election, output);
}

void RunPreElection(RaftState& raft, Instant now, Output& output) {
  BecomePreCandidate(raft, now, output);
  auto& answers = std::get<PreCandidate>(raft.role).answers;
  answers[raft.options.id] = true;
  if (TallyVotes(raft.voters, answers) == Tally::kWon) {
    RunElection(raft, Election::kVote, now, output);
    return;
  }
  AskForVotes(raft, Election::kPreVote, output);
}

bool MayCampaign(const RaftState& raft) {
  if (!raft.voters.Contains(raft.options.id)) {
    PROBE("raft.campaign_without_vote");
    return false;
  }
  if (HasUnappliedConfChange(raft)) {
    PROBE("raft.campaign_waits_for_conf_change");
    Emit(*raft.trace, LogLevel::kWarn, kPlace,
         "cannot campaign since there are still pending configuration changes to apply",
         {TraceField::Number("term", raft.term.value), TraceField::Number("applied", raft.applied_index.value)});
    return false;
  }
  return true;
}

}  // namespace

void Campaign(RaftState& raft, Instant now, Output& output) {
  CHECK(!std::holds_alternative<Leader>(raft.role));
  if (IsBoundByPromise(raft, now)) {
    PROBE("raft.campaign_waits_for_promise");
    raft.election_due = *raft.promised_until;
    return;
  }
  if (!MayCampaign(raft)) {
    RestartElectionTimer(raft, now);
    return;
  }
  Emit(*raft.trace, LogLevel::kInfo, kPlace, "is starting a new election",
       {TraceField::Id("member", raft.options.id.value), TraceField::Number("term", raft.term.value)});
  if (raft.options.pre_vote) {
    RunPreElection(raft, now, output);
  } else {
    RunElection(raft, Election::kVote, now, output);
  }
}

void OnTimeoutNow(RaftState& raft, MemberId leader, Instant now, Output& output) {
  if (!std::holds_alternative<Follower>(raft.role) || !MayCampaign(raft)) {
    PROBE("raft.timeout_now_ignored");
    return;
  }
  Emit(*raft.trace, LogLevel::kInfo, kPlace, "received MsgTimeoutNow and starts an election to get leadership",
       {TraceField::Id("member", raft.options.id.value), TraceField::Number("term", raft.term.value),
        TraceField::Id("from", leader.value)});
  RunElection(raft, Election::kTransfer, now, output);
}

void OnOwnVoteDurable(RaftState& raft, Term term, Instant now, Output& output) {
  const auto* candidate = std::get_if<Candidate>(&raft.role);
  if (candidate == nullptr || raft.term != term) return;
  if (TallyVotes(raft.voters, candidate->answers) == Tally::kWon) TakeLead(raft, now, output);
}

bool HearsLeader(const RaftState& raft, Instant now) {
  if (!raft.options.check_quorum) return false;
  if (std::holds_alternative<Leader>(raft.role)) return true;
  const auto* follower = std::get_if<Follower>(&raft.role);
  return follower != nullptr && !follower->leader.IsZero() &&
         now - follower->leader_contact < raft.options.election_timeout;
}

void OnVoteRequest(RaftState& raft, const Message& message, const VoteRequest& request, Instant now, Output& output) {
  const bool free_to_vote = raft.voted_for == message.from ||
                            (raft.voted_for.IsZero() && raft.LeaderId().IsZero()) ||
                            (request.pre_vote && message.term > raft.term);
  const bool up_to_date = raft.log.IsUpToDate(request.last_term, request.last_index);
  // What was promised to a leader of an earlier term binds in this one too.
  const bool promised = !request.transfer && IsBoundByPromise(raft, now);
  if (promised) PROBE("raft.vote_refused_promise");
  const bool granted = free_to_vote && up_to_date && !promised;
  if (free_to_vote && !up_to_date) PROBE("raft.vote_refused_stale_log");
  Emit(*raft.trace, LogLevel::kInfo, kPlace, granted ? "cast vote" : "rejected vote",
       {TraceField::Text("kind", KindName(message)), TraceField::Id("from", message.from.value),
        TraceField::Number("term", raft.term.value), TraceField::Id("vote", raft.voted_for.value),
        TraceField::Number("logterm", request.last_term.value), TraceField::Number("index", request.last_index.value)});
  if (!granted) {
    Send(raft, message.from, raft.term, VoteResponse{.pre_vote = request.pre_vote, .reject = true},
         Dependency::kTermAndVote, output);
    return;
  }
  if (!request.pre_vote) {
    raft.voted_for = message.from;
    RestartElectionTimer(raft, now);
  }
  // The term asked for: a pre-candidate must not take our older one for a refusal that is out of date.
  Send(raft, message.from, message.term, VoteResponse{.pre_vote = request.pre_vote, .reject = false},
       Dependency::kTermAndVote, output);
}

void OnVoteResponse(RaftState& raft, const Message& message, const VoteResponse& response, Instant now,
                    Output& output) {
  std::map<MemberId, bool>* answers = nullptr;
  if (auto* pre_candidate = std::get_if<PreCandidate>(&raft.role); pre_candidate != nullptr && response.pre_vote) {
    // A grant for another term answers a question of an earlier term of ours.
    if (!response.reject && message.term != raft.term + 1) {
      PROBE("raft.pre_vote_grant_for_another_term");
      return;
    }
    answers = &pre_candidate->answers;
  } else if (auto* candidate = std::get_if<Candidate>(&raft.role); candidate != nullptr && !response.pre_vote) {
    answers = &candidate->answers;
  }
  if (answers == nullptr) return;
  answers->emplace(message.from, !response.reject);
  Emit(*raft.trace, LogLevel::kInfo, kPlace, response.reject ? "received vote rejection" : "received vote",
       {TraceField::Text("kind", KindName(message)), TraceField::Id("from", message.from.value),
        TraceField::Number("term", raft.term.value)});
  switch (TallyVotes(raft.voters, *answers)) {
    case Tally::kOpen:
      return;
    case Tally::kWon:
      if (response.pre_vote) {
        RunElection(raft, Election::kVote, now, output);
      } else {
        TakeLead(raft, now, output);
      }
      return;
    case Tally::kLost:
      PROBE("raft.election_lost");
      BecomeFollower(raft, raft.term, MemberId(), now, output);
      return;
  }
}

}  // namespace detcd::raft
