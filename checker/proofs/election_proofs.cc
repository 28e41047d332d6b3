// Election Safety, Leader Completeness and State Machine Safety (Raft figure 3), by induction over one step: the
// invariant of election_model.cc holds in the beginning, each transition keeps it, and it implies them. That covers runs
// of any length, terms and logs without bound. Twins are shown as runs from the beginning.
#include <functional>
#include <utility>

#include "absl/strings/str_format.h"
#include "checker/proofs/election_model.h"
#include "checker/proofs/proof.h"

namespace detcd::proofs {
namespace {

using z3::expr;

// --- the induction

class Induction {
 public:
  Induction(Session& session, ElectionModel& model)
      : session_(session), model_(model), before_(model.Anything("")), any_term_(session.Int("any_term")) {}

  // What breaks, in words; empty when it is proved. Members are alike, so that number 0 acts for all, and 1 for every
  // other.
  std::string Attempt() {
    const ElectionState beginning = model_.Beginning();
    const std::vector<expr> entry{model_.entry_term() > 0, model_.entry_index() > 0};
    if (session_.Refute(entry, model_.InvariantOfMembers(beginning) && model_.InvariantOf(beginning, any_term_))) {
      return "the beginning breaks the invariant";
    }
    if (session_.Refute(Assumed({}), model_.Safe(before_, any_term_))) return "the invariant does not imply safety";
    const expr term = session_.Int("term");
    const expr index = session_.Int("index");
    const expr named = session_.Int("named");
    const std::vector<std::pair<const char*, Transition>> steps{
        {"a campaign", model_.Campaign(before_, 0)},
        {"a vote", model_.Vote(before_, 0, 1, term)},
        {"a vote for oneself", model_.Vote(before_, 0, 0, term)},
        {"an election won", model_.TakeLead(before_, 0)},
        {"a proposal", model_.Propose(before_, 0)},
        {"a term learned", model_.Follow(before_, 0, term)},
        {"an append", model_.Append(before_, 0, term, index, named)},
        {"an acknowledgement", model_.Acknowledge(before_, 0)},
        {"a crash", model_.Crash(before_, 0, index, named)},
    };
    for (const auto& [what, step] : steps) {
      std::vector<expr> facts = Assumed({term, named, before_.members[0].term, before_.members[0].term + 1});
      facts.push_back(step.possible);
      const expr kept = model_.InvariantOfMembers(step.next) && model_.InvariantOf(step.next, any_term_);
      if (session_.Refute(facts, kept)) return absl::StrFormat("%s breaks the invariant", what);
    }
    return "";
  }

 private:
  std::vector<expr> Assumed(std::vector<expr> terms) {
    terms.push_back(any_term_);
    std::vector<expr> facts{model_.InvariantOfMembers(before_)};
    for (const expr& term : model_.TermsToLookAt(before_, std::move(terms))) facts.push_back(model_.InvariantOf(before_, term));
    return facts;
  }

  Session& session_;
  ElectionModel& model_;
  ElectionState before_;
  expr any_term_;
};

Outcome ProveSafe(Session& session, unsigned voters) {
  ElectionModel model(session, voters, {.quorum = Majority(voters)});
  const std::string broken = Induction(session, model).Attempt();
  if (broken.empty()) return Outcome::Proved();
  return {.answer = Answer::kCounterexample, .story = {broken}};
}

// --- runs of a weakened system

enum class StepKind { kElect, kAppend, kAcknowledge, kCrash };

std::vector<expr> Parts(const ElectionState& state) {
  std::vector<expr> parts{state.led, state.led_by, state.base_term, state.base_index, state.length, state.held, state.two_leaders};
  for (const ElectionMember& member : state.members) {
    for (const expr& part : {member.term, member.candidate, member.leader, member.last_term, member.last_index, member.votes,
                             member.asked_term, member.asked_index, member.acknowledged}) {
      parts.push_back(part);
    }
  }
  return parts;
}

// A run of the given kinds of steps from the beginning; Z3 finds who, when and what.
class Search {
 public:
  Search(Session& session, ElectionModel& model) : session_(session), model_(model), states_{model.Beginning()} {
    facts_ = {model.entry_term() > 0, model.entry_index() > 0};
  }

  void Add(StepKind kind) {
    Step step{.kind = kind, .chosen = {}, .votes = {}, .term = Named("term"), .index = Named("index"), .named = Named("named")};
    const ElectionState after = model_.Anything("@" + std::to_string(steps_.size()));
    for (unsigned voter = 0; voter < model_.size(); ++voter) {
      step.votes.push_back(session_.Bool(absl::StrFormat("votes%d@%d", voter, steps_.size())));
    }
    for (unsigned member = 0; member < model_.size(); ++member) {
      step.chosen.push_back(session_.Bool(absl::StrFormat("acts%d@%d", member, steps_.size())));
      const Transition transition = Of(step, member);
      facts_.push_back(z3::implies(step.chosen.back(), transition.possible && Equal(after, transition.next)));
    }
    facts_.push_back(AtLeast(session_, step.chosen, 1));
    facts_.push_back(step.term <= static_cast<int>(steps_.size() + 1));  // small numbers, for the reader
    steps_.push_back(std::move(step));
    states_.push_back(after);
  }

