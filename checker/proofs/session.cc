#include "checker/proofs/session.h"

#include <limits>

namespace detcd::proofs {
namespace {

z3::expr_vector Vector(Session& session, const std::vector<z3::expr>& of) {
  z3::expr_vector vector(session.context());
  for (const z3::expr& one : of) vector.push_back(one);
  return vector;
}

}  // namespace

void Session::Reset() {
  solver_ = z3::solver(context_);
  z3::params params(context_);
  params.set("random_seed", 0u);
  params.set("rlimit", Left());
  params.set("relevancy", 0u);  // halves the largest induction
  solver_.set(params);
}

// Zero would be no limit at all.
unsigned Session::Left() const {
  const uint64_t left = rlimit_ > used_ ? rlimit_ - used_ : 1;
  return static_cast<unsigned>(std::min<uint64_t>(left, std::numeric_limits<unsigned>::max()));
}

void Session::Note(const z3::stats& statistics) {
  for (unsigned i = 0; i < statistics.size(); ++i) {
    if (statistics.key(i) == "rlimit count") used_ = std::max<uint64_t>(used_, statistics.uint_value(i));
  }
}

std::optional<z3::model> Session::Find(const std::vector<z3::expr>& facts) {
  if (used_ >= rlimit_) throw Undetermined{"the budget is spent"};
  Reset();
  for (const z3::expr& fact : facts) solver_.add(fact);
  const z3::check_result result = solver_.check();
  Note(solver_.statistics());
  if (result == z3::unknown) throw Undetermined{solver_.reason_unknown()};
  if (result == z3::unsat) return std::nullopt;
  return solver_.get_model();
}

std::optional<z3::model> Session::Refute(std::vector<z3::expr> facts, const z3::expr& claim) {
  facts.push_back(!claim);
  return Find(facts);
}

std::optional<z3::model> Session::Maximise(const std::vector<z3::expr>& facts, const z3::expr& goal) {
  if (used_ >= rlimit_) throw Undetermined{"the budget is spent"};
  z3::optimize optimizer(context_);
  z3::params params(context_);
  params.set("rlimit", Left());
  optimizer.set(params);
  for (const z3::expr& fact : facts) optimizer.add(fact);
  optimizer.maximize(goal);
  const z3::check_result result = optimizer.check();
  Note(optimizer.statistics());
  if (result == z3::unknown) throw Undetermined{"optimisation gave up"};
  if (result == z3::unsat) return std::nullopt;
  return optimizer.get_model();
}

z3::expr AtLeast(Session& session, const std::vector<z3::expr>& of, unsigned count) {
  if (count == 0) return session.True();
  if (count > of.size()) return session.False();
  return z3::atleast(Vector(session, of), count);
}

z3::expr All(Session& session, const std::vector<z3::expr>& of) {
  return of.empty() ? session.True() : z3::mk_and(Vector(session, of));
}

z3::expr Any(Session& session, const std::vector<z3::expr>& of) {
  return of.empty() ? session.False() : z3::mk_or(Vector(session, of));
}

bool IsTrue(const z3::model& model, const z3::expr& condition) { return model.eval(condition, true).is_true(); }

int64_t IntegerOf(const z3::model& model, const z3::expr& number) {
  int64_t value = 0;
  const z3::expr found = model.eval(number, true);
  if (!found.is_numeral_i64(value)) throw Undetermined{"no integer: " + found.to_string()};
  return value;
}

int64_t MillionthsOf(const z3::model& model, const z3::expr& number) {
  const z3::expr scaled = number * 1'000'000;
  // Rounded down by Z3 itself, so that any rational will do.
  return IntegerOf(model, z3::expr(scaled.ctx(), Z3_mk_real2int(scaled.ctx(), scaled)));
}

}  // namespace detcd::proofs
