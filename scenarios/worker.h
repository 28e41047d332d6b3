// One worker process of a sweep, from both sides. The parent hands it one seed at a time over a socket and hears one
// report; which seed it is at, and since when, stands in shared memory, where it outlives the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

#include "scenarios/sweep.h"

namespace detcd::scenario {

// A descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// What the parent reads of a worker at any moment, also after its death.
struct WorkerSlot {
  std::atomic<uint64_t> seed;
  std::atomic<int64_t> cpu_began_ns;  // CPU time of the process when it began the seed; -1: at none
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free);

// The slots of all workers of a sweep, in memory that they share.
class WorkerSlots {
 public:
  explicit WorkerSlots(size_t count);
  ~WorkerSlots();
  WorkerSlots(const WorkerSlots&) = delete;
  WorkerSlots& operator=(const WorkerSlots&) = delete;
  WorkerSlot& at(size_t i) { return slots_[i]; }
  int fd() const { return fd_.get(); }

 private:
  Descriptor fd_;
  size_t bytes_;
  WorkerSlot* slots_;
};

// The parent's side. Not movable: the sweep holds it by pointer.
class Worker {
 public:
  Worker(const SweepOptions& options, const RunSeed& run, WorkerSlots& slots, size_t slot, bool twin);
  ~Worker();  // kills the process
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  bool idle() const { return !seed_.has_value(); }
  bool twin() const { return twin_; }
  uint64_t seed() const { return *seed_; }
  int socket() const { return socket_.get(); }

  // Requires: idle.
  void Give(uint64_t seed);
  // Call when the socket is readable. The report of its seed: its own, or that of its death, after which a new process
  // stands in its place. nullopt: it died at no seed.
  std::optional<SeedReport> Take();
  // Kills a process that is over its limits; its socket is then readable. `now_ns`: any steady clock.
  void Watch(int64_t now_ns);

 private:
  void Start();
  [[noreturn]] void BecomeChild(int socket);
  SeedReport Death();
  std::string Log() const;  // what it wrote to standard error at its last seed

  const SweepOptions& options_;
  const RunSeed& run_;
  WorkerSlots& slots_;
  const size_t slot_;
  const bool twin_;
  pid_t pid_ = 0;
  Descriptor socket_;
  Descriptor log_;
  std::optional<uint64_t> seed_;
  std::string killed_because_;  // by us; empty: not
  int64_t cpu_seen_ns_ = 0;
  int64_t cpu_rose_at_ns_ = 0;
};

}  // namespace detcd::scenario
