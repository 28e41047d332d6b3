// Knob sheets and studies: what is set, what a small grid measures, and that its output is a function of the study.
#include "scenarios/study/study.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <google/protobuf/text_format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/runner.h"
#include "scenarios/study/chart.h"
#include "scenarios/swarm.h"

namespace detcd::scenario {
namespace {

using testing::HasSubstr;

Scenario With(std::initializer_list<const char*> settings, Scenario scenario = MakeSwarm(5, FidelityChoice::kDirect)) {
  KnobSheet sheet;
  for (const char* setting : settings) EXPECT_EQ(sheet.Add(setting), "");
  sheet.Apply(scenario);
  EXPECT_EQ(CheckScenario(scenario), "");
  return scenario;
}

TEST(KnobSheetTest, SetsFieldsByName) {
  EXPECT_EQ(With({"election_timeout=3000"}).knobs().election_timeout_ms(), 3'000u);
  EXPECT_EQ(With({"election_timeout=3000"}).knobs().heartbeat_ms(), 300u);
  EXPECT_EQ(With({"heartbeat=20"}).knobs().election_timeout_ms(), 200u);
  EXPECT_EQ(With({"heartbeat_ms=20", "election_timeout=100"}).knobs().election_timeout_ms(), 100u);
  EXPECT_TRUE(With({"pre_vote=off"}).knobs().no_pre_vote());
  EXPECT_FALSE(With({"pre_vote=off", "pre_vote=on"}).knobs().no_pre_vote());
  EXPECT_TRUE(With({"check_quorum=off"}).knobs().no_check_quorum());
  EXPECT_EQ(With({"wal_segment_bytes=4096"}).knobs().wal_segment_bytes(), 4'096u);
}

TEST(KnobSheetTest, DriftTakesThePlaceOfAllClocks) {
  const Scenario scenario = With({"drift=1000"});
  ASSERT_EQ(scenario.clocks_size(), static_cast<int>(scenario.members()));
  for (const ClockSetting& clock : scenario.clocks()) EXPECT_EQ(clock.drift_ppm(), clock.member() % 2 != 0 ? 1'000 : -1'000);
  EXPECT_EQ(With({"drift=0"}).clocks_size(), 0);
}

TEST(KnobSheetTest, LeavesEverythingElse) {
  Scenario scenario = MakeSwarm(5, FidelityChoice::kDirect);
  const Scenario same = With({}, scenario);
  EXPECT_EQ(same.SerializeAsString(), scenario.SerializeAsString());
}

TEST(KnobSheetTest, SaysWhatIsWrong) {
  KnobSheet sheet;
  EXPECT_EQ(sheet.Add("heartbeat"), "heartbeat: want KEY=VALUE");
  EXPECT_THAT(sheet.Add("colour=red"), HasSubstr("no such key; there are drift, heartbeat_ms"));
  EXPECT_THAT(sheet.Add("colour=red"), HasSubstr("check_quorum"));
  EXPECT_EQ(sheet.Add("pre_vote=maybe"), "pre_vote=maybe: want on or off");
  EXPECT_EQ(sheet.Add("heartbeat=-1"), "heartbeat=-1: want a number below 2^32");
  EXPECT_EQ(sheet.Add("drift=fast"), "drift=fast: want parts per million");
  EXPECT_THAT(sheet.Add("election_timeout=1234"), HasSubstr("want a multiple of heartbeat_ms 123"));
  EXPECT_TRUE(sheet.empty());
}

TEST(KnobSheetTest, IsSaidAgainAsItWasSaid) {
  KnobSheet sheet;
  EXPECT_EQ(sheet.Add("heartbeat=50"), "");
  EXPECT_EQ(sheet.Add("pre_vote=off"), "");
  EXPECT_EQ(sheet.Options(), " --set heartbeat=50 --set pre_vote=off");
}

constexpr char kStudy[] = R"(
  title: "small & simple"
  seeds: 2
  base { format_version: 1 clients: 1 chaos_ms: 8000
         episodes { id: 1 at_ms: 2500 transfer { to: 1 } }
         operations { id: 1 client: 1 at_ms: 500 times: 140 every_ms: 50 put { key: "a" } } }
  cases { name: "calm" }
  cases { name: "member 3 away" scenario { episodes { id: 2 at_ms: 3000 for_ms: 3000 partition { group: 3 } } } }
  knobs { key: "pre_vote" values: "on" values: "off" }
  from_ms: 3000
  metrics: "disruptions"
  metrics: "write_gap_ms"
)";

Study Parse(const std::string& text) {
  Study study;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &study));
  return study;
}

TEST(StudyTest, TheGridIsTheProductOfCasesAndValues) {
  std::string trouble;
  const std::vector<StudyCell> cells = MakeCells(Parse(kStudy), trouble);
  ASSERT_EQ(trouble, "");
  ASSERT_EQ(cells.size(), 4u);
  EXPECT_EQ(cells[1].name, "calm");
  EXPECT_EQ(cells[1].values, (std::vector<std::string>{"off"}));
  EXPECT_TRUE(ScenarioOf(cells[1], 7).knobs().no_pre_vote());
  EXPECT_EQ(ScenarioOf(cells[1], 7).seed(), 7u);
  EXPECT_EQ(ScenarioOf(cells[2], 1).episodes_size(), 2);
  EXPECT_FALSE(ScenarioOf(cells[2], 1).knobs().no_pre_vote());
}

TEST(StudyTest, WithoutCasesTheSwarmDraws) {
  std::string trouble;
  const std::vector<StudyCell> cells =
      MakeCells(Parse("title: 't' seeds: 1 knobs { key: 'drift' values: '0' values: '5000' } metrics: 'disruptions'"), trouble);
  ASSERT_EQ(cells.size(), 2u) << trouble;
  EXPECT_EQ(ScenarioOf(cells[1], 3).operations_size(), MakeSwarm(3, FidelityChoice::kMixed).operations_size());
}

TEST(StudyTest, SaysWhatIsWrong) {
  const auto trouble = [](const std::string& more) {
    std::string text;
    EXPECT_TRUE(MakeCells(Parse(kStudy + more), text).empty());
    return text;
  };
  EXPECT_THAT(trouble("metrics: 'luck'"), HasSubstr("`luck`"));
  EXPECT_THAT(trouble("knobs { key: 'pre_vote' }"), HasSubstr("`pre_vote` has no values"));
  EXPECT_THAT(trouble("knobs { key: 'colour' values: 'red' }"), HasSubstr("no such key"));
  EXPECT_THAT(trouble("cases { name: 'bad' scenario { episodes { id: 1 } } }"), HasSubstr("`bad`: episodes[1].id: 1 is not unique"));
}

// A judge's first word is about the election that made the read stale possible; reads are counted beyond it.
TEST(StudyTest, LeaseReadsAreStaleBeyondTheirBoundAndNotInside) {
  std::stringstream text;
  text << std::ifstream(std::filesystem::path(DETCD_SCENARIOS) / "studies/lease_drift.study").rdbuf();
  const Study study = Parse(text.str());
  std::string trouble;
  const std::vector<StudyCell> cells = MakeCells(study, trouble);
  ASSERT_EQ(trouble, "");
  const auto run = [&](const std::vector<std::string>& values) {
    const auto cell = std::ranges::find(cells, values, &StudyCell::values);
    EXPECT_NE(cell, cells.end());
    return RunScenario(ScenarioOf(*cell, 2), OptionsOf(study));
  };
  const auto stale = static_cast<size_t>(Metric::kStaleReads);
  const RunResult beyond = run({"400000", "100000"});
  ASSERT_TRUE(beyond.violation.has_value());
  EXPECT_EQ(beyond.violation->property, "F14");
  EXPECT_GT(beyond.measured.at(stale), 10u);
  const RunResult inside = run({"100000", "100000"});
  EXPECT_EQ(inside.verdict, Verdict::kFine);
  EXPECT_EQ(inside.measured.at(stale), 0u);
}

StudyReport Report() {
  StudyReport report;
  report.set_title("small & simple");
  report.set_seeds(2);
  report.add_keys("pre_vote");
  for (const char* name : {"calm", "member 3 away"}) {
    for (const char* value : {"on", "off"}) {
      Cell& cell = *report.add_cells();
      cell.set_name(name);
      cell.add_values(value);
      cell.set_runs(2);
      for (const MetricRow& row : kMetrics) {
        Number& number = *cell.add_numbers();
        number.set_metric(std::string(row.name));
        number.set_least(1);
        number.set_most(4);
        number.set_sum(5);
      }
    }
  }
  return report;
}

TEST(StudyTest, TheTableHasARowForEachCell) {
  EXPECT_EQ(StudyTable(Parse(kStudy), Report()),
            "small & simple\nmean (least-most) of 2 seeds\n\n"
            "case           pre_vote  disruptions  write_gap_ms  not fine\n"
            "calm           on          2.5 (1-4)     2.5 (1-4)         0\n"
            "calm           off         2.5 (1-4)     2.5 (1-4)         0\n"
            "member 3 away  on          2.5 (1-4)     2.5 (1-4)         0\n"
            "member 3 away  off         2.5 (1-4)     2.5 (1-4)         0\n");
}

TEST(StudyTest, CsvHasALineForEachNumber) {
  const std::string csv = StudyCsv(Report());
  EXPECT_THAT(csv, HasSubstr("case,\"pre_vote\",runs,failures,metric,least,most,sum\n\"calm\",\"on\",2,0,term_growth,1,4,5\n"));
  EXPECT_EQ(std::ranges::count(csv, '\n'), 1 + 4 * static_cast<int>(kMetricCount));
}

TEST(StudyTest, TheChartHasAxesLegendAndUnits) {
  const std::string svg = StudyChart(Parse(kStudy), Report());
  for (const char* part : {"small &amp; simple", ">pre_vote on<", ">pre_vote off<", ">write gap [ms]<", ">member 3 away<", "</svg>"}) {
    EXPECT_THAT(svg, HasSubstr(part));
  }
}

TEST(StudyTest, TicksAreRound) {
  EXPECT_EQ(TickStep(0, 5), 1);
  EXPECT_EQ(TickStep(5, 5), 1);
  EXPECT_EQ(TickStep(6, 5), 2);
  EXPECT_EQ(TickStep(10, 5), 2);
  EXPECT_EQ(TickStep(11, 5), 5);
  EXPECT_EQ(TickStep(3'400, 5), 1'000);
}

}  // namespace
}  // namespace detcd::scenario
