#include "checker/panel.h"

#include "core/base/check.h"

namespace detcd::checker {

Panel::Panel(const WorldObservation& world)
    : world_(world),
      raft_safety_(world, verdict_),
      pre_vote_(world, verdict_),
      leader_lease_(world, verdict_),
      leader_transfer_(world, verdict_),
      read_rounds_(world, verdict_),
      equal_effects_(world, verdict_),
      revision_order_(verdict_),
      durability_(world, revision_order_, verdict_),
      convergence_(world, verdict_) {}

void Panel::OnMember(const MemberObservation& seen, Moment moment) {
  if (verdict_.broken()) return;
  if (seen.started) revision_order_.OnStarted(seen.member, moment);
  raft_safety_.OnMember(seen, moment);
  pre_vote_.OnMember(seen, moment);
  if (world_.clocks != nullptr) leader_lease_.OnMember(seen, moment);
  leader_transfer_.OnMember(seen, moment);
  if (world_.turn_events_max > 0) read_rounds_.OnMember(seen, moment);
  equal_effects_.OnMember(seen, moment);
  convergence_.OnMember(seen, moment);
}

void Panel::OnSent(const MessageObservation& message, Moment moment) {
  if (verdict_.broken()) return;
  raft_safety_.OnSent(message, moment);
  pre_vote_.OnSent(message, moment);
  if (world_.clocks != nullptr) leader_lease_.OnSent(message, moment);
  if (world_.turn_events_max > 0) read_rounds_.OnSent(message, moment);
}

void Panel::OnDelivered(const MessageObservation& message, Moment moment) {
  if (verdict_.broken()) return;
  pre_vote_.OnDelivered(message, moment);
  if (world_.clocks != nullptr) leader_lease_.OnDelivered(message, moment);
  leader_transfer_.OnDelivered(message);
  if (world_.turn_events_max > 0) read_rounds_.OnDelivered(message, moment);
}

void Panel::OnCommitted(const CommittedEntry& entry, Moment moment) {
  if (verdict_.broken()) return;
  CHECK(entry.index == committed_ + 1);
  committed_ = entry.index;
  revision_order_.OnCommitted(entry, moment);
  equal_effects_.OnModel(entry.index, revision_order_.model().revision(), moment);
}

void Panel::OnCall(const Operation& operation) {
  if (!verdict_.broken()) revision_order_.OnCall(operation);
}

void Panel::OnEnd(const Operation& operation) {
  if (verdict_.broken()) return;
  durability_.OnEnd(operation);
  revision_order_.OnEnd(operation);
}

void Panel::OnHealed(Moment moment, Duration longest_delay, Duration longest_sync) {
  if (!verdict_.broken()) convergence_.OnHealed(moment, Bound(world_, longest_delay, longest_sync));
}

void Panel::OnLost(MemberId member) {
  convergence_.OnLost(member);
  durability_.OnLost(member);
}

void Panel::OnProbe(MemberId member, ProbeKind kind, bool ok, Moment moment) {
  if (!verdict_.broken()) convergence_.OnProbe(member, kind, ok, moment);
}

void Panel::OnFinal(MemberId member, std::span<const FinalKey> keys, Moment moment) {
  if (!verdict_.broken()) durability_.OnFinal(member, keys, moment);
}

std::optional<Violation> Panel::Finish(Moment moment) {
  if (!verdict_.broken()) convergence_.Finish(moment);
  if (!verdict_.broken()) durability_.Finish(moment);
  return verdict_.violation();
}

}  // namespace detcd::checker
