// A study's numbers as a chart: one panel for each metric, bars of the means in groups, with lines from the least to the
// most. A standalone SVG, the same bytes for the same report.
#pragma once

#include <string>

#include "scenarios/study/study.pb.h"

namespace detcd::scenario {

// Groups are the cases, or the first key's values where there is one case; in each the remaining values are the series.
std::string StudyChart(const Study& study, const StudyReport& report);

// The least of 1, 2 or 5 times a power of ten that makes at most `ticks` steps up to `most`; at least 1.
double TickStep(double most, int ticks);

}  // namespace detcd::scenario
