// One use of Z3: a context, a budget in Z3's resource units (never in time, so that a verdict is the same on every
// machine), and the words the models share. Z3 throws, and its numbers are its own: none of this is linked into core,
// the simulator or the judges.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <z3++.h>

namespace detcd::proofs {

// The budget ended, or Z3 cannot tell.
struct Undetermined {
  std::string reason;
};

class Session {
 public:
  explicit Session(uint64_t rlimit) : solver_(context_), rlimit_(rlimit) {}
  z3::context& context() { return context_; }

  // Whether the facts can hold together: a model, or nothing when they contradict each other. Throws Undetermined.
  std::optional<z3::model> Find(const std::vector<z3::expr>& facts);
  // Whether `claim` follows from `facts`: nothing when it does, else a model of the facts in which it fails.
  std::optional<z3::model> Refute(std::vector<z3::expr> facts, const z3::expr& claim);
  // As Find, with the model in which `goal` is greatest. The facts must be linear and bound it.
  std::optional<z3::model> Maximise(const std::vector<z3::expr>& facts, const z3::expr& goal);

  // Spent so far. Z3 counts per context, whatever was asked.
  uint64_t used() const { return used_; }

  z3::expr Bool(const std::string& name) { return context_.bool_const(name.c_str()); }
  z3::expr Int(const std::string& name) { return context_.int_const(name.c_str()); }
  z3::expr Real(const std::string& name) { return context_.real_const(name.c_str()); }
  z3::expr True() { return context_.bool_val(true); }
  z3::expr False() { return context_.bool_val(false); }
  z3::expr Number(int n) { return context_.int_val(n); }
  // The fraction numerator / denominator.
  z3::expr Fraction(int numerator, int denominator) { return context_.real_val(numerator, denominator); }

 private:
  void Reset();
  unsigned Left() const;
  void Note(const z3::stats& statistics);

  z3::context context_;
  z3::solver solver_;
  uint64_t rlimit_;
  uint64_t used_ = 0;
};

// At least `count` of them hold; `count` may be zero.
z3::expr AtLeast(Session& session, const std::vector<z3::expr>& of, unsigned count);
z3::expr All(Session& session, const std::vector<z3::expr>& of);
z3::expr Any(Session& session, const std::vector<z3::expr>& of);

// Values of a model; what the model leaves open is false or zero.
bool IsTrue(const z3::model& model, const z3::expr& condition);
int64_t IntegerOf(const z3::model& model, const z3::expr& number);
// In millionths, rounded down.
int64_t MillionthsOf(const z3::model& model, const z3::expr& number);

// The smallest number of voters of which any two groups share one.
constexpr unsigned Majority(unsigned voters) { return voters / 2 + 1; }

}  // namespace detcd::proofs
