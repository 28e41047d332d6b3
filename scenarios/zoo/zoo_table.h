// What scenarios/zoo/README.md shows of a report. Pure: from a report to text.
#pragma once

#include <string>

#include "scenarios/zoo/zoo.pb.h"

namespace detcd::scenario {

// The section `## Measured`: how it was measured, a row for each mutant, the medians over those of the core. Markdown,
// ends with a newline.
std::string ZooTable(const ZooReport& report);

// One mutant on the terminal, in one line without a newline.
std::string ResultLine(const MutantResult& result);

bool IsGood(const MutantResult& result);

}  // namespace detcd::scenario
