// detcd-sim check: judges histories that clients of real clusters recorded (checker/history.proto).
#pragma once

#include <string>
#include <vector>

namespace detcd::scenario {

struct CheckCommand {
  std::vector<std::string> files;
};

// One line for a history that is fine; the violation with the operations concerned as lanes for one that is not. 0, 1 or
// 4, of several the smallest that is not 0. Throws UsageError for a file that cannot be read or is no history.
int RunCheck(const CheckCommand& command);

}  // namespace detcd::scenario
