// The leader's view of one member's log, and of what is on its way there.
//
//   probe      the follower's log is not known to match: one append at a time, each waits for its answer (or for a
//              heartbeat's, when it may have been lost).
//   replicate  it matches up to `match`: appends are sent ahead of their answers, within a window.
//
// A rejection or an unreachable peer leads back to probe, an accepted append to replicate (reference/peer.md 20).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "core/base/time.h"
#include "core/base/types.h"
#include "core/raft/message.h"

namespace detcd::raft {

struct Progress {
  enum class Mode : uint8_t { kProbe, kReplicate };
  // One append on its way in replicate mode.
  struct InFlight {
    LogIndex last;
    uint64_t bytes;
  };

  LogIndex match;                // highest entry known to be durable there; match < next
  LogIndex next;                 // the next entry to send
  Mode mode = Mode::kProbe;
  bool probe_in_flight = false;  // probe only: an append waits for its answer
  std::optional<Instant> heard;  // when its last answer in this term arrived
  bool fetching = false;         // a LogFetch for it is out
  LogIndex commit_sent;          // highest commit index that the appends on their way will bring there
  uint64_t read_round_acked = 0; // newest read round it confirmed (ReadQueue)
  RoundId lease_round_acked;     // newest round it made its promise for; 0: it makes none, as far as we know
  std::deque<InFlight> in_flight;  // replicate only; ascending
  uint64_t bytes_in_flight = 0;    // sum over in_flight

  // Whether another append with entries may leave in this mode.
  bool MayCarryEntries(uint64_t appends_max, uint64_t bytes_max) const;

  // An append after `next - 1` left: `count` entries of `bytes` bytes, with the leader's commit index.
  void OnSent(uint64_t count, uint64_t bytes, LogIndex commit);
  // The follower has everything up to `index` durable. Returns whether that says more than before: match rose, or a
  // probe was confirmed. The mode is kReplicate after a confirmed one.
  bool OnAccepted(LogIndex index);
  // The follower refused an append after `refused`; `newest_shared` is the newest entry that may still match.
  // False: the answer to an older message, nothing changes. The mode is kProbe after a true answer.
  bool OnRefused(LogIndex refused, LogIndex newest_shared);
  // What was sent ahead may be lost.
  void BecomeProbe();

 private:
  void BecomeReplicate();
};

}  // namespace detcd::raft
