// What a process tells of a run to one that compares runs: lines of text on standard output, one fact each. Builds of
// different compilers and versions speak it to each other.
//
//   at NUMBER DIGEST                     the digest after this many events
//   event NUMBER CAUSE DIGEST TEXT       one event, the event that pushed it, the digest with it, the event in words
//   log TEXT                             what a member or the world said while it handled that event
//   end NUMBER DIGEST TEXT               the run ended by itself: its verdict
//
// Numbers are decimal, digests hexadecimal. Lines are written one by one: of a process that dies the last is missing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/scenario.pb.h"
#include "sim/event_queue.h"

namespace detcd::scenario {

struct EventRequest {
  uint64_t every = 0;  // an `at` line for each multiple of it; 0: none
  uint64_t first = 0;  // tells the events [first, last] in full, first of all `at` for what lies before; 0: none
  uint64_t last = 0;   // where the run may stop; no `end` line then
};

struct Checkpoint {
  uint64_t number = 0;
  uint64_t digest = 0;
  bool operator==(const Checkpoint&) const = default;
};

struct ToldEvent {
  uint64_t number = 0;
  uint64_t cause = 0;
  uint64_t digest = 0;
  std::string text;
  std::vector<std::string> logs;

  // Logs tell about a run, but are not the run.
  bool operator==(const ToldEvent& other) const {
    return number == other.number && cause == other.cause && digest == other.digest && text == other.text;
  }
};

struct StreamEnd {
  Checkpoint at;
  std::string text;
  bool operator==(const StreamEnd&) const = default;
};

struct EventStream {
  std::vector<Checkpoint> checkpoints;
  std::vector<ToldEvent> events;
  std::optional<StreamEnd> end;
};

// Prints of one run what is asked for.
class EventTeller {
 public:
  explicit EventTeller(const EventRequest& request);

  // Before the event is handled; then what is logged while it is.
  void OnEvent(const sim::EventRecord& record);
  void OnLog(std::string_view line);
  // The run ended by itself.
  void OnEnd(const Checkpoint& at, std::string_view text);

 private:
  bool IsAskedFor() const { return request_.first != 0 && current_ >= request_.first && current_ <= request_.last; }

  const EventRequest request_;
  uint64_t current_ = 0;
};

// Runs `scenario` in this process and prints what is asked for. CheckScenario must find nothing.
void PrintEvents(const Scenario& scenario, const EventRequest& request);

// nullopt: not such a stream; `error` names the line. A last line without its end is left out.
std::optional<EventStream> ParseEventStream(std::string_view text, std::string& error);

}  // namespace detcd::scenario
