#include "scenarios/expectations.h"

#include <string>
#include <utility>

#include "absl/strings/str_format.h"

namespace detcd::scenario {
namespace {

Window WindowOf(const Expectation& expectation, const Scenario& scenario) {
  Window window;
  const int64_t heal = Millis(scenario.chaos_ms()).nanos;
  switch (expectation.phase()) {
    case Expectation::CHAOS: window.to = heal; break;
    case Expectation::HEALING: window.from = heal; break;
    default:
      window.from = Millis(expectation.from_ms()).nanos;
      if (expectation.to_ms() != 0) window.to = Millis(expectation.to_ms()).nanos;
  }
  if (expectation.member() != 0) window.member = expectation.member() - 1;
  return window;
}

std::vector<Window> Windows(const Scenario& scenario, const std::optional<Window>& study) {
  std::vector<Window> windows;
  for (const Expectation& expectation : scenario.expectations()) windows.push_back(WindowOf(expectation, scenario));
  if (study.has_value()) windows.push_back(*study);
  return windows;
}

// `from 6000 to 9000 ms`, `in chaos`.
std::string WindowText(const Expectation& expectation) {
  switch (expectation.phase()) {
    case Expectation::CHAOS: return "in the chaos";
    case Expectation::HEALING: return "after the healing";
    default: break;
  }
  if (expectation.from_ms() == 0 && expectation.to_ms() == 0) return "in the whole run";
  if (expectation.to_ms() == 0) return absl::StrFormat("from %d ms on", expectation.from_ms());
  return absl::StrFormat("from %d to %d ms", expectation.from_ms(), expectation.to_ms());
}

}  // namespace

Expectations::Expectations(const Scenario& scenario, const std::optional<Window>& study, sim::World& world)
    : scenario_(scenario), has_study_(study.has_value()), world_(world), measures_(world, Windows(scenario, study)) {}

void Expectations::AfterStep(const sim::WorldStep& step) {
  measures_.AfterStep(step);
  if (measures_.TakeChanged()) Judge(false);
}

void Expectations::Finish() {
  measures_.Finish();
  Judge(true);
}

std::vector<uint64_t> Expectations::measured() const {
  std::vector<uint64_t> values;
  if (!has_study_) return values;
  const auto place = static_cast<size_t>(scenario_.expectations_size());
  for (const MetricRow& row : kMetrics) values.push_back(measures_.Value(place, row.metric));
  return values;
}

void Expectations::Judge(bool at_end) {
  for (int i = 0; i < scenario_.expectations_size(); ++i) {
    for (const MetricRow& row : kMetrics) {
      if (!at_end && !row.grows) continue;
      const Bounds* bounds = BoundsOf(scenario_.expectations(i), row);
      if (bounds != nullptr) JudgeOne(static_cast<size_t>(i), row, *bounds, at_end);
    }
  }
}

void Expectations::JudgeOne(size_t place, const MetricRow& row, const Bounds& bounds, bool at_end) {
  const uint64_t value = measures_.Value(place, row.metric);
  const bool more = bounds.has_max() && value > bounds.max();
  const bool less = at_end && bounds.has_min() && value < bounds.min();
  if (violation_.has_value() || (!more && !less)) return;
  const Expectation& expectation = scenario_.expectations(static_cast<int>(place));
  const std::string property = absl::StrFormat("E:%s", std::string(row.name));
  const std::string name = expectation.name().empty() ? "" : " in " + expectation.name();
  std::string whose = expectation.member() == 0 ? "" : absl::StrFormat(" of m%d", expectation.member());
  violation_ = checker::Violation{
      .property = property,
      .signature = absl::StrFormat("%s: %s than expected%s", property, more ? "more" : "less", name),
      .sentence = absl::StrFormat("%s%s %s%s: %d, expected at %s %d", std::string(row.name), whose, WindowText(expectation), name,
                                  value, more ? "most" : "least", more ? bounds.max() : bounds.min()),
      .moment = world_.Now(),
      .operations = {}};
}

}  // namespace detcd::scenario
