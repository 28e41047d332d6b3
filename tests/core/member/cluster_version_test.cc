#include "core/member/cluster_version.h"

#include "core/base/limits.h"

namespace detcd::member {
namespace {

using Servers = std::vector<std::string>;

TEST(ClusterVersionTest, TheServersVersionIsReadFromEtcdsAnswer) {
  EXPECT_EQ(DecodeServerVersion(R"({"etcdserver":"3.7.3","etcdcluster":"3.7.0","storage":"3.7.0"})"), "3.7.3");
  EXPECT_EQ(DecodeServerVersion(R"({"etcdcluster":"not_decided","more":{"a":[1]},"etcdserver":"3.8.0-rc.1"})"), "3.8.0-rc.1");
  for (const char* bad : {"", "{}", "[]", R"({"etcdserver":3})", R"({"etcdserver":"3.7"})", R"({"etcdserver":"x.y.z"})",
                          R"({"etcdserver":"3.7.3"} x)", R"({"etcdserver":"3.7.3")"}) {
    EXPECT_EQ(DecodeServerVersion(bad), std::nullopt) << bad;
  }
}

TEST(ClusterVersionTest, TheFirstOneIsTheLowestServersOrTheLowestThereIs) {
  EXPECT_EQ(DecideClusterVersion("", {"3.7.3"}), "3.7.0");
  EXPECT_EQ(DecideClusterVersion("", {"3.7.3", "3.6.9", "3.8.0"}), "3.6.0");
  EXPECT_EQ(DecideClusterVersion("", {"3.7.3", ""}), "3.0.0");
}

TEST(ClusterVersionTest, ItRisesWithTheLowestServerAndNeverFalls) {
  EXPECT_EQ(DecideClusterVersion("3.0.0", {"3.7.3", "3.7.1"}), "3.7.0");
  EXPECT_EQ(DecideClusterVersion("3.6.0", {"3.10.0"}), "3.10.0");
  EXPECT_EQ(DecideClusterVersion("3.7.0", {"3.7.3", "3.7.9"}), std::nullopt);
  EXPECT_EQ(DecideClusterVersion("3.7.0", {"3.6.3"}), std::nullopt);
  EXPECT_EQ(DecideClusterVersion("3.0.0", {"3.7.3", ""}), std::nullopt);
  EXPECT_EQ(DecideClusterVersion("3.7.0", {"4.0.0"}), std::nullopt);
  EXPECT_EQ(DecideClusterVersion("unreadable", {"3.7.3"}), std::nullopt);
}

class VersionRoundsTest : public ::testing::Test {
 protected:
  VersionRounds rounds{"3.7.3"};
  Instant now{1'000'000'000};
};

TEST_F(VersionRoundsTest, NothingIsAskedByWhoDoesNotLead) {
  EXPECT_FALSE(rounds.IsDue(now));
  EXPECT_EQ(rounds.NextDeadline(), std::nullopt);
  rounds.OnAnswer(MemberId(2), "3.7.3");
  EXPECT_EQ(rounds.TakeFinished(now), std::nullopt);
}

TEST_F(VersionRoundsTest, ARoundEndsWithTheLastAnswer) {
  rounds.OnLead(now);
  ASSERT_TRUE(rounds.IsDue(now));
  rounds.Start(now, {MemberId(2), MemberId(3)});
  EXPECT_FALSE(rounds.IsDue(now));
  rounds.OnAnswer(MemberId(3), "3.6.0");
  rounds.OnAnswer(MemberId(9), "3.1.0");  // nobody asked
  EXPECT_EQ(rounds.TakeFinished(now), std::nullopt);
  rounds.OnAnswer(MemberId(2), "");
  EXPECT_EQ(rounds.TakeFinished(now), (Servers{"3.7.3", "", "3.6.0"}));
  EXPECT_EQ(rounds.TakeFinished(now), std::nullopt);
  EXPECT_EQ(rounds.NextDeadline(), now + kClusterVersionInterval);
  EXPECT_TRUE(rounds.IsDue(now + kClusterVersionInterval));
}

TEST_F(VersionRoundsTest, WhoDoesNotAnswerInTimeIsUnknown) {
  rounds.OnLead(now);
  rounds.Start(now, {MemberId(2)});
  EXPECT_EQ(rounds.NextDeadline(), now + kClusterVersionAnswerTimeout);
  EXPECT_EQ(rounds.TakeFinished(now + kClusterVersionAnswerTimeout), (Servers{"3.7.3", ""}));
}

TEST_F(VersionRoundsTest, ALoneMemberDecidesAtOnce) {
  rounds.OnLead(now);
  rounds.Start(now, {});
  EXPECT_EQ(rounds.TakeFinished(now), Servers{"3.7.3"});
}

TEST_F(VersionRoundsTest, LostLeadershipEndsTheRound) {
  rounds.OnLead(now);
  rounds.Start(now, {});
  rounds.OnLeadLost();
  EXPECT_EQ(rounds.TakeFinished(now + Seconds(60)), std::nullopt);
  EXPECT_FALSE(rounds.IsDue(now + Seconds(60)));
}

}  // namespace
}  // namespace detcd::member
