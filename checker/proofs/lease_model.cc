#include "checker/proofs/lease_model.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace detcd::proofs {
namespace {

using z3::expr;

constexpr unsigned kLeader = 0;

}  // namespace

LeaseModel::LeaseModel(Session& session, unsigned voters, const LeaseRules& rules, const LeaseTimes& times)
    : session_(session),
      rules_(rules),
      times_(times),
      round_(session.Real("round")),
      transfer_(session.Real("transfer")),
      transfers_(session.Bool("transfers")),
      elected_(session.Real("elected")),
      written_(session.Real("written")),
      invoked_(session.Real("invoked")),
      received_(session.Real("received")),
      checked_(session.Real("checked")),
      looked_(session.Real("looked")) {
  for (unsigned voter = 0; voter < voters; ++voter) {
    const auto real = [&](const char* what) { return session.Real(what + std::to_string(voter)); };
    const auto yes = [&](const char* what) { return session.Bool(what + std::to_string(voter)); };
    voters_.push_back({.acknowledges = yes("acknowledges"),
                       .sent = real("sent"),
                       .arrives = real("arrives"),
                       .promise_read = real("promise_read"),
                       .answered = real("answered"),
                       .votes = yes("votes"),
                       .vote_read = real("vote_read"),
                       .voted = real("voted"),
                       .restarts = yes("restarts"),
                       .crash = real("crash"),
                       .start = real("start"),
                       .forgets = yes("forgets"),
                       .vote_for_transfer = yes("vote_for_transfer")});
  }
}

// When a voter that acknowledged a round may vote.
expr LeaseModel::MayVote(const LeaseVoter& voter) const {
  const expr promise_over = voter.vote_read - voter.promise_read >= times_.promise_lasts;
  const expr wait_over = voter.vote_read - voter.start >= times_.promise_lasts;
  const expr restarted = voter.arrives <= voter.crash && voter.crash <= voter.start && voter.start <= voter.vote_read &&
                         (rules_.waits_after_start ? wait_over : session_.True());
  const expr by_promise = rules_.promise_outlives_term ? promise_over : z3::ite(voter.forgets, session_.True(), promise_over);
  return z3::ite(voter.vote_for_transfer, transfers_ && voter.vote_read >= transfer_,
                 z3::ite(voter.restarts, restarted, by_promise));
}

std::vector<expr> LeaseModel::StaleRead() const {
  std::vector<expr> facts;
  std::vector<expr> acknowledge;
  std::vector<expr> vote;
  for (unsigned i = 0; i < voters_.size(); ++i) {
    const LeaseVoter& voter = voters_[i];
    acknowledge.push_back(voter.acknowledges);
    vote.push_back(voter.votes);
    facts.push_back(z3::implies(voter.votes, voter.vote_read <= voter.voted && voter.voted <= elected_));
    if (i == kLeader) {
      // It counts itself, and while it has not voted for another it leads.
      facts.push_back(voter.acknowledges);
      facts.push_back(z3::implies(voter.votes, voter.voted > looked_));
      continue;
    }
    const expr carried = voter.sent <= voter.arrives && voter.arrives <= voter.answered && voter.promise_read <= voter.answered &&
                         voter.answered <= checked_;
    facts.push_back(z3::implies(voter.acknowledges, carried));
    facts.push_back(z3::implies(voter.acknowledges, rules_.from_sending ? round_ <= voter.sent : round_ <= voter.answered));
    if (rules_.promise_read_after_round) facts.push_back(z3::implies(voter.acknowledges, voter.promise_read >= voter.arrives));
    // It acknowledged first: later it would have refused the round.
    facts.push_back(z3::implies(voter.acknowledges && voter.votes, voter.vote_read >= voter.arrives &&
                                                                      voter.vote_read >= voter.promise_read && MayVote(voter)));
  }
  const unsigned quorum = Majority(static_cast<unsigned>(voters_.size()));
  facts.push_back(AtLeast(session_, acknowledge, quorum));
  facts.push_back(AtLeast(session_, vote, quorum));
  // The read: valid by the lease, and invoked after a write that it does not show.
  facts.push_back(elected_ <= written_ && written_ < invoked_ && invoked_ <= received_ && received_ <= looked_ &&
                  checked_ <= looked_ && round_ <= checked_);
  if (rules_.checked_after_request) facts.push_back(received_ <= checked_);
  if (rules_.ends_with_transfer) facts.push_back(!transfers_ || transfer_ > checked_);
  facts.push_back(checked_ - round_ < times_.lease_lasts);
  return facts;
}

std::vector<expr> LeaseModel::Unhurried(const expr& gap) const {
  std::vector<expr> facts{elected_ + gap <= written_, written_ + gap <= invoked_, invoked_ + gap <= received_,
                          round_ == 0, checked_ + gap <= times_.lease_lasts};
  if (rules_.checked_after_request) facts.push_back(received_ == checked_ && checked_ == looked_);
  for (unsigned i = 0; i < voters_.size(); ++i) {
    const LeaseVoter& voter = voters_[i];
    facts.push_back(z3::implies(voter.votes, voter.vote_read == voter.voted && voter.voted + gap <= elected_));
    // A leader that votes for another leads no more.
    facts.push_back(i == kLeader ? !voter.votes : voter.sent + gap <= voter.arrives && voter.arrives + gap <= voter.answered);
    if (i == kLeader) continue;
    if (rules_.promise_read_after_round) facts.push_back(voter.promise_read == voter.arrives);
    // All live and hear alike, but for what the run is about.
    if (rules_.waits_after_start) facts.push_back(!voter.restarts);
    if (!rules_.waits_after_start) facts.push_back(voter.arrives + gap <= voter.crash && voter.crash + gap <= voter.start && voter.start + gap <= voter.vote_read);
    if (rules_.ends_with_transfer) facts.push_back(!voter.vote_for_transfer);
    if (!rules_.ends_with_transfer) facts.push_back(voter.answered + gap <= transfer_ && z3::implies(voter.vote_for_transfer, transfer_ + gap <= voter.vote_read));
    if (rules_.promise_outlives_term) facts.push_back(!voter.forgets);
    facts.push_back(z3::implies(voter.acknowledges && voter.votes, voter.vote_read >= voter.arrives + gap));
    // One that acknowledges nothing does not hear this leader, and has not for long.
    facts.push_back(z3::implies(voter.votes, voter.vote_read >= 0));
  }
  return facts;
}

