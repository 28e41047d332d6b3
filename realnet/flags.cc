#include "realnet/flags.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/wire/url.h"

namespace detcd::realnet {
namespace {

using enum FlagKind;
using enum FlagStanding;

constexpr FlagRow kFlags[] = {
    {"name", kText, kBuilt, "default", "name of this member, by which it finds itself in --initial-cluster"},
    {"data-dir", kText, kBuilt, "", "data folder; NAME.etcd when empty"},
    {"wal-dir", kText, kNotBuilt, ""},
    {"snapshot-count", kUnsigned, kNoEffect, "10000"},
    {"snapshot-catchup-entries", kUnsigned, kNoEffect, "5000"},
    {"heartbeat-interval", kUnsigned, kBuilt, "100", "milliseconds between a leader's heartbeats"},
    {"election-timeout", kUnsigned, kBuilt, "1000",
     "milliseconds without a leader before an election; five heartbeats at least"},
    {"initial-election-tick-advance", kBool, kNoEffect, "true"},
    {"listen-peer-urls", kUrls, kBuilt, "http://localhost:2380",
     "where other members connect; the host is an IP or localhost"},
    {"listen-client-urls", kUrls, kBuilt, "http://localhost:2379", "where clients connect, with gRPC or HTTP"},
    {"listen-client-http-urls", kUrls, kNotBuilt, ""},
    {"listen-metrics-urls", kUrls, kNotBuilt, ""},
    {"max-snapshots", kUnsigned, kNoEffect, "5"},
    {"max-wals", kUnsigned, kNoEffect, "5"},
    {"memory-mlock", kBool, kNotBuilt, "false"},
    {"quota-backend-bytes", kSigned, kNotBuilt, "0"},
    {"backend-bbolt-freelist-type", kText, kNoEffect, ""},
    {"backend-batch-interval", kDuration, kNoEffect, "0s"},
    {"backend-batch-limit", kSigned, kNoEffect, "0"},
    {"max-txn-ops", kUnsigned, kNotBuilt, "128"},
    {"max-request-bytes", kUnsigned, kNotBuilt, "1572864"},
    {"max-concurrent-streams", kUnsigned32, kBuilt, "4294967295",
     "calls that one client connection may have open at once"},
    {"grpc-keepalive-min-time", kDuration, kBuilt, "5s",
     "least time between pings of a client; faster ones are sent away"},
    {"grpc-keepalive-interval", kDuration, kBuilt, "2h0m0s", "silence of a client after which it is pinged"},
    {"grpc-keepalive-timeout", kDuration, kBuilt, "20s", "time for the answer to that ping, or the connection is cut"},
    {"socket-reuse-port", kBool, kNotBuilt, "false"},
    {"socket-reuse-address", kBool, kNotBuilt, "false"},
    {"enable-grpc-gateway", kBool, kNoEffect, "true"},
    {"raft-read-timeout", kDuration, kNotBuilt, "5s"},
    {"raft-write-timeout", kDuration, kNotBuilt, "5s"},
    {"feature-gates", kText, kNotBuilt, ""},
    {"initial-advertise-peer-urls", kUrls, kBuilt, "http://localhost:2380",
     "this member's peer URLs, as others are told"},
    {"initial-cluster", kText, kBuilt, "default=http://localhost:2380",
     "NAME=URL,NAME=URL... of all members, at the first start"},
    {"initial-cluster-state", kClusterState, kBuilt, "new", "new; existing is for a member that has its log"},
    {"initial-cluster-token", kText, kBuilt, "etcd-cluster", "tells clusters made of the same URLs apart"},
    {"advertise-client-urls", kUrls, kBuilt, "http://localhost:2379",
     "client URLs told to others; needed with --listen-client-urls"},
    {"discovery-token", kText, kNotBuilt, ""},
    {"discovery-endpoints", kText, kNotBuilt, ""},
    {"discovery-dial-timeout", kDuration, kNotBuilt, "2s"},
    {"discovery-request-timeout", kDuration, kNotBuilt, "5s"},
    {"discovery-keepalive-time", kDuration, kNotBuilt, "2s"},
    {"discovery-keepalive-timeout", kDuration, kNotBuilt, "6s"},
    {"discovery-insecure-transport", kBool, kNotBuilt, "true"},
    {"discovery-insecure-skip-tls-verify", kBool, kNotBuilt, "false"},
    {"discovery-cert", kText, kNotBuilt, ""},
    {"discovery-key", kText, kNotBuilt, ""},
    {"discovery-cacert", kText, kNotBuilt, ""},
    {"discovery-user", kText, kNotBuilt, ""},
    {"discovery-password", kText, kNotBuilt, ""},
    {"discovery-fallback", kText, kNotBuilt, "exit"},
    {"discovery-srv", kText, kNotBuilt, ""},
    {"discovery-srv-name", kText, kNotBuilt, ""},
    {"strict-reconfig-check", kBool, kNoEffect, "true"},
    {"pre-vote", kBool, kBuilt, "true", "ask whether an election could be won before disturbing a leader"},
    {"auto-compaction-retention", kText, kNotBuilt, "0"},
    {"auto-compaction-mode", kText, kNotBuilt, "periodic"},
    {"v2-deprecation", kText, kNoEffect, "write-only"},
    {"cert-file", kText, kNotBuilt, ""},
    {"key-file", kText, kNotBuilt, ""},
    {"client-cert-auth", kBool, kNotBuilt, "false"},
    {"client-cert-file", kText, kNotBuilt, ""},
    {"client-key-file", kText, kNotBuilt, ""},
    {"client-crl-file", kText, kNotBuilt, ""},
    {"client-cert-allowed-hostname", kText, kNotBuilt, ""},
    {"trusted-ca-file", kText, kNotBuilt, ""},
    {"auto-tls", kBool, kNotBuilt, "false"},
    {"peer-cert-file", kText, kNotBuilt, ""},
    {"peer-key-file", kText, kNotBuilt, ""},
    {"peer-client-cert-auth", kBool, kNotBuilt, "false"},
    {"peer-client-cert-file", kText, kNotBuilt, ""},
    {"peer-client-key-file", kText, kNotBuilt, ""},
    {"peer-trusted-ca-file", kText, kNotBuilt, ""},
    {"peer-cert-allowed-cn", kText, kNotBuilt, ""},
    {"peer-cert-allowed-hostname", kText, kNotBuilt, ""},
    {"peer-auto-tls", kBool, kNotBuilt, "false"},
    {"peer-crl-file", kText, kNotBuilt, ""},
    {"peer-skip-client-san-verification", kBool, kNotBuilt, "false"},
    {"self-signed-cert-validity", kUnsigned, kNotBuilt, "1"},
    {"cipher-suites", kText, kNotBuilt, ""},
    {"cors", kText, kNotBuilt, "*"},
    {"host-whitelist", kText, kNotBuilt, "*"},
    {"tls-min-version", kText, kNotBuilt, "TLS1.2"},
    {"tls-max-version", kText, kNotBuilt, ""},
    {"auth-token", kText, kNotBuilt, "simple"},
    {"bcrypt-cost", kUnsigned, kNotBuilt, "10"},
    {"auth-token-ttl", kUnsigned, kNotBuilt, "300"},
    {"enable-pprof", kBool, kNotBuilt, "false"},
    {"metrics", kText, kNotBuilt, "basic"},
    {"logger", kText, kBuilt, "zap", "zap, the shape of the log lines"},
    {"log-outputs", kText, kBuilt, "default", "default or stderr"},
    {"log-level", kText, kBuilt, "info", "debug, info, warn, error, panic or fatal"},
    {"log-format", kText, kBuilt, "json", "json"},
    {"enable-log-rotation", kBool, kNotBuilt, "false"},
    {"log-rotation-config-json", kText, kNoEffect, ""},
    {"warning-unary-request-duration", kDuration, kNoEffect, "300ms"},
    {"enable-distributed-tracing", kBool, kNotBuilt, "false"},
    {"distributed-tracing-address", kText, kNoEffect, "localhost:4317"},
    {"distributed-tracing-service-name", kText, kNoEffect, "etcd"},
    {"distributed-tracing-instance-id", kText, kNoEffect, ""},
    {"distributed-tracing-sampling-rate", kSigned, kNoEffect, "0"},
    {"corrupt-check-time", kDuration, kNotBuilt, "0s"},
    {"compact-hash-check-time", kDuration, kNotBuilt, "1m0s"},
    {"compaction-batch-limit", kSigned, kNoEffect, "0"},
    {"compaction-sleep-interval", kDuration, kNoEffect, "0s"},
    {"watch-progress-notify-interval", kDuration, kNotBuilt, "0s"},
    {"warning-apply-duration", kDuration, kNoEffect, "100ms"},
    {"bootstrap-defrag-threshold-megabytes", kUnsigned, kNoEffect, "0"},
    {"max-learners", kSigned, kNotBuilt, "1"},
    {"downgrade-check-time", kDuration, kNoEffect, "5s"},
    {"force-new-cluster", kBool, kNotBuilt, "false"},
    {"unsafe-no-fsync", kBool, kNoEffect, "false"},
    {"config-file", kText, kNotBuilt, ""},
    {"version", kBool, kBuilt, "false", "print the version and exit"},
    {"detcd-lease-reads", kBool, kBuilt, "false",
     "answer linearizable reads by leader lease; all members must have it, and clocks within 1000 ppm of true time"},
    {"cluster-active-size", kBool, kIgnored, ""},
    {"cluster-remove-delay", kBool, kIgnored, ""},
    {"cluster-sync-interval", kBool, kIgnored, ""},
    {"config", kBool, kIgnored, ""},
    {"force", kBool, kIgnored, ""},
    {"max-result-buffer", kBool, kIgnored, ""},
    {"max-retry-attempts", kBool, kIgnored, ""},
    {"peer-heartbeat-interval", kBool, kIgnored, ""},
    {"peer-election-timeout", kBool, kIgnored, ""},
    {"retry-interval", kBool, kIgnored, ""},
    {"snapshot", kBool, kIgnored, ""},
    {"v", kBool, kIgnored, ""},
    {"vv", kBool, kIgnored, ""},
    {"test.coverprofile", kBool, kIgnored, ""},
    {"test.outputdir", kBool, kIgnored, ""},
};

// Variables of etcd and its clients that are no flags of the server.
constexpr std::string_view kOtherVariables[] = {"ETCD_UNSUPPORTED_ARCH"};

struct DurationUnit {
  std::string_view name;
  int64_t nanos;
};

constexpr DurationUnit kDurationUnits[] = {
    {"ns", 1},         {"us", 1'000},        {"\u00b5s", 1'000},    {"\u03bcs", 1'000},
    {"ms", 1'000'000}, {"s", 1'000'000'000}, {"m", 60'000'000'000}, {"h", 3'600'000'000'000}};

// `digits`, which may hold one point, times `unit`, cut to whole nanoseconds. Digits of a fraction beyond the 18th are
// not looked at.
std::optional<int64_t> Scaled(std::string_view digits, int64_t unit) {
  const size_t point = std::min(digits.find('.'), digits.size());
  if (digits.size() == 1 && point == 0) return std::nullopt;
  __extension__ __int128 whole = 0;
  for (const char c : digits.substr(0, point)) {
    if (c == '.') return std::nullopt;
    whole = whole * 10 + (c - '0');
    if (whole > std::numeric_limits<int64_t>::max()) return std::nullopt;
  }
  __extension__ __int128 part = 0;
  int64_t scale = 1;
  for (const char c : point == digits.size() ? std::string_view() : digits.substr(point + 1)) {
    if (c == '.') return std::nullopt;
    if (scale >= 1'000'000'000'000'000'000) continue;
    part = part * 10 + (c - '0');
    scale *= 10;
  }
  whole = whole * unit + part * unit / scale;
  if (whole > std::numeric_limits<int64_t>::max()) return std::nullopt;
  return static_cast<int64_t>(whole);
}

bool IsSigned(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  const std::optional<uint64_t> value = ParseUnsigned(text);
  return value && *value <= uint64_t{1} << 63;
}

// Why `value` cannot be one of `row`, in Go's words; empty when it can.
std::string WhyNot(const FlagRow& row, std::string_view value) {
  if (row.standing == kIgnored) return {};
  const auto parse_error = [](bool fine) { return fine ? std::string() : std::string("parse error"); };
  switch (row.kind) {
    case kText:
      return {};
    case kBool:
      return parse_error(ParseBool(value).has_value());
    case kUnsigned:
      return parse_error(ParseUnsigned(value).has_value());
    case kUnsigned32:
      return parse_error(ParseUnsigned(value).value_or(uint64_t{1} << 32) < uint64_t{1} << 32);
    case kSigned:
      return parse_error(IsSigned(value));
    case kDuration:
      return parse_error(ParseDuration(value).has_value());
    case kClusterState:
      return value == "new" || value == "existing" ? std::string() : std::string("invalid value");
    case kUrls:
      break;
  }
  for (const std::string& url : SplitCommas(value)) {
    if (absl::StatusOr<wire::Url> parsed = wire::ParseUrl(url); !parsed.ok()) {
      return std::string(parsed.status().message());
    }
  }
  return {};
}

// Go's %q, for what people type.
std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace

std::span<const FlagRow> FlagTable() { return kFlags; }

const FlagRow* FindFlag(std::string_view name) {
  for (const FlagRow& row : kFlags) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::optional<Duration> ParseDuration(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text == "0") return Duration{};
  if (text.empty()) return std::nullopt;
  int64_t total = 0;
  while (!text.empty()) {
    const size_t number = std::min(text.find_first_not_of("0123456789."), text.size());
    const std::string_view digits = text.substr(0, number);
    text.remove_prefix(number);
    const std::string_view name = text.substr(0, text.find_first_of("0123456789."));
    text.remove_prefix(name.size());
    const auto* unit = std::find_if(std::begin(kDurationUnits), std::end(kDurationUnits),
                                    [&](const DurationUnit& one) { return one.name == name; });
    if (digits.empty() || unit == std::end(kDurationUnits)) return std::nullopt;
    const std::optional<int64_t> nanos = Scaled(digits, unit->nanos);
    if (!nanos || *nanos > std::numeric_limits<int64_t>::max() - total) return std::nullopt;
    total += *nanos;
  }
  return Nanos(negative ? -total : total);
}

std::string VariableOf(std::string_view flag_name) {
  std::string variable = "ETCD_";
  for (const char c : flag_name) {
    variable += c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return variable;
}

std::optional<CommandLine> ParseCommandLine(std::span<const std::string> words, std::string& error) {
  CommandLine line;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() < 2 || word[0] != '-') {
      line.extra.assign(words.begin() + static_cast<ptrdiff_t>(i), words.end());
      return line;
    }
    if (word == "--") {
      line.extra.assign(words.begin() + static_cast<ptrdiff_t>(i) + 1, words.end());
      return line;
    }
    const std::string_view rest = std::string_view(word).substr(word[1] == '-' ? 2 : 1);
    if (rest.empty() || rest[0] == '-' || rest[0] == '=') {
      error = absl::StrFormat("bad flag syntax: %s", word);
      return std::nullopt;
    }
    const size_t equals = rest.find('=');
    const std::string name(rest.substr(0, equals));
    const FlagRow* row = FindFlag(name);
    if (row == nullptr) {
      if (name == "help" || name == "h") {
        line.help = true;
        return line;
      }
      error = absl::StrFormat("flag provided but not defined: -%s", name);
      return std::nullopt;
    }
    std::string value;
    if (equals != std::string_view::npos) {
      value = rest.substr(equals + 1);
    } else if (row->kind == kBool) {
      value = "true";
    } else if (i + 1 < words.size()) {
      value = words[++i];
    } else {
      error = absl::StrFormat("flag needs an argument: -%s", name);
      return std::nullopt;
    }
    if (const std::string why = WhyNot(*row, value); !why.empty()) {
      error = row->kind == kBool ? absl::StrFormat("invalid boolean value %s for -%s: %s", Quoted(value), name, why)
                                 : absl::StrFormat("invalid value %s for flag -%s: %s", Quoted(value), name, why);
      return std::nullopt;
    }
    line.values[name] = std::move(value);
  }
  return line;
}

bool AddEnvironment(std::span<const std::string> environment, FlagValues& values, std::vector<std::string>& warnings,
                    std::string& error) {
  std::map<std::string, const FlagRow*, std::less<>> rows;
  for (const FlagRow& row : kFlags) rows.emplace(VariableOf(row.name), &row);
  FlagValues added;
  for (const std::string& entry : environment) {
    const std::string_view text = entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || !text.starts_with("ETCD_")) continue;
    const std::string_view variable = text.substr(0, equals);
    const std::string_view value = text.substr(equals + 1);
    const auto it = rows.find(variable);
    const bool other =
        std::find(std::begin(kOtherVariables), std::end(kOtherVariables), variable) != std::end(kOtherVariables);
    if (other) continue;
    if (it == rows.end() || it->second->name == "version") {
      warnings.emplace_back(variable);
      continue;
    }
    if (value.empty()) continue;
    const FlagRow& row = *it->second;
    if (values.contains(row.name)) {
      error = absl::StrFormat(
          "conflicting environment variable is shadowed by corresponding command-line flag (either unset environment "
          "variable or disable flag)): %s",
          variable);
      return false;
    }
    if (const std::string why = WhyNot(row, value); !why.empty()) {
      error = absl::StrFormat("invalid value %s for %s: %s", Quoted(value), variable, why);
      return false;
    }
    added.emplace(row.name, value);
  }
  values.merge(added);
  return true;
}

std::optional<bool> ParseBool(std::string_view text) {
  for (const std::string_view word : {"1", "t", "T", "TRUE", "true", "True"}) {
    if (text == word) return true;
  }
  for (const std::string_view word : {"0", "f", "F", "FALSE", "false", "False"}) {
    if (text == word) return false;
  }
  return std::nullopt;
}

std::optional<uint64_t> ParseUnsigned(std::string_view text) {
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char mark = static_cast<char>(text[1] | 0x20);
    base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
    text.remove_prefix(mark == 'x' || mark == 'b' || mark == 'o' ? 2 : 1);
  }
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> SplitCommas(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace detcd::realnet
