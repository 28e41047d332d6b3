#include "scenarios/zoo/zoo_table.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"

namespace detcd::scenario {
namespace {

bool BySweep(const MutantResult& result) { return !result.kills().empty() && result.kills(0).first_seed() > 0; }

// Of an even number of values the mean of the two in the middle; of none 0.
double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string SeedsAsked(const ZooReport& report) {
  uint64_t least = 0;
  uint64_t most = 0;
  for (const MutantResult& result : report.mutants()) {
    if (result.seeds_asked() == 0) continue;
    least = least == 0 ? result.seeds_asked() : std::min(least, result.seeds_asked());
    most = std::max(most, result.seeds_asked());
  }
  return least == most ? absl::StrFormat("%d", most) : absl::StrFormat("%d to %d", least, most);
}

std::string ShrunkCell(const ShrinkReport& shrunk) {
  return absl::StrFormat("%d / %d, %.1f s, %d of %d%s", shrunk.fault_lines(), shrunk.operations(), shrunk.wall_seconds(),
                         shrunk.other_seeds_failing(), shrunk.other_seeds(), shrunk.minimal() ? "" : ", bound reached");
}

std::string Row(const MutantResult& result) {
  std::string judges = result.outcome() == "killed" ? "" : result.outcome();
  for (const Kill& kill : result.kills()) judges += (judges.empty() ? "" : ", ") + kill.judge();
  for (const ScenarioKill& kill : result.scenario_kills()) {
    absl::StrAppendFormat(&judges, "%s%s: %s", judges.empty() ? "" : ", ", kill.scenario(), kill.judge());
  }
  std::string numbers = "– | – | –";
  if (BySweep(result)) {
    numbers = absl::StrFormat("%d | %.2g [%.2g, %.2g] | %.2f s", result.kills(0).first_seed(), result.probability(),
                              result.probability_low(), result.probability_high(), result.cpu_to_kill());
  }
  return absl::StrFormat("| %s | %s | %s | %s | %s |\n", result.id(), result.mechanism(), judges, numbers,
                         result.has_shrunk() ? ShrunkCell(result.shrunk()) : "–");
}

// Over the mutants whose first failure was shrunk: those of the core that a sweep kills.
std::string Medians(const ZooReport& report) {
  std::vector<double> cpu;
  std::vector<double> faults;
  std::vector<double> operations;
  std::vector<double> seconds;
  size_t confirmed = 0;
  size_t hardened = 0;
  for (const MutantResult& result : report.mutants()) {
    if (!result.has_shrunk()) continue;
    const ShrinkReport& shrunk = result.shrunk();
    cpu.push_back(result.cpu_to_kill());
    faults.push_back(shrunk.fault_lines());
    operations.push_back(shrunk.operations());
    seconds.push_back(shrunk.wall_seconds());
    confirmed += shrunk.confirmed() ? 1 : 0;
    hardened += shrunk.other_seeds_failing() >= 3 ? 1 : 0;
  }
  return absl::StrFormat(
      "Medians over the %d mutants of the core that a sweep kills: %.2f s of CPU a kill; shrunk to %.3g lines of faults and\n"
      "%.3g operations in %.1f s. Of the shrunk, %d fail alike in two further processes, %d under at least 3 of 10 other seeds.\n",
      cpu.size(), Median(cpu), Median(faults), Median(operations), Median(seconds), confirmed, hardened);
}

}  // namespace

bool IsGood(const MutantResult& result) { return result.outcome() == "killed" || result.outcome() == "equivalent"; }

std::string ZooTable(const ZooReport& report) {
  std::string text = absl::StrFormat(
      "## Measured\n\n"
      "By `detcd-sim zoo` with swarm %d in mixed fidelity, up to %s seeds each. CPU a kill: that of all seeds, divided by the\n"
      "kills. Shrunk, of the first failure: lines of faults / operations left, time, under how many of 10 other base seeds it\n"
      "fails.\n\n"
      "| id | mechanism | judges | first seed | kills a seed [95%%] | CPU a kill | shrunk |\n|---|---|---|---|---|---|---|\n",
      report.swarm_version(), SeedsAsked(report));
  for (const MutantResult& result : report.mutants()) text += Row(result);
  return text + "\n" + Medians(report);
}

std::string ResultLine(const MutantResult& result) {
  std::string judges;
  for (const Kill& kill : result.kills()) {
    judges += absl::StrFormat("%s%s", judges.empty() ? "" : ", ", kill.judge());
    if (kill.count() > 1) absl::StrAppendFormat(&judges, " x%d", kill.count());
  }
  for (const ScenarioKill& kill : result.scenario_kills()) {
    absl::StrAppendFormat(&judges, "%s%s: %s", judges.empty() ? "" : ", ", kill.scenario(), kill.judge());
  }
  std::string numbers;
  if (result.seeds() > 0) numbers = absl::StrFormat("%6d seeds %7.1f s", result.seeds(), result.cpu_seconds());
  if (BySweep(result)) {
    absl::StrAppendFormat(&numbers, "  first %6d  %7.2f s a kill  p %.4f [%.4f, %.4f]", result.kills(0).first_seed(),
                          result.cpu_to_kill(), result.probability(), result.probability_low(), result.probability_high());
  }
  std::string line = absl::StrFormat("%-34s %-10s %s  %s", result.id(), result.outcome() + (IsGood(result) ? "" : " !"), numbers, judges);
  if (result.has_shrunk()) absl::StrAppendFormat(&line, "  shrunk to %s", ShrunkCell(result.shrunk()));
  if (!result.trouble().empty()) line += "  " + result.trouble();
  return line;
}

}  // namespace detcd::scenario
