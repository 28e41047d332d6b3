#include "realnet/loop.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>
#include <utility>
#include <vector>

#include "realnet/worker.h"

namespace detcd::realnet {
namespace {

// Posts itself for ever.
struct Endless final : PostListener, TurnListener {
  explicit Endless(Loop& l) : loop(l) {}
  void OnPost(uint64_t) override {
    ++heard;
    loop.Post(*this, 0);
  }
  void OnEndTurn() override { ++turns; }
  Loop& loop;
  uint64_t heard = 0;
  uint64_t turns = 0;
};

TEST(LoopTest, ATurnIsBoundedWhenEventsMakeEvents) {
  Loop loop;
  Endless endless(loop);
  loop.SetTurnListener(endless);
  loop.Post(endless, 0);
  EXPECT_TRUE(loop.RunTurn(Seconds(10)));
  EXPECT_EQ(endless.heard, kTurnPostsMax);
  EXPECT_EQ(endless.turns, 1u);
  EXPECT_TRUE(loop.RunTurn(Seconds(10)));  // does not sleep
  EXPECT_EQ(endless.heard, 2 * kTurnPostsMax);
}

TEST(LoopTest, ATurnWithoutEventsHasNoEnd) {
  Loop loop;
  Endless endless(loop);
  loop.SetTurnListener(endless);
  EXPECT_FALSE(loop.RunTurn(Nanos(0)));
  EXPECT_EQ(endless.turns, 0u);
}

struct Counter final : Watcher {
  void OnReady(uint32_t edges) override {
    last_edges = edges;
    ++calls;
    if (forget) loop->Forget(*forget);
  }
  void OnLoopEnd() override { ++ends; }
  Loop* loop = nullptr;
  const WatchId* forget = nullptr;
  uint32_t last_edges = 0;
  int calls = 0;
  int ends = 0;
};

TEST(LoopTest, ForgottenWatcherIsNotCalledThoughItsEdgeWasFetched) {
  Loop loop;
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
  Counter watchers[2];
  WatchId ids[2];
  for (int i = 0; i < 2; ++i) {
    ids[i] = loop.Watch(watchers[i]);
    ASSERT_TRUE(loop.Attach(ids[i], pair[i]));
    watchers[i].loop = &loop;
  }
  watchers[0].forget = &ids[1];
  watchers[1].forget = &ids[0];
  loop.RunTurn(Nanos(0));  // both are writable
  EXPECT_EQ(watchers[0].calls + watchers[1].calls, 1);
  Counter next;
  const WatchId reused = loop.Watch(next);
  loop.Schedule(ids[0]);
  loop.Schedule(ids[1]);
  EXPECT_TRUE(loop.Runs(reused));
  loop.RunTurn(Nanos(0));
  EXPECT_EQ(next.calls, 0) << "an old name reached the new owner of its slot";
  ::close(pair[0]);
  ::close(pair[1]);
}

TEST(LoopTest, ScheduledTwiceIsAskedOnce) {
  Loop loop;
  Counter counter;
  const WatchId id = loop.Watch(counter);
  loop.Schedule(id);
  loop.Schedule(id);
  loop.RunTurn(Seconds(10));
  EXPECT_EQ(counter.calls, 1);
  loop.RunTurn(Nanos(0));
  EXPECT_EQ(counter.calls, 1);
  loop.End();
  EXPECT_EQ(counter.ends, 1);
}

TEST(LoopTest, SignalsAreEvents) {
  std::vector<int> heard;
  Loop loop([&](int number) { heard.push_back(number); });
  ASSERT_EQ(::pthread_kill(::pthread_self(), SIGTERM), 0);
  EXPECT_TRUE(loop.RunTurn(Seconds(10)));
  ASSERT_EQ(::pthread_kill(::pthread_self(), SIGINT), 0);
  EXPECT_TRUE(loop.RunTurn(Seconds(10)));
  EXPECT_EQ(heard, (std::vector<int>{SIGTERM, SIGINT}));
}

TEST(LoopTest, TimerThatIsFarAwayDoesNotOverflowTheSleep) {
  struct Far final : TimerNode {
    void Fire() override {}
  } timer;
  Loop loop;
  loop.timers().Arm(timer, {INT64_MAX});
  EXPECT_FALSE(loop.RunTurn(Millis(1)));
  loop.timers().Arm(timer, {INT64_MIN});
  EXPECT_TRUE(loop.RunTurn(Seconds(10)));
}

struct CountJob final : Job {
  CountJob(std::vector<int>& d, int n) : done(d), number(n) {}
  void Run() override { ran_by = std::this_thread::get_id(); }
  void Complete() override {
    EXPECT_NE(ran_by, std::this_thread::get_id());
    done.push_back(number);
  }
  std::vector<int>& done;
  const int number;
  std::thread::id ran_by;
};

TEST(LoopTest, CompletionsWakeTheLoopAndKeepTheirOrder) {
  Loop loop;
  std::vector<int> done;
  Worker worker("worker", loop.completions());
  for (int round = 0; round < 200; ++round) {
    done.clear();
    for (int i = 0; i < 10; ++i) worker.Submit(std::make_unique<CountJob>(done, i));
    const Instant give_up = Loop::Now() + Seconds(10);
    while (done.size() < 10 && Loop::Now() < give_up) loop.RunTurn(Seconds(10));
    ASSERT_EQ(done, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
    ASSERT_LT(Loop::Now(), give_up) << "a wake-up was lost";
  }
}

TEST(LoopTest, StoppedWorkerRunsNothing) {
  Loop loop;
  std::vector<int> done;
  Worker worker("worker", loop.completions());
  worker.Submit(std::make_unique<CountJob>(done, 1));
  worker.Stop();
  worker.Submit(std::make_unique<CountJob>(done, 2));
  loop.End();
  EXPECT_FALSE(loop.RunTurn(Nanos(0)));
  EXPECT_TRUE(done.empty());
}

}  // namespace
}  // namespace detcd::realnet
