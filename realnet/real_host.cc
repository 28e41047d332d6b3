#include "realnet/real_host.h"

#include <signal.h>
#include <sys/random.h>

#include <cerrno>
#include <utility>

#include "core/base/check.h"

namespace detcd::realnet {

RealHost::RealHost(HostOptions options)
    : loop_(std::move(options.on_signal)),
      log_(options.log_descriptor, options.log_level),
      clock_(loop_),
      network_(loop_, log_),
      files_(loop_, std::move(options.data_folder), std::move(options.log_folders)),
      offloader_(loop_) {
  ::signal(SIGPIPE, SIG_IGN);
  if (options.seed) {
    seed_ = *options.seed;
  } else {
    FillSecure({reinterpret_cast<uint8_t*>(&seed_), sizeof(seed_)});
  }
}

RealHost::~RealHost() { End(); }

void RealHost::FillSecure(std::span<uint8_t> out) {
  while (!out.empty()) {
    const ssize_t got = ::getrandom(out.data(), out.size(), 0);
    CHECK_MSG(got > 0 || errno == EINTR, "getrandom");
    if (got > 0) out = out.subspan(static_cast<size_t>(got));
  }
}

void RealHost::Stop(bool ok, std::string reason) {
  if (!stop_reason_) stop_reason_ = StopReason{.ok = ok, .text = std::move(reason)};
  loop_.Stop();
}

StopReason RealHost::Run() {
  loop_.Run();
  return stop_reason_.value_or(StopReason{});
}

void RealHost::End() {
  loop_.Stop();
  // Workers first, so that nothing is completed any more; jobs and their Bytes go on this thread.
  files_.End();
  offloader_.End();
  network_.End();
  loop_.End();
}

}  // namespace detcd::realnet
