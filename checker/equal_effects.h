// Equal effects: members that have applied the same index have the same history of changes and the same revision, in
// every incarnation (H3 of checking.md 2), and that revision is the model's.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "checker/observation.h"
#include "checker/verdict.h"

namespace detcd::checker {

class EqualEffects {
 public:
  EqualEffects(const WorldObservation& world, Verdict& verdict);

  void OnMember(const MemberObservation& seen, Moment moment);
  // The model's revision after the entry at `index`; told for every index, in order.
  void OnModel(LogIndex index, int64_t revision, Moment moment);

 private:
  struct Effects {
    MemberId first;  // who showed them first; 0: nobody has
    uint64_t digest = 0;
    Revision revision;
    int64_t model_revision = 0;  // 0: not told yet
  };

  Effects& At(LogIndex index);
  void JudgeModel(const Effects& effects, LogIndex index, Moment moment);

  Verdict& verdict_;
  std::vector<Effects> effects_;  // by applied index
  struct Last {
    MemberId member;
    uint32_t incarnation = 0;
    LogIndex applied;
    uint64_t digest = 0;
    bool seen = false;
  };
  std::vector<Last> last_;
};

}  // namespace detcd::checker
