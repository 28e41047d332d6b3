#include "realnet/timer_heap.h"

#include "core/base/check.h"

namespace detcd::realnet {

bool TimerHeap::Before(const TimerNode& a, const TimerNode& b) {
  if (a.deadline_ != b.deadline_) return a.deadline_ < b.deadline_;
  return a.order_ < b.order_;
}

void TimerHeap::Put(size_t place, TimerNode* node) {
  heap_[place] = node;
  node->place_ = place;
}

void TimerHeap::Up(size_t place) {
  TimerNode* const node = heap_[place];
  while (place > 0) {
    const size_t parent = (place - 1) / 2;
    if (!Before(*node, *heap_[parent])) break;
    Put(place, heap_[parent]);
    place = parent;
  }
  Put(place, node);
}

void TimerHeap::Down(size_t place) {
  TimerNode* const node = heap_[place];
  while (true) {
    size_t child = 2 * place + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && Before(*heap_[child + 1], *heap_[child])) ++child;
    if (!Before(*heap_[child], *node)) break;
    Put(place, heap_[child]);
    place = child;
  }
  Put(place, node);
}

void TimerHeap::Arm(TimerNode& node, Instant deadline) {
  node.deadline_ = deadline;
  node.order_ = next_order_++;
  if (node.place_ == TimerNode::kNowhere) {
    node.place_ = heap_.size();
    heap_.push_back(&node);
  }
  Up(node.place_);
  Down(node.place_);
}

void TimerHeap::Disarm(TimerNode& node) {
  const size_t place = node.place_;
  if (place == TimerNode::kNowhere) return;
  CHECK(place < heap_.size() && heap_[place] == &node);
  node.place_ = TimerNode::kNowhere;
  TimerNode* const last = heap_.back();
  heap_.pop_back();
  if (last == &node) return;
  Put(place, last);
  Up(last->place_);
  Down(last->place_);
}

std::optional<Instant> TimerHeap::Next() const {
  if (heap_.empty()) return std::nullopt;
  return heap_.front()->deadline_;
}

TimerNode* TimerHeap::PopDue(Instant now, uint64_t order) {
  if (heap_.empty()) return nullptr;
  TimerNode* const first = heap_.front();
  if (first->deadline_ > now || first->order_ >= order) return nullptr;
  Disarm(*first);
  return first;
}

void TimerHeap::Clear() {
  for (TimerNode* node : heap_) node->place_ = TimerNode::kNowhere;
  heap_.clear();
}

}  // namespace detcd::realnet
