#include "core/member/cluster_version.h"

#include <algorithm>
#include <charconv>
#include <compare>
#include <cstdint>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/check.h"
#include "core/base/limits.h"
#include "core/base/probe.h"
#include "core/member/json_reader.h"

namespace detcd::member {
namespace {

// The lowest cluster version there is (etcd's minimum).
constexpr std::string_view kLowestClusterVersion = "3.0.0";

struct Version {
  uint32_t major = 0;
  uint32_t minor = 0;
  uint32_t patch = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
};

// X.Y.Z, and what semver allows behind a `-` or `+`, which is not looked at.
std::optional<Version> ParseVersion(std::string_view text) {
  Version version;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (uint32_t* part : {&version.major, &version.minor, &version.patch}) {
    if (part != &version.major) {
      if (at == end || *at != '.') return std::nullopt;
      ++at;
    }
    const auto [stop, error] = std::from_chars(at, end, *part);
    if (error != std::errc()) return std::nullopt;
    at = stop;
  }
  if (at != end && *at != '-' && *at != '+') return std::nullopt;
  return version;
}

// The lowest of all; nullopt when one is not known.
std::optional<Version> LowestOf(const std::vector<std::string>& servers) {
  std::optional<Version> lowest;
  for (const std::string& server : servers) {
    const std::optional<Version> version = ParseVersion(server);
    if (!version) return std::nullopt;
    lowest = lowest ? std::min(*lowest, *version) : *version;
  }
  return lowest;
}

}  // namespace

std::optional<std::string> DecodeServerVersion(std::string_view text) {
  JsonReader json(text);
  std::string version;
  if (!json.Take('{')) return std::nullopt;
  if (!json.Take('}')) {
    do {
      std::string name;
      if (!json.String(name) || !json.Take(':')) return std::nullopt;
      if (!(name == "etcdserver" ? json.String(version) : json.Skip())) return std::nullopt;
    } while (json.Take(','));
    if (!json.Take('}')) return std::nullopt;
  }
  if (!json.AtEnd() || !ParseVersion(version)) return std::nullopt;
  return version;
}

std::optional<std::string> DecideClusterVersion(std::string_view current, const std::vector<std::string>& servers) {
  const std::optional<Version> lowest = LowestOf(servers);
  if (current.empty() && !lowest) {
    PROBE("member.cluster_version_lowest");
    return std::string(kLowestClusterVersion);
  }
  if (!lowest) return std::nullopt;
  const Version proposed{.major = lowest->major, .minor = lowest->minor};
  if (!current.empty()) {
    const std::optional<Version> present = ParseVersion(current);
    if (!present || proposed.major != present->major || proposed <= *present) return std::nullopt;
    PROBE("member.cluster_version_raised");
  }
  return absl::StrFormat("%d.%d.0", proposed.major, proposed.minor);
}

void VersionRounds::OnLead(Instant now) { due_ = now; }

void VersionRounds::OnLeadLost() {
  due_.reset();
  round_.reset();
}

void VersionRounds::Start(Instant now, const std::vector<MemberId>& peers) {
  CHECK(IsDue(now));
  due_ = now + kClusterVersionInterval;
  round_ = Round{.answers = {}, .deadline = now + kClusterVersionAnswerTimeout};
  for (MemberId peer : peers) round_->answers[peer] = std::nullopt;
}

void VersionRounds::OnAnswer(MemberId peer, std::string version) {
  if (!round_) return;
  const auto asked = round_->answers.find(peer);
  if (asked != round_->answers.end()) asked->second = std::move(version);
}

std::optional<std::vector<std::string>> VersionRounds::TakeFinished(Instant now) {
  if (!round_) return std::nullopt;
  const bool complete = std::all_of(round_->answers.begin(), round_->answers.end(),
                                    [](const auto& answer) { return answer.second.has_value(); });
  if (!complete && now < round_->deadline) return std::nullopt;
  std::vector<std::string> servers{own_version_};
  for (auto& [peer, answer] : round_->answers) servers.push_back(answer ? *std::move(answer) : std::string());
  round_.reset();
  return servers;
}

std::optional<Instant> VersionRounds::NextDeadline() const {
  return round_ ? std::optional(round_->deadline) : due_;
}

}  // namespace detcd::member
