#include "core/member/proposals.h"

namespace detcd::member {
namespace {

constexpr Instant At(int64_t seconds) { return Instant{Seconds(seconds).nanos}; }
Proposals::Pending Until(int64_t seconds) { return {.waiter = {}, .start = At(0), .deadline = At(seconds)}; }

std::vector<uint64_t> IdsOf(const std::vector<Proposals::Expired>& expired) {
  std::vector<uint64_t> ids;
  for (const Proposals::Expired& one : expired) ids.push_back(one.id);
  return ids;
}

TEST(RequestIdsTest, CountUpUnderTheLowBitsOfTheMember) {
  RequestIds ids(MemberId(0xca7a34e16cff9c1b), 7);
  EXPECT_EQ(ids.Next(), 0x9c1b'0000'0000'0008u);
  EXPECT_EQ(ids.Next(), 0x9c1b'0000'0000'0009u);
}

TEST(RequestIdsTest, CountWrapsBelowThePrefix) {
  RequestIds ids(MemberId(0x1234), 0xFFFF'FFFF'FFFF'FFFE);
  EXPECT_EQ(ids.Next(), 0x1234'FFFF'FFFF'FFFFu);
  EXPECT_EQ(ids.Next(), 0x1234'0000'0000'0000u);
}

TEST(ProposalsTest, TakeGivesEachProposalOnce) {
  Proposals proposals;
  proposals.Add(1, Until(5));
  EXPECT_TRUE(proposals.Contains(1));
  EXPECT_TRUE(proposals.Take(1).has_value());
  EXPECT_FALSE(proposals.Take(1).has_value());
  EXPECT_FALSE(proposals.Contains(1));
}

TEST(ProposalsTest, OverdueExactlyAtTheDeadline) {
  Proposals proposals;
  proposals.Add(1, Until(5));
  proposals.Add(2, Until(6));
  EXPECT_TRUE(proposals.TakeExpired(Instant{At(5).nanos - 1}).empty());
  EXPECT_EQ(IdsOf(proposals.TakeExpired(At(5))), (std::vector<uint64_t>{1}));
  EXPECT_EQ(proposals.NextDeadline(), At(6));
  EXPECT_EQ(proposals.size(), 1u);
}

TEST(ProposalsTest, DeadlinesShrinkWithWhatWasTaken) {
  Proposals proposals;
  for (uint64_t id = 1; id <= 3; ++id) proposals.Add(id, Until(static_cast<int64_t>(id)));
  proposals.Take(2);
  EXPECT_EQ(proposals.NextDeadline(), At(1));
  proposals.Take(1);
  EXPECT_EQ(proposals.NextDeadline(), At(3));
  proposals.Take(3);
  EXPECT_EQ(proposals.NextDeadline(), std::nullopt);
  EXPECT_TRUE(proposals.TakeExpired(At(9)).empty());
}

TEST(ProposalsTest, RemembersWhatReachedRaft) {
  Proposals proposals;
  proposals.Add(1, Until(5));
  proposals.Add(2, Until(5));
  proposals.MarkReachedRaft(2);
  proposals.MarkReachedRaft(3);  // nobody's: ignored
  const std::vector<Proposals::Expired> expired = proposals.TakeExpired(At(5));
  ASSERT_EQ(IdsOf(expired), (std::vector<uint64_t>{1, 2}));
  EXPECT_FALSE(expired[0].pending.reached_raft);
  EXPECT_TRUE(expired[1].pending.reached_raft);
}

}  // namespace
}  // namespace detcd::member
