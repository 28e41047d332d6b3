#include "scenarios/sweep_totals.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_format.h"
#include "core/base/probe.h"

namespace detcd::scenario {
namespace {

// Stands for the digest of a run that has none.
constexpr uint64_t kNoDigest = 0xDEAD;

// Every kind of fault with every victim, in the order of a report.
template <class Visit>
void ForEachVictim(Visit visit) {
  for (size_t kind = 0; kind < sim::kFaultKindCount; ++kind) {
    for (size_t role = 0; role < sim::kVictimRoleCount; ++role) {
      for (size_t phase = 0; phase < sim::kPhaseCount; ++phase) {
        visit(static_cast<sim::FaultKind>(kind),
              sim::Victim{.role = static_cast<sim::VictimRole>(role), .phase = static_cast<sim::Phase>(phase)});
      }
    }
  }
}

constexpr size_t kVictimCells = sim::kFaultKindCount * sim::kVictimRoleCount * sim::kPhaseCount;

bool IsInert(uint64_t armed, uint64_t changing) { return armed >= kInertFaultArmedMin && changing == 0; }

}  // namespace

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFine:
      return "fine";
    case Verdict::kViolation:
      return "violation";
    case Verdict::kNotLive:
      return "not live";
    case Verdict::kCrash:
      return "crash";
    case Verdict::kUndetermined:
      return "undetermined";
  }
  return "unknown";
}

SeedReport MakeReport(const RunResult& result) {
  SeedReport report;
  report.set_verdict(static_cast<uint32_t>(result.verdict));
  if (result.violation.has_value()) {
    report.set_property(result.violation->property);
    report.set_signature(result.violation->signature);
    report.set_sentence(result.violation->sentence);
  }
  report.set_story(result.story);
  report.set_digest(result.digest);
  for (const uint64_t value : result.measured) report.add_measured(value);
  for (const uint64_t digest : result.checkpoints) report.add_checkpoints(digest);
  report.set_events(result.events);
  for (const uint64_t count : result.events_by_kind) report.add_events_by_kind(count);
  report.set_virtual_ms(result.virtual_ms);
  report.set_operations(result.operations);
  report.set_answered(result.answered);
  report.set_unknown(result.unknown);
  report.set_refused(result.refused);
  report.set_leader_changes(result.leader_changes);
  report.set_profile(static_cast<uint32_t>(result.profile));
  if (result.reported.has_value()) report.set_reported(result.reported->property + ": " + result.reported->sentence);
  for (size_t i = 0; i < sim::kFaultKindCount; ++i) {
    report.add_armed(result.effects.armed(static_cast<sim::FaultKind>(i)));
  }
  ForEachVictim([&](sim::FaultKind kind, sim::Victim victim) {
    report.add_effective(result.effects.effective(kind, victim));
    report.add_changing(result.effects.changing(kind, victim));
  });
  return report;
}

SweepTotals::SweepTotals() : probes_(AllProbes().size()) {}

void SweepTotals::Add(const SeedReport& report) {
  ++verdicts_[std::min<size_t>(report.verdict(), verdicts_.size() - 1)];
  digest_.Add(report.seed());
  digest_.Add(report.verdict() == static_cast<uint32_t>(Verdict::kCrash) ? kNoDigest : report.digest());
  totals_.set_seeds(totals_.seeds() + 1);
  totals_.set_wire_seeds(totals_.wire_seeds() + (report.wire() ? 1 : 0));
  totals_.set_beyond_seeds(totals_.beyond_seeds() + (report.profile() == BEYOND ? 1 : 0));
  totals_.set_negative_seeds(totals_.negative_seeds() + (report.profile() == NEGATIVE ? 1 : 0));
  const uint64_t reported = report.reported().empty() ? 0 : 1;
  const bool of_clocks = report.profile() == CLOCKS;
  totals_.set_clocks_seeds(totals_.clocks_seeds() + (of_clocks ? 1 : 0));
  of_clocks ? totals_.set_reported_leases(totals_.reported_leases() + reported)
            : totals_.set_reported_seeds(totals_.reported_seeds() + reported);
  totals_.set_events(totals_.events() + report.events());
  totals_.set_virtual_ms(totals_.virtual_ms() + report.virtual_ms());
  totals_.set_operations(totals_.operations() + report.operations());
  totals_.set_answered(totals_.answered() + report.answered());
  totals_.set_unknown(totals_.unknown() + report.unknown());
  totals_.set_refused(totals_.refused() + report.refused());
  totals_.set_leader_changes(totals_.leader_changes() + report.leader_changes());
  (report.wire() ? wire_cpu_ns_ : direct_cpu_ns_) += report.cpu_ns();
  AddEffects(report);
  for (uint32_t probe : report.probes()) {
    if (probe < probes_.size()) probes_[probe] = true;
  }
}

