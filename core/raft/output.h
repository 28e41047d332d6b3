// What the steps of one turn ask of the member, and the order in which it must be done.
//
//   1. Write `hard_state` and `entries` to the log as one batch, entries first (they replace what the log has from their
//      first index on); sync it when `must_sync`.
//   2. Send each message once what it depends on is durable. A held message leaves only while the raft is still in its
//      term: an acknowledgement of a former leader's entries may be false by now (reference/peer.md 20: sync before
//      answering). Dropping a message is always allowed.
//   3. When a batch is durable, tell Raft by AcknowledgeDurable(term and index of its last entry).
//   4. Apply entries up to the commit index, in order; in parallel with the writes (a commit never waits for our disk
//      unless our own acknowledgement is part of its quorum). Then AcknowledgeApplied.
//   5. Serve `reads` once the applied index has reached their index.
//   6. Fetch older entries from the log's segments, and hand them to SupplyEntries.
#pragma once

#include <optional>
#include <vector>

#include "core/raft/message.h"

namespace detcd::raft {

enum class Dependency : uint8_t {
  kTermAndVote,  // leaves when our current term and vote are durable: a leader's appends go in parallel with its own sync
  kLog,          // leaves when everything appended so far is durable as well
};

struct Outgoing {
  Message message;
  Dependency dependency;
};

// A linearizable read may be served from any state at or above `index`.
struct ReadReady {
  ReadId read;
  LogIndex index;
};

// A follower needs entries that are no longer in memory. One fetch per follower at a time.
struct LogFetch {
  MemberId follower;
  LogIndex first;    // the first entry wanted
  LogIndex last;     // never beyond this
  size_t bytes_max;  // stop after the entry that reaches this
};

// Accumulates over the steps of a turn; the member empties it when it has carried it out.
struct Output {
  std::optional<HardState> hard_state;  // set by Collect when it differs from the one collected last
  std::vector<Entry> entries;           // set by Collect: entries not handed over yet
  bool must_sync = false;               // there are entries, or the term or the vote changed

  std::vector<Outgoing> messages;       // in the order in which each peer must get them
  std::vector<ReadReady> reads;
  std::vector<ReadId> reads_dropped;    // no answer will come: leader lost or changed. Ask again.
  std::vector<LogFetch> fetches;
};

}  // namespace detcd::raft
