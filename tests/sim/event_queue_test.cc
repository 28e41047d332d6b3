#include "sim/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/io/random.h"

namespace detcd::sim {
namespace {

std::vector<uint64_t> Drain(EventQueue& queue) {
  std::vector<uint64_t> subjects;
  for (Event event; queue.Pop(event);) subjects.push_back(event.subject);
  return subjects;
}

TEST(EventQueueTest, EmptyQueuePopsNothingAndKeepsTime) {
  EventQueue queue(1);
  Event event;
  EXPECT_FALSE(queue.Pop(event));
  EXPECT_EQ(queue.now(), 0);
}

TEST(EventQueueTest, TimeOrdersEventsAndMovesOnlyForward) {
  EventQueue queue(1);
  for (int64_t time : {5, 1, 3}) queue.Push(time, 0, {.subject = static_cast<uint64_t>(time)});
  Event event;
  ASSERT_TRUE(queue.Pop(event));
  ASSERT_TRUE(queue.Pop(event));
  EXPECT_EQ(queue.now(), 3);
  queue.Push(2, 0, {.subject = 2});  // the past is now
  EXPECT_EQ(Drain(queue), (std::vector<uint64_t>{2, 5}));
}

TEST(EventQueueTest, OneSourceIsFirstInFirstOut) {
  EventQueue queue(7);
  for (uint64_t i = 0; i < 100; ++i) queue.Push(10, 42, {.subject = i});
  const std::vector<uint64_t> subjects = Drain(queue);
  EXPECT_TRUE(std::is_sorted(subjects.begin(), subjects.end()));
}

TEST(EventQueueTest, TheSeedBreaksTiesBetweenSources) {
  int first_wins = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    EventQueue queue(seed);
    queue.Push(10, 1, {.subject = 1});
    queue.Push(10, 2, {.subject = 2});
    first_wins += Drain(queue)[0] == 1 ? 1 : 0;
  }
  EXPECT_GT(first_wins, 25);
  EXPECT_LT(first_wins, 75);
}

TEST(EventQueueTest, CancelledEventsNeverComeAndTheirIdsStayDead) {
  EventQueue queue(1);
  EventId id = queue.Push(1, 0, {.subject = 1});
  const EventId copy = id;
  EXPECT_TRUE(queue.Cancel(id));
  EXPECT_FALSE(queue.Cancel(id));
  queue.Push(1, 0, {.subject = 2});  // takes the slot
  EventId stale = copy;
  EXPECT_FALSE(queue.Cancel(stale));
  EXPECT_EQ(Drain(queue), std::vector<uint64_t>{2});
}

TEST(EventQueueTest, AgreesWithASortedListUnderRandomPushesAndCancels) {
  KeyedRandom random(3, "test");
  EventQueue queue(3);
  struct Pending {
    int64_t time;
    uint64_t subject;
    EventId id;
  };
  std::vector<Pending> model;
  uint64_t next = 0;
  for (int round = 0; round < 20'000; ++round) {
    const uint64_t what = random.Below(10);
    if (what < 5) {
      const int64_t time = queue.now() + static_cast<int64_t>(random.Below(1'000));
      model.push_back({time, next, queue.Push(time, 0, {.subject = next})});
      ++next;
    } else if (what < 8 && !model.empty()) {
      const auto victim = model.begin() + static_cast<ptrdiff_t>(random.Below(model.size()));
      ASSERT_TRUE(queue.Cancel(victim->id));
      model.erase(victim);
    } else if (!model.empty()) {
      const auto first = std::min_element(model.begin(), model.end(), [](const Pending& a, const Pending& b) {
        return std::pair(a.time, a.subject) < std::pair(b.time, b.subject);
      });
      Event event;
      ASSERT_TRUE(queue.Pop(event));
      ASSERT_EQ(event.subject, first->subject);
      ASSERT_EQ(queue.now(), first->time);
      model.erase(first);
    }
    ASSERT_EQ(queue.size(), model.size());
  }
}

TEST(EventQueueTest, TheDigestTellsPayloadsApart) {
  EventQueue a(1), b(1), c(1);
  a.Push(1, 0, {.fingerprint = 1});
  b.Push(1, 0, {.fingerprint = 1});
  c.Push(1, 0, {.fingerprint = 2});
  for (EventQueue* queue : {&a, &b, &c}) Drain(*queue);
  EXPECT_EQ(a.digest(), b.digest());
  EXPECT_NE(a.digest(), c.digest());
}

}  // namespace
}  // namespace detcd::sim
