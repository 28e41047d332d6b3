#include "realnet/options.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/member/cluster_id.h"
#include "core/raft/leader_lease.h"
#include "core/wire/url.h"
#include "realnet/socket_address.h"

namespace detcd::realnet {
namespace {

constexpr uint64_t kElectionTimeoutMillisMax = 50'000;

std::string Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

// The value given, or the default.
std::string ValueOf(const FlagValues& values, std::string_view name) {
  const auto it = values.find(name);
  return it != values.end() ? it->second : std::string(FindFlag(name)->default_value);
}

std::vector<std::string> UrlsOf(const FlagValues& values, std::string_view name) {
  std::vector<std::string> urls;
  for (const std::string& part : SplitCommas(ValueOf(values, name))) urls.push_back(Trim(part));
  return urls;
}

std::string Join(const std::vector<std::string>& parts) {
  std::string joined;
  for (const std::string& part : parts) joined += (joined.empty() ? "" : ",") + part;
  return joined;
}

bool IsNumeric(const std::string& host) { return ToSocketAddress({.host = host, .port = 0}).has_value(); }

// Listening at a name would mean to listen at whatever it happens to be.
absl::Status CheckBindHosts(const std::vector<std::string>& urls) {
  for (const std::string& text : urls) {
    ASSIGN_OR_RETURN(const wire::Url url, wire::ParseUrl(text));
    if (url.IsUnix() || url.host == "localhost" || IsNumeric(url.host)) continue;
    return InvalidArgument("expected IP in URL for binding (%s)", text);
  }
  return absl::OkStatus();
}

absl::Status RefuseTls(std::string_view flag, const std::vector<std::string>& urls) {
  for (const std::string& text : urls) {
    ASSIGN_OR_RETURN(const wire::Url url, wire::ParseUrl(text));
    if (url.IsTls()) return InvalidArgument("--%s has %s, and TLS is not built in this release of detcd", flag, text);
  }
  return absl::OkStatus();
}

// Refuses what is not built and lists what has no effect.
absl::Status CheckStanding(const FlagValues& values, std::vector<std::string>& no_effect) {
  for (const auto& [name, value] : values) {
    const FlagRow& row = *FindFlag(name);
    bool asks_for_default = value == row.default_value;
    if (row.kind == FlagKind::kBool && row.standing != FlagStanding::kIgnored) {
      asks_for_default = ParseBool(value) == ParseBool(row.default_value);
    }
    if (asks_for_default) continue;
    if (row.standing == FlagStanding::kNotBuilt) {
      return InvalidArgument(
          "--%s is a flag of etcd that is not built in this release of detcd (only its default, \"%s\")", name,
          row.default_value);
    }
    if (row.standing == FlagStanding::kNoEffect) no_effect.push_back(name);
  }
  return absl::OkStatus();
}

absl::Status CheckLogging(const FlagValues& values) {
  if (const std::string logger = ValueOf(values, "logger"); logger != "zap") {
    return InvalidArgument("unknown logger option \"%s\"", logger);
  }
  const std::string format = ValueOf(values, "log-format");
  if (format == "console") return InvalidArgument("--log-format=console is not built in this release of detcd");
  if (format != "json") return InvalidArgument("unknown log format: %s, supported values json, console", format);
  const std::vector<std::string> outputs = SplitCommas(ValueOf(values, "log-outputs"));
  for (const std::string& output : outputs) {
    if (output == "default" && outputs.size() > 1) {
      return InvalidArgument("multi logoutput for \"default\" is not supported yet");
    }
    if (output != "default" && output != "stderr") {
      return InvalidArgument("--log-outputs=%s is not built in this release of detcd: default and stderr are", output);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTimes(uint64_t heartbeat, uint64_t election) {
  if (heartbeat == 0) return InvalidArgument("--heartbeat-interval must be >0 (set to 0ms)");
  if (election == 0) return InvalidArgument("--election-timeout must be >0 (set to 0ms)");
  if (election / 5 < heartbeat) {
    return InvalidArgument("--election-timeout[%dms] should be at least as 5 times as --heartbeat-interval[%dms]",
                           election, heartbeat);
  }
  if (election > kElectionTimeoutMillisMax) {
    return InvalidArgument("--election-timeout[%dms] is too long, and should be set less than 50000ms", election);
  }
  return absl::OkStatus();
}

// Where a listen URL means. A name can only be localhost here: its IPv4 address, which is where etcd listens, too.
Address ListenAddress(const wire::Url& url) {
  if (url.IsUnix()) return {.host = url.host, .is_unix = true};
  return {.host = url.host == "localhost" ? "127.0.0.1" : url.host, .port = url.port};
}

absl::StatusOr<std::vector<Address>> ListenAddresses(const std::vector<std::string>& urls) {
  std::vector<Address> addresses;
  for (const std::string& text : urls) {
    ASSIGN_OR_RETURN(const wire::Url url, wire::ParseUrl(text));
    addresses.push_back(ListenAddress(url));
  }
  return addresses;
}

// NAME=URL,NAME=URL... with the URLs of a name together.
using Cluster = std::map<std::string, std::vector<std::string>>;

absl::StatusOr<Cluster> ParseCluster(const std::string& text) {
  Cluster cluster;
  std::set<std::string> seen;
  for (const std::string& part : SplitCommas(text)) {
    const size_t equals = part.find('=');
    const std::string name = Trim(std::string_view(part).substr(0, equals));
    const std::string url = equals == std::string::npos ? "" : Trim(std::string_view(part).substr(equals + 1));
    if (name.empty() || url.empty()) {
      return InvalidArgument("error setting up initial cluster: \"%s\" of --initial-cluster is not NAME=URL", part);
    }
    if (absl::StatusOr<wire::Url> parsed = wire::ParseUrl(url); !parsed.ok()) {
      return InvalidArgument("error setting up initial cluster: %s", std::string(parsed.status().message()));
    }
    if (!seen.insert(url).second) return InvalidArgument("initial cluster %s has duplicate url", text);
    cluster[name].push_back(url);
  }
  for (auto& [name, urls] : cluster) std::sort(urls.begin(), urls.end());
  return cluster;
}

// The URL with its host as a number; the text itself when there is none to be found.
std::string Resolved(const std::string& text) {
  absl::StatusOr<wire::Url> url = wire::ParseUrl(text);
  if (!url.ok() || url->IsUnix() || IsNumeric(url->host)) return text;
  const addrinfo hints = {.ai_flags = 0, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  if (::getaddrinfo(url->host.c_str(), nullptr, &hints, &found) != 0) return text;
  std::string numeric;
  for (const addrinfo* it = found; it != nullptr; it = it->ai_next) {
    char host[NI_MAXHOST];
    if (::getnameinfo(it->ai_addr, it->ai_addrlen, host, sizeof(host), nullptr, 0, NI_NUMERICHOST) != 0) continue;
    // The IPv4 address, when there is one, as etcd takes it.
    if (numeric.empty() || it->ai_family == AF_INET) numeric = host;
    if (it->ai_family == AF_INET) break;
  }
  ::freeaddrinfo(found);
  if (numeric.empty()) return text;
  url->host = numeric;
  return absl::StrFormat("%s://%s", url->IsTls() ? "https" : "http", wire::HostAndPort(*url));
}

std::vector<std::string> ResolvedAll(const std::vector<std::string>& urls) {
  std::vector<std::string> resolved;
  for (const std::string& url : urls) resolved.push_back(Resolved(url));
  std::sort(resolved.begin(), resolved.end());
  return resolved;
}

absl::Status CheckAdvertised(const Options& options, const std::vector<std::string>& own) {
  std::vector<std::string> advertised = options.advertise_peers;
  std::sort(advertised.begin(), advertised.end());
  if (own == advertised) return absl::OkStatus();
  const std::vector<std::string> own_resolved = ResolvedAll(own);
  const std::vector<std::string> advertised_resolved = ResolvedAll(advertised);
  if (own_resolved == advertised_resolved) return absl::OkStatus();
  std::vector<std::string> row;
  for (const std::string& url : own) row.push_back(options.name + "=" + url);
  return InvalidArgument(
      "--initial-cluster has %s but missing from --initial-advertise-peer-urls=%s (resolved urls: \"%s\" != \"%s\")",
      Join(row), Join(advertised), Join(advertised_resolved), Join(own_resolved));
}

absl::Status AddInitialMembers(const Options& options, member::MemberOptions& member) {
  ASSIGN_OR_RETURN(const Cluster cluster, ParseCluster(options.initial_cluster));
  const auto own = cluster.find(options.name);
  if (own == cluster.end()) {
    return InvalidArgument("couldn't find local name \"%s\" in the initial cluster configuration", options.name);
  }
  if (options.join_existing) {
    return FailedPrecondition(
        "--initial-cluster-state=existing: joining a running cluster is not built in this release "
        "of detcd, and %s has no log to continue",
        options.data_dir);
  }
  RETURN_IF_ERROR(CheckAdvertised(options, own->second));
  std::vector<MemberId> ids;
  for (const auto& [name, urls] : cluster) {
    RETURN_IF_ERROR(RefuseTls("initial-cluster", urls));
    const MemberId id = member::DeriveMemberId(urls, options.initial_cluster_token);
    ids.push_back(id);
    member.initial_members.push_back({.id = id, .name = name, .peer_urls = urls});
    if (name == options.name) member.id = id;
  }
  std::sort(member.initial_members.begin(), member.initial_members.end(),
            [](const rpc::MemberRow& a, const rpc::MemberRow& b) { return a.id < b.id; });
  member.cluster = member::DeriveClusterId(std::move(ids));
  return absl::OkStatus();
}

}  // namespace

std::optional<LogLevel> ParseLogLevel(std::string_view word) {
  if (word == "debug") return LogLevel::kDebug;
  if (word == "info") return LogLevel::kInfo;
  if (word == "warn") return LogLevel::kWarn;
  if (word == "error") return LogLevel::kError;
  if (word == "panic" || word == "dpanic") return LogLevel::kPanic;
  if (word == "fatal") return LogLevel::kFatal;
  return std::nullopt;
}

absl::StatusOr<Options> MakeOptions(const FlagValues& values, const std::vector<std::string>& extra) {
  Options options;
  if (!extra.empty()) return InvalidArgument("\"%s\" is not a valid flag", extra.front());
  RETURN_IF_ERROR(CheckStanding(values, options.no_effect));
  RETURN_IF_ERROR(CheckLogging(values));
  options.log_level = ParseLogLevel(ValueOf(values, "log-level")).value_or(LogLevel::kInfo);

  options.name = ValueOf(values, "name");
  options.data_dir = ValueOf(values, "data-dir");
  if (options.data_dir.empty()) options.data_dir = options.name + ".etcd";
  options.listen_clients = UrlsOf(values, "listen-client-urls");
  options.listen_peers = UrlsOf(values, "listen-peer-urls");
  options.advertise_clients = UrlsOf(values, "advertise-client-urls");
  options.advertise_peers = UrlsOf(values, "initial-advertise-peer-urls");
  options.initial_cluster_token = ValueOf(values, "initial-cluster-token");
  options.join_existing = ValueOf(values, "initial-cluster-state") == "existing";
  options.initial_cluster = ValueOf(values, "initial-cluster");
  if (options.initial_cluster == FindFlag("initial-cluster")->default_value && options.name != "default") {
    std::vector<std::string> rows;
    for (const std::string& url : options.advertise_peers) rows.push_back(options.name + "=" + url);
    options.initial_cluster = Join(rows);
  }
  options.pre_vote = *ParseBool(ValueOf(values, "pre-vote"));
  options.lease_reads = *ParseBool(ValueOf(values, "detcd-lease-reads"));
  options.grpc.streams_max = static_cast<uint32_t>(*ParseUnsigned(ValueOf(values, "max-concurrent-streams")));
  options.grpc.ping_interval_min = *ParseDuration(ValueOf(values, "grpc-keepalive-min-time"));
  options.grpc.keepalive_interval = *ParseDuration(ValueOf(values, "grpc-keepalive-interval"));
  options.grpc.keepalive_timeout = *ParseDuration(ValueOf(values, "grpc-keepalive-timeout"));

  RETURN_IF_ERROR(CheckBindHosts(options.listen_peers));
  RETURN_IF_ERROR(CheckBindHosts(options.listen_clients));
  if (values.contains("listen-client-urls") && !values.contains("advertise-client-urls")) {
    return InvalidArgument("--advertise-client-urls is required when --listen-client-urls is set explicitly");
  }
  const uint64_t heartbeat = *ParseUnsigned(ValueOf(values, "heartbeat-interval"));
  const uint64_t election = *ParseUnsigned(ValueOf(values, "election-timeout"));
  RETURN_IF_ERROR(CheckTimes(heartbeat, election));
  options.heartbeat_interval = Millis(static_cast<int64_t>(heartbeat));
  // In whole ticks, as etcd counts it.
  options.election_timeout = options.heartbeat_interval * static_cast<int64_t>(election / heartbeat);
  return options;
}

absl::StatusOr<member::ServerOptions> MakeServerOptions(const Options& options, bool has_log,
                                                        uint64_t descriptors_max) {
  RETURN_IF_ERROR(RefuseTls("listen-client-urls", options.listen_clients));
  RETURN_IF_ERROR(RefuseTls("listen-peer-urls", options.listen_peers));
  member::ServerOptions server;
  ASSIGN_OR_RETURN(server.listen_clients, ListenAddresses(options.listen_clients));
  ASSIGN_OR_RETURN(server.listen_peers, ListenAddresses(options.listen_peers));
  server.member.name = options.name;
  server.member.client_urls = options.advertise_clients;
  server.member.heartbeat_interval = options.heartbeat_interval;
  server.member.election_timeout = options.election_timeout;
  server.member.pre_vote = options.pre_vote;
  server.member.lease_reads = options.lease_reads;
  if (options.lease_reads) {
    const std::string trouble =
        raft::LeaseTrouble(options.election_timeout, options.heartbeat_interval, server.member.clock_drift_ppm_max);
    if (!trouble.empty()) return FailedPrecondition("--detcd-lease-reads: %s", trouble);
  }
  server.grpc = options.grpc;
  if (descriptors_max <= kDescriptorReserve) {
    return FailedPrecondition(
        "file descriptor limit of the process is too low; please set higher (limit %d, of which %d are kept from "
        "clients)",
        descriptors_max, kDescriptorReserve);
  }
  server.client_connections_max = descriptors_max - kDescriptorReserve;
  if (!has_log) RETURN_IF_ERROR(AddInitialMembers(options, server.member));
  return server;
}

}  // namespace detcd::realnet
