// Settings that take the place of those a scenario has: `--set KEY=VALUE` of the command line, and the grid of a study.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "scenarios/scenario.pb.h"

namespace detcd::scenario {

// Keys are the number and bool fields of Knobs, with or without `_ms`; `pre_vote` and `check_quorum` (a flag `no_X` by
// its positive name); and `drift`, in parts per million: of odd members fast, of even ones slow, from the start.
// election_timeout and heartbeat take each other along, ten to one, when only one of them is set.
class KnobSheet {
 public:
  // Empty when `text`, `KEY=VALUE`, was added; else what is wrong with it, with the keys there are.
  std::string Add(const std::string& text);

  void Apply(Scenario& scenario) const;

  bool empty() const { return entries_.empty(); }
  // ` --set heartbeat=50 --set pre_vote=off`: nothing in it is special to a shell.
  std::string Options() const;
  std::vector<std::string> Arguments() const;

 private:
  std::vector<std::pair<std::string, std::string>> entries_;
};

}  // namespace detcd::scenario
