#include "scenarios/sweep_screen.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include <unistd.h>

#include "absl/strings/str_format.h"
#include "scenarios/build_id.h"
#include "sim/faults/effects.h"

namespace detcd::scenario {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kTerminalInterval = kSecond / 4;
constexpr int64_t kPlainInterval = 5 * kSecond;

std::string TimeText(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 100) return absl::StrFormat("%d s", whole);
  if (whole < 6000) return absl::StrFormat("%d min %02d s", whole / 60, whole % 60);
  return absl::StrFormat("%d h %02d min", whole / 3600, whole / 60 % 60);
}

double PerSecond(uint64_t count, double seconds) { return seconds > 0 ? static_cast<double>(count) / seconds : 0; }

std::string FaultsText(const SweepReport& report) {
  std::string text = absl::StrFormat("%-18s %9s %10s %9s %12s %10s %9s\n", "fault", "armed", "effective", "changing",
                                     "seeds armed", "effective", "changing");
  for (const Fault& fault : report.faults()) {
    std::string_view word;
    if (fault.inert()) word = "  INERT: armed, and never any change of state";
    if (fault.dead()) word = "  DEAD: armed, and never any effect";
    absl::StrAppendFormat(&text, "  %-16s %9d %10d %9d %12d %10d %9d%s\n", fault.kind(), fault.armed(), fault.effective(),
                          fault.changing(), fault.seeds_armed(), fault.seeds_effective(), fault.seeds_changing(), word);
  }
  return text;
}

// One row for each kind and phase, one column for each role: effective/changing.
std::string VictimsText(const SweepReport& report) {
  constexpr size_t kRoles = sim::kVictimRoleCount;
  std::string text = absl::StrFormat("%-18s %-8s", "effective/changing", "phase");
  for (size_t role = 0; role < kRoles; ++role) {
    absl::StrAppendFormat(&text, " %15s", sim::VictimRoleName(static_cast<sim::VictimRole>(role)));
  }
  text += "\n";
  for (const Fault& fault : report.faults()) {
    for (size_t phase = 0; phase < sim::kPhaseCount; ++phase) {
      const std::string_view phase_name = sim::PhaseName(static_cast<sim::Phase>(phase));
      std::array<std::string, kRoles> cells;
      for (const Victims& victims : fault.victims()) {
        if (victims.phase() != phase_name) continue;
        for (size_t role = 0; role < kRoles; ++role) {
          if (victims.role() != sim::VictimRoleName(static_cast<sim::VictimRole>(role))) continue;
          cells[role] = absl::StrFormat("%d/%d", victims.effective(), victims.changing());
        }
      }
      if (std::ranges::all_of(cells, [](const std::string& cell) { return cell.empty(); })) continue;
      absl::StrAppendFormat(&text, "  %-16s %-8s", fault.kind(), phase_name);
      for (const std::string& cell : cells) absl::StrAppendFormat(&text, " %15s", cell.empty() ? "-" : cell);
      text += "\n";
    }
  }
  return text;
}

