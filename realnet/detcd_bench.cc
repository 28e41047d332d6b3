// The load generator: `detcd-bench put`, `range` and `txn` against any etcd-compatible endpoint.
//
// Ends with 0 when every request had a good answer, 1 when some had not, 64 for a bad command line.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/proto/rpc.pb.h"
#include "realnet/load.h"
#include "realnet/real_host.h"

namespace detcd::realnet {
namespace {

constexpr int kUsage = 64;

struct Arguments {
  std::string endpoints = "127.0.0.1:2379";
  uint32_t connections = 1;
  uint32_t in_flight = 1;
  uint64_t rate = 0;
  uint64_t total = 0;
  double seconds = 5;
  double timeout_seconds = 10;
  uint64_t key_space = 10'000;
  bool sequential = false;
  size_t value_bytes = 100;
  bool serializable = false;
  std::vector<int> server_pids;
  bool json = false;
};

void AddShared(CLI::App& command, Arguments& arguments) {
  command.add_option("--endpoints", arguments.endpoints, "HOST:PORT or URLs, comma separated")->capture_default_str();
  command.add_option("--connections", arguments.connections, "connections, spread over the endpoints in turn")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  command.add_option("--in-flight", arguments.in_flight, "requests under way, over all connections together")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  command.add_option("--rate", arguments.rate, "requests a second, due whether the servers keep up or not (default: a closed loop)")
      ->check(CLI::Range(uint64_t{1}, uint64_t{100'000'000}));
  command.add_option("--total", arguments.total, "requests to send (default: as many as --duration allows)");
  command.add_option("--duration", arguments.seconds, "seconds to start new requests for")
      ->check(CLI::Range(0.01, 86'400.0))
      ->capture_default_str();
  command.add_option("--timeout", arguments.timeout_seconds, "seconds that one request may take")
      ->check(CLI::Range(0.01, 3'600.0))
      ->capture_default_str();
  command.add_option("--key-space", arguments.key_space, "keys are drawn from this many")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000'000'000}))
      ->capture_default_str();
  command.add_flag("--sequential", arguments.sequential, "take keys in order, not at random");
  command.add_option("--server-pid", arguments.server_pids, "local server processes whose CPU time is counted")
      ->delimiter(',');
  command.add_flag("--json", arguments.json, "one JSON object on standard output");
}

Duration FromSeconds(double seconds) { return Nanos(static_cast<int64_t>(seconds * 1e9)); }

std::optional<std::vector<wire::Url>> ParseEndpoints(const std::string& text) {
  std::vector<wire::Url> urls;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::string whole = part.find("://") == std::string::npos ? "http://" + part : part;
    absl::StatusOr<wire::Url> url = wire::ParseUrl(whole);
    if (!url.ok() || url->IsTls()) {
      std::fprintf(stderr, "detcd-bench: endpoint %s: %s\n", part.c_str(),
                   url.ok() ? "TLS is not built in this release" : std::string(url.status().message()).c_str());
      return std::nullopt;
    }
    urls.push_back(*std::move(url));
  }
  if (urls.empty()) std::fprintf(stderr, "detcd-bench: --endpoints is empty\n");
  return urls.empty() ? std::nullopt : std::optional(std::move(urls));
}

// User and system time of a process, in clock ticks: fields 14 and 15 of /proc/PID/stat, counted behind the name, which
// may itself hold spaces and parentheses.
std::optional<uint64_t> CpuTicks(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  std::string skipped;
  for (int i = 3; i < 14; ++i) fields >> skipped;
  uint64_t user = 0;
  uint64_t system = 0;
  if (!(fields >> user >> system)) return std::nullopt;
  return user + system;
}

std::optional<uint64_t> CpuTicks(const std::vector<int>& pids) {
  uint64_t sum = 0;
  for (const int pid : pids) {
    const std::optional<uint64_t> ticks = CpuTicks(pid);
    if (!ticks) {
      std::fprintf(stderr, "detcd-bench: no process %d\n", pid);
      return std::nullopt;
    }
    sum += *ticks;
  }
  return sum;
}

struct Figures {
  double rate = 0;                   // good answers a second
  std::optional<double> cpu_micros;  // of the servers, per good answer
};

Figures Measure(const LoadResult& result, const std::vector<int>& pids, std::optional<uint64_t> ticks_before) {
  Figures figures;
  if (result.elapsed.nanos > 0)
    figures.rate = static_cast<double>(result.good) * 1e9 / static_cast<double>(result.elapsed.nanos);
  if (pids.empty() || result.good == 0) return figures;
  const std::optional<uint64_t> ticks = CpuTicks(pids);
  // A server that ended meanwhile took its figures along.
  if (!ticks || !ticks_before || *ticks < *ticks_before) return figures;
  const double seconds = static_cast<double>(*ticks - *ticks_before) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  figures.cpu_micros = seconds * 1e6 / static_cast<double>(result.good);
  return figures;
}

constexpr struct {
  const char* name;
  uint64_t numerator;
  uint64_t denominator;
} kPercentiles[] = {{"p50", 50, 100}, {"p90", 90, 100}, {"p99", 99, 100}, {"p99.9", 999, 1'000}};

void PrintText(const std::string& what, const Arguments& arguments, const LoadResult& result, const Figures& figures) {
  std::printf("%s: %lu good, %lu errors in %.3f s, %.0f/s, %u in flight over %u connections\n", what.c_str(),
              result.good, result.error_count(), static_cast<double>(result.elapsed.nanos) / 1e9, figures.rate,
              arguments.in_flight, arguments.connections);
  std::printf("latency us:");
  for (const auto& percentile : kPercentiles) {
    std::printf(" %s %lu", percentile.name, result.latencies.Percentile(percentile.numerator, percentile.denominator));
  }
  std::printf(" max %lu; longest without an answer %ld ms\n", result.latencies.max(), result.longest_gap.millis());
  if (figures.cpu_micros) std::printf("server CPU per request: %.2f us\n", *figures.cpu_micros);
  if (result.missing > 0) std::printf("%lu found no key\n", result.missing);
  if (result.reconnects > 0) std::printf("%lu connections were lost\n", result.reconnects);
  for (const auto& [text, count] : result.errors) std::printf("error %s: %lu\n", text.c_str(), count);
}

void PrintJson(const std::string& what, const Arguments& arguments, const LoadResult& result, const Figures& figures) {
  std::string out;
  absl::StrAppendFormat(&out, "{\"command\":\"%s\",\"connections\":%d,\"in_flight\":%d,\"elapsed_us\":%d,\"good\":%d,",
                        what, arguments.connections, arguments.in_flight, result.elapsed.micros(), result.good);
  absl::StrAppendFormat(&out,
                        "\"rate\":%.1f,\"missing\":%d,\"lost_connections\":%d,\"longest_gap_us\":%d,\"latency_us\":{",
                        figures.rate, result.missing, result.reconnects, result.longest_gap.micros());
  for (const auto& percentile : kPercentiles) {
    absl::StrAppendFormat(&out, "\"%s\":%d,", percentile.name,
                          result.latencies.Percentile(percentile.numerator, percentile.denominator));
  }
  absl::StrAppendFormat(&out, "\"max\":%d}", result.latencies.max());
  if (figures.cpu_micros) absl::StrAppendFormat(&out, ",\"server_cpu_us\":%.3f", *figures.cpu_micros);
  out += ",\"errors\":{";
  const char* separator = "";
  for (const auto& [text, count] : result.errors) {
    out += separator;
    out += '"';
    AppendJsonText(out, text);
    absl::StrAppendFormat(&out, "\":%d", count);
    separator = ",";
  }
  std::printf("%s}}\n", out.c_str());
}

int Run(const std::string& what, LoadOptions::Kind kind, const Arguments& arguments) {
  const std::optional<std::vector<wire::Url>> endpoints = ParseEndpoints(arguments.endpoints);
  if (!endpoints) return kUsage;
  if (arguments.in_flight < arguments.connections) {
    std::fprintf(stderr, "detcd-bench: --in-flight %u is less than one for each of %u connections\n",
                 arguments.in_flight, arguments.connections);
    return kUsage;
  }
  std::optional<uint64_t> ticks = CpuTicks(arguments.server_pids);
  if (!ticks) return kUsage;
  RealHost host({.data_folder = ".", .log_level = LogLevel::kWarn, .on_signal = {}});
  Load load(host, {.kind = kind,
                   .endpoints = *endpoints,
                   .connections = arguments.connections,
                   .in_flight = arguments.in_flight,
                   .rate = arguments.rate,
                   .total = arguments.total,
                   .duration = FromSeconds(arguments.seconds),
                   .timeout = FromSeconds(arguments.timeout_seconds),
                   .key_space = arguments.key_space,
                   .sequential = arguments.sequential,
                   .value_bytes = arguments.value_bytes,
                   .serializable = arguments.serializable});
  load.Start();
  const StopReason reason = host.Run();
  const LoadResult& result = load.result();
  const Figures figures = Measure(result, arguments.server_pids, ticks);
  if (arguments.json) {
    PrintJson(what, arguments, result, figures);
  } else {
    PrintText(what, arguments, result, figures);
  }
  host.End();
  return reason.ok && result.errors.empty() ? 0 : 1;
}

}  // namespace
}  // namespace detcd::realnet

int main(int count, char** words) {
  using detcd::realnet::LoadOptions;
  detcd::realnet::Arguments arguments;
  CLI::App app("Load for an etcd-compatible service: over gRPC, with every answer checked.",
               "detcd-bench");
  app.require_subcommand(1);
  CLI::App* put = app.add_subcommand("put", "write keys");
  CLI::App* txn = app.add_subcommand("txn", "write keys that exist, by a transaction that looks");
  for (CLI::App* writer : {put, txn}) {
    detcd::realnet::AddShared(*writer, arguments);
    writer->add_option("--value-bytes", arguments.value_bytes, "size of the values")
        ->check(CLI::Range(0, 1'500'000))
        ->capture_default_str();
  }
  CLI::App* range =
      app.add_subcommand("range", "read one key at a time (write them first: put --sequential --total KEYS)");
  detcd::realnet::AddShared(*range, arguments);
  range->add_flag("--serializable", arguments.serializable, "take the state of the member asked, without a quorum");
  try {
    app.parse(count, words);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : detcd::realnet::kUsage;
  }
  if (*txn) return detcd::realnet::Run("txn", LoadOptions::Kind::kTxn, arguments);
  if (*put) return detcd::realnet::Run("put", LoadOptions::Kind::kPut, arguments);
  return detcd::realnet::Run(arguments.serializable ? "range --serializable" : "range", LoadOptions::Kind::kRange,
                             arguments);
}
