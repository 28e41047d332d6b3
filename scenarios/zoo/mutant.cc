#include "scenarios/zoo/mutant.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_format.h"

namespace detcd::scenario {
namespace {

constexpr std::string_view kDiffStart = "diff --git ";
constexpr std::string_view kNewFile = "+++ b/";
constexpr std::string_view kTestPrefix = "ctest -R ";

std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string> SplitAtCommas(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    words.emplace_back(Trimmed(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace

bool Mutant::OfInstrument() const { return file.find("/instrument/") != std::string::npos; }

std::optional<Mutant> ParseMutant(const std::string& file, std::string_view text, std::string& trouble) {
  std::map<std::string, std::string, std::less<>> fields;
  std::string* last = nullptr;
  while (!text.empty() && text.substr(0, kDiffStart.size()) != kDiffStart) {
    const std::string_view line = TakeLine(text);
    if (line.empty()) continue;
    const size_t colon = line.find(": ");
    if (line.front() == ' ' && last != nullptr) {
      *last += " " + std::string(Trimmed(line));
    } else if (line.front() != ' ' && colon != std::string_view::npos) {
      last = &fields[std::string(line.substr(0, colon))];
      *last = line.substr(colon + 2);
    } else {
      trouble = absl::StrFormat("want `Key: value` in the header, found `%s`", std::string(line));
      return std::nullopt;
    }
  }
  Mutant mutant{.file = file};
  const size_t name = file.rfind('/') + 1;
  mutant.id = file.substr(name, file.rfind('.') - name);
  for (const auto& [key, target] : {std::pair{"Source", &mutant.source}, {"Mechanism", &mutant.mechanism}, {"Trigger", &mutant.trigger}}) {
    *target = fields[key];
    if (target->empty()) trouble = absl::StrFormat("the header has no `%s:`", key);
  }
  if (fields["Id"] != mutant.id) trouble = absl::StrFormat("want `Id: %s`, found `%s`", mutant.id, fields["Id"]);
  mutant.expected = SplitAtCommas(fields["Expected"]);
  mutant.scenarios = SplitAtCommas(fields["Scenario"]);
  mutant.equivalent = fields["Equivalent"];
  const std::string& killed_by = fields["Killed-by"];
  if (killed_by.rfind(kTestPrefix, 0) == 0) {
    mutant.killed_by = killed_by.substr(kTestPrefix.size());
  } else if (killed_by == "scenario") {
    mutant.by_scenario = true;
    if (mutant.scenarios.empty()) trouble = "`Killed-by: scenario` wants a `Scenario:`";
  } else if (!killed_by.empty() && killed_by != "sweep") {
    trouble = absl::StrFormat("want `Killed-by: sweep`, `scenario` or `ctest -R NAME`, found `%s`", killed_by);
  }
  if (mutant.expected.empty() && mutant.killed_by.empty() && mutant.equivalent.empty()) {
    trouble = "the header has no `Expected:`";
  }

  uint64_t changed = 0;
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    if (line.substr(0, kNewFile.size()) == kNewFile) {
      mutant.touched.emplace_back(line.substr(kNewFile.size()));
    } else if (!line.empty() && (line.front() == '+' || line.front() == '-') && line.substr(0, 4) != "--- ") {
      ++changed;
    }
  }
  if (mutant.touched.empty()) trouble = "it has no diff";
  if (changed > kMutantChangedLinesMax) {
    trouble = absl::StrFormat("%d changed lines, at most %d are a mutant", changed, kMutantChangedLinesMax);
  }
  if (!trouble.empty()) return std::nullopt;
  return mutant;
}

Interval WilsonInterval(uint64_t hits, uint64_t tries) {
  if (tries == 0) return {};
  constexpr double kZ = 1.959964;  // of 95%, both sides
  const double n = static_cast<double>(tries);
  const double p = static_cast<double>(hits) / n;
  const double centre = p + kZ * kZ / (2 * n);
  const double spread = kZ * std::sqrt(p * (1 - p) / n + kZ * kZ / (4 * n * n));
  const double scale = 1 + kZ * kZ / n;
  return {.low = std::max(0.0, (centre - spread) / scale), .high = std::min(1.0, (centre + spread) / scale)};
}

}  // namespace detcd::scenario
