// Pre-vote causes no disruption (thesis 9.6, with check-quorum): while a leader and a quorum hear each other, no member
// outside, whatever it missed and whenever it returns, raises the term of any of them, and the leader goes on leading.
//
// The rule: a member that leads, or has heard its leader less than an election timeout T ago on its own clock, ignores
// requests for a vote or pre-vote of a higher term; a member moves to a higher term as candidate only after a quorum
// granted it a pre-vote for that term.
//
// Model: one leader of term t with a set of connected members, a quorum with itself; the others are arbitrary, come and
// go, and their clocks and logs too. Ages are real numbers on each member's own clock, so that drift has no part. A grant,
// once given, may count at any later time. Assumed when the members become connected: nobody is ahead of term t, and no
// connected member's grant for t + 1 is still on its way (one given before it heard the leader would count). "Hears" means:
// on each connected member's clock less than T passes between two messages of the leader. Log checks are left out: they
// only refuse. One step of induction; a twin is a run from such a beginning.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "checker/proofs/proof.h"
#include "checker/proofs/session.h"

namespace detcd::proofs {
namespace {

using z3::expr;

constexpr unsigned kLeader = 0;
constexpr unsigned kVisitor = 2;  // of the twins' runs: outside, comes back

struct Rules {
  bool pre_vote_keeps_term = true;
  bool refuses_in_contact = true;   // followers
  bool leader_refuses = true;       // check-quorum: a leader is its own contact
};

struct Member {
  expr term;
  expr follows;               // knows the leader of term t
  expr age;                   // since it was heard, in T of its own clock
  std::vector<expr> granted;  // by member: a pre-vote for term t + 1
};
using State = std::vector<Member>;
struct Step {
  std::string what;
  expr possible;
  State next;
};

class Model {
 public:
  Model(Session& session, unsigned members, const Rules& rules)
      : session_(session), members_(members), rules_(rules), term_(session.Int("t")) {
    for (unsigned member = 0; member < members; ++member) connected_.push_back(session.Bool(absl::StrFormat("connected%d", member)));
  }

  const expr& term() const { return term_; }
  const std::vector<expr>& connected() const { return connected_; }

  State Anything() {
    State state;
    for (unsigned member = 0; member < members_; ++member) {
      Member self{session_.Int(absl::StrFormat("term%d", member)), session_.Bool(absl::StrFormat("follows%d", member)),
                  session_.Real(absl::StrFormat("age%d", member)), {}};
      for (unsigned other = 0; other < members_; ++other) {
        self.granted.push_back(session_.Bool(absl::StrFormat("granted%d.%d", member, other)));
      }
      state.push_back(std::move(self));
    }
    return state;
  }

  expr Invariant(const State& state) {
    std::vector<expr> all{term_ > 0, connected_[kLeader], AtLeast(session_, connected_, Majority(members_)),
                          state[kLeader].term == term_};
    for (unsigned member = 0; member < members_; ++member) {
      const Member& self = state[member];
      all.push_back(self.term >= 0 && self.term <= term_ && self.age >= 0);
      if (member != kLeader) {
        all.push_back(z3::implies(connected_[member], self.term == term_ && self.follows && self.age < 1));
      }
      for (const expr& granted : self.granted) all.push_back(z3::implies(connected_[member], !granted));
    }
    return All(session_, all);
  }

  Step Time(const State& state) {
    Step step{"time that passes", session_.True(), state};
    for (unsigned member = 0; member < members_; ++member) {
      const expr age = session_.Real(absl::StrFormat("older%d", member));
      step.next[member].age = age;
      step.possible = step.possible && age >= state[member].age;
      if (member != kLeader) step.possible = step.possible && z3::implies(connected_[member], age < 1);
    }
    return step;
  }

  // The leader's message reaches a member; one that is ahead makes it step down.
  Step Hear(const State& state, unsigned member) {
    Step step{"a message of the leader", session_.True(), state};
    const expr behind = state[member].term <= state[kLeader].term;
    Member& self = step.next[member];
    self.term = z3::ite(behind, state[kLeader].term, self.term);
    self.follows = behind;
    self.age = z3::ite(behind, session_.Fraction(0, 1), self.age);
    step.next[kLeader].term = z3::ite(behind, state[kLeader].term, state[member].term);
    return step;
  }

  Step AskForPreVotes(const State& state, unsigned member) {
    Step step{"a pre-campaign", !connected_[member], state};
    Member& self = step.next[member];
    self.follows = session_.False();
    self.granted[member] = self.granted[member] || self.term == term_;
    if (!rules_.pre_vote_keeps_term) self.term = self.term + 1;
    return step;
  }

  // Of term t + 1: a grant for a lower one lets nobody get ahead.
  Step Grant(const State& state, unsigned member, unsigned asking) {
    const Member& self = state[member];
    expr possible = state[asking].term == term_ && self.term <= term_;
    if (member == kLeader) {
      if (rules_.leader_refuses) possible = session_.False();
    } else if (rules_.refuses_in_contact) {
      possible = possible && !(self.follows && self.age < 1);
    }
    Step step{"a pre-vote", possible, state};
    step.next[member].granted[asking] = session_.True();
    return step;
  }

