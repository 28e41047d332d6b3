// Who votes, and what a majority of them is: pure functions of a configuration. Joint configurations (thesis §4.3)
// would be a second set beside the first, with each question below asked of both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "core/base/types.h"

namespace detcd::raft {

// The members whose answers count, in ascending order.
class VoterSet {
 public:
  VoterSet() = default;
  explicit VoterSet(std::vector<MemberId> ids);

  // No effect when `id` votes already.
  void AddVoter(MemberId id);
  bool Contains(MemberId id) const;
  size_t size() const { return ids_.size(); }
  const std::vector<MemberId>& ids() const { return ids_; }
  // The smallest count that any two of which share a member. 1 for the empty set: nobody decides nothing.
  size_t Majority() const { return ids_.size() / 2 + 1; }

  // The highest value that a majority has reached, where `value_of(MemberId)` tells one voter's; 0 without voters.
  // Counts pairwise: no allocation, and there are few voters.
  template <class ValueOf>
  uint64_t ReachedByMajority(ValueOf&& value_of) const {
    uint64_t reached = 0;
    for (MemberId candidate : ids_) {
      const uint64_t value = value_of(candidate);
      if (value <= reached) continue;
      size_t count = 0;
      for (MemberId id : ids_) count += value_of(id) >= value ? 1 : 0;
      if (count >= Majority()) reached = value;
    }
    return reached;
  }

  // Whether a majority satisfies `holds(MemberId)`.
  template <class Holds>
  bool HasMajority(Holds&& holds) const {
    size_t count = 0;
    for (MemberId id : ids_) count += holds(id) ? 1 : 0;
    return count >= Majority();
  }

  friend bool operator==(const VoterSet&, const VoterSet&) = default;

 private:
  std::vector<MemberId> ids_;  // ascending, no id twice, none 0
};

enum class Tally : uint8_t {
  kOpen,  // the missing answers decide
  kWon,   // a majority granted
  kLost,  // no majority can grant any more
};
// Counts the answers of voters (true: granted); answers of others do not count.
Tally TallyVotes(const VoterSet& voters, const std::map<MemberId, bool>& answers);

}  // namespace detcd::raft
