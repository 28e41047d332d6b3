#include "realnet/loop.h"

#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "core/base/check.h"

namespace detcd::realnet {
namespace {

// Of the eventfd's registration. It stands for no watcher: its only use is to end a sleep.
constexpr uint64_t kWakeUpTag = ~uint64_t{0};

// What every other descriptor is watched for. EPOLLHUP and EPOLLERR come unasked.
constexpr uint32_t kEdges = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

uint64_t TagOf(WatchId id) { return uint64_t{id.generation} << 32 | id.slot; }
WatchId IdOf(uint64_t tag) { return {static_cast<uint32_t>(tag), static_cast<uint32_t>(tag >> 32)}; }

}  // namespace

// Signals as reads from a signalfd.
class Loop::SignalWatcher final : public Watcher {
 public:
  SignalWatcher(Loop& loop, std::function<void(int)> handler) : loop_(loop), handler_(std::move(handler)) {
    sigset_t signals;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, SIGTERM);
    ::sigaddset(&signals, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &signals, &mask_before_);
    descriptor_ = ::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    CHECK_MSG(descriptor_ >= 0, "signalfd");
    id_ = loop_.Watch(*this);
    CHECK_MSG(loop_.Attach(id_, descriptor_), "watching the signalfd");
  }
  ~SignalWatcher() {
    if (descriptor_ >= 0) ::close(descriptor_);
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }

  void OnReady(uint32_t) override {
    signalfd_siginfo info;
    while (loop_.Runs(id_) && ::read(descriptor_, &info, sizeof(info)) == sizeof(info)) {
      loop_.BeginEvent();
      handler_(static_cast<int>(info.ssi_signo));
    }
  }
  void OnLoopEnd() override { loop_.Forget(id_); }

 private:
  Loop& loop_;
  const std::function<void(int)> handler_;
  sigset_t mask_before_;
  int descriptor_ = -1;
  WatchId id_;
};

Loop::Loop(std::function<void(int)> on_signal)
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      completions_(std::make_shared<CompletionQueue>()),
      read_buffer_(new char[kReadBufferBytes]),
      ready_(kTurnDescriptorsMax) {
  CHECK_MSG(epoll_ >= 0, "epoll_create1");
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.u64 = kWakeUpTag}};
  CHECK(::epoll_ctl(epoll_, EPOLL_CTL_ADD, completions_->descriptor(), &event) == 0);
  if (on_signal) signals_ = std::make_unique<SignalWatcher>(*this, std::move(on_signal));
}

Loop::~Loop() {
  End();
  ::close(epoll_);
}

void Loop::Post(PostListener& listener, uint64_t token) { posts_.push_back({&listener, token}); }

Instant Loop::Now() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return {int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec};
}

void Loop::Run() {
  while (!stopped_) RunTurn(Seconds(3600));
}

