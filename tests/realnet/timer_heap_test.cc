#include "realnet/timer_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/io/random.h"

namespace detcd::realnet {
namespace {

struct Node final : TimerNode {
  void Fire() override {}
};

Instant At(int64_t nanos) { return {nanos}; }

TEST(TimerHeapTest, TiesFireInTheOrderOfArming) {
  TimerHeap heap;
  Node nodes[8];
  for (Node& node : nodes) heap.Arm(node, At(5));
  heap.Arm(nodes[0], At(5));  // armed again: the last one now
  const uint64_t round = heap.next_order();
  for (int i = 1; i < 8; ++i) EXPECT_EQ(heap.PopDue(At(5), round), &nodes[i]);
  EXPECT_EQ(heap.PopDue(At(5), round), &nodes[0]);
  EXPECT_EQ(heap.PopDue(At(5), round), nullptr);
}

TEST(TimerHeapTest, NothingIsDueBeforeItsDeadline) {
  TimerHeap heap;
  EXPECT_FALSE(heap.Next().has_value());
  Node node;
  heap.Arm(node, At(10));
  EXPECT_EQ(heap.PopDue(At(9), heap.next_order()), nullptr);
  EXPECT_EQ(heap.PopDue(At(10), heap.next_order()), &node);
}

TEST(TimerHeapTest, WhatIsArmedInARoundWaitsForTheNext) {
  TimerHeap heap;
  Node node;
  const uint64_t round = heap.next_order();
  heap.Arm(node, At(1));
  EXPECT_EQ(heap.PopDue(At(2), round), nullptr);
  EXPECT_EQ(heap.PopDue(At(2), heap.next_order()), &node);
}

TEST(TimerHeapTest, ClearedTimersMayBeDisarmedAndArmedAgain) {
  TimerHeap heap;
  Node node;
  heap.Arm(node, At(1));
  heap.Clear();
  heap.Disarm(node);
  EXPECT_FALSE(heap.Next().has_value());
  heap.Arm(node, At(2));
  EXPECT_EQ(heap.Next()->nanos, 2);
}

TEST(TimerHeapTest, AgreesWithASortedListUnderRandomCalls) {
  KeyedRandom random(1, "timer heap");
  TimerHeap heap;
  std::vector<Node> nodes(40);
  struct Armed {
    int64_t deadline;
    uint64_t order;
    Node* node;
  };
  std::vector<Armed> model;
  const auto drop = [&](Node* node) { std::erase_if(model, [&](const Armed& a) { return a.node == node; }); };
  for (int step = 0; step < 20'000; ++step) {
    Node* const node = &nodes[random.Below(nodes.size())];
    const uint64_t choice = random.Below(4);
    if (choice < 2) {
      const auto deadline = static_cast<int64_t>(random.Below(30));
      drop(node);
      model.push_back({deadline, heap.next_order(), node});
      heap.Arm(*node, At(deadline));
    } else if (choice == 2) {
      drop(node);
      heap.Disarm(*node);
    } else {
      const auto now = static_cast<int64_t>(random.Below(30));
      const auto first = std::min_element(model.begin(), model.end(), [](const Armed& a, const Armed& b) {
        return a.deadline != b.deadline ? a.deadline < b.deadline : a.order < b.order;
      });
      Node* const expected = first == model.end() || first->deadline > now ? nullptr : first->node;
      ASSERT_EQ(heap.PopDue(At(now), heap.next_order()), expected) << "step " << step;
      if (expected != nullptr) drop(expected);
    }
  }
}

}  // namespace
}  // namespace detcd::realnet
