// The server program: etcd's command line around core/member's Server on a RealHost (reference/contract.md 1).
//
// Ends with 0 after --version and --help, 2 for a command line that is none, 1 for one that asks for the impossible and
// for every error later on; after SIGTERM or SIGINT by that signal, as etcd.
#include <sys/resource.h>
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/member/server.h"
#include "core/rpc/maintenance_service.h"
#include "realnet/flags.h"
#include "realnet/options.h"
#include "realnet/real_host.h"

#ifndef DETCD_GIT_SHA
#define DETCD_GIT_SHA "unknown"
#endif

namespace detcd::realnet {
namespace {

constexpr char kPlace[] = "realnet/detcd";
constexpr char kLogFolder[] = "member/wal";

void PrintVersion() {
  std::printf("etcd Version: %s\nGit SHA: %s\nGo Version: none (detcd, C++20, %s)\nGo OS/Arch: linux/%s\n",
              rpc::kServerVersion, DETCD_GIT_SHA, __VERSION__,
#if defined(__x86_64__)
              "amd64"
#elif defined(__aarch64__)
              "arm64"
#else
              "unknown"
#endif
  );
}

std::string Usage() {
  std::string text =
      "Usage:\n\n  detcd [flags]\n    Start a server.\n\n  detcd --version\n    Print the version.\n\n"
      "  detcd -h | --help\n    Print this text.\n\nFlags (each also as ETCD_UPPER_CASE variable):\n";
  std::string no_effect;
  for (const FlagRow& row : FlagTable()) {
    if (row.standing == FlagStanding::kBuilt) {
      absl::StrAppendFormat(&text, "  --%s '%s'\n    %s.\n", row.name, row.default_value, row.purpose);
    } else if (row.standing == FlagStanding::kNoEffect) {
      absl::StrAppendFormat(&no_effect, "%s --%s", no_effect.empty() ? "" : ",", row.name);
    }
  }
  return text + "\nTaken without effect:" + no_effect + ".\nOther flags of etcd 3.7 are not built yet.\n";
}

// One line with the field that etcd's lines about trouble have.
void Log(Trace& trace, LogLevel level, std::string_view message, std::string_view error) {
  Emit(trace, level, kPlace, message, {TraceField::Text("error", error)});
}

bool HasLog(const std::string& data_dir) {
  DIR* folder = ::opendir((data_dir + "/" + kLogFolder).c_str());
  if (folder == nullptr) return false;
  bool found = false;
  while (const dirent* entry = ::readdir(folder)) found = found || std::string_view(entry->d_name).ends_with(".wal");
  ::closedir(folder);
  return found;
}

// `drwxr-xr-x`, as Go prints modes.
std::string ModeText(mode_t mode, bool directory) {
  std::string text(1, directory ? 'd' : '-');
  for (int bit = 8; bit >= 0; --bit) text += (mode >> bit & 1) != 0 ? "xwr"[bit % 3] : '-';
  return text;
}

// Makes the data folder with mode 0700, or looks at the one that is there. False: `error` says what is wrong with it.
bool PrepareDataFolder(const std::string& path, Trace& trace, std::string& error) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    ::mkdir(path.substr(0, slash).c_str(), 0700);
  }
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    error = absl::StrFormat("cannot make the data directory %s: %s", path, std::strerror(errno));
    return false;
  }
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) {
    error = absl::StrFormat("cannot look at the data directory %s: %s", path, std::strerror(errno));
    return false;
  }
  if (!S_ISDIR(status.st_mode)) {
    error = absl::StrFormat("the data directory %s is not a directory", path);
    return false;
  }
  if (::access(path.c_str(), R_OK | W_OK | X_OK) != 0) {
    error = absl::StrFormat("the data directory %s is not writable: %s", path, std::strerror(errno));
    return false;
  }
  if ((status.st_mode & 0777) != 0700) {
    Log(trace, LogLevel::kWarn, "check file permission",
        absl::StrFormat("directory \"%s\" exist, but the permission is \"%s\". The recommended permission is \"%s\" to "
                        "prevent possible unprivileged access to the data",
                        path, ModeText(status.st_mode, true), ModeText(0700, false)));
  }
  return true;
}

std::string AddressText(const Address& address) {
  if (address.is_unix) return address.host;
  const bool v6 = address.host.find(':') != std::string::npos;
  return absl::StrFormat("%s%s%s:%d", v6 ? "[" : "", address.host, v6 ? "]" : "", address.port);
}

// The server and its signals.
class Program final : private member::ServerListener {
 public:
  Program(const Options& options, const member::ServerOptions& server_options)
      : host_({.data_folder = options.data_dir,
               .log_level = options.log_level,
               .on_signal = [this](int signal) { OnSignal(signal); }}),
        server_(std::in_place, host_, server_options, static_cast<member::ServerListener&>(*this)) {}

