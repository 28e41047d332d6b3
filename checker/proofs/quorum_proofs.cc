// Quorums of one configuration, joint or not: any two share a member, and what a quorum has reached only grows with the
// members' values. Sets of voters are symbolic: every pair of subsets of five members at once. The functions of
// core/raft/quorum are held against the same definitions over all vectors in tests/core/raft/quorum_test.cc.
//
// A change from one configuration to another by a joint one (thesis 4.3) is safe because each quorum of the joint one
// holds a majority of either: so it meets every quorum of the configuration before and of the one after.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_format.h"
#include "checker/proofs/proof.h"
#include "checker/proofs/session.h"

namespace detcd::proofs {
namespace {

using z3::expr;

constexpr unsigned kMembers = 5;

struct Rules {
  bool half_is_enough = false;  // majority off by one for even sets
  bool either_is_enough = false;  // a majority of the union instead of one of each
};

std::vector<expr> Set(Session& session, const std::string& name) {
  std::vector<expr> set;
  for (unsigned member = 0; member < kMembers; ++member) set.push_back(session.Bool(name + std::to_string(member)));
  return set;
}

expr Count(Session& session, const std::vector<expr>& set) {
  expr count = session.Number(0);
  for (const expr& in : set) count = count + z3::ite(in, session.Number(1), session.Number(0));
  return count;
}

std::vector<expr> Both(const std::vector<expr>& one, const std::vector<expr>& other) {
  std::vector<expr> both;
  for (size_t i = 0; i < one.size(); ++i) both.push_back(one[i] && other[i]);
  return both;
}

expr IsMajority(Session& session, const Rules& rules, const std::vector<expr>& set, const std::vector<expr>& voters) {
  const expr count = Count(session, Both(set, voters));
  const expr of = Count(session, voters);
  return rules.half_is_enough ? 2 * count >= of : 2 * count > of;
}

expr IsQuorum(Session& session, const Rules& rules, const std::vector<expr>& set, const std::vector<expr>& incoming,
              const std::vector<expr>& outgoing) {
  if (rules.either_is_enough) {
    std::vector<expr> united;
    for (size_t i = 0; i < incoming.size(); ++i) united.push_back(incoming[i] || outgoing[i]);
    return IsMajority(session, rules, set, united);
  }
  return IsMajority(session, rules, set, incoming) &&
         (!Any(session, outgoing) || IsMajority(session, rules, set, outgoing));
}

std::string Told(const z3::model& model, const std::vector<expr>& set) {
  std::vector<std::string> members;
  for (unsigned member = 0; member < kMembers; ++member) {
    if (IsTrue(model, set[member])) members.push_back(std::to_string(member + 1));
  }
  return "{" + absl::StrJoin(members, ", ") + "}";
}

// Two quorums of a configuration, or one of it and one of the configuration before or after it, share a member.
Outcome ProveMeeting(Session& session, const Rules& rules) {
  const auto incoming = Set(session, "incoming");
  const auto outgoing = Set(session, "outgoing");
  const auto one = Set(session, "one");
  const auto other = Set(session, "other");
  const std::vector<expr> nobody(kMembers, session.False());
  const expr stable = IsQuorum(session, rules, other, incoming, nobody) || IsQuorum(session, rules, other, outgoing, nobody);
  const auto apart = session.Refute({Any(session, incoming), Any(session, outgoing),
                                     IsQuorum(session, rules, one, incoming, outgoing),
                                     stable || IsQuorum(session, rules, other, incoming, outgoing)},
                                    Any(session, Both(one, other)));
  if (!apart) return Outcome::Proved();
  return {.answer = Answer::kCounterexample,
          .story = {absl::StrFormat("incoming voters %s, outgoing voters %s", Told(*apart, incoming), Told(*apart, outgoing)),
                    absl::StrFormat("%s and %s both decide and share no member", Told(*apart, one), Told(*apart, other))}};
}

// As above, for one set of voters.
Outcome ProveMajorities(Session& session, const Rules& rules) {
  const auto voters = Set(session, "voters");
  const auto one = Set(session, "one");
  const auto other = Set(session, "other");
  const auto apart = session.Refute({Any(session, voters), IsMajority(session, rules, one, voters),
                                     IsMajority(session, rules, other, voters)},
                                    Any(session, Both(one, other)));
  if (!apart) return Outcome::Proved();
  return {.answer = Answer::kCounterexample,
          .story = {absl::StrFormat("of the voters %s, %s and %s both decide and share no member", Told(*apart, voters),
                                    Told(*apart, one), Told(*apart, other))}};
}

// Whether `index` is reached: its holders are a quorum.
expr IsReached(Session& session, const expr& index, const std::vector<expr>& match, const std::vector<expr>& incoming,
               const std::vector<expr>& outgoing) {
  std::vector<expr> holders;
  for (const expr& at : match) holders.push_back(at >= index);
  return IsQuorum(session, {}, holders, incoming, outgoing);
}

// The commit index of a configuration never falls when match indexes grow, nothing above it is reached and everything
// below is, and it is the smaller one of the two sets'.
Outcome ProveCommit(Session& session) {
  const auto incoming = Set(session, "incoming");
  const auto outgoing = Set(session, "outgoing");
  const std::vector<expr> nobody(kMembers, session.False());
  std::vector<expr> before;
  std::vector<expr> after;
  std::vector<expr> grows{Any(session, incoming), Any(session, outgoing)};
  for (unsigned member = 0; member < kMembers; ++member) {
    before.push_back(session.Int(absl::StrFormat("before%d", member)));
    after.push_back(session.Int(absl::StrFormat("after%d", member)));
    grows.push_back(before.back() <= after.back());
  }
  const expr index = session.Int("index");
  const expr lower = session.Int("lower");
  const expr reached = IsReached(session, index, before, incoming, outgoing);
  const expr both = IsReached(session, index, before, incoming, nobody) && IsReached(session, index, before, outgoing, nobody);
  const expr claim = z3::implies(reached, IsReached(session, index, after, incoming, outgoing)) &&
                     z3::implies(reached && lower <= index, IsReached(session, lower, before, incoming, outgoing)) &&
                     reached == both;
  if (!session.Refute(grows, claim)) return Outcome::Proved();
  return {.answer = Answer::kCounterexample, .story = {"a commit index falls, or is not the smaller one of two"}};
}

}  // namespace

std::vector<Proof> QuorumProofs() {
  return {{.name = "majority",
           .what = "two majorities of up to five voters share a member",
           .run = [](Session& session) { return ProveMajorities(session, {}); }},
          {.name = "majority/off-by-one",
           .what = "half of the voters are a majority",
           .expected = Answer::kCounterexample,
           .run = [](Session& session) { return ProveMajorities(session, {.half_is_enough = true}); }},
          {.name = "joint-quorum",
           .what = "a joint quorum meets those of its own configuration, of the one before and of the one after",
           .run = [](Session& session) { return ProveMeeting(session, {}); }},
          {.name = "joint-quorum/by-union",
           .what = "a majority of all voters of both sets decides",
           .expected = Answer::kCounterexample,
           .run = [](Session& session) { return ProveMeeting(session, {.either_is_enough = true}); }},
          {.name = "joint-commit",
           .what = "the joint commit index never falls and is the smaller one of the two sets'",
           .run = [](Session& session) { return ProveCommit(session); }}};
}

}  // namespace detcd::proofs
