// Log Matching (Raft 5.3), by induction over one step: if two logs have an entry of the same term at index k + 1, they
// have entries of the same term at k. By induction over k the logs are then equal up to there, because the leader of a
// term makes one entry an index. The election model builds on it.
//
// Abstraction: one arbitrary pair of neighbouring indexes (k, k + 1) stands for all, a log is the terms of its entries
// there (0: none), and the rest of the log is left open: what may happen there may happen in the model. Appends are taken
// from anything that the leader of the term ever had, so delayed and repeated ones are in. At most one leader a term is
// taken from the election proof. How many members there are plays no part: two stand for any.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "checker/proofs/proof.h"
#include "checker/proofs/session.h"

namespace detcd::proofs {
namespace {

using z3::expr;

constexpr unsigned kMembers = 2;

struct Log {
  expr lower;   // the term of the entry at k; 0: none
  expr upper;   // at k + 1
};
struct Member {
  expr term;
  expr leader;
  Log log;
};
struct State {
  std::vector<Member> members;
  expr led;     // term -> whether it had a leader
  expr lower;   // term -> what its leader had at k
  expr upper;
};
struct Step {
  std::string what;
  expr possible;
  State next;
};

class Model {
 public:
  Model(Session& session, bool checks_entry_before) : session_(session), checks_entry_before_(checks_entry_before) {}

  State Anything() {
    z3::context& context = session_.context();
    const z3::sort numbers = context.array_sort(context.int_sort(), context.int_sort());
    State state{.members = {},
                .led = context.constant("led", context.array_sort(context.int_sort(), context.bool_sort())),
                .lower = context.constant("lower", numbers),
                .upper = context.constant("upper", numbers)};
    for (unsigned member = 0; member < kMembers; ++member) {
      const std::string of = std::to_string(member);
      state.members.push_back({session_.Int("term" + of), session_.Bool("leader" + of),
                               {session_.Int("lower" + of), session_.Int("upper" + of)}});
    }
    return state;
  }

  // Of the log (lower, upper) of anybody.
  expr LogIsALeaders(const State& state, const expr& lower, const expr& upper) {
    return lower >= 0 && upper >= 0 && z3::implies(upper != 0, lower != 0) &&
           z3::implies(lower != 0, z3::select(state.led, lower) && z3::select(state.lower, lower) == lower) &&
           z3::implies(upper != 0, z3::select(state.led, upper) && z3::select(state.upper, upper) == upper &&
                                       z3::select(state.lower, upper) == lower);
  }
  expr Invariant(const State& state, const expr& term) {
    std::vector<expr> all{z3::implies(z3::select(state.led, term), term > 0 && LogIsALeaders(state, z3::select(state.lower, term),
                                                                                             z3::select(state.upper, term)))};
    for (const Member& member : state.members) {
      all.push_back(member.term >= 0);
      all.push_back(LogIsALeaders(state, member.log.lower, member.log.upper));
      all.push_back(z3::implies(member.leader, z3::select(state.led, member.term) &&
                                                   z3::select(state.lower, member.term) == member.log.lower &&
                                                   z3::select(state.upper, member.term) == member.log.upper));
      for (const Member& other : state.members) {
        if (&member != &other) all.push_back(!(member.leader && other.leader && member.term == other.term));
      }
    }
    return All(session_, all);
  }

