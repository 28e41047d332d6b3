#include "scenarios/study/study.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "absl/strings/str_format.h"
#include "scenarios/command_files.h"
#include "scenarios/commands.h"
#include "scenarios/json_files.h"
#include "scenarios/scenario_text.h"
#include "scenarios/study/chart.h"
#include "scenarios/sweep.h"

namespace detcd::scenario {
namespace {

constexpr uint32_t kStudySchemaVersion = 1;
constexpr uint64_t kSeedsMax = 1'000'000;
constexpr size_t kCellsMax = 10'000;

Study ReadStudy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (file) text << file.rdbuf();
  if (!file || !text) throw UsageError{path + ": cannot be read"};
  Study study;
  if (const std::string why = ParseScenarioText(text.str(), study); !why.empty()) throw UsageError{path + ": " + why};
  if (study.seeds() == 0 || study.seeds() > kSeedsMax) throw UsageError{absl::StrFormat("%s: seeds: want 1 to %d", path, kSeedsMax)};
  return study;
}

const MetricRow* FindMetric(const std::string& name) {
  const auto row = std::ranges::find(kMetrics, std::string_view(name), &MetricRow::name);
  return row == kMetrics.end() ? nullptr : &*row;
}

// Adds up the runs as they come in, cell after cell.
class Tables final : public SweepListener {
 public:
  Tables(const std::vector<StudyCell>& cells, uint64_t seeds, StudyReport& report) : seeds_(seeds), report_(report) {
    for (const StudyCell& cell : cells) {
      Cell& row = *report.add_cells();
      row.set_name(cell.name);
      for (const std::string& value : cell.values) row.add_values(value);
      for (const MetricRow& metric : kMetrics) row.add_numbers()->set_metric(std::string(metric.name));
    }
  }

  void OnSeed(const SeedReport& run) override {
    Cell& cell = *report_.mutable_cells(static_cast<int>((run.seed() - 1) / seeds_));
    if (run.verdict() != 0) cell.set_failures(cell.failures() + 1);
    if (run.measured_size() == 0) return;
    const bool first = cell.runs() == 0;
    cell.set_runs(cell.runs() + 1);
    for (int i = 0; i < run.measured_size(); ++i) {
      Number& number = *cell.mutable_numbers(i);
      number.set_least(first ? run.measured(i) : std::min(number.least(), run.measured(i)));
      number.set_most(std::max(number.most(), run.measured(i)));
      number.set_sum(number.sum() + run.measured(i));
    }
  }
  void OnProgress(const SweepProgress&) override {}

 private:
  const uint64_t seeds_;
  StudyReport& report_;
};

void WriteText(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  OutputFile file(path);
  file.Write(text);
  file.Close();
}

std::string Padded(const std::string& text, size_t width, bool left) {
  const std::string blanks(width - std::min(width, text.size()), ' ');
  return left ? text + blanks : blanks + text;
}

}  // namespace

std::vector<StudyCell> MakeCells(const Study& study, std::string& trouble) {
  std::vector<StudyCell> cells;
  for (const std::string& metric : study.metrics()) {
    if (FindMetric(metric) == nullptr) trouble = "metrics: `" + metric + "` is no field of Expectation that has bounds";
  }
  if (study.metrics().empty()) trouble = "metrics: names none";
  for (const Case& one : study.cases()) {
    StudyCell cell = {.name = one.name(), .values = {}, .swarm = false, .scenario = study.base(), .sheet = {}};
    cell.scenario.MergeFrom(one.scenario());
    cells.push_back(std::move(cell));
  }
  if (cells.empty()) cells.push_back({.name = "", .values = {}, .swarm = !study.has_base(), .scenario = study.base(), .sheet = {}});
  for (const StudyKnob& knob : study.knobs()) {
    std::vector<StudyCell> grown;
    if (knob.values().empty()) trouble = "knobs: `" + knob.key() + "` has no values";
    for (const StudyCell& cell : cells) {
      for (const std::string& value : knob.values()) {
        grown.push_back(cell);
        grown.back().values.push_back(value);
        const std::string why = grown.back().sheet.Add(knob.key() + "=" + value);
        if (!why.empty() && trouble.empty()) trouble = "knobs: " + why;
      }
    }
    if (grown.size() > kCellsMax) trouble = absl::StrFormat("knobs: want at most %d cells", kCellsMax);
    if (!trouble.empty()) return {};
    cells = std::move(grown);
  }
  for (const StudyCell& cell : cells) {
    const std::string why = CheckScenario(ScenarioOf(cell, 1));
    if (!why.empty() && trouble.empty()) trouble = absl::StrFormat("cases: `%s`: %s", cell.name, why);
  }
  return trouble.empty() ? cells : std::vector<StudyCell>();
}