void Say(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace

SweepScreen::SweepScreen(const SweepPlan& plan) : plan_(plan), terminal_(isatty(STDOUT_FILENO) == 1) {}

void SweepScreen::Clear() {
  if (line_shown_) Say("\r\033[K");
  line_shown_ = false;
}

void SweepScreen::ShowProgress(const SweepProgress& progress, uint64_t failures) {
  const int64_t interval = terminal_ ? kTerminalInterval : kPlainInterval;
  if (progress.wall_ns - shown_at_ns_ < interval) return;
  shown_at_ns_ = progress.wall_ns;
  const double seconds = static_cast<double>(progress.wall_ns) / 1e9;
  const double rate = PerSecond(progress.seeds_done, seconds);
  double left = rate > 0 ? static_cast<double>(plan_.seeds - progress.seeds_done) / rate : 0;
  if (plan_.wall_ns_max > 0) {
    const double time_left = static_cast<double>(plan_.wall_ns_max - progress.wall_ns) / 1e9;
    if (time_left < left || rate <= 0) left = time_left > 0 ? time_left : 0;
  }
  Clear();
  Say(absl::StrFormat("%d of %d seeds, %.1f/s, %s left, %d failure%s", progress.seeds_done, plan_.seeds, rate,
                      rate > 0 || plan_.wall_ns_max > 0 ? TimeText(left) : "?", failures, failures == 1 ? "" : "s"));
  if (!terminal_) Say("\n");
  line_shown_ = terminal_;
  std::fflush(stdout);
}

void SweepScreen::ShowFailure(const Failure& failure) {
  Clear();
  Say(absl::StrFormat("seed %d: %s, %s: %s\n  %s\n", failure.seed(), failure.verdict(), failure.property(), failure.sentence(),
                      failure.replay()));
  std::fflush(stdout);
}

void SweepScreen::ShowSummary(const SweepReport& report, bool interrupted) {
  Clear();
  const Totals& totals = report.totals();
  const Cost& cost = report.cost();
  const double wall = cost.wall_seconds();
  const double cpu = cost.cpu_seconds();
  uint64_t failed = totals.seeds() - totals.fine();
  Say(absl::StrFormat("%s%d seeds (%d of them wire) in %s, %d failed\n", interrupted ? "interrupted: " : "", totals.seeds(),
                      totals.wire_seeds(), TimeText(wall), failed));
  const auto count = [](std::string_view verdict, uint64_t seeds) {
    if (seeds > 0) Say(absl::StrFormat("  %-14s %d\n", verdict, seeds));
  };
  count("violation", totals.violation());
  count("not live", totals.not_live());
  count("crash or hang", totals.crash());
  count("undetermined", totals.undetermined());
  if (totals.beyond_seeds() > 0) Say(absl::StrFormat("beyond      %d seeds\n", totals.beyond_seeds()));
  if (totals.negative_seeds() > 0) {
    Say(absl::StrFormat("negative    %d seeds: in %d a loss, reported by a judge; in the other fine ones nothing was lost\n",
                        totals.negative_seeds(), totals.reported_seeds()));
  }
  if (totals.clocks_seeds() > 0) {
    Say(absl::StrFormat("clocks      %d seeds: in %d a lease that clocks broke, reported by a judge\n", totals.clocks_seeds(),
                        totals.reported_leases()));
  }
  // Per core: of CPU time, so that other load on the machine does not count.
  Say(absl::StrFormat("rate        %.1f seeds/s with %d jobs; per CPU second %.1f seeds", PerSecond(totals.seeds(), wall),
                      cost.jobs(), PerSecond(totals.seeds(), cpu)));
  if (totals.wire_seeds() > 0 && totals.wire_seeds() < totals.seeds()) {
    Say(absl::StrFormat(" (direct %.1f, wire %.1f)", PerSecond(totals.seeds() - totals.wire_seeds(), cost.direct_cpu_seconds()),
                        PerSecond(totals.wire_seeds(), cost.wire_cpu_seconds())));
  }
  Say(absl::StrFormat(", %.0f events\nCPU time    %.1f s\n", PerSecond(totals.events(), cpu), cpu));
  Say(CountsText(totals.events(), totals.virtual_ms(), totals.operations(), totals.answered(), totals.refused(), totals.unknown(),
                 totals.leader_changes()) + "\n");
  Say(FaultsText(report));
  if (plan_.victims) Say(VictimsText(report));
  if (report.probes_never_reached_size() > 0) {
    Say(absl::StrFormat("probes never reached (%d):\n", report.probes_never_reached_size()));
    for (const std::string& probe : report.probes_never_reached()) Say("  " + probe + "\n");
  }
  Say(absl::StrFormat("digest      %s; %d seeds run twice and compared\n", report.digest(), totals.compared_seeds()));
  Say("build       " + ThisBuildText() + absl::StrFormat("; swarm %d\n", report.swarm_version()));
  if (report.failures_size() > 0) {
    Say("first failure, replayed by\n" + report.failures(0).replay() + "\n");
  }
  std::fflush(stdout);
}

std::string CountsText(uint64_t events, uint64_t virtual_ms, uint64_t operations, uint64_t answered, uint64_t refused,
                       uint64_t unknown, uint64_t leader_changes) {
  return absl::StrFormat(
      "events      %d in %.1f s of virtual time\noperations  %d: %d answered, %d refused, %d of unknown outcome\nleaders     %d changes",
      events, static_cast<double>(virtual_ms) / 1e3, operations, answered, refused, unknown, leader_changes);
}

}  // namespace detcd::scenario