  const ElectionState& state(size_t steps_done) const { return states_[steps_done]; }
  size_t steps() const { return steps_.size(); }
  // e is committed, and then a leader without it is elected by the last step.
  expr LosesCommitted() {
    std::vector<expr> loses;
    const ElectionState& last = states_.back();
    for (unsigned member = 0; member < model_.size(); ++member) {
      const expr& term = last.members[member].term;
      loses.push_back(steps_.back().chosen[member] && term > model_.entry_term() && !z3::select(last.held, term));
    }
    return model_.Committed(states_[steps_.size() - 1]) && Any(session_, loses);
  }

  Outcome Find(const expr& harm, const std::string& what) {
    std::vector<expr> facts = facts_;
    facts.push_back(harm);
    const auto run = session_.Find(facts);
    if (!run) return Outcome::Proved();
    Outcome outcome{.answer = Answer::kCounterexample};
    for (size_t i = 0; i < steps_.size(); ++i) outcome.story.push_back(Told(*run, i));
    outcome.story.push_back(what);
    return outcome;
  }

 private:
  struct Step {
    StepKind kind;
    std::vector<expr> chosen;  // who acts
    std::vector<expr> votes;   // of an election
    expr term;
    expr index;
    expr named;
  };

  expr Named(const char* what) { return session_.Int(absl::StrFormat("%s@%d", what, steps_.size())); }

  expr Equal(const ElectionState& a, const ElectionState& b) {
    const std::vector<expr> left = Parts(a);
    const std::vector<expr> right = Parts(b);
    std::vector<expr> equal;
    for (size_t i = 0; i < left.size(); ++i) equal.push_back(left[i] == right[i]);
    return All(session_, equal);
  }

  ElectionState Choose(const expr& first_one, const ElectionState& one, const ElectionState& other) {
    const auto pick = [&](const expr& a, const expr& b) { return z3::ite(first_one, a, b); };
    ElectionState chosen{.members = {},
                         .led = pick(one.led, other.led),
                         .led_by = pick(one.led_by, other.led_by),
                         .base_term = pick(one.base_term, other.base_term),
                         .base_index = pick(one.base_index, other.base_index),
                         .length = pick(one.length, other.length),
                         .held = pick(one.held, other.held),
                         .two_leaders = pick(one.two_leaders, other.two_leaders)};
    for (size_t i = 0; i < one.members.size(); ++i) {
      const ElectionMember& a = one.members[i];
      const ElectionMember& b = other.members[i];
      chosen.members.push_back({.term = pick(a.term, b.term),
                                .candidate = pick(a.candidate, b.candidate),
                                .leader = pick(a.leader, b.leader),
                                .last_term = pick(a.last_term, b.last_term),
                                .last_index = pick(a.last_index, b.last_index),
                                .votes = pick(a.votes, b.votes),
                                .asked_term = pick(a.asked_term, b.asked_term),
                                .asked_index = pick(a.asked_index, b.asked_index),
                                .acknowledged = pick(a.acknowledged, b.acknowledged)});
    }
    return chosen;
  }

  // A term learned, a campaign, all its votes and its victory, each a transition of the model.
  Transition Election(const Step& step, unsigned member) {
    const Transition learned = model_.Follow(states_.back(), member, step.term);
    const Transition campaign = model_.Campaign(learned.next, member);
    expr possible = learned.possible && campaign.possible;
    ElectionState state = campaign.next;
    for (unsigned voter = 0; voter < model_.size(); ++voter) {
      if (voter == member) continue;
      const Transition vote = model_.Vote(state, voter, member, state.members[member].term);
      possible = possible && z3::implies(step.votes[voter], vote.possible);
      state = Choose(step.votes[voter], vote.next, state);
    }
    const Transition won = model_.TakeLead(state, member);
    return {.possible = possible && won.possible, .next = won.next};
  }

  Transition Of(const Step& step, unsigned member) {
    switch (step.kind) {
      case StepKind::kElect: return Election(step, member);
      case StepKind::kAppend: return model_.Append(states_.back(), member, step.term, step.index, step.named);
      case StepKind::kAcknowledge: return model_.Acknowledge(states_.back(), member);
      case StepKind::kCrash: return model_.Crash(states_.back(), member, step.index, step.named);
    }
    return {session_.False(), states_.back()};
  }

