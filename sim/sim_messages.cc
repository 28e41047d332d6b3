#include "sim/sim_messages.h"

#include <algorithm>

namespace detcd::sim {

SimMessages::SimMessages(SimContext& context, Links& links, Inboxes& inboxes)
    : context_(context),
      links_(links),
      inboxes_(inboxes),
      random_(context.Random("sim/messages")),
      listeners_(links.endpoints()),
      last_arrival_(size_t{links.endpoints()} * links.endpoints()) {}

void SimMessages::Send(EndpointId from, EndpointId to, uint64_t handle, uint64_t fingerprint) {
  const LinkLaw& law = links_.Law(from, to);
  const Effects effects = context_.effects.OnWay(from, to);
  if (links_.IsBlocked(from, to)) {
    links_.CountHeld(from, to, effects);
    Release(handle);
    return;
  }
  if (law.message_loss_permille > 0 && random_.Chance(law.message_loss_permille, 1000)) {
    effects.Effective(FaultKind::kMessageLoss);
    Release(handle);
    return;
  }
  if (law.message_duplicate_permille > 0 && random_.Chance(law.message_duplicate_permille, 1000) &&
      (store_ == nullptr || store_->MayDuplicate(handle))) {
    effects.Effective(FaultKind::kMessageDuplicate);
    if (store_ != nullptr) store_->Retain(handle);
    Schedule(from, to, handle, fingerprint);
  }
  Schedule(from, to, handle, fingerprint);
}

void SimMessages::Schedule(EndpointId from, EndpointId to, uint64_t handle, uint64_t fingerprint) {
  const LinkLaw& law = links_.Law(from, to);
  const Duration delay = DrawDelay(law.delay, random_);
  int64_t at = inboxes_.TrueNow(from) + delay.nanos;
  const Effects effects = context_.effects.OnWay(from, to);
  law.CountDelay(delay, effects);
  at = law.Unclogged(at, context_.queue.now(), effects);
  int64_t& last = last_arrival_[size_t{from} * links_.endpoints() + to];
  if (at < last) {
    const bool overtakes = law.message_reorder_permille > 0 && random_.Chance(law.message_reorder_permille, 1000);
    if (overtakes) {
      effects.Effective(FaultKind::kMessageReorder, Nanos(at - context_.queue.now()));
    } else {
      at = last;
    }
  }
  last = std::max(last, at);
  const uint64_t source = uint64_t{1} << 40 | uint64_t{from} << 20 | to;
  context_.queue.Push(at, source,
                      {.kind = EventKind::kMessage, .target = to, .subject = handle, .value = from, .fingerprint = fingerprint});
}

void SimMessages::OnArrival(const Event& event) {
  const auto from = static_cast<EndpointId>(event.value);
  if (links_.IsBlocked(from, event.target)) {
    links_.CountHeld(from, event.target, context_.effects.OnWay(from, event.target));
    Release(event.subject);
    return;
  }
  const MachineState state = inboxes_.State(event.target);
  if (state != MachineState::kUp) {
    inboxes_.OnMissed(event.target);
    if (store_ != nullptr) store_->OnUndelivered(from, event.target, state, event.subject);
    Release(event.subject);
    return;
  }
  inboxes_.Enqueue(event.target, {.kind = ItemKind::kMessage, .subject = event.subject, .value = event.value});
}

bool SimMessages::Deliver(EndpointId endpoint, const InboxItem& item) {
  MessageListener* listener = listeners_[endpoint];
  if (listener != nullptr) listener->OnMessage(static_cast<EndpointId>(item.value), item.subject);
  Release(item.subject);
  return listener != nullptr;
}

}  // namespace detcd::sim
