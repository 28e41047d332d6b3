// Linearizable reads by ReadIndex, in rounds: all reads that arrive in a turn share one round, and a few rounds may be
// under way at once (thesis 6.4; reference/semantics.md 21). A round that gets no answer is asked again under a new id;
// a read whose time is over ends as Timeout, and one that waited across a change of leader as LeaderChanged.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/base/limits.h"
#include "core/base/time.h"
#include "core/base/types.h"
#include "core/raft/message.h"
#include "core/rpc/backend.h"

namespace detcd::member {

class Reads {
 public:
  struct Pending {
    rpc::Waiter waiter;
    rpc::ReadListener* listener = nullptr;
    uint64_t token = 0;
    Instant deadline;
  };

  // A read that joins the next round.
  void Add(const Pending& read) { next_.push_back(read); }

  // Whether a round should be started now: there are reads for it, and room for a round.
  bool WantsRound() const;
  // The reads added so far are now round `id`, asked for at `now`.
  void StartRound(raft::ReadId id, Instant now);
  // Whether some round has had no answer for the retry interval.
  bool HasOverdueRound(Instant now) const;
  // The oldest such round is asked again, as `new_id`. An answer under an earlier id still counts: every read of a round
  // was there before it was first asked.
  void RetryRound(raft::ReadId new_id, Instant now);

  // The answer to a round: its reads may be served from `index` on.
  void OnIndex(raft::ReadId id, LogIndex index);

  // Removes and returns the reads that can be served at `applied`.
  std::vector<Pending> TakeServable(LogIndex applied);
  // Removes and returns the reads whose time is over.
  std::vector<Pending> TakeExpired(Instant now);
  // Removes and returns the reads of all rounds without an answer.
  std::vector<Pending> TakeUnanswered();

  std::optional<Instant> NextDeadline() const;
  size_t size() const;

 private:
  struct Round {
    std::vector<raft::ReadId> ids;  // all that it was asked under
    Instant asked;                  // the last time
    std::optional<LogIndex> index;
    std::vector<Pending> reads;
  };

  static bool IsOverdue(const Round& round, Instant now) {
    return !round.index && round.asked + kReadIndexRetry <= now;
  }

  std::vector<Pending> next_;
  std::deque<Round> rounds_;  // in the order of their starts
};

}  // namespace detcd::member
