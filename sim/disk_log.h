// What a member's disk holds of its log, read by the simulator itself: bytes of the stored files, not what the member says
// of them. Tells whether a disk that lost what it had reported to be safe has lost anything that its member counted on.
#pragma once

#include <vector>

#include "core/base/types.h"
#include "sim/sim_disk.h"

namespace detcd::sim {

// The terms of the entries of the log on `disk`, of index 1 and on: those of good records up to the first that is not.
std::vector<Term> ReadDiskLog(const SimDisk& disk);

}  // namespace detcd::sim
