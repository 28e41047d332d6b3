// The message cut of direct fidelity: whole messages between endpoints, by handle. What a peer channel of etcd may do
// to a message happens here: delay, loss, duplication, overtaking, and partitions.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/inbox.h"
#include "sim/links.h"

namespace detcd::sim {

// Who owns the payloads behind handles. Each Send hands over one reference.
class MessageStore {
 public:
  virtual void Retain(uint64_t handle) = 0;
  virtual void Release(uint64_t handle) = 0;
  // Whether the network may deliver `handle` twice.
  virtual bool MayDuplicate(uint64_t /*handle*/) const { return true; }
  // `handle` arrived at an endpoint without a process; it is released afterwards. The kernel of a machine that is up
  // may answer.
  virtual void OnUndelivered(EndpointId /*from*/, EndpointId /*to*/, MachineState /*state*/, uint64_t /*handle*/) {}

 protected:
  ~MessageStore() = default;
};

// Hears the messages of one endpoint, each as an event of its own. The payload is released when the call returns.
class MessageListener {
 public:
  virtual void OnMessage(EndpointId from, uint64_t handle) = 0;

 protected:
  ~MessageListener() = default;
};

class SimMessages {
 public:
  SimMessages(SimContext& context, Links& links, Inboxes& inboxes);

  void SetStore(MessageStore* store) { store_ = store; }
  void SetListener(EndpointId endpoint, MessageListener* listener) { listeners_[endpoint] = listener; }

  // Sends `handle`; `fingerprint` tells its content to the digest. Never calls back inside.
  void Send(EndpointId from, EndpointId to, uint64_t handle, uint64_t fingerprint);

  void OnArrival(const Event& event);
  // Runs an inbox item; false when nobody listens.
  bool Deliver(EndpointId endpoint, const InboxItem& item);
  // Releases a message that waited in the inbox of an incarnation that ended.
  void Drop(const InboxItem& item) { Release(item.subject); }

 private:
  void Schedule(EndpointId from, EndpointId to, uint64_t handle, uint64_t fingerprint);
  void Release(uint64_t handle) {
    if (store_ != nullptr) store_->Release(handle);
  }

  SimContext& context_;
  Links& links_;
  Inboxes& inboxes_;
  KeyedRandom random_;
  MessageStore* store_ = nullptr;
  std::vector<MessageListener*> listeners_;
  std::vector<int64_t> last_arrival_;  // by ordered pair: what does not overtake arrives after this
};

}  // namespace detcd::sim
