// The one heap of a world, and its only clock: true time moves when Pop takes an event, nowhere else.
//
// Order: time; then a hash of (seed, source, time), so that the seed and not the code decides between independent
// sources; then first in, first out, which is what one source keeps. Every event popped goes into a rolling digest:
// two runs are the same run exactly when their digests are.
//
// An event is a plain struct in a slab; pushing and popping allocate nothing once the slab has grown. Cancelling frees
// the slot at once and leaves a stale entry in the heap; the heap is rebuilt when most of it is stale.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/digest.h"

namespace detcd::sim {

// Who an event is about: a member or a client, numbered from 0. Each has an address of its own.
using EndpointId = uint32_t;

enum class EventKind : uint8_t {
  kRun,         // an endpoint's processor takes the next event of its inbox, or ends its turn
  kTimer,       // a timer came due
  kConnect,     // a connection attempt arrives at the listening side
  kConnected,   // the answer arrives at the connecting side
  kData,        // bytes arrive at a stream's end
  kFin,         // the end of a direction arrives
  kWindow,      // news of room arrives at the writer
  kReset,       // a reset arrives
  kRetry,       // a stalled direction tries again
  kMessage,     // a message of the direct cut arrives
  kDisk,        // the disk finished the first call of a handle
  kBackground,  // an off-loaded function or a name look-up ended
  kControl,     // the world's own: plans, workloads, judges
};
inline constexpr size_t kEventKindCount = static_cast<size_t>(EventKind::kControl) + 1;
using EventCounts = std::array<uint64_t, kEventKindCount>;  // by kind

std::string_view EventKindName(EventKind kind);

struct Event {
  EventKind kind = EventKind::kControl;
  EndpointId target = 0;
  uint64_t subject = 0;      // which handle, connection or message; its meaning belongs to `kind`
  uint64_t value = 0;
  uint64_t fingerprint = 0;  // of the payload, for the digest
  uint64_t cause = 0;        // set by Push: the event whose handling pushed this one, for traces
};

// An event as it was popped, for those who compare runs.
struct EventRecord {
  uint64_t number = 0;  // from 1, in the order of popping
  int64_t time = 0;     // true nanoseconds
  uint64_t digest = 0;  // of the run up to this event and with it
  Event event;
};

// One line: number, time, endpoint, kind, fields, and the event that pushed it.
std::string FormatEventRecord(const EventRecord& record);

// Names a pushed event for Cancel. The default names none.
struct EventId {
  uint32_t slot = 0;
  uint32_t generation = 0;
};

// How often the rolling digest is kept: two runs that differ are known to part within so many events, at no further run.
inline constexpr uint64_t kCheckpointInterval = 4'096;

class EventQueue {
 public:
  // Hears each event before it is handled. May not touch the queue.
  using Sink = void (*)(void* context, const EventRecord& record);

  explicit EventQueue(uint64_t seed) : seed_(seed) {}

  // From now on; nullptr: nobody hears, at the cost of one branch.
  void SetSink(Sink sink, void* context) { sink_ = sink, sink_context_ = context; }

  // Adds an event at `time` (true nanoseconds; a past time means now). Events with equal `source` and time keep their
  // order.
  EventId Push(int64_t time, uint64_t source, const Event& event);
  // Takes the event back; false when it was popped or cancelled before. Resets `id`.
  bool Cancel(EventId& id);
  bool IsPending(EventId id) const;

  // Takes the next event and moves time to it; false when there is none.
  bool Pop(Event& event);
  // The time of the next event; false when there is none.
  bool NextTime(int64_t& time);

  int64_t now() const { return now_; }
  // The event that what is pushed next follows from: a device that passes something on names the original.
  void set_cause(uint64_t event_number) { cause_ = event_number; }
  uint64_t cause() const { return cause_; }
  // Moves time forward without an event; nothing pending may be earlier.
  void AdvanceTo(int64_t time);
  // How many events were popped: the number of the current one.
  uint64_t popped() const { return popped_; }
  const EventCounts& popped_by_kind() const { return popped_by_kind_; }
  uint64_t digest() const { return digest_.value(); }
  // After each kCheckpointInterval events that a further one followed.
  const std::vector<uint64_t>& checkpoints() const { return checkpoints_; }
  size_t size() const { return heap_.size() - stale_; }

 private:
  struct Entry {
    int64_t time;
    uint64_t tie;
    uint64_t sequence;
    uint32_t slot;
    uint32_t generation;
  };
  struct Slot {
    Event event;
    uint32_t generation = 1;
    uint32_t next_free = 0;
  };

  static bool Before(const Entry& a, const Entry& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.tie != b.tie) return a.tie < b.tie;
    return a.sequence < b.sequence;
  }
  void SiftUp(size_t position);
  void SiftDown(size_t position);
  void RemoveTop();
  void DropStale();
  void Free(uint32_t slot);
  bool IsStale(const Entry& entry) const { return slots_[entry.slot].generation != entry.generation; }

  uint64_t seed_;
  int64_t now_ = 0;
  uint64_t sequence_ = 0;
  uint64_t popped_ = 0;
  EventCounts popped_by_kind_{};
  uint64_t cause_ = 0;
  size_t stale_ = 0;  // entries of heap_ whose slot was freed by Cancel
  uint32_t free_ = kNoSlot;
  Digest digest_;
  std::vector<uint64_t> checkpoints_;
  Sink sink_ = nullptr;
  void* sink_context_ = nullptr;
  std::vector<Entry> heap_;  // 4-ary: half the levels of a binary heap, children share cache lines
  std::vector<Slot> slots_;

  static constexpr uint32_t kNoSlot = ~uint32_t{0};
};

}  // namespace detcd::sim
