#include "core/member/persister.h"

#include <utility>

#include "core/base/check.h"
#include "core/base/probe.h"

namespace detcd::member {

std::vector<raft::Message> Persister::EndTurn(raft::RaftState& raft, raft::Output& output) {
  std::vector<raft::Message> leave;
  for (raft::Outgoing& outgoing : output.messages) Hold(raft, std::move(outgoing), leave);
  output.messages.clear();
  if (!in_flight_) StartBatch(raft, output);
  return leave;
}

void Persister::Hold(const raft::RaftState& raft, raft::Outgoing outgoing, std::vector<raft::Message>& leave) {
  bool flying = in_flight_ && in_flight_->hard_state && SameTermAndVote(raft, *in_flight_->hard_state);
  bool vote_waits = !SameTermAndVote(raft, durable_) && !flying;
  bool log_matters = outgoing.dependency == raft::Dependency::kLog;
  if (vote_waits || (log_matters && raft.log.HasUnwritten())) {
    held_next_.push_back(std::move(outgoing.message));
  } else if (!SameTermAndVote(raft, durable_) || (log_matters && in_flight_)) {
    held_now_.push_back(std::move(outgoing.message));
  } else {
    leave.push_back(std::move(outgoing.message));
  }
}

void Persister::StartBatch(raft::RaftState& raft, raft::Output& output) {
  raft::Collect(raft, output);
  if (output.entries.empty() && !output.hard_state) {
    // Nothing to write, so nothing can be waiting for a write.
    CHECK(held_next_.empty());
    return;
  }
  Batch batch{.hard_state = output.hard_state};
  if (!output.entries.empty()) {
    batch.last_term = output.entries.back().term;
    batch.last_index = output.entries.back().index;
  }
  batch.sequence = wal_.Append({.entries = std::move(output.entries), .hard_state = output.hard_state, .sync = output.must_sync});
  output.entries.clear();
  output.hard_state.reset();
  output.must_sync = false;
  CHECK(held_now_.empty());
  held_now_.swap(held_next_);
  in_flight_ = std::move(batch);
}

std::vector<raft::Message> Persister::OnAppended(raft::RaftState& raft, uint64_t sequence, Instant now,
                                                 raft::Output& output) {
  CHECK(in_flight_ && in_flight_->sequence == sequence);
  Batch batch = *std::exchange(in_flight_, std::nullopt);
  if (batch.hard_state) durable_ = *batch.hard_state;
  if (batch.hard_state && batch.hard_state->vote == raft.options.id) {
    raft::AcknowledgeVote(raft, batch.hard_state->term, now, output);
  }
  if (!batch.last_index.IsZero()) raft::AcknowledgeDurable(raft, batch.last_term, batch.last_index, now, output);

  std::vector<raft::Message> leave;
  for (raft::Message& message : std::exchange(held_now_, {})) {
    // Our log may have been cut by a newer leader since: what we would acknowledge to the old one may be gone.
    if (std::holds_alternative<raft::AppendResponse>(message.body) && message.term != raft.term) {
      PROBE("persister.stale_acknowledgement_dropped");
      continue;
    }
    leave.push_back(std::move(message));
  }
  return leave;
}

}  // namespace detcd::member
