#include "tests/interop/differential/accepted.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/str_format.h"
#include "core/base/limits.h"

namespace detcd::differential {
namespace {

bool Found(const std::optional<std::regex>& pattern, const std::string& text) {
  return !pattern.has_value() || std::regex_search(text, *pattern);
}

bool HasLargePart(const Answer& answer) {
  return std::any_of(answer.responses.begin(), answer.responses.end(),
                     [](const auto& response) { return response->ByteSizeLong() > kRangeStreamChunkBytesMax; });
}

}  // namespace

std::string AcceptedDifferences::Load(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::StrFormat("%s: cannot be read", path);
  std::string line;
  bool fresh = true;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.starts_with('#')) continue;
    if (line.empty()) {
      fresh = true;
      continue;
    }
    const size_t colon = line.find(':');
    if (colon == std::string::npos) return absl::StrFormat("%s:%d: want `word: text`", path, number);
    const std::string word = line.substr(0, colon);
    const size_t begin = line.find_first_not_of(' ', colon + 1);
    const std::string text = begin == std::string::npos ? "" : line.substr(begin);
    if (fresh) entries_.emplace_back();
    fresh = false;
    Entry& entry = entries_.back();
    try {
      if (word == "name")
        entry.name = text;
      else if (word == "request")
        entry.request = std::regex(text);
      else if (word == "etcd")
        entry.etcd = std::regex(text);
      else if (word == "detcd")
        entry.detcd = std::regex(text);
      else if (word == "joined" && text == "equal")
        entry.joined = true;
      else if (word == "why")
        entry.why = text;
      else
        return absl::StrFormat("%s:%d: cannot use `%s`", path, number, line);
    } catch (const std::regex_error& error) {
      return absl::StrFormat("%s:%d: no pattern: %s", path, number, error.what());
    }
  }
  for (const Entry& entry : entries_) {
    if (entry.name.empty() || entry.why.empty())
      return absl::StrFormat("%s: entry `%s` wants name and why", path, entry.name);
  }
  return "";
}

bool AcceptedDifferences::Accept(const testing::ApiCall& call, const Answer& etcd, const Answer& detcd) {
  const std::string request = testing::Describe(call);
  for (Entry& entry : entries_) {
    if (!Found(entry.etcd, StatusText(etcd)) || !Found(entry.detcd, StatusText(detcd)) ||
        !Found(entry.request, request))
      continue;
    if (entry.joined && (!HasLargePart(etcd) || FullText(Joined(etcd)) != FullText(Joined(detcd)))) continue;
    ++entry.matched;
    return true;
  }
  return false;
}

}  // namespace detcd::differential
