// Who votes, and what a majority of them is: pure functions of a configuration. While a joint configuration (thesis §4.3)
// is in force, each question is asked of two sets of voters, and both must say yes. checker/proofs shows for up to five
// voters that any two quorums of one configuration share a member, and holds these functions against their definitions.
#pragma once

#include <algorithm>
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

// A configuration that may be on its way to another. A quorum is a majority of `incoming` and, while joint, also a
// majority of `outgoing`; one member may count for both. Whoever is in neither decides nothing.
struct JointVoters {
  VoterSet incoming;
  VoterSet outgoing;  // empty: not joint, and `incoming` alone decides

  bool IsJoint() const { return outgoing.size() > 0; }
  bool Contains(MemberId id) const { return incoming.Contains(id) || outgoing.Contains(id); }

  // The highest value that a quorum has reached, as VoterSet::ReachedByMajority.
  template <class ValueOf>
  uint64_t ReachedByQuorum(ValueOf&& value_of) const {
    const uint64_t reached = incoming.ReachedByMajority(value_of);
    return IsJoint() ? std::min(reached, outgoing.ReachedByMajority(value_of)) : reached;
  }

  // Whether a quorum satisfies `holds(MemberId)`.
  template <class Holds>
  bool HasQuorum(Holds&& holds) const {
    return incoming.HasMajority(holds) && (!IsJoint() || outgoing.HasMajority(holds));
  }

  friend bool operator==(const JointVoters&, const JointVoters&) = default;
};

// Won when both sets have won, lost as soon as one has lost.
Tally TallyVotes(const JointVoters& voters, const std::map<MemberId, bool>& answers);

}  // namespace detcd::raft
