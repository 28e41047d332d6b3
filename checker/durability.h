// K17: an acknowledged write is never lost. Each one is in the committed log at its revision with its content, and
// after healing every member's store is exactly the state that replaying the log gives: nothing missing, changed or
// risen from the dead.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "checker/history.h"
#include "checker/revision_order.h"
#include "checker/verdict.h"

namespace detcd::checker {

class Durability {
 public:
  Durability(const WorldObservation& world, const RevisionOrder& order, Verdict& verdict);

  void OnEnd(const Operation& operation);
  // All keys of a member's store after healing, in key order.
  void OnFinal(MemberId member, std::span<const FinalKey> keys, Moment moment);
  // `member` is gone for good: it will show no final state.
  void OnLost(MemberId member) { std::erase(members_, member); }
  // Once a final state was shown, all members' must have been.
  void Finish(Moment moment);

 private:
  void Lost(MemberId member, const std::string& key, std::string what, Moment moment);

  const RevisionOrder& order_;
  Verdict& verdict_;
  std::vector<MemberId> members_;
  std::map<int64_t, Operation> acknowledged_;  // by revision
  std::set<MemberId> shown_;
};

}  // namespace detcd::checker
