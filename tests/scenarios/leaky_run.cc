// A toy run over the simulator's queue, told as an event stream, with a planted bug: one event takes its fingerprint
// from what must not matter. The tests of diverge must find each.
//
//   leaky_run LEAK AT [--every K] [--first N --last N] [--other-heap]
//
// AT is the event that leaks; the run has kEvents of them. LEAK is a name of Leak() below, or
//   ends, dies   there, instead of at kEvents
//   first_pass   as fixed, but only when checkpoints are asked for
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/base/check.h"
#include "scenarios/event_stream.h"
#include "scenarios/surroundings.h"
#include "sim/event_queue.h"

namespace {

using detcd::scenario::EventRequest;

constexpr uint64_t kEvents = 3'000;
constexpr int kBlocks = 48;

uint64_t Number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

// One bit for each pair of neighbours: which lies lower.
uint64_t HeapOrder() {
  void* volatile blocks[kBlocks];
  for (void* volatile& block : blocks) block = std::malloc(64);
  uint64_t order = 0;
  for (int i = 1; i < kBlocks; ++i) order = order << 1 | (Number(blocks[i - 1]) < Number(blocks[i]) ? 1u : 0u);
  for (void* volatile& block : blocks) std::free(block);
  return order;
}

uint64_t FreshMemory() {
  void* volatile memory = std::malloc(400);  // volatile: the compiler would see through it
  const uint64_t byte = static_cast<unsigned char*>(memory)[200];
  std::free(memory);
  return byte;
}

uint64_t Leak(const std::string& leak) {
  if (leak == "fixed") return 1;
  if (leak == "heap_address") {
    void* volatile memory = std::malloc(64);
    const uint64_t number = Number(memory);
    std::free(memory);
    return number;
  }
  if (leak == "heap_order") return HeapOrder();
  if (leak == "stack_address") return Number(&leak);
  if (leak == "code_address") return Number(reinterpret_cast<const void*>(&Leak));
  if (leak == "fresh_memory") return FreshMemory();
  if (leak == "locale") return std::getenv("LC_ALL") == nullptr ? 0 : std::strlen(std::getenv("LC_ALL"));
  if (leak == "home") return std::getenv("HOME") == nullptr ? 0 : std::strlen(std::getenv("HOME"));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc >= 3);
  const std::string leak = argv[1];
  const uint64_t leaks_at = std::strtoull(argv[2], nullptr, 10);
  EventRequest request;
  for (int i = 3; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--other-heap") {
      detcd::scenario::DisturbHeap(7);
      continue;
    }
    CHECK(i + 1 < argc);
    uint64_t& option = name == "--every" ? request.every : name == "--first" ? request.first : request.last;
    option = std::strtoull(argv[++i], nullptr, 10);
  }
  detcd::scenario::EventTeller teller(request);
  detcd::sim::EventQueue queue(7);
  queue.SetSink([](void* context, const detcd::sim::EventRecord& record) {
    static_cast<detcd::scenario::EventTeller*>(context)->OnEvent(record);
  }, &teller);
  queue.Push(0, 0, {});
  detcd::sim::Event event;
  for (uint64_t number = 1; number <= kEvents && queue.Pop(event); ++number) {
    if (request.first != 0 && number == request.last + 1) return 0;
    teller.OnLog("event " + std::to_string(number) + " is handled");
    if (number == leaks_at && leak == "ends") break;
    if (number == leaks_at) CHECK_MSG(leak != "dies", "as told");
    queue.set_cause(number);
    detcd::sim::Event next = {.kind = detcd::sim::EventKind::kMessage, .subject = number};
    if (number + 1 == leaks_at) next.fingerprint = leak == "first_pass" ? request.every : Leak(leak);
    queue.Push(static_cast<int64_t>(number) * 1'000, 0, next);
  }
  teller.OnEnd({.number = queue.popped(), .digest = queue.digest()}, "fine");
  return 0;
}
