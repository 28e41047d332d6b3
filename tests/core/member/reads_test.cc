#include "core/member/reads.h"

namespace detcd::member {
namespace {

constexpr Instant kStart{1'000'000'000};
using Tokens = std::vector<uint64_t>;

Reads::Pending Read(uint64_t token, Duration timeout = Seconds(7)) {
  return {.waiter = {}, .token = token, .deadline = kStart + timeout};
}
Tokens TokensOf(const std::vector<Reads::Pending>& reads) {
  Tokens tokens;
  for (const Reads::Pending& read : reads) tokens.push_back(read.token);
  return tokens;
}

TEST(ReadsTest, ReadsOfATurnShareARound) {
  Reads reads;
  EXPECT_FALSE(reads.WantsRound());
  reads.Add(Read(1));
  reads.Add(Read(2));
  EXPECT_TRUE(reads.WantsRound());
  reads.StartRound(raft::ReadId(10), kStart);
  EXPECT_FALSE(reads.WantsRound());
  reads.OnIndex(raft::ReadId(10), LogIndex(5));
  EXPECT_EQ(TokensOf(reads.TakeServable(LogIndex(4))), Tokens{});
  EXPECT_EQ(TokensOf(reads.TakeServable(LogIndex(5))), (Tokens{1, 2}));
  EXPECT_EQ(reads.size(), 0u);
  EXPECT_EQ(reads.NextDeadline(), std::nullopt);
}

TEST(ReadsTest, ALateReadNeverJoinsARoundUnderWay) {
  Reads reads;
  reads.Add(Read(1));
  reads.StartRound(raft::ReadId(10), kStart);
  reads.Add(Read(2));
  reads.OnIndex(raft::ReadId(10), LogIndex(5));
  EXPECT_EQ(TokensOf(reads.TakeServable(LogIndex(9))), (Tokens{1}));
  EXPECT_TRUE(reads.WantsRound());
}

TEST(ReadsTest, RoundsUnderWayAreBounded) {
  Reads reads;
  for (uint64_t i = 1; i <= kReadRoundsInFlightMax; ++i) {
    reads.Add(Read(i));
    ASSERT_TRUE(reads.WantsRound());
    reads.StartRound(raft::ReadId(i), kStart);
  }
  reads.Add(Read(100));
  EXPECT_FALSE(reads.WantsRound());
  reads.OnIndex(raft::ReadId(3), LogIndex(1));
  EXPECT_EQ(TokensOf(reads.TakeServable(LogIndex(1))), (Tokens{3}));
  EXPECT_TRUE(reads.WantsRound());
}

TEST(ReadsTest, AnUnansweredRoundIsAskedAgainUnderANewId) {
  Reads reads;
  reads.Add(Read(1));
  reads.StartRound(raft::ReadId(10), kStart);
  EXPECT_EQ(reads.NextDeadline(), kStart + kReadIndexRetry);
  EXPECT_FALSE(reads.HasOverdueRound(kStart + kReadIndexRetry - Nanos(1)));
  const Instant due = kStart + kReadIndexRetry;
  ASSERT_TRUE(reads.HasOverdueRound(due));
  reads.RetryRound(raft::ReadId(11), due);
  EXPECT_FALSE(reads.HasOverdueRound(due));
  reads.OnIndex(raft::ReadId(12), LogIndex(5));
  EXPECT_TRUE(reads.TakeServable(LogIndex(5)).empty());
  reads.OnIndex(raft::ReadId(11), LogIndex(5));
  EXPECT_EQ(TokensOf(reads.TakeServable(LogIndex(5))), (Tokens{1}));
}

// Where a confirmation takes longer than the retry, each answer comes under an id that was replaced meanwhile.
TEST(ReadsTest, TheAnswerToAnEarlierAskCounts) {
  Reads reads;
  reads.Add(Read(1));
  reads.StartRound(raft::ReadId(10), kStart);
  reads.RetryRound(raft::ReadId(11), kStart + kReadIndexRetry);
  reads.OnIndex(raft::ReadId(10), LogIndex(5));
  EXPECT_EQ(TokensOf(reads.TakeServable(LogIndex(5))), (Tokens{1}));
}

TEST(ReadsTest, AnAnsweredRoundIsNotAskedAgain) {
  Reads reads;
  reads.Add(Read(1));
  reads.StartRound(raft::ReadId(10), kStart);
  reads.OnIndex(raft::ReadId(10), LogIndex(5));
  EXPECT_FALSE(reads.HasOverdueRound(kStart + Seconds(5)));
  EXPECT_EQ(reads.NextDeadline(), kStart + Seconds(7));
}

TEST(ReadsTest, ExpiryTakesTheOverdueOnesOfEveryStage) {
  Reads reads;
  reads.Add(Read(1, Seconds(1)));
  reads.Add(Read(2, Seconds(3)));
  reads.StartRound(raft::ReadId(10), kStart);
  reads.Add(Read(3, Seconds(1)));
  reads.StartRound(raft::ReadId(11), kStart);
  reads.Add(Read(4, Seconds(1)));
  EXPECT_EQ(TokensOf(reads.TakeExpired(kStart + Seconds(1) - Nanos(1))), Tokens{});
  EXPECT_EQ(TokensOf(reads.TakeExpired(kStart + Seconds(1))), (Tokens{1, 3, 4}));
  EXPECT_EQ(reads.size(), 1u);
}

TEST(ReadsTest, ANewLeaderTakesUnansweredRoundsOnly) {
  Reads reads;
  reads.Add(Read(1));
  reads.StartRound(raft::ReadId(10), kStart);
  reads.OnIndex(raft::ReadId(10), LogIndex(5));
  reads.Add(Read(2));
  reads.StartRound(raft::ReadId(11), kStart);
  reads.Add(Read(3));  // not asked yet: the new leader may answer it
  EXPECT_EQ(TokensOf(reads.TakeUnanswered()), (Tokens{2}));
  EXPECT_EQ(TokensOf(reads.TakeServable(LogIndex(5))), (Tokens{1}));
  EXPECT_TRUE(reads.WantsRound());
}

}  // namespace
}  // namespace detcd::member
