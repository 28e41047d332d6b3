#include "core/raft/quorum.h"

#include <algorithm>

namespace detcd::raft {
namespace {

VoterSet VotersUpTo(uint64_t count) {
  VoterSet voters;
  for (uint64_t id = count; id > 0; --id) voters.AddVoter(MemberId(id));
  return voters;
}

TEST(QuorumTest, VotersAreSortedAndCountedOnce) {
  VoterSet voters({MemberId(3), MemberId(1), MemberId(3)});
  EXPECT_EQ(voters.ids(), (std::vector<MemberId>{MemberId(1), MemberId(3)}));
  EXPECT_TRUE(voters.Contains(MemberId(3)));
  EXPECT_FALSE(voters.Contains(MemberId(2)));
}

TEST(QuorumTest, TwoMajoritiesAlwaysShareAMember) {
  for (uint64_t n = 1; n <= 9; ++n) {
    const size_t majority = VotersUpTo(n).Majority();
    EXPECT_GT(2 * majority, n);
    EXPECT_LE(2 * (majority - 1), n);
  }
}

TEST(QuorumTest, WithoutVotersNothingIsReachedOrWon) {
  VoterSet voters;
  EXPECT_EQ(voters.ReachedByMajority([](MemberId) { return uint64_t{7}; }), 0u);
  EXPECT_FALSE(voters.HasMajority([](MemberId) { return true; }));
  EXPECT_EQ(TallyVotes(voters, {{MemberId(1), true}}), Tally::kLost);
}

TEST(QuorumTest, AnswersOfStrangersDoNotCount) {
  EXPECT_EQ(TallyVotes(VotersUpTo(3), {{MemberId(1), true}, {MemberId(8), true}, {MemberId(9), true}}), Tally::kOpen);
}

// By the definition: the largest value that at least a majority is at or above.
RC_GTEST_PROP(QuorumTest, ReachedByMajorityIsItsDefinition, ()) {
  const auto values = *rc::gen::nonEmpty(rc::gen::container<std::vector<uint64_t>>(rc::gen::inRange<uint64_t>(0, 9)));
  const VoterSet voters = VotersUpTo(values.size());
  std::vector<uint64_t> sorted = values;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  RC_ASSERT(voters.ReachedByMajority([&](MemberId id) { return values[id.value - 1]; }) ==
            sorted[values.size() / 2]);
}

// By the definition: won in every, or in no, completion of the missing answers.
RC_GTEST_PROP(QuorumTest, TallyIsItsDefinition, ()) {
  const auto count = *rc::gen::inRange<uint64_t>(1, 8);
  const auto answers = *rc::gen::container<std::vector<int>>(count, rc::gen::inRange(0, 3));
  std::map<MemberId, bool> given;
  uint64_t granted = 0;
  uint64_t missing = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (answers[i] == 2) ++missing;
    if (answers[i] == 2) continue;
    given[MemberId(i + 1)] = answers[i] == 1;
    granted += answers[i] == 1 ? 1 : 0;
  }
  const bool won_by_least = 2 * granted > count;
  const bool won_by_most = 2 * (granted + missing) > count;
  const Tally want = won_by_least ? Tally::kWon : won_by_most ? Tally::kOpen : Tally::kLost;
  RC_ASSERT(TallyVotes(VotersUpTo(count), given) == want);
}

}  // namespace
}  // namespace detcd::raft
