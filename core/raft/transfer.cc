#include "core/raft/transfer.h"

#include "core/base/check.h"
#include "core/base/probe.h"
#include "core/raft/replication.h"
#include "core/raft/send.h"

namespace detcd::raft {
namespace {

void TraceTransfer(const RaftState& raft, MemberId target, std::string_view what, std::string_view why) {
  Emit(*raft.trace, LogLevel::kInfo, "raft/transfer", what,
       {TraceField::Id("member", raft.options.id.value), TraceField::Number("term", raft.term.value),
        TraceField::Id("target", target.value), TraceField::Text("why", why)});
}

bool HasAllEntries(const RaftState& raft, const Leader& leader, MemberId target) {
  return leader.progress.at(target).match == raft.log.last_index();
}

}  // namespace

void StartTransfer(RaftState& raft, MemberId target, Instant now, Output& output) {
  auto& leader = std::get<Leader>(raft.role);
  if (!raft.voters.Contains(target)) {
    PROBE("raft.transfer_to_no_voter");
    TraceTransfer(raft, target, "ignored a leadership transfer", "the target is no voter");
    return;
  }
  if (leader.transfer) {
    if (leader.transfer->target == target) {
      PROBE("raft.transfer_asked_twice");
      return;
    }
    EndTransfer(raft, leader, "another target was named");
  }
  if (target == raft.options.id) {
    PROBE("raft.transfer_to_the_leader");
    return;
  }
  // Its election is past what others promised us, from now on and whenever the word to begin it arrives.
  leader.transfer_tried = true;
  leader.transfer = Leader::Transfer{.target = target, .give_up = now + raft.options.election_timeout};
  TraceTransfer(raft, target, "starts to transfer leadership", "asked to");
  if (HasAllEntries(raft, leader, target)) {
    TellTargetIfCaughtUp(raft, leader, output);
  } else {
    PROBE("raft.transfer_waits_for_target");
    // A target that is being probed would else be asked only at the next heartbeat's answer.
    SendNextAppend(raft, target, output);
  }
}

void EndTransfer(RaftState& raft, Leader& leader, std::string_view why) {
  CHECK(leader.transfer.has_value());
  PROBE("raft.transfer_given_up");
  TraceTransfer(raft, leader.transfer->target, "gave up a leadership transfer", why);
  leader.transfer.reset();
}

void TellTargetIfCaughtUp(RaftState& raft, Leader& leader, Output& output) {
  const MemberId target = leader.transfer->target;
  if (!HasAllEntries(raft, leader, target)) return;
  TraceTransfer(raft, target, "sent MsgTimeoutNow", "the target has the whole log");
  Send(raft, target, raft.term, TimeoutNow{}, Dependency::kTermAndVote, output);
}

}  // namespace detcd::raft
