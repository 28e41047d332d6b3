// From raft's output to the log: writes one batch at a time and holds messages back until what they depend on is
// durable (raft/output.h, steps 1-3). Group commit without a timer: while a batch is being synced, whatever raft adds
// gathers, and all of it is the next batch.
#pragma once

#include <optional>
#include <vector>

#include "core/raft/raft.h"
#include "core/wal/wal.h"

namespace detcd::member {

class Persister {
 public:
  // `durable` is what recovery found: its term and vote are on the disk.
  Persister(wal::Wal& wal, const raft::HardState& durable) : wal_(wal), durable_(durable) {}

  // The end of a turn: takes output.messages and returns those that may leave now, in order; starts the next batch when
  // the log is ready for one.
  std::vector<raft::Message> EndTurn(raft::RaftState& raft, raft::Output& output);

  // The log finished batch `sequence`: tells raft, and returns the messages that waited for it.
  std::vector<raft::Message> OnAppended(raft::RaftState& raft, uint64_t sequence, Instant now, raft::Output& output);

 private:
  struct Batch {
    uint64_t sequence = 0;
    std::optional<raft::HardState> hard_state;
    Term last_term;        // of its last entry
    LogIndex last_index;   // 0: a batch without entries
  };

  static bool SameTermAndVote(const raft::RaftState& raft, const raft::HardState& state) {
    return state.term == raft.term && state.vote == raft.voted_for;
  }
  void Hold(const raft::RaftState& raft, raft::Outgoing outgoing, std::vector<raft::Message>& leave);
  void StartBatch(raft::RaftState& raft, raft::Output& output);

  wal::Wal& wal_;
  raft::HardState durable_;             // term and vote on the disk
  std::optional<Batch> in_flight_;
  std::vector<raft::Message> held_now_;   // leave when the batch in flight is durable
  std::vector<raft::Message> held_next_;  // leave when the batch after it is
};

}  // namespace detcd::member