  std::vector<Step> Steps(const State& state, const expr& term) {
    std::vector<Step> steps;
    const Member& self = state.members[0];
    const expr none = session_.Number(0);
    const auto with_log = [&](const State& of, const expr& lower, const expr& upper) {
      State next = of;
      next.members[0].log = {lower, upper};
      return next;
    };
    State elected = state;
    elected.led = z3::store(state.led, term, session_.True());
    elected.lower = z3::store(state.lower, term, self.log.lower);
    elected.upper = z3::store(state.upper, term, self.log.upper);
    elected.members[0].leader = session_.True();
    elected.members[0].term = term;
    steps.push_back({"an election", term > self.term && !z3::select(state.led, term), elected});

    State below = with_log(state, self.term, self.log.upper);
    below.lower = z3::store(state.lower, self.term, self.term);
    steps.push_back({"a proposal at k", self.leader && self.log.lower == 0, below});
    State above = with_log(state, self.log.lower, self.term);
    above.upper = z3::store(state.upper, self.term, self.term);
    steps.push_back({"a proposal at k + 1", self.leader && self.log.lower != 0 && self.log.upper == 0, above});

    // Appends of the leader of `term`, by which of the two entries they bring; kept: without a conflict the log is not cut.
    State follower = state;
    follower.members[0].term = term;
    follower.members[0].leader = session_.False();
    const expr heard = term >= self.term && z3::select(state.led, term) && (!self.leader || term > self.term);
    const expr lower = z3::select(state.lower, term);
    const expr upper = z3::select(state.upper, term);
    steps.push_back({"an append elsewhere", heard, follower});
    steps.push_back({"an append that cuts before k", heard, with_log(follower, none, none)});
    steps.push_back({"an append up to k", heard && lower != 0,
                     with_log(follower, lower, z3::ite(self.log.lower == lower, self.log.upper, none))});
    steps.push_back({"an append of both", heard && lower != 0 && upper != 0, with_log(follower, lower, upper)});
    expr fits = heard && upper != 0 && self.log.lower != 0;
    if (checks_entry_before_) fits = fits && self.log.lower == lower;
    steps.push_back({"an append behind k", fits, with_log(follower, self.log.lower, upper)});
    steps.push_back({"a crash that loses k + 1", session_.True(), Crashed(with_log(state, self.log.lower, none))});
    steps.push_back({"a crash that loses both", session_.True(), Crashed(with_log(state, none, none))});
    return steps;
  }

 private:
  State Crashed(State state) {
    state.members[0].leader = session_.False();
    return state;
  }

  Session& session_;
  bool checks_entry_before_;
};

Outcome Prove(Session& session, bool checks_entry_before) {
  Model model(session, checks_entry_before);
  const State state = model.Anything();
  const expr any_term = session.Int("any_term");
  const expr term = session.Int("term");
  std::vector<expr> facts;
  std::vector<expr> terms{any_term, term};
  for (const Member& member : state.members) {
    terms.insert(terms.end(), {member.term, member.log.lower, member.log.upper});
  }
  for (const expr& at : terms) facts.push_back(model.Invariant(state, at));

  const Log& one = state.members[0].log;
  const Log& other = state.members[1].log;
  if (session.Refute(facts, z3::implies(one.upper == other.upper && one.upper != 0, one.lower == other.lower))) {
    return {.answer = Answer::kCounterexample, .story = {"the invariant does not imply Log Matching"}};
  }
  for (const Step& step : model.Steps(state, term)) {
    std::vector<expr> assumed = facts;
    assumed.push_back(step.possible);
    const auto broken = session.Refute(assumed, model.Invariant(step.next, any_term));
    if (!broken) continue;
    Outcome outcome{.answer = Answer::kCounterexample};
    for (unsigned member = 0; member < kMembers; ++member) {
      const Log& log = state.members[member].log;
      outcome.story.push_back(absl::StrFormat("member %d has entries of terms %d and %d at k and k + 1", member + 1,
                                              IntegerOf(*broken, log.lower), IntegerOf(*broken, log.upper)));
    }
    outcome.story.push_back(absl::StrFormat("the leader of term %d has %d and %d", IntegerOf(*broken, term),
                                            IntegerOf(*broken, z3::select(state.lower, term)),
                                            IntegerOf(*broken, z3::select(state.upper, term))));
    const Log& after = step.next.members[0].log;
    outcome.story.push_back(absl::StrFormat("after %s, member 1 has %d and %d", step.what, IntegerOf(*broken, after.lower),
                                            IntegerOf(*broken, after.upper)));
    return outcome;
  }
  return Outcome::Proved();
}

}  // namespace

std::vector<Proof> LogMatchingProofs() {
  return {{.name = "log-matching",
           .what = "logs that agree on an entry's index and term agree on all before it",
           .run = [](Session& session) { return Prove(session, true); }},
          {.name = "log-matching/append-without-entry-before",
           .what = "an append is taken whatever stands before it",
           .expected = Answer::kCounterexample,
           .run = [](Session& session) { return Prove(session, false); }}};
}

}  // namespace detcd::proofs
