// How long a leader may answer reads without asking anybody (leader lease; thesis §6.4.1), and the rules that bound
// rests on. `detcd-sim prove lease` shows that with all of them no answer is stale, for pauses of any length, and gives a
// run with a stale answer for each of them that is left out.
//
// A leader of term t holds the lease while its clock reads less than `start + LeaseBound(...)`, where a quorum (itself
// included) has acknowledged rounds of t whose sending it had read the clock for at `start` or later.
//
//   1. `start` is read before the round is sent: never when an acknowledgement arrives.
//   2. A voter that acknowledges a round of a leader promises to cast no vote, its own candidacy included, for one
//      election timeout from a clock reading taken after the round had arrived. A reading from before the bytes were
//      there (of the beginning of a turn, say) is too early by any pause in between.
//   3. The promise outlives everything but time: a higher term, another leader, none. Raft forgets its leader when a
//      term rises, so `HearsLeader` is not this promise; and it binds votes in the voter's own term too.
//   4. A voter that starts knows no promises: it casts no vote for one election timeout from its start.
//   5. A vote in a campaign that a leader asked for (leadership transfer) ignores the promise. So from the moment it
//      tries one, a leader gives no lease reads in this term any more, even if the transfer is given up.
//   6. The clock is read for the check after the request's bytes were read. Then any pause is harmless: between the
//      check and the look at the state, or before the answer leaves, because the read takes effect at the check.
//   7. As for every linearizable read, an entry of term t is committed, and the read waits for the commit index of the
//      check to be applied.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/check.h"
#include "core/base/time.h"

namespace detcd::raft {

// A reading of a clock is behind it by less than this.
inline constexpr Duration kClockGranule = Nanos(1);
inline constexpr int64_t kPartsPerMillion = 1'000'000;

// The longest safe lease, where each clock runs at a rate in [1 - d, 1 + d] of true time, d = `drift_ppm` / 10^6:
//   (election_timeout - granule) * (1 - d) / (1 + d) - granule, rounded down; 0 where there is none.
// On true time, which nobody reads: the lease is over (L + granule) / (1 - d) after its reading, no promise is before
// (T - granule) / (1 + d) after its own, and the bound is where the two meet. A longer lease is unsafe
// (`prove lease-bound`). Wants election_timeout >= 0 and 0 <= drift_ppm < 10^6.
constexpr Duration LeaseBound(Duration election_timeout, int64_t drift_ppm) {
  CHECK(election_timeout.nanos >= 0);
  CHECK(drift_ppm >= 0);
  CHECK(drift_ppm < kPartsPerMillion);
  if (election_timeout <= kClockGranule) return {};
  const int64_t slowest = kPartsPerMillion - drift_ppm;
  const int64_t fastest = kPartsPerMillion + drift_ppm;
  // floor(n * slowest / fastest) for n = whole * fastest + rest, without overflow for any n.
  const int64_t promised = (election_timeout - kClockGranule).nanos;
  const int64_t whole = promised / fastest;
  const int64_t rest = promised % fastest;
  const Duration lease = Nanos(whole * slowest + rest * slowest / fastest) - kClockGranule;
  return lease.nanos > 0 ? lease : Duration{};
}

// What leases assume of the clocks of all members: rates within this of true time, no leap, no stop. A crystal is within
// 100 ppm, and NTP slews by up to 500 ppm. Not so: a machine that is suspended, or moved while it runs, whose clock stops.
inline constexpr int64_t kClockDriftPpmMax = 1'000;

// Why leases are of no use with these settings, in words that name them; empty: they are. A lease that is over before the
// next round of heartbeats has been sent is over most of the time.
std::string LeaseTrouble(Duration election_timeout, Duration heartbeat_interval, int64_t drift_ppm);

}  // namespace detcd::raft
