// Linearizable reads without the log (thesis §6.4): the leader notes its commit index, then makes sure that it still
// led when the read was asked, by a majority of heartbeat answers that were sent after it; or by the lease that it holds
// (lease_reads.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "core/base/time.h"
#include "core/base/types.h"
#include "core/raft/message.h"

namespace detcd::raft {

struct RaftState;
struct Output;

// The leader's reads, oldest first. Each is a round, numbered from 1; a heartbeat carries the newest round, and its
// answer confirms that one and all before it.
class ReadQueue {
 public:
  struct Read {
    ReadId read;
    MemberId asker;  // who gets the answer, maybe ourselves
    LogIndex index;  // our commit index when it was asked; 0: waits for a commit in our term
  };

  bool empty() const { return reads_.empty(); }
  size_t size() const { return reads_.size(); }
  const std::deque<Read>& reads() const { return reads_; }
  bool Contains(ReadId read) const;

  void Add(const Read& read) { reads_.push_back(read); }
  // The first commit of our term, at `index`: the reads that waited for it may be answered from there.
  void StartWaiting(LogIndex index);

  // What the next heartbeat asks the followers to confirm; 0: nothing.
  ReadId newest() const { return reads_.empty() || reads_.back().index.IsZero() ? ReadId() : reads_.back().read; }
  uint64_t newest_round() const { return answered_ + reads_.size(); }
  // nullopt: answered already, or not ours.
  std::optional<uint64_t> RoundOf(ReadId read) const;
  // Takes the oldest read out, if its round is at most `round`.
  std::optional<Read> PopUpTo(uint64_t round);

 private:
  std::deque<Read> reads_;
  uint64_t answered_ = 0;  // rounds taken out: the oldest in the queue is answered_ + 1
};

// A read of our own (RequestRead), by role.
void StartRead(RaftState& raft, ReadId read, Instant now, Output& output);
// The leader has committed its first entry: reads that waited for it begin.
void StartWaitingReads(RaftState& raft, Output& output);
// The role or its leader ends: no answer will come to what was asked of it.
void DropReads(RaftState& raft, Output& output);

// Messages of the current term (requests have none).
void OnReadIndexRequest(RaftState& raft, MemberId from, const ReadIndexRequest& request, Instant now, Output& output);
void OnReadIndexResponse(RaftState& raft, MemberId from, const ReadIndexResponse& response, Output& output);
// A follower's answer to a heartbeat that carried `read`; only while we lead.
void OnReadConfirmed(RaftState& raft, MemberId from, ReadId read, Output& output);

}  // namespace detcd::raft