// Milliseconds for epoll_wait, rounded up: a timer may be late, never early.
int Loop::SleepMillis(Duration wait_max) {
  if (!scheduled_.empty() || posts_begin_ < posts_.size()) return 0;
  Duration wait = wait_max;
  if (const std::optional<Instant> next = timers_.Next()) {
    // Compared before it is subtracted: a deadline may be as far as an Instant goes.
    const Instant now = Now();
    if (*next <= now) return 0;
    if (*next < now + wait) wait = *next - now;
  }
  const int64_t millis = (wait.nanos + 999'999) / 1'000'000;
  return static_cast<int>(std::clamp<int64_t>(millis, 0, std::numeric_limits<int>::max()));
}

bool Loop::RunTurn(Duration wait_max) {
  if (stopped_) return false;
  int sleep_millis = SleepMillis(wait_max);
  if (sleep_millis > 0 && !completions_->PrepareToSleep()) sleep_millis = 0;
  const int count = ::epoll_wait(epoll_, ready_.data(), kTurnDescriptorsMax, sleep_millis);
  CHECK_MSG(count >= 0 || errno == EINTR, "epoll_wait");

  events_in_turn_ = 0;
  RunScheduled();
  RunDescriptors(std::max(count, 0));
  RunTimers();
  RunCompletions();
  RunPosts();
  const bool ran = events_in_turn_ > 0;
  if (ran && !stopped_ && turn_listener_ != nullptr) turn_listener_->OnEndTurn();
  return ran;
}

void Loop::Dispatch(WatchId id, uint32_t edges) {
  // An event of this turn may have ended a registration whose edge is still in our hands.
  if (Runs(id)) slots_[id.slot].watcher->OnReady(edges);
}

void Loop::RunDescriptors(int count) {
  for (int i = 0; i < count && !stopped_; ++i) {
    const epoll_event& event = ready_[static_cast<size_t>(i)];
    if (event.data.u64 != kWakeUpTag) Dispatch(IdOf(event.data.u64), event.events);
  }
}

void Loop::RunScheduled() {
  scheduled_running_.swap(scheduled_);
  for (const WatchId id : scheduled_running_) {
    if (!Runs(id)) continue;
    slots_[id.slot].scheduled = false;
    Dispatch(id, 0);
  }
  scheduled_running_.clear();
}

void Loop::RunTimers() {
  if (!timers_.Next()) return;
  const Instant now = Now();
  const uint64_t round = timers_.next_order();
  for (size_t i = 0; i < kTurnTimersMax && !stopped_; ++i) {
    TimerNode* const due = timers_.PopDue(now, round);
    if (due == nullptr) return;
    BeginEvent();
    due->Fire();
  }
}

void Loop::RunCompletions() {
  completions_->TakeAll(completed_);
  for (const std::unique_ptr<Completion>& completion : completed_) {
    if (stopped_) break;
    completion->Complete();
  }
  completed_.clear();
}

void Loop::RunPosts() {
  for (size_t i = 0; i < kTurnPostsMax && posts_begin_ < posts_.size() && !stopped_; ++i) {
    const Posted posted = posts_[posts_begin_++];
    BeginEvent();
    posted.listener->OnPost(posted.token);
  }
  // What waits moves to the front: no more than a copy of it for each kTurnPostsMax events.
  posts_.erase(posts_.begin(), posts_.begin() + static_cast<std::ptrdiff_t>(posts_begin_));
  posts_begin_ = 0;
}

WatchId Loop::Watch(Watcher& watcher) {
  if (slots_free_.empty()) {
    slots_free_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const uint32_t slot = slots_free_.back();
  slots_free_.pop_back();
  slots_[slot].watcher = &watcher;
  slots_[slot].scheduled = false;
  return {slot, slots_[slot].generation};
}

bool Loop::Attach(WatchId id, int descriptor) {
  epoll_event event{.events = kEdges, .data = {.u64 = TagOf(id)}};
  return ::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void Loop::Reattach(WatchId id, int descriptor) {
  epoll_event event{.events = kEdges, .data = {.u64 = TagOf(id)}};
  CHECK(::epoll_ctl(epoll_, EPOLL_CTL_MOD, descriptor, &event) == 0);
}

void Loop::Forget(WatchId id) {
  Slot& slot = slots_[id.slot];
  if (slot.generation != id.generation) return;
  slot.watcher = nullptr;
  if (++slot.generation == 0) slot.generation = 1;
  slots_free_.push_back(id.slot);
}

void Loop::Schedule(WatchId id) {
  Slot& slot = slots_[id.slot];
  if (slot.generation != id.generation || slot.scheduled) return;
  slot.scheduled = true;
  scheduled_.push_back(id);
}

void Loop::End() {
  stopped_ = true;
  completions_->Close();
  completed_.clear();
  timers_.Clear();
  posts_.clear();
  posts_begin_ = 0;
  scheduled_.clear();
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].watcher != nullptr) slots_[i].watcher->OnLoopEnd();
  }
}

}  // namespace detcd::realnet
