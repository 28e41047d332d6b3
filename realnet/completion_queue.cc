#include "realnet/completion_queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <iterator>
#include <utility>

#include "core/base/check.h"

namespace detcd::realnet {

CompletionQueue::CompletionQueue() : descriptor_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  CHECK_MSG(descriptor_ >= 0, "eventfd");
}

CompletionQueue::~CompletionQueue() { ::close(descriptor_); }

void CompletionQueue::Push(std::unique_ptr<Completion> completion) {
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    wake = std::exchange(asleep_, false);
    waiting_.push_back(std::move(completion));
  }
  if (!wake) return;
  const uint64_t one = 1;
  // Fails only when 2^64 wake-ups were written, or not at all.
  const ssize_t written = ::write(descriptor_, &one, sizeof(one));
  CHECK(written == sizeof(one));
}

bool CompletionQueue::PrepareToSleep() {
  std::lock_guard lock(mutex_);
  asleep_ = waiting_.empty();
  return asleep_;
}

void CompletionQueue::TakeAll(std::vector<std::unique_ptr<Completion>>& out) {
  std::lock_guard lock(mutex_);
  asleep_ = false;
  if (out.empty()) {
    out.swap(waiting_);
    return;
  }
  out.insert(out.end(), std::make_move_iterator(waiting_.begin()), std::make_move_iterator(waiting_.end()));
  waiting_.clear();
}

void CompletionQueue::Close() {
  std::vector<std::unique_ptr<Completion>> dropped;
  std::lock_guard lock(mutex_);
  closed_ = true;
  dropped.swap(waiting_);
}

}  // namespace detcd::realnet
