// Runs the grid of a study in worker processes and tells what was measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/knob_sheet.h"
#include "scenarios/metrics.h"
#include "scenarios/runner.h"
#include "scenarios/scenario.pb.h"
#include "scenarios/study/study.pb.h"

namespace detcd::scenario {

struct StudyCommand {
  std::string study_file;
  uint64_t seeds = 0;       // of each cell; 0: as the study says
  uint32_t jobs = 0;        // 0: as many as there are processors; changes the time it takes, not the result
  std::string csv_file;     // each empty: none
  std::string json_file;    // StudyReport
  std::string svg_file;
};

// One point of the grid: `scenario` is what all its seeds share.
struct StudyCell {
  std::string name;
  std::vector<std::string> values;
  bool swarm = false;       // the scenario is drawn for each seed
  Scenario scenario;
  KnobSheet sheet;
};

// The grid, the last knob's values fastest. Empty: `trouble` names the field and what is wrong with it.
std::vector<StudyCell> MakeCells(const Study& study, std::string& trouble);
// What is run in `cell` under `seed`.
Scenario ScenarioOf(const StudyCell& cell, uint64_t seed);

// How each of its runs is run: measured over the study's window, and over all of it where a judge says something before.
RunOptions OptionsOf(const Study& study);

// Prints the table, which depends on the study and the build alone. 0; 130 when interrupted. Throws UsageError.
int RunStudy(const StudyCommand& command);

// The table for people, and all numbers as comma-separated values with a heading.
std::string StudyTable(const Study& study, const StudyReport& report);
std::string StudyCsv(const StudyReport& report);

}  // namespace detcd::scenario
