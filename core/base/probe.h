// PROBE marks a branch that must happen sometimes: campaigns count how often each was reached and report those that
// never were. It costs one increment and changes no behaviour. In .cc files only.
//
//   if (stale) { PROBE("raft.vote_refused_stale_log"); return; }
#pragma once

#include <cstdint>
#include <span>

namespace detcd {

// One marked branch. `name` is area.what_happened, unique in the program. The linker gathers all of them in one section.
struct ProbeCounter {
  const char* name;
  uint64_t hits;
};

// All probes of the program, in link order: sort by name before showing them.
std::span<ProbeCounter> AllProbes();

}  // namespace detcd

#define PROBE(probe_name)                                                                                 \
  do {                                                                                                    \
    static ::detcd::ProbeCounter detcd_probe __attribute__((section("detcd_probes"), used)) = {probe_name, 0}; \
    ++detcd_probe.hits;                                                                                   \
  } while (false)
