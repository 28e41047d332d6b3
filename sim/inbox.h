// What the devices of a world (network, disks) share with its processors: how a completion reaches an endpoint.
#pragma once

#include <cstdint>

#include "core/io/host.h"
#include "sim/event_queue.h"
#include "sim/faults/effects.h"

namespace detcd::sim {

// The state that everything in one world shares.
struct SimContext {
  SimContext(uint64_t s, uint32_t endpoints) : seed(s), queue(s), effects(queue, endpoints) {}

  KeyedRandom Random(std::string_view label) const { return KeyedRandom(seed, label); }

  uint64_t seed;
  EventQueue queue;
  EffectLedger effects;
};

enum class ItemKind : uint8_t {
  kTimer,
  kPost,
  kStreamConnected,
  kStreamData,  // bytes or the end, whichever is next
  kStreamWritable,
  kStreamClosed,
  kAccept,
  kFile,
  kBackground,
  kMessage,
};

// One waiting event of an endpoint. An item may have lost its meaning by the time it is run (its handle is gone, its
// timer disarmed): then nobody hears it and it is no event.
struct InboxItem {
  ItemKind kind = ItemKind::kPost;
  uint64_t subject = 0;
  uint64_t value = 0;
  PostListener* listener = nullptr;  // kPost only
  uint64_t cause = 0;                // set by Enqueue: the event that this follows from
};

enum class MachineState : uint8_t {
  kUp,           // an incarnation runs
  kProcessDown,  // the kernel answers: connections are refused and reset
  kMachineDown,  // nothing answers
};

// The endpoints, as the devices see them.
class Inboxes {
 public:
  // Has the endpoint run `item` in its turn. The caller knows that the endpoint is up.
  virtual void Enqueue(EndpointId endpoint, const InboxItem& item) = 0;
  virtual MachineState State(EndpointId endpoint) const = 0;
  // Something sent to the endpoint found it without a process.
  virtual void OnMissed(EndpointId endpoint) = 0;
  // True time as the code that runs at the endpoint has reached it: events are instants to the queue, but a slow
  // processor does its n-th call later than its first.
  virtual int64_t TrueNow(EndpointId endpoint) const = 0;

 protected:
  ~Inboxes() = default;
};

}  // namespace detcd::sim