  // The signal that asked for the end; 0 when an error did.
  int Run() {
    server_->Start();
    const StopReason reason = host_.Run();
    if (reason.ok) {
      Emit(host_.trace(), LogLevel::kInfo, kPlace, "closed the server", {TraceField::Text("reason", reason.text)});
    } else {
      Log(host_.trace(), LogLevel::kFatal, "the server stopped with an error", reason.text);
    }
    host_.End();
    server_.reset();
    return reason.ok ? signal_ : 0;
  }

 private:
  void OnServerReady(const std::vector<Address>& clients) override {
    for (const Address& address : clients) {
      Emit(host_.trace(), LogLevel::kInfo, kPlace, "ready to serve client requests");
      Emit(host_.trace(), LogLevel::kInfo, kPlace, "serving client traffic insecurely; this is strongly discouraged!",
           {TraceField::Text("traffic", "grpc+http"), TraceField::Text("address", AddressText(address))});
    }
  }

  void OnSignal(int signal) {
    Emit(host_.trace(), LogLevel::kInfo, kPlace, "received signal; shutting down",
         {TraceField::Text("signal", signal == SIGINT ? "interrupt" : "terminated")});
    signal_ = signal;
    server_->Shutdown();
  }

  RealHost host_;
  std::optional<member::Server> server_;
  int signal_ = 0;
};

// As etcd ends: by the signal that it caught, so that a shell sees 143 or 130. Process 1 has no default actions.
int EndBySignal(int signal) {
  if (::getpid() == 1) return 0;
  ::signal(signal, SIG_DFL);
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, signal);
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
  ::kill(::getpid(), signal);
  return 128 + signal;
}

// Raises the number of descriptors to all that this process may have, and returns it.
uint64_t RaiseDescriptorLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kDescriptorReserve + 1;
  const rlim_t given = std::exchange(limit.rlim_cur, limit.rlim_max);
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : given;
}

int Serve(const Options& options, Trace& log) {
  const uint64_t descriptors_max = RaiseDescriptorLimit();
  for (const std::string& flag : options.no_effect) {
    Emit(log, LogLevel::kWarn, kPlace, "this flag has no effect in this release of detcd",
         {TraceField::Text("flag", "--" + flag)});
  }
  const bool has_log = HasLog(options.data_dir);
  absl::StatusOr<member::ServerOptions> server_options = MakeServerOptions(options, has_log, descriptors_max);
  if (!server_options.ok()) {
    Log(log, LogLevel::kFatal, "discovery failed", std::string(server_options.status().message()));
    return 1;
  }
  std::string error;
  if (!PrepareDataFolder(options.data_dir, log, error)) {
    Log(log, LogLevel::kFatal, "discovery failed", error);
    return 1;
  }
  Emit(log, LogLevel::kInfo, kPlace, "starting detcd",
       {TraceField::Text("etcd-version", rpc::kServerVersion), TraceField::Text("git-sha", DETCD_GIT_SHA),
        TraceField::Text("name", options.name), TraceField::Text("data-dir", options.data_dir),
        TraceField::Text("log", has_log ? "continued" : "new")});
  const int signal = Program(options, *server_options).Run();
  return signal == 0 ? 1 : EndBySignal(signal);
}

int Main(std::span<const std::string> words, std::span<const std::string> environment) {
  std::string error;
  std::optional<CommandLine> line = ParseCommandLine(words, error);
  if (!line) {
    std::fprintf(stderr, "%s\n%s", error.c_str(), Usage().c_str());
    return 2;
  }
  if (line->help) {
    std::fputs(Usage().c_str(), stdout);
    return 0;
  }
  if (const auto version = line->values.find("version"); version != line->values.end() && *ParseBool(version->second)) {
    PrintVersion();
    return 0;
  }
  JsonLog early_log(STDERR_FILENO, LogLevel::kInfo);
  std::vector<std::string> unknown_variables;
  const bool environment_is_fine = AddEnvironment(environment, line->values, unknown_variables, error);
  for (const std::string& variable : unknown_variables) {
    Emit(early_log, LogLevel::kWarn, kPlace, "unrecognized environment variable",
         {TraceField::Text("environment-variable", variable)});
  }
  if (!environment_is_fine) {
    Log(early_log, LogLevel::kFatal, "bad environment", error);
    return 1;
  }
  if (const auto level = line->values.find("log-level"); level != line->values.end() && !ParseLogLevel(level->second)) {
    std::fprintf(stderr, "unrecognized level: \"%s\"\n", level->second.c_str());
    return 2;
  }
  absl::StatusOr<Options> options = MakeOptions(line->values, line->extra);
  if (!options.ok()) {
    Log(early_log, LogLevel::kWarn, "failed to verify flags", std::string(options.status().message()));
    return 1;
  }
  JsonLog log(STDERR_FILENO, options->log_level);
  return Serve(*options, log);
}

}  // namespace
}  // namespace detcd::realnet

int main(int count, char** words) {
  const std::vector<std::string> arguments(words + (count > 0 ? 1 : 0), words + count);
  std::vector<std::string> environment;
  for (char** entry = ::environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  return detcd::realnet::Main(arguments, environment);
}
