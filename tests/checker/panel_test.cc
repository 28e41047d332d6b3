#include "checker/panel.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/checker/history_generator.h"

namespace detcd::checker {
namespace {

// One member that stores one key: the smallest world that every judge has something to say about.
class PanelTest : public testing::Test {
 protected:
  PanelTest()
      : panel_({.members = {MemberId(1)}, .election_timeout = Millis(1000), .heartbeat_interval = Millis(100)}) {
    state_.member = MemberId(1);
    state_.incarnation = 1;
    state_.revision = Revision(1);
    state_.started = true;
    state_.changed_from = LogIndex(1);
    Show();
    state_.started = false;
    state_.term = Term(1);
    state_.voted_for = MemberId(1);
    state_.role = Role::kLeader;
    state_.last_index = state_.durable_index = state_.commit_index = LogIndex(1);
    std::vector<EntryMark> entries{{Term(1), 1}};
    state_.changed = entries;
    Show();
    state_.changed = {};

    put_ = {.id = 1, .client = 1, .request = {.kind = OperationKind::kPut, .key = "a", .value = "v1"}, .call = Now()};
    panel_.OnCall(put_);
    panel_.OnCommitted({.index = LogIndex(1), .term = Term(1), .data = Encode(put_.request)}, Now());
  }

  Moment Now() { return {.event = ++event_, .true_time = Instant{now_.nanos}}; }
  void Show() {
    state_.local_time = Instant{now_.nanos};
    panel_.OnMember(state_, Now());
  }
  void Apply(int64_t revision, uint64_t digest) {
    state_.applied_index = LogIndex(1);
    state_.revision = Revision(revision);
    state_.history_digest = digest;
    Show();
  }
  void Acknowledge() {
    put_.end = Now();
    put_.outcome = Outcome::kAnswered;
    put_.answer = {.header_revision = 2};
    panel_.OnEnd(put_);
  }
  std::string Broken() const { return panel_.violation() ? panel_.violation()->property : ""; }

  Panel panel_;
  MemberObservation state_;
  Operation put_;
  Duration now_ = Seconds(1);
  uint64_t event_ = 0;
};

const FinalKey kRight{"a", "v1", Revision(2), Revision(2), 1};

TEST_F(PanelTest, AcceptsARunThatIsRight) {
  Apply(2, 99);
  Acknowledge();
  panel_.OnHealed(Now(), Millis(100), Millis(10));
  panel_.OnProbe(MemberId(1), ProbeKind::kPut, true, Now());
  panel_.OnProbe(MemberId(1), ProbeKind::kRead, true, Now());
  EXPECT_TRUE(panel_.converged());
  panel_.OnFinal(MemberId(1), {&kRight, 1}, Now());
  EXPECT_FALSE(panel_.Finish(Now()).has_value()) << panel_.violation()->sentence;
}

TEST_F(PanelTest, RevisionThatIsNotTheModels) {
  Apply(3, 99);
  EXPECT_EQ(Broken(), "H3");
}

TEST_F(PanelTest, EffectsDifferAfterARestart) {
  Apply(2, 99);
  std::vector<EntryMark> log{{Term(1), 1}};
  state_.incarnation = 2;
  state_.started = true;
  state_.role = Role::kFollower;
  state_.changed = log;
  state_.history_digest = 98;
  Show();
  EXPECT_EQ(Broken(), "H3");
}

TEST_F(PanelTest, AcknowledgedWriteMissingInTheEnd) {
  Acknowledge();
  panel_.OnFinal(MemberId(1), {}, Now());
  EXPECT_EQ(Broken(), "K17");
  EXPECT_EQ(panel_.violation()->operations, std::vector<uint64_t>{1});
}

TEST_F(PanelTest, FinalKeyThatIsWrongOrExtra) {
  std::vector<FinalKey> keys{kRight, {"b", "x", Revision(2), Revision(2), 1}};
  panel_.OnFinal(MemberId(1), keys, Now());
  EXPECT_EQ(Broken(), "K17");
}

TEST_F(PanelTest, FinalVersionThatIsWrong) {
  FinalKey wrong = kRight;
  wrong.version = 2;
  panel_.OnFinal(MemberId(1), {&wrong, 1}, Now());
  EXPECT_EQ(Broken(), "K17");
}

TEST_F(PanelTest, NoServiceWithinTheBoundAfterHealing) {
  panel_.OnHealed(Now(), Millis(100), Millis(10));
  panel_.OnProbe(MemberId(1), ProbeKind::kPut, true, Now());
  now_ = now_ + Millis(30'440);
  Show();
  EXPECT_EQ(Broken(), "");
  now_ = now_ + Millis(1);
  Show();
  EXPECT_EQ(Broken(), "convergence");
  EXPECT_EQ(panel_.violation()->sentence,
            "30441 ms after healing some members do not serve; member 1 leads in term 1, commit 1, applied 0, last 1, "
            "waits for a read");
}

TEST(PanelLostTest, OfALostMemberNothingIsAsked) {
  Panel panel({.members = {MemberId(1), MemberId(2), MemberId(3)}, .election_timeout = Millis(1'000)});
  const Moment moment;
  panel.OnHealed(moment, Millis(100), Millis(10));
  panel.OnLost(MemberId(2));
  panel.OnProbe(MemberId(1), ProbeKind::kPut, true, moment);
  panel.OnProbe(MemberId(1), ProbeKind::kRead, true, moment);
  panel.OnProbe(MemberId(3), ProbeKind::kPut, true, moment);
  EXPECT_FALSE(panel.converged());
  panel.OnProbe(MemberId(3), ProbeKind::kRead, true, moment);
  EXPECT_TRUE(panel.converged());
  panel.OnFinal(MemberId(1), {}, moment);
  panel.OnFinal(MemberId(3), {}, moment);
  EXPECT_FALSE(panel.Finish(moment).has_value());
}

TEST_F(PanelTest, RunThatEndsBeforeServiceIsBroken) {
  panel_.OnHealed(Now(), Millis(100), Millis(10));
  EXPECT_TRUE(panel_.Finish(Now()).has_value());
}

TEST_F(PanelTest, FirstViolationStands) {
  Apply(3, 99);
  panel_.OnFinal(MemberId(1), {}, Now());
  EXPECT_EQ(panel_.Finish(Now())->property, "H3");
}

}  // namespace
}  // namespace detcd::checker
