// Which build this is: results of two builds are compared only knowing both.
#pragma once

#include <string>

#include "scenarios/sweep.pb.h"

namespace detcd::scenario {

Build ThisBuild();

// In one line.
std::string ThisBuildText();

}  // namespace detcd::scenario
