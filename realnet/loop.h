// The event loop of one incarnation: epoll, timers, posted events and completions of other threads, in turns.
//
// A turn is what one epoll_wait returned, with the timers that are due, the completions that arrived and the events
// posted so far, each source bounded (kTurn...) so that none starves another; then OnEndTurn. Work left over and posts
// made in OnEndTurn run in the next turn, which does not sleep.
//
// Descriptors are registered once, edge-triggered, for both directions: no epoll_ctl follows a read, a write or a
// pause. The owner of a descriptor remembers what the edges told it; one that stops before the kernel said EAGAIN calls
// Schedule and is asked again in the next turn.
#pragma once

#include <signal.h>
#include <sys/epoll.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/time.h"
#include "core/io/events.h"
#include "realnet/completion_queue.h"
#include "realnet/timer_heap.h"

namespace detcd::realnet {

inline constexpr int kTurnDescriptorsMax = 256;    // ready descriptors of one turn
inline constexpr size_t kTurnPostsMax = 1'024;     // posted events of one turn
inline constexpr size_t kTurnTimersMax = 256;      // timers of one turn
inline constexpr size_t kReadBufferBytes = 65'536;  // the loop's own; what one read can take

// Owns a descriptor (or an errand without one) that the loop watches.
class Watcher {
 public:
  // The descriptor is ready in the ways of `edges` (EPOLLIN, ...); 0 when Schedule asked for the call.
  virtual void OnReady(uint32_t edges) = 0;
  // The incarnation ends: close the descriptor, call nobody.
  virtual void OnLoopEnd() = 0;

 protected:
  ~Watcher() = default;
};

// Names one registration; never the same twice while anybody can hold the old one.
struct WatchId {
  uint32_t slot = 0;
  uint32_t generation = 0;  // 0: none
};

class Loop final : public Events {
 public:
  // With a handler, SIGTERM and SIGINT are blocked in this thread and reach `on_signal` as events (its argument is the
  // number). Construct before other threads are started, so that they inherit the mask.
  explicit Loop(std::function<void(int)> on_signal = nullptr);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // --- Events
  void Post(PostListener& listener, uint64_t token) override;
  void SetTurnListener(TurnListener& listener) override { turn_listener_ = &listener; }

  // --- running
  // One turn, after sleeping at most `wait_max` for something to do. True when an event ran.
  bool RunTurn(Duration wait_max);
  // Turns until Stop.
  void Run();
  // No event follows the present one.
  void Stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }
  // Stop, drop all that is pending and have every watcher close its descriptor. Handles may be destroyed later, but
  // before the loop.
  void End();

  // --- for the parts of realnet
  // Registers `watcher` without a descriptor; Attach adds one. The id is good until Forget.
  WatchId Watch(Watcher& watcher);
  // Watches `descriptor` for both directions. False when the system has no room for it.
  bool Attach(WatchId id, int descriptor);
  // Hands an attached descriptor, whose registration is forgotten, to another one, which hears its readiness anew.
  void Reattach(WatchId id, int descriptor);
  // No call follows. Call it before the descriptor is closed, which is what ends the watching in the kernel.
  void Forget(WatchId id);
  // Asks for OnReady(0) in the next turn. Twice is once.
  void Schedule(WatchId id);
  // Whether calls for `id` may go on: not forgotten inside a listener's call, loop not stopped.
  bool Runs(WatchId id) const { return !stopped_ && slots_[id.slot].generation == id.generation; }
  // To be said before each call of a listener: a turn with at least one event has an end.
  void BeginEvent() { ++events_in_turn_; }

  TimerHeap& timers() { return timers_; }
  const std::shared_ptr<CompletionQueue>& completions() { return completions_; }
  char* read_buffer() { return read_buffer_.get(); }
  static Instant Now();

 private:
  class SignalWatcher;
  struct Slot {
    Watcher* watcher = nullptr;  // null: free
    uint32_t generation = 1;     // of the present or next registration
    bool scheduled = false;
  };
  struct Posted {
    PostListener* listener;
    uint64_t token;
  };

  int SleepMillis(Duration wait_max);
  void RunDescriptors(int count);
  void RunScheduled();
  void RunTimers();
  void RunCompletions();
  void RunPosts();
  void Dispatch(WatchId id, uint32_t edges);

  const int epoll_;
  std::shared_ptr<CompletionQueue> completions_;
  std::unique_ptr<SignalWatcher> signals_;
  std::unique_ptr<char[]> read_buffer_;
  TurnListener* turn_listener_ = nullptr;
  bool stopped_ = false;
  uint64_t events_in_turn_ = 0;

  std::vector<Slot> slots_;
  std::vector<uint32_t> slots_free_;
  std::vector<epoll_event> ready_;           // what epoll_wait returned
  std::vector<WatchId> scheduled_;           // to be asked again
  std::vector<WatchId> scheduled_running_;   // scratch of RunScheduled
  std::vector<std::unique_ptr<Completion>> completed_;  // scratch of RunCompletions
  std::vector<Posted> posts_;                // [posts_begin_, size) wait
  size_t posts_begin_ = 0;
  TimerHeap timers_;
};

}  // namespace detcd::realnet
