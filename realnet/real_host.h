// The Host over Linux: one incarnation in one process, on the thread that calls Run.
//
//   RealHost host({.data_folder = "default.etcd", .on_signal = [&](int) { member.Shutdown(); }});
//   Member member(host, config);
//   host.Run();
//   host.End();   // then member, then host, are destroyed
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/io/host.h"
#include "realnet/json_log.h"
#include "realnet/loop.h"
#include "realnet/real_clock.h"
#include "realnet/real_files.h"
#include "realnet/real_offload.h"
#include "realnet/real_streams.h"

namespace detcd::realnet {

struct HostOptions {
  std::string data_folder;
  // A fresh log is made in member/wal.tmp, and its first segment stays the file that was opened there.
  std::vector<LogFolder> log_folders = {{.path = "member/wal", .elsewhere = ""}, {.path = "member/wal.tmp", .elsewhere = ""}};
  int log_descriptor = 2;
  LogLevel log_level = LogLevel::kInfo;
  std::optional<uint64_t> seed;         // of Random; the system's randomness when there is none
  std::function<void(int)> on_signal;   // hears SIGTERM and SIGINT; without it they keep their usual effect
};

// Why an incarnation stopped.
struct StopReason {
  bool ok = true;
  std::string text;
};

class RealHost final : public Host {
 public:
  // Ignores SIGPIPE in this process: a log pipe or socket without a reader must not kill it.
  explicit RealHost(HostOptions options);
  ~RealHost() override;

  Events& events() override { return loop_; }
  Clock& clock() override { return clock_; }
  Network& network() override { return network_; }
  FileSystem& files() override { return files_; }
  Offloader& offloader() override { return offloader_; }
  Trace& trace() override { return log_; }
  KeyedRandom Random(std::string_view component) override { return KeyedRandom(seed_, component); }
  void FillSecure(std::span<uint8_t> out) override;
  void Stop(bool ok, std::string reason) override;

  // Turns until Stop.
  StopReason Run();
  // One turn, after sleeping at most `wait_max`. True when an event ran.
  bool RunTurn(Duration wait_max) { return loop_.RunTurn(wait_max); }
  // What Stop said first.
  const std::optional<StopReason>& stop_reason() const { return stop_reason_; }

  // Drops all that is pending and gives back every descriptor, thread and lock. Connections whose CloseWrite was not
  // called are reset. Not from inside an event. The handles may be destroyed later, but before the host.
  void End();

 private:
  Loop loop_;
  JsonLog log_;
  RealClock clock_;
  RealNetwork network_;
  RealFileSystem files_;
  RealOffloader offloader_;
  uint64_t seed_ = 0;
  std::optional<StopReason> stop_reason_;
};

}  // namespace detcd::realnet