namespace {

struct Line {
  int64_t at;
  std::string text;
};

}  // namespace

std::vector<std::string> LeaseModel::Story(const z3::model& run) const {
  std::vector<Line> lines;
  const auto tell = [&](const expr& at, std::string text) { lines.push_back({MillionthsOf(run, at), std::move(text)}); };
  tell(round_, rules_.from_sending ? "the leader, member 1, reads its clock and sends a round; its lease counts from here"
                                   : "the leader, member 1, reads its clock: the acknowledgements are there; its lease counts from here");
  for (unsigned i = 1; i < voters_.size(); ++i) {
    const LeaseVoter& voter = voters_[i];
    const unsigned name = i + 1;
    if (IsTrue(run, voter.acknowledges)) {
      if (!rules_.from_sending) tell(voter.sent, absl::StrFormat("a round leaves for member %d", name));
      if (!rules_.promise_read_after_round) tell(voter.promise_read, absl::StrFormat("member %d reads its clock for the turn", name));
      tell(voter.arrives, absl::StrFormat("the round is at member %d, which promises not to vote for an election timeout", name));
      tell(voter.answered, absl::StrFormat("the acknowledgement of member %d is at the leader", name));
    }
    if (!IsTrue(run, voter.votes)) continue;
    if (IsTrue(run, voter.acknowledges && !voter.vote_for_transfer && voter.restarts)) {
      tell(voter.crash, absl::StrFormat("member %d crashes", name));
      tell(voter.start, absl::StrFormat("member %d starts again, and knows of no promise", name));
    }
    const bool transfer = IsTrue(run, voter.vote_for_transfer && voter.acknowledges);
    const bool forgot = IsTrue(run, voter.acknowledges && !voter.vote_for_transfer && !voter.restarts && voter.forgets);
    tell(voter.voted, absl::StrFormat("member %d votes for a new leader%s", name,
                                      transfer ? ", since the old one asked for it"
                                      : forgot ? ": a higher term came, and it knows no leader" : ""));
  }
  if (!rules_.ends_with_transfer && IsTrue(run, transfers_)) tell(transfer_, "the leader asks another member to campaign (transfer)");
  tell(elected_, "the new leader is elected");
  tell(written_, "it acknowledges a write");
  tell(invoked_, "a client asks the old leader to read");
  tell(received_, "the old leader has read the request's bytes");
  tell(checked_, "the clock is read by which its lease is checked: valid");
  tell(looked_, "it answers without the write");
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.at < b.at; });
  std::vector<std::string> story;
  for (const Line& line : lines) {
    story.push_back(absl::StrFormat("%+9.4f T  %s", static_cast<double>(line.at) / 1e6, line.text));
  }
  return story;
}

Timeline LeaseModel::WithEvents(const z3::model& run, Timeline timeline) const {
  const auto add = [&](Happening happening, unsigned member, const expr& at) {
    timeline.events.push_back({happening, member, MillionthsOf(run, at)});
  };
  add(Happening::kRoundSent, kLeader + 1, round_);
  unsigned new_leader = 0;
  for (unsigned i = 1; i < voters_.size(); ++i) {
    const LeaseVoter& voter = voters_[i];
    if (IsTrue(run, voter.acknowledges)) {
      add(Happening::kRoundArrives, i + 1, voter.arrives);
      add(Happening::kRoundAcknowledged, i + 1, voter.answered);
    }
    if (!IsTrue(run, voter.votes)) continue;
    if (IsTrue(run, voter.acknowledges && voter.restarts && !voter.vote_for_transfer)) {
      add(Happening::kCrash, i + 1, voter.crash);
      add(Happening::kStart, i + 1, voter.start);
    }
    add(Happening::kVote, i + 1, voter.voted);
    // Rather one that promised nothing, or keeps what it promised.
    const bool clean = !IsTrue(run, voter.acknowledges && voter.restarts);
    if (new_leader == 0 || clean) new_leader = i + 1;
  }
  timeline.new_leader = new_leader;
  if (!rules_.ends_with_transfer && IsTrue(run, transfers_)) add(Happening::kTransferTried, kLeader + 1, transfer_);
  add(Happening::kElected, new_leader, elected_);
  add(Happening::kWriteAcknowledged, new_leader, written_);
  add(Happening::kReadInvoked, kLeader + 1, invoked_);
  add(Happening::kLeaseChecked, kLeader + 1, checked_);
  std::stable_sort(timeline.events.begin(), timeline.events.end(),
                   [](const TimelineEvent& a, const TimelineEvent& b) { return a.at < b.at; });
  return timeline;
}

}  // namespace detcd::proofs
