#include "checker/equal_effects.h"

#include <gtest/gtest.h>

namespace detcd::checker {
namespace {

class EqualEffectsTest : public testing::Test {
 protected:
  EqualEffectsTest() : judge_({.members = {MemberId(1), MemberId(2)}}, verdict_) {}

  void Show(uint64_t member, uint64_t applied, int64_t revision, uint64_t digest, uint32_t incarnation = 1) {
    judge_.OnMember({.member = MemberId(member),
                     .incarnation = incarnation,
                     .applied_index = LogIndex(applied),
                     .revision = Revision(revision),
                     .history_digest = digest},
                    {});
  }
  bool broken() const { return verdict_.broken(); }

  Verdict verdict_;
  EqualEffects judge_;
};

TEST_F(EqualEffectsTest, EqualIndexEqualEffects) {
  Show(1, 5, 3, 99);
  Show(2, 4, 2, 98);
  Show(2, 5, 3, 99);
  EXPECT_FALSE(broken());
  Show(1, 4, 2, 97);
  EXPECT_TRUE(broken());
}

TEST_F(EqualEffectsTest, EqualEffectsButAnotherRevision) {
  Show(1, 5, 3, 99);
  Show(2, 5, 4, 99);
  EXPECT_TRUE(broken());
}

TEST_F(EqualEffectsTest, ARestartMustReplayTheSame) {
  Show(1, 5, 3, 99);
  Show(1, 5, 3, 98, 2);
  EXPECT_TRUE(broken());
}

TEST_F(EqualEffectsTest, TheModelMayComeBeforeOrAfterTheMember) {
  judge_.OnModel(LogIndex(1), 2, {});
  Show(1, 1, 2, 7);
  Show(1, 2, 3, 8);
  EXPECT_FALSE(broken());
  judge_.OnModel(LogIndex(2), 2, {});
  EXPECT_TRUE(broken());
}

}  // namespace
}  // namespace detcd::checker
