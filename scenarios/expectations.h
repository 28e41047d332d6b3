// Judges what a scenario expects of its run, and measures the window that a study asks for.
#pragma once

#include <optional>
#include <vector>

#include "checker/observation.h"
#include "scenarios/measures.h"
#include "scenarios/scenario.pb.h"

namespace detcd::scenario {

class Expectations {
 public:
  // `study`: a window to be measured beside those of `scenario`, which outlives this.
  Expectations(const Scenario& scenario, const std::optional<Window>& study, sim::World& world);

  // Like those of Measures. What grows is judged at once.
  void AfterStep(const sim::WorldStep& step);
  void OnEpisode(const Episode& episode, bool begins) { measures_.OnEpisode(episode, begins); }
  // The run is over and fine: judges all that is left.
  void Finish();

  // The first bound that did not hold.
  const std::optional<checker::Violation>& violation() const { return violation_; }
  // Of the study's window, by Metric; empty without one.
  std::vector<uint64_t> measured() const;

 private:
  void Judge(bool at_end);
  void JudgeOne(size_t place, const MetricRow& row, const Bounds& bounds, bool at_end);

  const Scenario& scenario_;
  const bool has_study_;
  sim::World& world_;
  Measures measures_;
  std::optional<checker::Violation> violation_;
};

}  // namespace detcd::scenario
