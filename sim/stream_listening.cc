// Who listens where, and connections that wait to be accepted.
#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "sim/sim_streams.h"
#include "sim/stream_handles.h"

namespace detcd::sim {

ListenResult SimStreams::Listen(EndpointId endpoint, const Address& address, AcceptListener& listener) {
  Address local = address;
  if (!local.is_unix && !IsLoopback(local.host) && !IsWildcard(local.host) && local.host != EndpointHost(endpoint)) {
    return {.error = IoError::kInvalid};
  }
  const auto taken = [&] {
    return std::any_of(acceptors_.begin(), acceptors_.end(), [&](const Acceptor& a) {
      return a.handle != nullptr && a.endpoint == endpoint && Overlap(a.address, local);
    });
  };
  if (!local.is_unix && local.port == 0) {
    do {
      local.port = next_port_[endpoint]++;
      if (next_port_[endpoint] < kFirstPort) next_port_[endpoint] = kFirstPort;
    } while (taken());
  } else if (taken()) {
    return {.error = IoError::kAddressInUse};
  }
  auto slot = std::find_if(acceptors_.begin(), acceptors_.end(), [](const Acceptor& a) { return a.handle == nullptr; });
  if (slot == acceptors_.end()) slot = acceptors_.emplace(acceptors_.end());
  const auto index = static_cast<uint64_t>(slot - acceptors_.begin());
  slot->endpoint = endpoint;
  slot->address = local;
  slot->listener = &listener;
  auto handle = std::make_unique<SimAcceptor>(this, uint64_t{slot->generation} << 32 | index, local);
  slot->handle = handle.get();
  return {.acceptor = std::move(handle)};
}

SimStreams::Acceptor* SimStreams::FindAcceptor(uint64_t id) {
  const auto index = static_cast<uint32_t>(id);
  if (index >= acceptors_.size()) return nullptr;
  Acceptor& acceptor = acceptors_[index];
  return acceptor.handle != nullptr && acceptor.generation == id >> 32 ? &acceptor : nullptr;
}

SimStreams::Acceptor* SimStreams::FindListening(EndpointId endpoint, const Address& address) {
  for (Acceptor& acceptor : acceptors_) {
    if (acceptor.handle != nullptr && acceptor.endpoint == endpoint && Reaches(address, acceptor.address)) return &acceptor;
  }
  return nullptr;
}

void SimStreams::QueueAccept(Acceptor& acceptor) {
  if (acceptor.queued || acceptor.paused || acceptor.queue.empty()) return;
  acceptor.queued = true;
  const auto found = std::find_if(acceptors_.begin(), acceptors_.end(), [&](const Acceptor& a) { return a.handle == acceptor.handle; });
  const auto index = static_cast<uint64_t>(found - acceptors_.begin());
  inboxes_.Enqueue(acceptor.endpoint, {.kind = ItemKind::kAccept, .subject = uint64_t{acceptor.generation} << 32 | index});
}

bool SimStreams::DeliverAccept(uint64_t acceptor_id) {
  Acceptor* acceptor = FindAcceptor(acceptor_id);
  if (acceptor == nullptr) return false;
  acceptor->queued = false;
  if (acceptor->paused || acceptor->queue.empty()) return false;
  const uint64_t id = acceptor->queue.front();
  acceptor->queue.pop_front();
  QueueAccept(*acceptor);
  Connection* connection = Find(id);
  CHECK(connection != nullptr);
  End& end = EndOf(*connection, id);
  auto stream = std::make_unique<SimStream>(this, id, end.remote);
  end.stream = stream.get();
  acceptor->listener->OnAccept(std::move(stream));
  Connection* after = Find(id);
  if (after != nullptr && !EndOf(*after, id).gone) CHECK_MSG(EndOf(*after, id).listener != nullptr, "accepted, no listener");
  return true;
}

void SimStreams::SetAcceptPaused(uint64_t acceptor_id, bool paused) {
  Acceptor* acceptor = FindAcceptor(acceptor_id);
  if (acceptor == nullptr) return;
  acceptor->paused = paused;
  QueueAccept(*acceptor);
}

void SimStreams::CloseAcceptor(uint64_t acceptor_id) {
  Acceptor* acceptor = FindAcceptor(acceptor_id);
  if (acceptor == nullptr) return;
  const std::deque<uint64_t> waiting = std::move(acceptor->queue);
  const uint32_t generation = acceptor->generation + 1;
  *acceptor = Acceptor();
  acceptor->generation = generation;
  for (const uint64_t id : waiting) Destroy(id);
}

}  // namespace detcd::sim
