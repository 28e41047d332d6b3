#include "scenarios/settings.h"

#include <string>

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "scenarios/runner.h"

namespace detcd::scenario {
namespace {

std::string Check(const std::string& text) {
  Scenario scenario;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("format_version: 1 " + text, &scenario)) << text;
  return CheckScenario(scenario);
}

TEST(CheckScenarioTest, NamesTheFieldThatIsWrong) {
  EXPECT_EQ(CheckScenario(Scenario()), "format_version: want 1, got 0");
  EXPECT_EQ(Check("members: 10"), "members: want at most 9, got 10");
  EXPECT_EQ(Check("links { delay { min_us: 2 max_us: 1 } }"), "links.delay: max_us 1 is below min_us 2");
  EXPECT_EQ(Check("clocks { member: 4 }"), "clocks[0].member: want 1 to 3, got 4");
  EXPECT_EQ(Check("episodes { id: 1 pause { members: 0 } }"), "episodes[0].pause.members: want 1 to 3, got 0");
  EXPECT_EQ(Check("episodes { id: 1 crash { members: 2 members: 2 } }"), "episodes[0].crash.members: names 2 twice");
  EXPECT_EQ(Check("episodes { id: 1 } episodes { id: 1 }"), "episodes[1].id: 1 is not unique");
  EXPECT_EQ(Check("episodes { id: 1 client_partition { clients: 2 members: 1 } }"),
            "episodes[0].client_partition.clients: want 1 to 1, got 2");
  EXPECT_EQ(Check("operations { id: 1 client: 2 }"), "operations[0].client: want 1 to 1, got 2");
  EXPECT_EQ(Check("operations { id: 0 client: 1 }"), "operations[0].id: 0 is zero or not unique");
  EXPECT_EQ(Check("operations { id: 1 client: 1 at_ms: 9 } operations { id: 2 client: 1 at_ms: 8 }"),
            "operations[1].at_ms: is before that of an earlier operation of its client");
  EXPECT_EQ(Check("lost_members: 4"), "lost_members: want 1 to 3, got 4");
  EXPECT_EQ(Check("members: 5 lost_members: 1 lost_members: 2 lost_members: 3"), "lost_members: want at most 2, got 3");
  EXPECT_EQ(Check("knobs { heartbeat_ms: 300 }"),
            "knobs.election_timeout_ms: want a multiple of heartbeat_ms 300, at least 5 of them, got 1000");
  EXPECT_EQ(Check("knobs { by_source_ppm: 1000001 }"), "knobs.by_source_ppm: want at most 1000000, got 1000001");
  EXPECT_EQ(Check("episodes { id: 1 until_new_leader: true crash { members: 2 } }"),
            "episodes[0].until_new_leader: the end of this fault is planned when it begins");
}

TEST(CheckScenarioTest, TakesWhatIsAbsentAndEvenClusters) {
  EXPECT_EQ(Check(""), "");
  EXPECT_EQ(Check("members: 2"), "");
  EXPECT_EQ(Check("episodes { id: 1 }"), "");
  EXPECT_EQ(Check("episodes { id: 1 until_new_leader: true pause { members: 2 } }"), "");
  // Those that wait for a leader are not of the order of the others.
  EXPECT_EQ(Check("operations { id: 1 client: 1 at_ms: 9 } operations { id: 2 client: 1 at_ms: 8 at_new_leader: true }"), "");
}

TEST(SettingsTest, LawsKeepTheirUnits) {
  Law law;
  law.set_kind(Law::EXPONENTIAL);
  law.set_min_us(200);
  law.set_max_us(1'200);
  const sim::DelayLaw delay = MakeDelay(law);
  EXPECT_EQ(delay.min, Micros(200));
  EXPECT_EQ(delay.mean, Micros(1'000));
  EXPECT_EQ(delay.max, Micros(10'200));
  EXPECT_EQ(Permille(0), 0u);
  EXPECT_EQ(Permille(1), 1u);
  EXPECT_EQ(Permille(1'000), 1u);
  EXPECT_EQ(Permille(1'000'000), 1'000u);
}

}  // namespace
}  // namespace detcd::scenario
