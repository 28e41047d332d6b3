#include "realnet/worker.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace detcd::realnet {

Worker::Worker(const char* name, std::shared_ptr<CompletionQueue> completions)
    : name_(name), state_(std::make_shared<State>()) {
  state_->completions = std::move(completions);
}

void Worker::Submit(std::unique_ptr<Job> job) {
  {
    std::lock_guard lock(state_->mutex);
    if (state_->stopped) return;
    state_->jobs.push_back(std::move(job));
  }
  if (!thread_.joinable()) StartThread();
  state_->changed.notify_one();
}

void Worker::StartThread() {
  // Signals are the loop's: a worker is never the one that is interrupted.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([state = state_] { Run(state); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_setname_np(thread_.native_handle(), name_);
}

void Worker::Run(const std::shared_ptr<State>& state) {
  while (true) {
    std::unique_ptr<Job> job;
    {
      std::unique_lock lock(state->mutex);
      state->changed.wait(lock, [&] { return state->stopped || !state->jobs.empty(); });
      if (state->stopped) return;
      job = std::move(state->jobs.front());
      state->jobs.pop_front();
    }
    job->Run();
    state->completions->Push(std::move(job));
  }
}

void Worker::DropJobs() {
  std::deque<std::unique_ptr<Job>> dropped;
  {
    std::lock_guard lock(state_->mutex);
    state_->stopped = true;
    dropped.swap(state_->jobs);
  }
  state_->changed.notify_one();
}

void Worker::Stop() {
  DropJobs();
  if (thread_.joinable()) thread_.join();
}

void Worker::Abandon() {
  DropJobs();
  if (thread_.joinable()) thread_.detach();
}

}  // namespace detcd::realnet
