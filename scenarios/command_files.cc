#include "scenarios/command_files.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include <sched.h>

#include "absl/strings/str_format.h"
#include "scenarios/commands.h"
#include "scenarios/scenario_text.h"
#include "scenarios/swarm.h"
#include "scenarios/sweep_totals.h"

namespace detcd::scenario {

Scenario ReadScenario(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (file) text << file.rdbuf();
  if (!file || !text) throw UsageError{path + ": " + std::strerror(errno != 0 ? errno : EIO)};
  Scenario scenario;
  if (std::string why = ParseScenarioText(text.str(), scenario); !why.empty()) throw UsageError{path + ": " + why};
  if (std::string why = CheckScenario(scenario); !why.empty()) throw UsageError{path + ": " + why};
  return scenario;
}

OutputFile::OutputFile(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "w")) {
  if (file_ == nullptr) throw UsageError{path + ": " + std::strerror(errno)};
}

OutputFile::~OutputFile() {
  if (file_ != nullptr) std::fclose(file_);
}

void OutputFile::Close() {
  const bool failed = std::ferror(file_) != 0 || std::fflush(file_) != 0;
  if (std::fclose(std::exchange(file_, nullptr)) != 0 || failed) throw UsageError{path_ + ": cannot be written"};
}

std::string Quoted(const std::string& word) {
  if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%") == std::string::npos &&
      !word.empty()) {
    return word;
  }
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

Scenario DrawScenario(uint64_t seed, FidelityChoice fidelity, ProfileChoice profile, const KnobSheet& sheet) {
  Scenario scenario = MakeSwarm(seed, fidelity, profile);
  sheet.Apply(scenario);
  DropWhatKnobsForbid(scenario);
  return scenario;
}

std::string SeedOptions(uint64_t seed, FidelityChoice fidelity, ProfileChoice profile, const KnobSheet& sheet) {
  return absl::StrFormat("--seed %d%s%s", seed, ChoiceText(fidelity, profile), sheet.Options());
}

std::string ReplayOfSeed(const std::string& program, uint64_t seed, FidelityChoice fidelity, ProfileChoice profile,
                         const KnobSheet& sheet) {
  return absl::StrFormat("%s run %s", Quoted(program), SeedOptions(seed, fidelity, profile, sheet));
}

SeedReport RunOne(const Scenario& scenario, const RunOptions& options) {
  SeedReport report = MakeReport(RunScenario(scenario, options));
  report.set_wire(scenario.fidelity() == WIRE);
  return report;
}

uint32_t Processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? static_cast<uint32_t>(CPU_COUNT(&set)) : 1;
}

}  // namespace detcd::scenario
