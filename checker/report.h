// A violation told to a person: the sentence, when it happened, and the operations concerned as lanes of text.
#pragma once

#include <span>
#include <string>

#include "checker/history.h"
#include "checker/observation.h"

namespace detcd::checker {

// Several lines, ending with a newline. `history` is searched for the operations that the violation names; each becomes
// a lane whose columns are the order (not the distance) of calls and returns:
//
//   K4: an answer older than one returned before the call
//   operation 2 (client 2: range a) stands at revision 2, but operation 1 ...
//   at event 31, 12.500 ms
//     |------|          operation 1 (client 1: put a=v1): revision 3
//               |----|  operation 2 (client 2: range a): revision 2
std::string Tell(const Violation& violation, std::span<const Operation> history);

}  // namespace detcd::checker
