// The way from worker threads back to the loop: a queue under a mutex and an eventfd that ends the loop's sleep.
//
// The eventfd is registered edge-triggered, so that nobody ever reads it, and it is written only when the loop sleeps:
// a busy loop costs its workers no system call.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

namespace detcd::realnet {

// What a worker hands to the loop. Made, completed and destroyed on the loop's thread (it may hold Bytes, whose count
// is not atomic); a worker only passes the pointer.
class Completion {
 public:
  virtual ~Completion() = default;
  // Runs on the loop's thread, as an event.
  virtual void Complete() = 0;
};

class CompletionQueue {
 public:
  CompletionQueue();
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  // The eventfd to wait for, edge-triggered.
  int descriptor() const { return descriptor_; }

  // From any thread, in the order of the calls. After Close the completion is destroyed at once.
  void Push(std::unique_ptr<Completion> completion);

  // The loop is about to sleep: from now on a Push writes the eventfd. False: something waits, do not sleep.
  bool PrepareToSleep();
  // Moves all that waits to the end of `out`, and ends the state of sleep.
  void TakeAll(std::vector<std::unique_ptr<Completion>>& out);

  // Drops what waits and all that comes later.
  void Close();

 private:
  const int descriptor_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Completion>> waiting_;  // guarded by mutex_
  bool asleep_ = false;                               // guarded by mutex_
  bool closed_ = false;                               // guarded by mutex_
};

}  // namespace detcd::realnet
