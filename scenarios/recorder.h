// Watches a world from outside and keeps what its story may need. Changes nothing in it: a recorded run has the digest of
// the run that is not recorded.
#pragma once

#include <vector>

#include "scenarios/scenario.pb.h"
#include "scenarios/story.h"
#include "sim/world.h"

namespace detcd::scenario {

class Recorder {
 public:
  explicit Recorder(sim::World& world);

  // After each step of the world.
  void AfterStep(const sim::WorldStep& step);
  void OnEpisode(const Episode& episode, size_t place, bool begins);
  void OnCrash(uint32_t member, std::string_view how);
  void OnStart(uint32_t member);
  // A line of a member's own log; warnings are kept.
  void OnTrace(const sim::TraceRecord& record);

  // Everything so far, with the operations' calls and returns.
  RunRecord Record() const;

 private:
  void Add(uint32_t lane, MarkKind kind, std::string text, uint64_t term = 0);
  void Compare(uint32_t member);

  sim::World& world_;
  RunRecord record_;
  std::vector<checker::MemberObservation> last_;  // by member
};

}  // namespace detcd::scenario
