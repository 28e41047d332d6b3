#include "tests/support/memory_host.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace detcd::testing {

void MemoryHost::AtEndOfTurn(std::function<void()> call) {
  world.AtEndOfTurn([this, call = std::move(call)] {
    if (!stopped()) call();
  });
}

void MemoryHost::Run() {
  if (!stopped()) world.Run();
  while (StepFiles()) {}
}

void MemoryHost::Advance(Duration duration) {
  const Duration step = Millis(10);
  while (duration > Duration() && !stopped()) {
    world.Advance(std::min(step, duration));
    Run();
    duration = duration - step;
  }
}

bool MemoryHost::StepFiles() {
  if (stopped() || !disk_files.Step()) return false;
  if (!stopped()) world.Run();
  return true;
}

Offloader& MemoryHost::offloader() { std::abort(); }

void MemoryHost::FillSecure(std::span<uint8_t> out) {
  for (uint8_t& byte : out) byte = static_cast<uint8_t>(secure_.Next());
}

void MemoryHost::Stop(bool ok, std::string reason) {
  if (stopped()) return;
  stop_reason = std::move(reason);
  stopped_well = ok;
}

}  // namespace detcd::testing
