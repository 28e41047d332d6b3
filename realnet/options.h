// What the flags mean together: the checks that etcd makes before and while it starts, in its words
// (reference/flags.md 2), and the server that they ask for.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/base/time.h"
#include "core/io/trace.h"
#include "core/member/server.h"
#include "core/wire/grpc_options.h"
#include "realnet/flags.h"
#include "realnet/lingering_close.h"

namespace detcd::realnet {

struct Options {
  std::string name;
  std::string data_dir;                     // never empty
  std::vector<std::string> listen_clients;  // URLs as given, white space removed, as all below
  std::vector<std::string> listen_peers;
  std::vector<std::string> advertise_clients;
  std::vector<std::string> advertise_peers;
  std::string initial_cluster;  // NAME=URL,NAME=URL...
  std::string initial_cluster_token;
  bool join_existing = false;
  Duration heartbeat_interval;
  Duration election_timeout;
  bool pre_vote = true;
  bool lease_reads = false;
  wire::GrpcOptions grpc;
  LogLevel log_level = LogLevel::kInfo;
  std::vector<std::string> no_effect;  // flags given that this release takes and does nothing for
};

// What --log-level says; nullopt for an unknown word.
std::optional<LogLevel> ParseLogLevel(std::string_view word);

// Descriptors that clients do not get: those of the log, the peers and connections that wait for their last bytes to be
// read. Of etcd's 150 and ours.
inline constexpr uint64_t kDescriptorReserve = 150 + kLingeringMax;

// From values that have passed the checks of their kinds. An error is etcd's field of `failed to verify flags`.
absl::StatusOr<Options> MakeOptions(const FlagValues& values, const std::vector<std::string>& extra);

// What to run. `has_log`: the data folder has a write-ahead log, which then says who this member is, and the initial
// cluster is not looked at. `descriptors_max`: RLIMIT_NOFILE, of which clients get what is above kDescriptorReserve.
// Looks up host names when the URLs of --initial-cluster and --initial-advertise-peer-urls differ as texts. An error is
// one of a failed start.
absl::StatusOr<member::ServerOptions> MakeServerOptions(const Options& options, bool has_log, uint64_t descriptors_max);

}  // namespace detcd::realnet
