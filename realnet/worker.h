// One thread that runs jobs in order and hands each back to the loop.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "realnet/completion_queue.h"

namespace detcd::realnet {

// Work for another thread. Everything else of its life (making, Complete, destruction) is on the loop's thread.
class Job : public Completion {
 public:
  // On the worker's thread. Touches only what the job owns or what belongs to this worker.
  virtual void Run() = 0;
};

class Worker {
 public:
  // `name` is the thread's, at most 15 bytes. The thread starts with the first job.
  Worker(const char* name, std::shared_ptr<CompletionQueue> completions);
  ~Worker() { Stop(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Queues `job`; jobs run and complete in the order of the calls. After Stop the job is destroyed at once.
  void Submit(std::unique_ptr<Job> job);

  // Drops the jobs not begun and waits for the one that runs.
  void Stop();
  // As Stop, without waiting: for jobs that may hang for long and own all they touch. The completion of such a job is
  // destroyed on the worker's thread.
  void Abandon();

 private:
  // Shared with the thread, which may outlive an abandoned Worker.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::unique_ptr<Job>> jobs;  // guarded by mutex
    bool stopped = false;                   // guarded by mutex
    std::shared_ptr<CompletionQueue> completions;
  };

  static void Run(const std::shared_ptr<State>& state);
  void StartThread();
  void DropJobs();

  const char* const name_;
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace detcd::realnet
