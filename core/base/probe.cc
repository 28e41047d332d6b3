#include "core/base/probe.h"

// Made by the linker around the section of all probes; weak, because a program may have none.
extern "C" {
extern detcd::ProbeCounter __start_detcd_probes[] __attribute__((weak));  // NOLINT(bugprone-reserved-identifier)
extern detcd::ProbeCounter __stop_detcd_probes[] __attribute__((weak));   // NOLINT(bugprone-reserved-identifier)
}

namespace detcd {

std::span<ProbeCounter> AllProbes() {
  if (__start_detcd_probes == nullptr) return {};
  return {__start_detcd_probes, __stop_detcd_probes};
}

}  // namespace detcd
