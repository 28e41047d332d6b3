// `detcd-sim zoo`: builds each mutant, and measures how soon it is found. The testbed's own test: a mutant that survives
// says that a fault, a workload or a judge is missing.
#pragma once

#include <cstdint>
#include <string>

namespace detcd::scenario {

struct ZooCommand {
  std::string only;        // the mutant of this id; empty: all
  uint64_t seeds = 20'000; // a sweep's bound; others: kKillsMax kills, kCpuSecondsMax
  uint32_t jobs = 1;
  std::string table_file;  // measure nothing: the table of this report; empty: measure
  std::string json_file;   // ZooReport, read first and written after each mutant; empty: none
};

inline constexpr uint64_t kKillsMax = 10;
inline constexpr uint64_t kCpuSecondsMax = 600;
// Of a mutant of the simulator or of a judge that a sweep must find: enough for any fault to be called dead.
inline constexpr uint64_t kInstrumentSeeds = 2'000;

// Measures, and shrinks the first failure of each mutant of the core, which stays in build/zoo/shrunk/ID.scenario.
// Run from a git working tree of detcd. Returns 1 when a mutant survives, cannot be measured, does not repeat, or is
// killed by a judge that its header does not list; else 0. Throws UsageError.
int RunZoo(const ZooCommand& command);

}  // namespace detcd::scenario
