#include "scenarios/sweep.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include <poll.h>
#include <time.h>

#include "absl/strings/str_format.h"
#include "core/base/digest.h"
#include "scenarios/runner.h"
#include "scenarios/worker.h"
#include "sim/event_queue.h"

namespace detcd::scenario {
namespace {

constexpr int kPollMillis = 200;
constexpr uint64_t kTwinSalt = 0x7477696E;

volatile std::sig_atomic_t interrupted = 0;
void OnInterrupt(int) { interrupted = 1; }

// SIGINT and SIGTERM as flags, for as long as it lives.
class InterruptGuard {
 public:
  InterruptGuard() {
    interrupted = 0;
    struct sigaction action {};
    action.sa_handler = OnInterrupt;
    sigaction(SIGINT, &action, &old_int_);
    sigaction(SIGTERM, &action, &old_term_);
  }
  ~InterruptGuard() {
    sigaction(SIGINT, &old_int_, nullptr);
    sigaction(SIGTERM, &old_term_, nullptr);
  }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
};

int64_t SteadyNanos() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// As many as keep up with the first runs.
size_t TwinWorkers(const SweepOptions& options) {
  if (options.twin_share == 0) return 0;
  return (size_t{options.jobs} + options.twin_share - 1) / options.twin_share;
}

bool Ended(const SeedReport& report) { return report.verdict() != static_cast<uint32_t>(Verdict::kCrash); }

// How many events are known to be equal at the beginning of two runs.
uint64_t EqualEvents(const SeedReport& first, const SeedReport& second) {
  const auto& a = first.checkpoints();
  const auto& b = second.checkpoints();
  return sim::kCheckpointInterval * static_cast<uint64_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

// The report of a seed that was run twice.
SeedReport Compare(SeedReport first, const SeedReport& second) {
  if (first.digest() == second.digest() && first.verdict() == second.verdict()) return first;
  first.set_verdict(static_cast<uint32_t>(Verdict::kUndetermined));
  first.set_property(std::string(kDivergence));
  first.set_signature("divergence: the same seed, run twice, was two runs");
  if (Ended(first) && Ended(second)) {
    const uint64_t equal = EqualEvents(first, second);
    first.set_equal_events(equal);
    first.set_sentence(absl::StrFormat("two runs of one seed have the digests %016x and %016x, %d and %d events, and part between "
                                       "the events %d and %d", first.digest(), second.digest(), first.events(), second.events(),
                                       equal, equal + sim::kCheckpointInterval));
  } else {
    first.set_sentence("one of two runs died: " + (Ended(first) ? second : first).sentence());
  }
  first.set_story("divergence: " + first.sentence() + "\n");
  return first;
}

class SweepRun {
 public:
  SweepRun(const SweepOptions& options, const RunSeed& run, SweepListener& listener)
      : options_(options),
        listener_(listener),
        slots_(options.jobs + TwinWorkers(options)),
        began_ns_(SteadyNanos()),
        next_(options.first),
        told_(options.first) {
    const uint64_t seeds = options.last - options.first + 1;
    bool any_twin = false;
    for (uint64_t i = 0; options.twin_share != 0 && i < seeds && !any_twin; ++i) {
      any_twin = HasTwin(options.first + i, options.twin_share);
    }
    for (size_t i = 0; i < options.jobs && i < seeds; ++i) {
      workers_.push_back(std::make_unique<Worker>(options, run, slots_, i, false));
    }
    for (size_t i = 0; any_twin && i < TwinWorkers(options); ++i) {
      workers_.push_back(std::make_unique<Worker>(options, run, slots_, options.jobs + i, true));
    }
  }

  SweepEnd Go() {
    while (!Done()) {
      Assign();
      Hear();
      for (auto& worker : workers_) worker->Watch(SteadyNanos());
      listener_.OnProgress({.seeds_done = told_ - options_.first, .seeds_begun = next_ - options_.first, .wall_ns = Elapsed()});
    }
    return {.wall_ns = Elapsed(), .seeds_compared = compared_, .interrupted = interrupted != 0};
  }

 private:
  struct Pending {
    std::optional<SeedReport> first;
    std::optional<SeedReport> second;
  };

  int64_t Elapsed() const { return SteadyNanos() - began_ns_; }
  bool FailuresReached() const { return options_.failures_max != 0 && failures_ >= options_.failures_max; }
  bool MayBegin() const {
    return next_ <= options_.last && next_ - told_ < kSeedsAheadMax && !FailuresReached() && interrupted == 0 &&
           (options_.wall_ns_max == 0 || Elapsed() < options_.wall_ns_max);
  }
  // What is under way beyond the last failure that counts is of no interest.
  bool Done() const { return FailuresReached() || (told_ == next_ && !MayBegin()); }

  void Assign() {
    uint32_t busy = 0;
    for (auto& worker : workers_) busy += worker->idle() ? 0 : 1;
    // Second runs first: they hold up what is to be told.
    for (auto& worker : workers_) {
      if (!worker->twin() || !worker->idle() || twins_.empty() || busy >= options_.jobs) continue;
      worker->Give(twins_.front());
      twins_.pop_front();
      ++busy;
    }
    for (auto& worker : workers_) {
      if (worker->twin() || !worker->idle() || busy >= options_.jobs || !MayBegin()) continue;
      if (HasTwin(next_, options_.twin_share)) twins_.push_back(next_);
      pending_[next_];
      worker->Give(next_++);
      ++busy;
    }
  }

  void Hear() {
    std::vector<pollfd> polled;
    for (auto& worker : workers_) polled.push_back({.fd = worker->socket(), .events = POLLIN, .revents = 0});
    const int ready = poll(polled.data(), polled.size(), kPollMillis);
    if (ready < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "poll");
    if (ready <= 0) return;
    for (size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      std::optional<SeedReport> report = workers_[i]->Take();
      if (!report.has_value()) continue;
      Pending& pending = pending_.at(report->seed());
      (workers_[i]->twin() ? pending.second : pending.first) = std::move(report);
    }
    Tell();
  }

  void Tell() {
    while (!pending_.empty() && !FailuresReached()) {
      Pending& pending = pending_.begin()->second;
      const uint64_t seed = pending_.begin()->first;
      const bool twin = HasTwin(seed, options_.twin_share);
      if (!pending.first.has_value() || (twin && !pending.second.has_value())) return;
      SeedReport report = *std::move(pending.first);
      if (twin) {
        // A seed whose runs both die is a crash, in whatever words.
        if (Ended(report) || Ended(*pending.second)) report = Compare(std::move(report), *pending.second);
        report.set_cpu_ns(report.cpu_ns() + pending.second->cpu_ns());
        ++compared_;
      }
      pending_.erase(pending_.begin());
      ++told_;
      if (options_.is_failure ? options_.is_failure(report) : report.verdict() != 0) ++failures_;
      listener_.OnSeed(report);
    }
  }

  const SweepOptions& options_;
  SweepListener& listener_;
  InterruptGuard guard_;
  WorkerSlots slots_;
  const int64_t began_ns_;
  std::vector<std::unique_ptr<Worker>> workers_;
  uint64_t next_;                      // the seed that is begun next
  uint64_t told_;                      // the seed that is told next
  std::map<uint64_t, Pending> pending_;  // [told_, next_)
  std::deque<uint64_t> twins_;         // second runs that wait for their worker
  uint64_t failures_ = 0;
  uint64_t compared_ = 0;
};

}  // namespace

bool HasTwin(uint64_t seed, uint32_t twin_share) {
  return twin_share != 0 && MixWord(seed + kTwinSalt) % twin_share == 0;
}

SweepEnd Sweep(const SweepOptions& options, const RunSeed& run, SweepListener& listener) {
  return SweepRun(options, run, listener).Go();
}

}  // namespace detcd::scenario