// A report without counts is that of a death.
void SweepTotals::AddEffects(const SeedReport& report) {
  if (report.armed_size() != int{sim::kFaultKindCount} || report.effective_size() != int{kVictimCells} ||
      report.changing_size() != int{kVictimCells}) {
    return;
  }
  sim::EffectCounts seed;
  int cell = 0;
  ForEachVictim([&](sim::FaultKind kind, sim::Victim victim) {
    seed.Effective(kind, victim, report.effective(cell));
    seed.Changing(kind, victim, report.changing(cell));
    victims_.Effective(kind, victim, report.effective(cell));
    victims_.Changing(kind, victim, report.changing(cell));
    ++cell;
  });
  for (size_t i = 0; i < kinds_.size(); ++i) {
    const uint64_t armed = report.armed(static_cast<int>(i));
    const uint64_t effective = seed.effective(static_cast<sim::FaultKind>(i));
    const uint64_t changing = seed.changing(static_cast<sim::FaultKind>(i));
    kinds_[i].armed += armed;
    kinds_[i].effective += effective;
    kinds_[i].changing += changing;
    kinds_[i].seeds_armed += armed > 0 ? 1 : 0;
    kinds_[i].seeds_effective += effective > 0 ? 1 : 0;
    kinds_[i].seeds_changing += changing > 0 ? 1 : 0;
  }
}

int SweepTotals::ExitCode() const {
  for (size_t code = 1; code < verdicts_.size(); ++code) {
    if (verdicts_[code] > 0) return static_cast<int>(code);
  }
  const bool useless = std::any_of(kinds_.begin(), kinds_.end(),
                                   [](const Kind& kind) { return IsDead(kind) || IsInert(kind.armed, kind.changing); });
  return useless ? static_cast<int>(Verdict::kUndetermined) : 0;
}

uint64_t SweepTotals::failures() const { return totals_.seeds() - verdicts_[0]; }

std::vector<Fault> SweepTotals::Faults() const {
  std::vector<Fault> faults;
  faults.reserve(kinds_.size());
  std::array<Fault*, sim::kFaultKindCount> index{};
  for (size_t i = 0; i < kinds_.size(); ++i) {
    if (kinds_[i].armed == 0 && kinds_[i].effective == 0) continue;
    Fault fault;
    fault.set_kind(std::string(sim::FaultKindName(static_cast<sim::FaultKind>(i))));
    fault.set_armed(kinds_[i].armed);
    fault.set_effective(kinds_[i].effective);
    fault.set_seeds_armed(kinds_[i].seeds_armed);
    fault.set_seeds_effective(kinds_[i].seeds_effective);
    fault.set_dead(IsDead(kinds_[i]));
    fault.set_changing(kinds_[i].changing);
    fault.set_seeds_changing(kinds_[i].seeds_changing);
    fault.set_inert(IsInert(kinds_[i].armed, kinds_[i].changing));
    faults.push_back(std::move(fault));
    index[i] = &faults.back();
  }
  ForEachVictim([&](sim::FaultKind kind, sim::Victim victim) {
    if (victims_.effective(kind, victim) == 0) return;
    Victims& told = *index[static_cast<size_t>(kind)]->add_victims();
    told.set_role(std::string(sim::VictimRoleName(victim.role)));
    told.set_phase(std::string(sim::PhaseName(victim.phase)));
    told.set_effective(victims_.effective(kind, victim));
    told.set_changing(victims_.changing(kind, victim));
  });
  return faults;
}

std::vector<std::string> SweepTotals::ProbesNeverReached() const {
  // One name may stand at several places (a template's instances): reached once is reached.
  std::set<std::string> reached;
  std::set<std::string> missed;
  for (size_t i = 0; i < probes_.size(); ++i) (probes_[i] ? reached : missed).insert(AllProbes()[i].name);
  std::vector<std::string> names;
  std::set_difference(missed.begin(), missed.end(), reached.begin(), reached.end(), std::back_inserter(names));
  return names;
}

std::string SweepTotals::DigestText() const { return absl::StrFormat("%016x", digest_.value()); }

void SweepTotals::FillIn(SweepReport& report) const {
  *report.mutable_totals() = totals_;
  const auto count = [&](Verdict verdict) { return verdicts_[static_cast<size_t>(verdict)]; };
  report.mutable_totals()->set_fine(count(Verdict::kFine));
  report.mutable_totals()->set_violation(count(Verdict::kViolation));
  report.mutable_totals()->set_not_live(count(Verdict::kNotLive));
  report.mutable_totals()->set_crash(count(Verdict::kCrash));
  report.mutable_totals()->set_undetermined(count(Verdict::kUndetermined));
  for (Fault& fault : Faults()) *report.add_faults() = std::move(fault);
  for (std::string& name : ProbesNeverReached()) report.add_probes_never_reached(std::move(name));
  report.set_digest(DigestText());
  report.set_exit_code(ExitCode());
  report.mutable_cost()->set_cpu_seconds(static_cast<double>(cpu_ns()) / 1e9);
  report.mutable_cost()->set_direct_cpu_seconds(static_cast<double>(direct_cpu_ns_) / 1e9);
  report.mutable_cost()->set_wire_cpu_seconds(static_cast<double>(wire_cpu_ns_) / 1e9);
}

}  // namespace detcd::scenario
