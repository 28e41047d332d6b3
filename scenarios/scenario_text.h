// Scenarios as text: protobuf's text format, laid out for people.
#pragma once

#include <string>

#include "scenarios/scenario.pb.h"

namespace detcd::scenario {

// One line for each field of the scenario, so for each episode and each operation; the parser of the text format reads
// it back to an equal scenario. Ends with a newline.
std::string ScenarioText(const Scenario& scenario);

// How many lines of it a reader must keep in mind.
struct ScenarioSize {
  uint64_t fault_lines = 0;  // episodes, clocks, lost members, and the laws of links and disks
  uint64_t operations = 0;
};
ScenarioSize SizeOf(const Scenario& scenario);

// Reads a text, of a scenario or of a study. Empty when that worked; else what is wrong, with its place.
std::string ParseScenarioText(const std::string& text, google::protobuf::Message& message);

}  // namespace detcd::scenario
