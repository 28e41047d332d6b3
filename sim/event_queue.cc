#include "sim/event_queue.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "core/base/check.h"

namespace detcd::sim {
namespace {

constexpr size_t kArity = 4;
constexpr size_t kStaleSlack = 64;  // stale entries that are not worth a rebuild

}  // namespace

std::string_view EventKindName(EventKind kind) {
  static constexpr std::string_view kNames[] = {"run", "timer",  "connect", "connected", "data", "fin",       "window",
                                                "reset", "retry", "message", "disk",     "background", "control"};
  static_assert(std::size(kNames) == kEventKindCount);
  return kNames[static_cast<size_t>(kind)];
}

std::string FormatEventRecord(const EventRecord& record) {
  const Event& event = record.event;
  return absl::StrFormat("#%d<-#%d %d.%06d ms e%d %s subject=%x value=%x fingerprint=%016x", record.number, event.cause,
                         record.time / 1'000'000, record.time % 1'000'000, event.target, EventKindName(event.kind),
                         event.subject, event.value, event.fingerprint);
}

EventId EventQueue::Push(int64_t time, uint64_t source, const Event& event) {
  uint32_t slot = free_;
  if (slot == kNoSlot) {
    slot = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    free_ = slots_[slot].next_free;
  }
  slots_[slot].event = event;
  slots_[slot].event.cause = cause_;
  const int64_t at = std::max(time, now_);
  const uint64_t tie = MixWord(seed_ ^ MixWord(source + 0x9E3779B97F4A7C15u * static_cast<uint64_t>(at)));
  const uint32_t generation = slots_[slot].generation;
  heap_.push_back({at, tie, sequence_++, slot, generation});
  SiftUp(heap_.size() - 1);
  return {slot, generation};
}

bool EventQueue::IsPending(EventId id) const {
  return id.generation != 0 && slots_[id.slot].generation == id.generation;
}

bool EventQueue::Cancel(EventId& id) {
  const EventId cancelled = id;
  id = {};
  if (!IsPending(cancelled)) return false;
  Free(cancelled.slot);
  ++stale_;
  if (stale_ > heap_.size() / 2 + kStaleSlack) {
    std::erase_if(heap_, [this](const Entry& entry) { return IsStale(entry); });
    stale_ = 0;
    for (size_t i = heap_.size() / kArity + 1; i-- > 0;) SiftDown(i);
  }
  return true;
}

bool EventQueue::Pop(Event& event) {
  DropStale();
  if (heap_.empty()) return false;
  const Entry top = heap_.front();
  RemoveTop();
  event = slots_[top.slot].event;
  Free(top.slot);
  CHECK(top.time >= now_);
  now_ = top.time;
  if (popped_ != 0 && popped_ % kCheckpointInterval == 0) checkpoints_.push_back(digest_.value());
  ++popped_;
  ++popped_by_kind_[static_cast<size_t>(event.kind)];
  digest_.Add(static_cast<uint64_t>(top.time));
  digest_.Add(static_cast<uint64_t>(event.kind) << 32 | event.target);
  digest_.Add(event.subject ^ MixWord(event.value ^ MixWord(event.fingerprint)));
  if (sink_ != nullptr) sink_(sink_context_, {.number = popped_, .time = now_, .digest = digest_.value(), .event = event});
  return true;
}

bool EventQueue::NextTime(int64_t& time) {
  DropStale();
  if (heap_.empty()) return false;
  time = heap_.front().time;
  return true;
}

void EventQueue::AdvanceTo(int64_t time) {
  int64_t next = 0;
  if (NextTime(next)) CHECK(next >= time);
  now_ = std::max(now_, time);
}

void EventQueue::DropStale() {
  while (!heap_.empty() && IsStale(heap_.front())) {
    RemoveTop();
    --stale_;
  }
}

void EventQueue::RemoveTop() {
  heap_.front() = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) SiftDown(0);
}

void EventQueue::Free(uint32_t slot) {
  if (++slots_[slot].generation == 0) slots_[slot].generation = 1;  // 0 names no event
  slots_[slot].next_free = free_;
  free_ = slot;
}

void EventQueue::SiftUp(size_t position) {
  const Entry moving = heap_[position];
  while (position > 0) {
    const size_t parent = (position - 1) / kArity;
    if (!Before(moving, heap_[parent])) break;
    heap_[position] = heap_[parent];
    position = parent;
  }
  heap_[position] = moving;
}

void EventQueue::SiftDown(size_t position) {
  if (position >= heap_.size()) return;
  const Entry moving = heap_[position];
  while (true) {
    const size_t first = position * kArity + 1;
    if (first >= heap_.size()) break;
    size_t least = first;
    const size_t limit = std::min(first + kArity, heap_.size());
    for (size_t child = first + 1; child < limit; ++child) {
      if (Before(heap_[child], heap_[least])) least = child;
    }
    if (!Before(heap_[least], moving)) break;
    heap_[position] = heap_[least];
    position = least;
  }
  heap_[position] = moving;
}

}  // namespace detcd::sim
