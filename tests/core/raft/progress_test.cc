#include "core/raft/progress.h"

namespace detcd::raft {
namespace {

Progress Probing(uint64_t match, uint64_t next) { return {.match = LogIndex(match), .next = LogIndex(next)}; }

Progress Replicating(uint64_t match) {
  Progress progress = Probing(0, match + 1);
  progress.OnAccepted(LogIndex(match));
  return progress;
}

TEST(ProgressTest, AProbeSendsOneAppendAtATime) {
  Progress progress = Probing(0, 5);
  EXPECT_TRUE(progress.MayCarryEntries(9, 99));
  progress.OnSent(3, 30, LogIndex(0));
  EXPECT_FALSE(progress.MayCarryEntries(9, 99));
  EXPECT_EQ(progress.next, LogIndex(5));
}

TEST(ProgressTest, AConfirmedProbeReplicates) {
  Progress progress = Probing(0, 5);
  progress.OnSent(3, 30, LogIndex(0));
  EXPECT_TRUE(progress.OnAccepted(LogIndex(7)));
  EXPECT_EQ(progress.mode, Progress::Mode::kReplicate);
  EXPECT_EQ(progress.match, LogIndex(7));
  EXPECT_EQ(progress.next, LogIndex(8));
}

TEST(ProgressTest, AProbeIsConfirmedByWhatWasKnownToMatch) {
  Progress progress = Replicating(4);
  progress.BecomeProbe();
  EXPECT_FALSE(progress.OnAccepted(LogIndex(3)));
  EXPECT_TRUE(progress.OnAccepted(LogIndex(4)));
  EXPECT_EQ(progress.mode, Progress::Mode::kReplicate);
}

TEST(ProgressTest, TheWindowIsBoundedByAppendsAndByBytes) {
  Progress progress = Replicating(0 + 1);
  progress.OnSent(1, 40, LogIndex(0));
  EXPECT_TRUE(progress.MayCarryEntries(2, 41));
  EXPECT_FALSE(progress.MayCarryEntries(2, 40));
  progress.OnSent(2, 1, LogIndex(0));
  EXPECT_FALSE(progress.MayCarryEntries(2, 99));
  EXPECT_EQ(progress.next, LogIndex(5));
  EXPECT_TRUE(progress.OnAccepted(LogIndex(3)));  // the first, and half of the second
  EXPECT_EQ(progress.in_flight.size(), 1u);
  EXPECT_EQ(progress.bytes_in_flight, 1u);
  EXPECT_FALSE(progress.OnAccepted(LogIndex(3)));
}

TEST(ProgressTest, EmptyAppendsTakeNoRoomInTheWindow) {
  Progress progress = Replicating(3);
  progress.OnSent(0, 0, LogIndex(9));
  EXPECT_TRUE(progress.in_flight.empty());
  EXPECT_EQ(progress.commit_sent, LogIndex(3));
}

TEST(ProgressTest, ARefusalInReplicateProbesAfterMatch) {
  Progress progress = Replicating(3);
  progress.OnSent(4, 4, LogIndex(7));
  EXPECT_FALSE(progress.OnRefused(LogIndex(3), LogIndex(1)));  // older than match
  EXPECT_TRUE(progress.OnRefused(LogIndex(7), LogIndex(5)));
  EXPECT_EQ(progress.mode, Progress::Mode::kProbe);
  EXPECT_EQ(progress.next, LogIndex(4));
  EXPECT_EQ(progress.bytes_in_flight, 0u);
  EXPECT_EQ(progress.commit_sent, LogIndex(3));
}

TEST(ProgressTest, ARefusedProbeGoesToTheHint) {
  Progress progress = Probing(2, 9);
  progress.OnSent(1, 1, LogIndex(0));
  EXPECT_FALSE(progress.OnRefused(LogIndex(7), LogIndex(4)));  // not the one asked last
  EXPECT_FALSE(progress.MayCarryEntries(9, 9));
  EXPECT_TRUE(progress.OnRefused(LogIndex(8), LogIndex(4)));
  EXPECT_EQ(progress.next, LogIndex(5));
  EXPECT_TRUE(progress.MayCarryEntries(9, 9));
  // A hint that is no lower still makes progress; one below match does not lead there.
  EXPECT_TRUE(progress.OnRefused(LogIndex(4), LogIndex(100)));
  EXPECT_EQ(progress.next, LogIndex(4));
  EXPECT_TRUE(progress.OnRefused(LogIndex(3), LogIndex(0)));
  EXPECT_EQ(progress.next, LogIndex(3));
  EXPECT_TRUE(progress.OnRefused(LogIndex(2), LogIndex(0)));
  EXPECT_EQ(progress.next, LogIndex(3));
}

}  // namespace
}  // namespace detcd::raft