  Step Campaign(const State& state, unsigned member) {
    std::vector<expr> granted;
    for (const Member& other : state) granted.push_back(other.granted[member]);
    const expr elected = state[member].term < term_ || AtLeast(session_, granted, Majority(members_));
    Step step{"a campaign", !connected_[member] && elected, state};
    step.next[member].term = state[member].term + 1;
    step.next[member].follows = session_.False();
    return step;
  }

  // Terms spread by messages; requests for votes are the exception, above.
  Step Learn(const State& state, unsigned member, unsigned from) {
    Step step{"a message of a higher term", state[from].term > state[member].term, state};
    step.next[member].term = state[from].term;
    step.next[member].follows = session_.False();
    return step;
  }

 private:
  Session& session_;
  unsigned members_;
  Rules rules_;
  expr term_;
  std::vector<expr> connected_;
};

Outcome Prove(Session& session, unsigned voters) {
  Model model(session, voters, {});
  const State state = model.Anything();
  std::vector<Step> steps{model.Time(state)};
  for (unsigned member = 0; member < voters; ++member) {
    if (member != kLeader) steps.push_back(model.Hear(state, member));
    steps.push_back(model.AskForPreVotes(state, member));
    steps.push_back(model.Campaign(state, member));
    for (unsigned other = 0; other < voters; ++other) {
      steps.push_back(model.Grant(state, member, other));
      steps.push_back(model.Learn(state, member, other));
    }
  }
  for (const Step& step : steps) {
    if (!session.Refute({model.Invariant(state), step.possible}, model.Invariant(step.next))) continue;
    return {.answer = Answer::kCounterexample, .story = {step.what + " breaks the invariant"}};
  }
  return Outcome::Proved();
}

// The run of every twin: a member comes back, asks, campaigns if it may, and the leader hears of its term.
Outcome FindDisruption(Session& session, unsigned voters, const Rules& rules) {
  Model model(session, voters, rules);
  const State before = model.Anything();
  // Out of contact for as long as it takes to ask; the others have not heard the leader just now.
  std::vector<expr> facts{model.Invariant(before), !model.connected()[kVisitor], before[kVisitor].term == model.term(),
                          before[kVisitor].age == 3, model.term() == 1};
  for (unsigned member = 1; member < voters; ++member) {
    for (const expr& granted : before[member].granted) facts.push_back(!granted);
    if (member != kVisitor) facts.push_back(before[member].age >= session.Fraction(1, 10));
  }
  const Step asks = model.AskForPreVotes(before, kVisitor);
  facts.push_back(asks.possible);
  State state = asks.next;
  Outcome outcome{.answer = Answer::kCounterexample};
  outcome.story.push_back(absl::StrFormat("member %d returns after 3 election timeouts and asks for pre-votes", kVisitor + 1));
  if (rules.pre_vote_keeps_term) {
    for (unsigned member = 0; member < voters; ++member) {
      if (member == kVisitor) continue;
      if (member == kLeader ? rules.leader_refuses : rules.refuses_in_contact) continue;
      const Step grant = model.Grant(state, member, kVisitor);
      facts.push_back(grant.possible);
      state = grant.next;
      outcome.story.push_back(absl::StrFormat("member %d grants one%s", member + 1,
                                              member == kLeader ? ", though it leads" : ""));
    }
    const Step campaign = model.Campaign(state, kVisitor);
    facts.push_back(campaign.possible);
    state = campaign.next;
  }
  const Step hears = model.Hear(state, kVisitor);
  facts.push_back(hears.next[kLeader].term > model.term());
  const auto run = session.Find(facts);
  if (!run) return Outcome::Proved();
  outcome.story.push_back(absl::StrFormat("it answers the leader's heartbeat with term %d, and the leader of term %d steps down",
                                          IntegerOf(*run, state[kVisitor].term), IntegerOf(*run, model.term())));
  const int64_t away = MillionthsOf(*run, before[kVisitor].age);
  const int64_t heard = MillionthsOf(*run, before[1].age);
  outcome.timeline = Timeline{.weakness = Weakness::kPreVoteInContact,
                              .members = voters,
                              .old_leader = kLeader + 1,
                              .new_leader = kVisitor + 1,
                              .drift_ppm = std::vector<int64_t>(voters, 0),
                              .events = {{Happening::kRoundArrives, 2, away - heard},
                                         {Happening::kHealed, kVisitor + 1, away},
                                         {Happening::kVote, 2, away}}};
  return outcome;
}

}  // namespace

std::vector<Proof> PreVoteProofs() {
  std::vector<Proof> proofs;
  for (const unsigned voters : {3u, 5u}) {
    proofs.push_back({.name = "pre-vote",
                      .what = "no returning member raises the term of a quorum that hears its leader",
                      .voters = voters,
                      .run = [voters](Session& session) { return Prove(session, voters); }});
  }
  const auto twin = [&](const char* name, const char* what, const Rules& rules) {
    proofs.push_back({.name = name,
                      .what = what,
                      .voters = 3,
                      .expected = Answer::kCounterexample,
                      .run = [rules](Session& session) { return FindDisruption(session, 3, rules); }});
  };
  twin("pre-vote/granted-in-contact", "a follower grants it though it hears its leader", {.refuses_in_contact = false});
  twin("pre-vote/granted-by-leader", "a leader grants it: check-quorum off", {.leader_refuses = false});
  twin("pre-vote/raises-term", "asking raises the own term", {.pre_vote_keeps_term = false});
  return proofs;
}

}  // namespace detcd::proofs
