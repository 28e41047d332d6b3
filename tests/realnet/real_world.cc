#include "tests/realnet/real_world.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace detcd::realnet {

void RunOneTurn(const std::vector<RealHost*>& hosts) {
  bool ran = false;
  for (RealHost* host : hosts) ran = host->RunTurn(Nanos(0)) || ran;
  if (ran) return;
  // Sleeping in one loop lets its workers wake it; the others are asked a millisecond later.
  for (RealHost* host : hosts) {
    if (!host->stop_reason()) {
      host->RunTurn(Millis(1));
      return;
    }
  }
  ::usleep(1'000);
}

Host& RealWorld::Start(int host) {
  End(host);
  HostOptions options{.data_folder = folders_[host].path(), .log_level = LogLevel::kPanic};
  if (log_folder_) options.log_folders = {{.path = "files", .elsewhere = ""}, {.path = "member", .elsewhere = ""}};
  hosts_[host] = std::make_unique<RealHost>(std::move(options));
  return *hosts_[host];
}

void RealWorld::End(int host) {
  if (hosts_[host] == nullptr) return;
  hosts_[host]->End();
  ended_.push_back(std::move(hosts_[host]));
}

bool RealWorld::RunUntil(const std::function<bool()>& done, Duration limit) {
  const Instant deadline = Loop::Now() + limit;
  std::vector<RealHost*> running;
  for (const auto& host : hosts_) {
    if (host != nullptr) running.push_back(host.get());
  }
  while (!done()) {
    if (Loop::Now() >= deadline) return false;
    RunOneTurn(running);
  }
  return true;
}

// A port that is free now and outside the range from which outgoing connections take theirs, which could otherwise take
// it before the test listens.
Address RealWorld::NewAddress(int) {
  static uint32_t next = static_cast<uint32_t>(::getpid()) * 97;
  while (true) {
    const auto port = static_cast<uint16_t>(10'000 + next++ % 20'000);
    const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool is_free = ::bind(probe, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    ::close(probe);
    if (is_free) return {.host = "127.0.0.1", .port = port};
  }
}

bool RealWorld::LimitDisk(int host, uint64_t bytes) { return folders_[host].Limit(bytes); }

}  // namespace detcd::realnet
