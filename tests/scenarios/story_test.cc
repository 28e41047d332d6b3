// How a failure is told, on records written by hand.
#include "scenarios/story.h"

#include <algorithm>

namespace detcd::scenario {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMs = 1'000'000;

// Three members and one client; each mark is an event of its own, that follows from the one before it in the vector
// `parents`.
class StoryTest : public ::testing::Test {
 protected:
  StoryTest() {
    record_.members = 3;
    record_.clients = 4;
    violation_ = {.property = "K4", .signature = "K4: old", .sentence = "old", .moment = {.event = 0, .true_time = {}}, .operations = {7}};
  }

  // Adds a mark as event `event` in `lane`; returns it for more.
  Mark& Add(uint64_t event, uint32_t lane, MarkKind kind, std::string text, uint64_t parent = 0, uint64_t subject = 0) {
    if (event >= record_.parents.size()) {
      record_.parents.resize(event + 1);
      record_.lanes.resize(event + 1);
    }
    record_.parents[event] = parent;
    record_.lanes[event] = lane;
    record_.marks.push_back({.event = event, .nanos = static_cast<int64_t>(event) * kMs, .lane = lane, .kind = kind, .term = lane == 0 || lane > 3 ? 0 : 2u,
                             .subject = subject, .text = std::move(text)});
    violation_.moment = {.event = event, .true_time = {static_cast<int64_t>(event) * kMs}};
    return record_.marks.back();
  }

  std::string Lanes() const { return LaneDiagram(record_, 1, violation_); }
  std::string Causes() const { return CausalPast(record_, 1, violation_); }

  RunRecord record_;
  checker::Violation violation_;
};

size_t Lines(const std::string& text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

TEST_F(StoryTest, NamesLanes) {
  EXPECT_EQ(LaneName(record_, 1, 0), "world");
  EXPECT_EQ(LaneName(record_, 1, 3), "m3");
  EXPECT_EQ(LaneName(record_, 1, 4), "c1");
  EXPECT_EQ(LaneName(record_, 1, 5), "p1");
}

TEST_F(StoryTest, DrawsWhoLedWhatWasBrokenAndTheOperations) {
  Add(10, 1, MarkKind::kLeader, "leader of 2");
  Add(20, 0, MarkKind::kFaultBegins, "partition { group: 1 } begins", 0, 0).touched = {1};
  Add(30, 3, MarkKind::kCrash, "power lost");
  Add(40, 4, MarkKind::kCall, "range k (7)", 0, 7);
  Add(50, 4, MarkKind::kReturn, "revision 5 from m1 (7)", 0, 7);
  EXPECT_EQ(Lanes(),
            "           ms  m1             m2    m3    c1\n"
            "       10.000  leader of 2    |     |     |\n"
            "       20.000  #              |     |     |                         partition { group: 1 } begins\n"
            "       40.000  #              |     :     range k (7)\n"
            "       50.000  #              |     :     revision 5 from m1 (7)\n");
}

TEST_F(StoryTest, LeavesOutFaultsThatAreOver) {
  Add(10, 0, MarkKind::kFaultBegins, "pause begins", 0, 0).touched = {1};
  Add(20, 0, MarkKind::kFaultEnds, "pause ends", 0, 0).touched = {1};
  Add(30, 4, MarkKind::kCall, "range k (7)", 0, 7);
  EXPECT_THAT(Lanes(), Not(HasSubstr("pause")));
  EXPECT_THAT(Lanes(), HasSubstr("30.000  |     |     |     range k (7)"));
}

TEST_F(StoryTest, LeavesOutWhatComesAfterTheViolation) {
  Add(10, 4, MarkKind::kCall, "range k (7)", 0, 7);
  Add(20, 1, MarkKind::kLeader, "leader of 9");
  violation_.moment = {.event = 15, .true_time = {15 * kMs}};
  EXPECT_THAT(Lanes(), Not(HasSubstr("leader of 9")));
  EXPECT_THAT(Causes(), Not(HasSubstr("leader of 9")));
}

TEST_F(StoryTest, HasNoMoreRowsThanFit) {
  Add(1, 4, MarkKind::kCall, "range k (7)", 0, 7);
  for (uint64_t event = 2; event < 200; ++event) Add(event, 1, MarkKind::kLeader, "leader");
  EXPECT_LE(Lines(Lanes()), kLaneRowsMax + 1);
  EXPECT_THAT(Lanes(), HasSubstr("range k (7)"));
}

TEST_F(StoryTest, FollowsMessagesAndTheLaneItself) {
  Add(10, 2, MarkKind::kLeader, "leader of 2");
  Add(12, 3, MarkKind::kRole, "unrelated");
  Add(15, 2, MarkKind::kCommit, "commits to 9");
  Add(20, 1, MarkKind::kCommit, "m1 commits to 9", /*parent=*/15);
  const std::string causes = Causes();
  EXPECT_THAT(causes, HasSubstr("20.000 ms  #20       m1    term 2    m1 commits to 9\n"));
  EXPECT_THAT(causes, HasSubstr("commits to 9"));
  EXPECT_THAT(causes, HasSubstr("leader of 2"));
  EXPECT_THAT(causes, Not(HasSubstr("unrelated")));
}

TEST_F(StoryTest, KeepsTheSignificantAndTheLatestWhenThereIsTooMuch) {
  Add(1, 1, MarkKind::kLeader, "leader of 2");
  for (uint64_t event = 2; event < 100; ++event) Add(event, 1, MarkKind::kSync, "synced to " + std::to_string(event));
  const std::string causes = Causes();
  EXPECT_EQ(Lines(causes), kCauseLinesMax);
  EXPECT_THAT(causes, HasSubstr("leader of 2"));
  EXPECT_THAT(causes, HasSubstr("synced to 99"));
  EXPECT_THAT(causes, Not(HasSubstr("synced to 50\n")));
  EXPECT_THAT(causes, HasSubstr("and 70 lesser events of the 99"));
}

TEST_F(StoryTest, OfNothingIsNothing) {
  EXPECT_EQ(Causes(), "");
  EXPECT_EQ(Lines(Lanes()), 1u);
}

}  // namespace
}  // namespace detcd::scenario