  std::string Told(const z3::model& run, size_t number) {
    const Step& step = steps_[number];
    unsigned member = 0;
    while (!IsTrue(run, step.chosen[member])) ++member;
    const ElectionMember& after = states_[number + 1].members[member];
    const int64_t term = IntegerOf(run, after.term);
    switch (step.kind) {
      case StepKind::kElect: {
        std::string votes = std::to_string(member + 1);
        for (unsigned voter = 0; voter < model_.size(); ++voter) {
          if (voter != member && IsTrue(run, step.votes[voter])) votes += absl::StrFormat(", %d", voter + 1);
        }
        return absl::StrFormat("member %d is elected in term %d by %s and appends entry (index %d, term %d)", member + 1, term, votes,
                               IntegerOf(run, after.last_index), term);
      }
      case StepKind::kAppend:
        return absl::StrFormat("member %d takes entries up to (index %d, term %d) from the leader of term %d", member + 1,
                               IntegerOf(run, after.last_index), IntegerOf(run, after.last_term), IntegerOf(run, step.term));
      case StepKind::kAcknowledge:
        return absl::StrFormat("member %d, in term %d, acknowledges entry (index %d, term %d)", member + 1, term,
                               IntegerOf(run, model_.entry_index()), IntegerOf(run, model_.entry_term()));
      case StepKind::kCrash: return absl::StrFormat("member %d crashes in term %d and starts again", member + 1, term);
    }
    return "";
  }

  Session& session_;
  ElectionModel& model_;
  std::vector<expr> facts_;
  std::vector<Step> steps_;
  std::vector<ElectionState> states_;
};

// The induction must miss what was taken away, or it would prove too much; and a run from the beginning must show it.
Outcome Broken(Session& session, ElectionModel& model, const std::function<Outcome()>& find) {
  if (model.size() > 3) return find();  // said once, by the smaller one
  const std::string broken = Induction(session, model).Attempt();
  if (broken.empty()) return Outcome::Proved();
  Outcome outcome = find();
  outcome.story.insert(outcome.story.begin(), absl::StrFormat("by induction: %s; a run:", broken));
  return outcome;
}

Outcome FindLoss(Session& session, unsigned voters, ElectionRules rules, const std::vector<StepKind>& kinds) {
  ElectionModel model(session, voters, rules);
  Search search(session, model);
  for (StepKind kind : kinds) search.Add(kind);
  return Broken(session, model, [&] { return search.Find(search.LosesCommitted(), "the last leader elected lacks an entry that was committed before"); });
}

Outcome FindTwoLeaders(Session& session, unsigned voters, ElectionRules rules, const std::vector<StepKind>& kinds) {
  ElectionModel model(session, voters, rules);
  Search search(session, model);
  for (StepKind kind : kinds) search.Add(kind);
  return Broken(session, model, [&] { return search.Find(search.state(search.steps()).two_leaders, "one term has two leaders"); });
}

}  // namespace

std::vector<Proof> ElectionProofs() {
  using enum StepKind;
  std::vector<Proof> proofs;
  for (const unsigned voters : {3u, 5u}) {
    proofs.push_back({.name = "election",
                      .what = "at most one leader a term, and each later leader has what was committed",
                      .voters = voters,
                      .run = [voters](Session& session) { return ProveSafe(session, voters); }});
    proofs.push_back({.name = "election/vote-without-log-check",
                      .what = "votes for whoever asks first",
                      .voters = voters,
                      .expected = Answer::kCounterexample,
                      .run = [voters](Session& session) {
                        std::vector<StepKind> kinds{kElect};
                        for (unsigned i = 1; i < Majority(voters); ++i) kinds.push_back(kAppend);
                        for (unsigned i = 0; i < Majority(voters); ++i) kinds.push_back(kAcknowledge);
                        kinds.push_back(kElect);
                        return FindLoss(session, voters, {.vote_checks_log = false, .quorum = Majority(voters)}, kinds);
                      }});
    proofs.push_back({.name = "election/majority-off-by-one",
                      .what = "one vote less than a majority elects",
                      .voters = voters,
                      .expected = Answer::kCounterexample,
                      .run = [voters](Session& session) {
                        return FindTwoLeaders(session, voters, {.quorum = Majority(voters) - 1}, {kElect, kElect});
                      }});
  }
  proofs.push_back({.name = "election/old-term-committed-by-counting",
                    .what = "copies of an entry of a former term commit it",
                    .voters = 3,
                    .expected = Answer::kCounterexample,
                    .run = [](Session& session) {
                      return FindLoss(session, 3, {.commit_own_term_only = false, .quorum = 2},
                                      {kElect, kElect, kElect, kAppend, kAcknowledge, kAcknowledge, kElect});
                    }});
  proofs.push_back({.name = "election/vote-forgotten",
                    .what = "a restart forgets the vote",
                    .voters = 3,
                    .expected = Answer::kCounterexample,
                    .run = [](Session& session) {
                      return FindTwoLeaders(session, 3, {.vote_is_durable = false, .quorum = 2}, {kElect, kCrash, kElect});
                    }});
  return proofs;
}

}  // namespace detcd::proofs
