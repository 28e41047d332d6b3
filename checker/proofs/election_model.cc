#include "checker/proofs/election_model.h"

namespace detcd::proofs {
namespace {

using z3::expr;

int Name(unsigned member) { return static_cast<int>(member) + 1; }

}  // namespace

ElectionModel::ElectionModel(Session& session, unsigned members, const ElectionRules& rules)
    : session_(session), members_(members), rules_(rules), entry_term_(session.Int("t")), entry_index_(session.Int("i")) {}

ElectionState ElectionModel::Anything(const std::string& suffix) {
  z3::context& context = session_.context();
  const z3::sort numbers = context.array_sort(context.int_sort(), context.int_sort());
  const z3::sort marks = context.array_sort(context.int_sort(), context.bool_sort());
  const auto of_all = [&](const char* what, const z3::sort& sort) { return context.constant((what + suffix).c_str(), sort); };
  ElectionState state{.members = {},
                      .led = of_all("led", marks),
                      .led_by = of_all("led_by", numbers),
                      .base_term = of_all("base_term", numbers),
                      .base_index = of_all("base_index", numbers),
                      .length = of_all("length", numbers),
                      .held = of_all("held", marks),
                      .two_leaders = session_.Bool("two_leaders" + suffix)};
  for (unsigned member = 0; member < members_; ++member) {
    const std::string of = std::to_string(member) + suffix;
    state.members.push_back({.term = session_.Int("term" + of),
                             .candidate = session_.Bool("candidate" + of),
                             .leader = session_.Bool("leader" + of),
                             .last_term = session_.Int("last_term" + of),
                             .last_index = session_.Int("last_index" + of),
                             .votes = of_all(("votes" + of).c_str(), numbers),
                             .asked_term = of_all(("asked_term" + of).c_str(), numbers),
                             .asked_index = of_all(("asked_index" + of).c_str(), numbers),
                             .acknowledged = session_.Bool("acknowledged" + of)});
  }
  return state;
}

ElectionState ElectionModel::Beginning() {
  const z3::sort index = session_.context().int_sort();
  const expr zeros = z3::const_array(index, session_.Number(0));
  const expr none = z3::const_array(index, session_.False());
  ElectionState state{.members = {}, .led = none, .led_by = zeros, .base_term = zeros, .base_index = zeros, .length = zeros,
                      .held = none, .two_leaders = session_.False()};
  for (unsigned member = 0; member < members_; ++member) {
    state.members.push_back({.term = session_.Number(0), .candidate = session_.False(), .leader = session_.False(),
                             .last_term = session_.Number(0), .last_index = session_.Number(0), .votes = zeros,
                             .asked_term = zeros, .asked_index = zeros, .acknowledged = session_.False()});
  }
  return state;
}

expr ElectionModel::LeaderHolds(const ElectionState& state, const expr& term) {
  // Leader t made e itself, if its log ever was that long beyond its base; later ones had it when elected, or never.
  const expr made = z3::select(state.base_index, term) < entry_index_ && z3::select(state.length, term) >= entry_index_;
  return z3::select(state.led, term) &&
         z3::ite(term == entry_term_, made, term > entry_term_ && z3::select(state.held, term));
}

expr ElectionModel::Holds(const ElectionState& state, const expr& term, const expr& index) {
  return index >= entry_index_ && LeaderHolds(state, term);
}

expr ElectionModel::IsLogName(const ElectionState& state, const expr& term, const expr& index) {
  return (term == 0 && index == 0) || (term > 0 && z3::select(state.led, term) && z3::select(state.base_index, term) < index &&
                                       index <= z3::select(state.length, term));
}

expr ElectionModel::IsPrefix(const ElectionState& state, const expr& term, const expr& index, const expr& named) {
  const expr own = index > z3::select(state.base_index, term);
  // Of an earlier leader's prefix nothing is known but what Log Matching says of e.
  return index >= 0 && index <= z3::select(state.length, term) && IsLogName(state, named, index) && (named == term) == own &&
         named <= term && z3::implies(index >= entry_index_, LeaderHolds(state, named) == LeaderHolds(state, term));
}

expr ElectionModel::Blocked(const ElectionState& state) {
  std::vector<expr> out;
  for (const ElectionMember& member : state.members) out.push_back(!member.acknowledged && member.term > entry_term_);
  return AtLeast(session_, out, rules_.quorum);
}

expr ElectionModel::Committed(const ElectionState& state) {
  std::vector<expr> have;
  for (const ElectionMember& member : state.members) have.push_back(member.acknowledged);
  return AtLeast(session_, have, rules_.quorum);
}

Transition ElectionModel::Campaign(const ElectionState& state, unsigned member) {
  ElectionState next = state;
  ElectionMember& self = next.members[member];
  const expr term = self.term + 1;
  self.votes = z3::store(self.votes, term, Name(member));
  self.asked_term = z3::store(self.asked_term, term, self.last_term);
  self.asked_index = z3::store(self.asked_index, term, self.last_index);
  self.candidate = session_.True();
  self.term = term;
  return {.possible = !state.members[member].leader, .next = next};
}

Transition ElectionModel::Vote(const ElectionState& state, unsigned voter, unsigned candidate, const expr& term) {
  const ElectionMember& before = state.members[voter];
  const ElectionMember& asking = state.members[candidate];
  const expr asked = z3::select(asking.votes, term) == Name(candidate);
  const expr vote = z3::select(before.votes, term);
  const expr asked_term = z3::select(asking.asked_term, term);
  const expr asked_index = z3::select(asking.asked_index, term);
  const expr up_to_date = asked_term > before.last_term || (asked_term == before.last_term && asked_index >= before.last_index);
  ElectionState next = state;
  ElectionMember& self = next.members[voter];
  self.votes = z3::store(self.votes, term, Name(candidate));
  self.candidate = before.candidate && term == before.term;
  self.leader = before.leader && term == before.term;
  self.term = term;
  expr possible = term > 0 && term >= before.term && asked && (vote == 0 || vote == Name(candidate));
  if (rules_.vote_checks_log) possible = possible && up_to_date;
  return {.possible = possible, .next = next};
}

Transition ElectionModel::TakeLead(const ElectionState& state, unsigned member) {
  const ElectionMember& before = state.members[member];
  const expr& term = before.term;
  std::vector<expr> votes;
  for (const ElectionMember& voter : state.members) votes.push_back(z3::select(voter.votes, term) == Name(member));
  ElectionState next = state;
  next.two_leaders = state.two_leaders || (z3::select(state.led, term) && z3::select(state.led_by, term) != Name(member));
  next.led = z3::store(state.led, term, session_.True());
  next.led_by = z3::store(state.led_by, term, session_.Number(Name(member)));
  next.base_term = z3::store(state.base_term, term, before.last_term);
  next.base_index = z3::store(state.base_index, term, before.last_index);
  next.held = z3::store(state.held, term, Holds(state, before.last_term, before.last_index));
  // The empty entry that begins its term.
  next.length = z3::store(state.length, term, before.last_index + 1);
  ElectionMember& self = next.members[member];
  self.last_term = term;
  self.last_index = before.last_index + 1;
  self.candidate = session_.False();
  self.leader = session_.True();
  return {.possible = before.candidate && AtLeast(session_, votes, rules_.quorum), .next = next};
}

Transition ElectionModel::Propose(const ElectionState& state, unsigned member) {
  const ElectionMember& before = state.members[member];
  ElectionState next = state;
  next.length = z3::store(state.length, before.term, before.last_index + 1);
  next.members[member].last_index = before.last_index + 1;
  return {.possible = before.leader, .next = next};
}

Transition ElectionModel::Follow(const ElectionState& state, unsigned member, const expr& term) {
  const ElectionMember& before = state.members[member];
  ElectionState next = state;
  ElectionMember& self = next.members[member];
  self.term = term;
  self.candidate = session_.False();
  self.leader = before.leader && term == before.term;
  return {.possible = term >= before.term, .next = next};
}

Transition ElectionModel::Append(const ElectionState& state, unsigned member, const expr& term, const expr& index,
                                 const expr& named) {
  const ElectionMember& before = state.members[member];
  ElectionState next = state;
  ElectionMember& self = next.members[member];
  self.term = term;
  self.candidate = session_.False();
  self.leader = session_.False();
  self.last_term = named;
  self.last_index = index;
  // A log is cut only at a conflict, and a prefix of one log conflicts with no other of its prefixes; two logs that hold
  // e have no conflict up to it (Log Matching).
  const expr cut_at_conflict = z3::implies(before.last_term == term, index > before.last_index) &&
                               z3::implies(Holds(state, before.last_term, before.last_index) && LeaderHolds(state, term),
                                           index >= entry_index_);
  const expr not_own = !before.leader || term > before.term;
  return {.possible = term >= before.term && z3::select(state.led, term) && not_own && IsPrefix(state, term, index, named) &&
                      cut_at_conflict,
          .next = next};
}

Transition ElectionModel::Acknowledge(const ElectionState& state, unsigned member) {
  const ElectionMember& before = state.members[member];
  ElectionState next = state;
  next.members[member].acknowledged = session_.True();
  const expr counts = rules_.commit_own_term_only ? before.term == entry_term_ : before.term >= entry_term_;
  return {.possible = counts && Holds(state, before.last_term, before.last_index), .next = next};
}

Transition ElectionModel::Crash(const ElectionState& state, unsigned member, const expr& index, const expr& named) {
  const ElectionMember& before = state.members[member];
  ElectionState next = state;
  ElectionMember& self = next.members[member];
  self.candidate = session_.False();
  self.leader = session_.False();
  self.last_term = named;
  self.last_index = index;
  if (!rules_.vote_is_durable) self.votes = z3::store(before.votes, before.term, session_.Number(0));
  const expr lost = before.last_term > 0 && index < before.last_index &&
                    IsPrefix(state, before.last_term, index, named) &&
                    z3::implies(before.acknowledged && Holds(state, before.last_term, before.last_index), index >= entry_index_);
  return {.possible = lost || (named == before.last_term && index == before.last_index), .next = next};
}

expr ElectionModel::InvariantOf(const ElectionState& state, const expr& term) {
  const expr led = z3::select(state.led, term);
  const expr led_by = z3::select(state.led_by, term);
  const expr base_term = z3::select(state.base_term, term);
  const expr base_index = z3::select(state.base_index, term);
  std::vector<expr> elected;
  std::vector<expr> all;
  for (unsigned member = 0; member < members_; ++member) {
    const ElectionMember& self = state.members[member];
    const expr vote = z3::select(self.votes, term);
    elected.push_back(vote == led_by);
    // A leader has come to its term, and a vote is never of a term to come.
    all.push_back(z3::implies(led && led_by == Name(member), self.term >= term));
    all.push_back(vote >= 0 && vote <= static_cast<int>(members_));
    all.push_back(z3::implies(vote != 0, term > 0 && self.term >= term));
    const expr asked_term = z3::select(self.asked_term, term);
    const expr asked_index = z3::select(self.asked_index, term);
    all.push_back(z3::implies(vote == Name(member), asked_term < term && IsLogName(state, asked_term, asked_index)));
    for (unsigned candidate = 0; candidate < members_; ++candidate) {
      const ElectionMember& other = state.members[candidate];
      // Votes are for candidates, and none of those who acknowledged e votes for a log without it.
      all.push_back(z3::implies(vote == Name(candidate), z3::select(other.votes, term) == Name(candidate)));
      all.push_back(z3::implies(vote == Name(candidate) && term > entry_term_ && self.acknowledged,
                                Blocked(state) || Holds(state, z3::select(other.asked_term, term),
                                                        z3::select(other.asked_index, term))));
    }
  }
  all.push_back(z3::implies(led, term > 0 && led_by >= 1 && led_by <= static_cast<int>(members_) &&
                                     AtLeast(session_, elected, rules_.quorum)));
  all.push_back(z3::implies(led, base_index >= 0 && base_index < z3::select(state.length, term) && base_term < term &&
                                     IsLogName(state, base_term, base_index)));
  const expr later = led && term > entry_term_;
  all.push_back(z3::implies(later && z3::select(state.held, term), base_index >= entry_index_));
  all.push_back(z3::implies(later && !z3::select(state.held, term), Blocked(state)));
  return All(session_, all);
}

expr ElectionModel::InvariantOfMembers(const ElectionState& state) {
  std::vector<expr> all{entry_term_ > 0, entry_index_ > 0, !state.two_leaders};
  for (unsigned member = 0; member < members_; ++member) {
    const ElectionMember& self = state.members[member];
    const expr led_by_us = z3::select(state.led, self.term) && z3::select(state.led_by, self.term) == Name(member);
    all.push_back(self.term >= 0 && self.last_term <= self.term && IsLogName(state, self.last_term, self.last_index));
    all.push_back(z3::implies(self.candidate, !self.leader && self.term > 0 && !led_by_us &&
                                                  z3::select(self.votes, self.term) == Name(member) &&
                                                  z3::select(self.asked_term, self.term) == self.last_term &&
                                                  z3::select(self.asked_index, self.term) == self.last_index));
    all.push_back(z3::implies(self.leader, led_by_us && self.last_term == self.term &&
                                               self.last_index == z3::select(state.length, self.term)));
    all.push_back(z3::implies(self.acknowledged,
                              self.term >= entry_term_ &&
                                  (Holds(state, self.last_term, self.last_index) || Blocked(state))));
  }
  return All(session_, all);
}

std::vector<expr> ElectionModel::TermsToLookAt(const ElectionState& state, std::vector<expr> terms) {
  const size_t asked = terms.size();
  terms.push_back(entry_term_);
  for (size_t i = 0; i < asked; ++i) {
    const expr term = terms[i];
    terms.push_back(z3::select(state.base_term, term));
    for (const ElectionMember& member : state.members) terms.push_back(z3::select(member.asked_term, term));
  }
  for (const ElectionMember& member : state.members) {
    terms.push_back(member.term);
    terms.push_back(member.last_term);
  }
  return terms;
}

expr ElectionModel::Safe(const ElectionState& state, const expr& term) {
  const expr later = z3::select(state.led, term) && term > entry_term_;
  return !state.two_leaders && z3::implies(Committed(state) && later,
                                           LeaderHolds(state, term) && z3::select(state.base_index, term) >= entry_index_);
}

}  // namespace detcd::proofs
