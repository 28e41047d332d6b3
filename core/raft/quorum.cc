#include "core/raft/quorum.h"

#include <algorithm>

#include "core/base/check.h"

namespace detcd::raft {

VoterSet::VoterSet(std::vector<MemberId> ids) {
  ids_.reserve(ids.size());
  for (MemberId id : ids) AddVoter(id);
}

void VoterSet::AddVoter(MemberId id) {
  CHECK(!id.IsZero());
  auto place = std::lower_bound(ids_.begin(), ids_.end(), id);
  if (place != ids_.end() && *place == id) return;
  ids_.insert(place, id);
}

bool VoterSet::Contains(MemberId id) const { return std::binary_search(ids_.begin(), ids_.end(), id); }

Tally TallyVotes(const VoterSet& voters, const std::map<MemberId, bool>& answers) {
  size_t granted = 0;
  size_t refused = 0;
  for (const auto& [id, grants] : answers) {
    if (!voters.Contains(id)) continue;
    ++(grants ? granted : refused);
  }
  if (granted >= voters.Majority()) return Tally::kWon;
  return granted + (voters.size() - granted - refused) < voters.Majority() ? Tally::kLost : Tally::kOpen;
}

Tally TallyVotes(const JointVoters& voters, const std::map<MemberId, bool>& answers) {
  const Tally incoming = TallyVotes(voters.incoming, answers);
  if (!voters.IsJoint()) return incoming;
  const Tally outgoing = TallyVotes(voters.outgoing, answers);
  if (incoming == Tally::kLost || outgoing == Tally::kLost) return Tally::kLost;
  return incoming == Tally::kWon && outgoing == Tally::kWon ? Tally::kWon : Tally::kOpen;
}

}  // namespace detcd::raft
