// Adds up a sweep: what its summary, its JSON and its exit code are made from.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/digest.h"
#include "scenarios/runner.h"
#include "scenarios/sweep.pb.h"
#include "sim/faults/effects.h"

namespace detcd::scenario {

// A kind of fault that was armed at least this often in a sweep, and never effective, is dead: the sweep says so and
// fails, because what it claims to have tried it did not.
inline constexpr uint64_t kDeadFaultArmedMin = 200;

// One that was armed at least this often and never state-changing is inert, and fails the sweep too: it bites only where
// nothing depends on it. The rarest of the swarm changes something in one of some ten times that it is armed.
inline constexpr uint64_t kInertFaultArmedMin = 2'000;

std::string_view VerdictName(Verdict verdict);

// What a run says, as the report of its seed.
SeedReport MakeReport(const RunResult& result);

class SweepTotals {
 public:
  SweepTotals();

  void Add(const SeedReport& report);

  // 0 when all is well. Else the gravest that happened, a violation (1) before no progress (2), a crash or hang (3),
  // and what is undetermined, divergent or a dead fault (4): the smallest number.
  int ExitCode() const;

  uint64_t failures() const;
  uint64_t cpu_ns() const { return direct_cpu_ns_ + wire_cpu_ns_; }
  const Totals& totals() const { return totals_; }
  // All kinds that were armed or effective.
  std::vector<Fault> Faults() const;
  std::vector<std::string> ProbesNeverReached() const;
  std::string DigestText() const;

  // Totals, faults, probes, digest and CPU time; the rest is the caller's.
  void FillIn(SweepReport& report) const;

 private:
  void AddEffects(const SeedReport& report);

  struct Kind {
    uint64_t armed = 0;
    uint64_t effective = 0;  // of all victims
    uint64_t changing = 0;
    uint64_t seeds_changing = 0;
    uint64_t seeds_armed = 0;
    uint64_t seeds_effective = 0;
  };
  static bool IsDead(const Kind& kind) { return kind.armed >= kDeadFaultArmedMin && kind.effective == 0; }

  Totals totals_;
  Digest digest_;
  std::array<uint64_t, 5> verdicts_{};
  std::array<Kind, sim::kFaultKindCount> kinds_{};
  sim::EffectCounts victims_;
  std::vector<bool> probes_;  // by place in AllProbes
  uint64_t direct_cpu_ns_ = 0;
  uint64_t wire_cpu_ns_ = 0;
};

}  // namespace detcd::scenario
