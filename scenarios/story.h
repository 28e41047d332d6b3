// A failed run as a story for people: what is broken, in one sentence; the operations that matter, as lanes; and what
// led to it, in few lines. Pure: from what a run recorded to text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checker/history.h"
#include "checker/observation.h"

namespace detcd::scenario {

enum class MarkKind : uint8_t {
  kFaultBegins, kFaultEnds, kCrash, kRestart,   // what the plan did
  kLeader, kRole, kVote, kNote,                 // what members became, and their warnings
  kCommit, kSync,
  kCall, kReturn,                               // of operations
};

// Something that happened and may be worth telling.
struct Mark {
  uint64_t event = 0;
  int64_t nanos = 0;             // true time
  uint32_t lane = 0;             // 0: the world; members from 1; clients after them
  MarkKind kind = MarkKind::kNote;
  uint64_t term = 0;             // of the member, after it; 0: unknown
  uint64_t subject = 0;          // calls and returns: the operation; faults: the episode's place in the scenario
  std::string text;
  std::vector<uint32_t> touched; // faults: the lanes they act on
};

// What a run leaves behind for its story.
struct RunRecord {
  uint32_t members = 0;
  uint32_t clients = 0;          // probers included
  std::vector<Mark> marks;       // in order of events
  // By number of event: the event whose message, timer or disk call it handled; 0: none. And the lane in which it ran.
  std::vector<uint64_t> parents;
  std::vector<uint32_t> lanes;
};

inline constexpr size_t kCauseLinesMax = 30;
inline constexpr size_t kLaneRowsMax = 24;

// `m2`, `c1`, of probers `p3`.
std::string LaneName(const RunRecord& record, uint32_t clients, uint32_t lane);

// Time downwards, a lane for each member and for each client whose operation the violation names:
//
//             ms  m1            m2            c1
//        801.200  |             leader of 2   |
//       1900.000  #             |             |               partition { group: 1 } begins
//       1900.310  #             |             put k1=v7 -> m2
//
// `|` up, `:` down, `#` under a fault. `clients` without the probers.
std::string LaneDiagram(const RunRecord& record, uint32_t clients, const checker::Violation& violation);

// The significant part of what the violation follows from, the latest first to be kept, in order of time: at most
// kCauseLinesMax lines.
std::string CausalPast(const RunRecord& record, uint32_t clients, const checker::Violation& violation);

}  // namespace detcd::scenario