Scenario ScenarioOf(const StudyCell& cell, uint64_t seed) {
  if (cell.swarm) return DrawScenario(seed, FidelityChoice::kMixed, ProfileChoice::kMixed, cell.sheet);
  Scenario scenario = cell.scenario;
  cell.sheet.Apply(scenario);
  scenario.set_seed(seed);
  return scenario;
}

RunOptions OptionsOf(const Study& study) {
  Window window = {.from = Millis(study.from_ms()).nanos, .member = {}};
  if (study.to_ms() != 0) window.to = Millis(study.to_ms()).nanos;
  RunOptions options;
  options.measure = window;
  options.past_violation = true;
  options.second_opinion = false;
  return options;
}

int RunStudy(const StudyCommand& command) {
  const Study study = ReadStudy(command.study_file);
  std::string trouble;
  const std::vector<StudyCell> cells = MakeCells(study, trouble);
  if (!trouble.empty()) throw UsageError{command.study_file + ": " + trouble};
  const uint64_t seeds = command.seeds != 0 ? command.seeds : study.seeds();

  StudyReport report;
  report.set_schema_version(kStudySchemaVersion);
  report.set_title(study.title());
  report.set_seeds(seeds);
  for (const StudyKnob& knob : study.knobs()) report.add_keys(knob.key());
  Tables tables(cells, seeds, report);
  const SweepOptions options{.first = 1,
                             .last = cells.size() * seeds,
                             .jobs = command.jobs != 0 ? command.jobs : Processors(),
                             .twin_share = 0,
                             .twin_command = {},
                             .limits = {}};
  const auto run = [&](uint64_t number) {
    return RunOne(ScenarioOf(cells[(number - 1) / seeds], (number - 1) % seeds + 1), OptionsOf(study));
  };
  if (Sweep(options, run, tables).interrupted) return 128 + SIGINT;

  std::printf("%s", StudyTable(study, report).c_str());
  WriteText(command.csv_file, StudyCsv(report));
  WriteText(command.svg_file, StudyChart(study, report));
  if (!command.json_file.empty()) WriteJson(command.json_file, report);
  return 0;
}

namespace {

std::string MeanText(const Number& number, uint64_t runs) {
  return runs == 0 ? "-" : absl::StrFormat("%.1f", static_cast<double>(number.sum()) / static_cast<double>(runs));
}

}  // namespace

std::string StudyTable(const Study& study, const StudyReport& report) {
  std::vector<std::vector<std::string>> rows(1);
  rows[0].push_back("case");
  for (const std::string& key : report.keys()) rows[0].push_back(key);
  const size_t words = rows[0].size();
  for (const std::string& metric : study.metrics()) rows[0].push_back(metric);
  rows[0].push_back("not fine");
  for (const Cell& cell : report.cells()) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(cell.name());
    row.insert(row.end(), cell.values().begin(), cell.values().end());
    for (const std::string& metric : study.metrics()) {
      const Number& number = cell.numbers(static_cast<int>(FindMetric(metric)->metric));
      row.push_back(absl::StrFormat("%s (%d-%d)", MeanText(number, cell.runs()), number.least(), number.most()));
    }
    row.push_back(std::to_string(cell.failures()));
  }
  std::string text = absl::StrFormat("%s\nmean (least-most) of %d seeds\n\n", report.title(), report.seeds());
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (size_t column = 0; column < row.size(); ++column) {
      size_t width = 0;
      for (const std::vector<std::string>& other : rows) width = std::max(width, other[column].size());
      line += (column == 0 ? "" : "  ") + Padded(row[column], width, column < words);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string StudyCsv(const StudyReport& report) {
  const auto quoted = [](const std::string& word) {
    std::string text = "\"";
    for (const char c : word) text += c == '"' ? std::string("\"\"") : std::string(1, c);
    return text + "\"";
  };
  std::string text = "case";
  for (const std::string& key : report.keys()) text += "," + quoted(key);
  text += ",runs,failures,metric,least,most,sum\n";
  for (const Cell& cell : report.cells()) {
    std::string head = quoted(cell.name());
    for (const std::string& value : cell.values()) head += "," + quoted(value);
    for (const Number& number : cell.numbers()) {
      absl::StrAppendFormat(&text, "%s,%d,%d,%s,%d,%d,%d\n", head, cell.runs(), cell.failures(), number.metric(), number.least(),
                            number.most(), number.sum());
    }
  }
  return text;
}

}  // namespace detcd::scenario
