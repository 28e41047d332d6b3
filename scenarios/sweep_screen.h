// What a person sees of a sweep: on a terminal one line that is written over, else a line every few seconds; failures
// as they come; a summary. All on standard output.
#pragma once

#include <cstdint>
#include <string>

#include "scenarios/sweep.h"
#include "scenarios/sweep.pb.h"

namespace detcd::scenario {

struct SweepPlan {
  uint64_t seeds = 0;
  uint32_t jobs = 1;
  int64_t wall_ns_max = 0;  // 0: no bound
  bool victims = false;     // a table of whom each kind hit
};

class SweepScreen {
 public:
  explicit SweepScreen(const SweepPlan& plan);

  void ShowProgress(const SweepProgress& progress, uint64_t failures);
  void ShowFailure(const Failure& failure);
  void ShowSummary(const SweepReport& report, bool interrupted);

 private:
  void Clear();

  SweepPlan plan_;
  bool terminal_;
  bool line_shown_ = false;
  int64_t shown_at_ns_ = 0;
};

// One line about one run or many.
std::string CountsText(uint64_t events, uint64_t virtual_ms, uint64_t operations, uint64_t answered, uint64_t refused,
                       uint64_t unknown, uint64_t leader_changes);

}  // namespace detcd::scenario
