// The trace of a world: what members emitted, each with the number of the event being run and of the event it follows
// from. Off unless asked for; then the last records are kept, and each may be handed to a sink as it comes.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "core/io/trace.h"
#include "sim/event_queue.h"

namespace detcd::sim {

struct TraceRecord {
  int64_t time = 0;  // true nanoseconds
  EndpointId endpoint = 0;
  uint32_t incarnation = 0;
  uint64_t event = 0;
  uint64_t parent = 0;
  LogLevel level = LogLevel::kInfo;
  std::string text;  // place, message and fields
};

// One line: time, endpoint, event <- parent, text.
std::string FormatTraceRecord(const TraceRecord& record);

class TraceLog {
 public:
  using Sink = void (*)(void* context, const TraceRecord& record);

  // Keeps the last `records_max` records of `level` and above.
  void Enable(LogLevel level, size_t records_max);
  void SetSink(Sink sink, void* context) { sink_ = sink, sink_context_ = context; }

  bool Wants(LogLevel level) const { return on_ && level >= level_; }
  void Add(TraceRecord record);
  const std::deque<TraceRecord>& records() const { return records_; }

 private:
  bool on_ = false;
  LogLevel level_ = LogLevel::kInfo;
  size_t records_max_ = 0;
  std::deque<TraceRecord> records_;
  Sink sink_ = nullptr;
  void* sink_context_ = nullptr;
};

// The text of an event: place, message and fields.
std::string FormatTraceEvent(const TraceEvent& event);

}  // namespace detcd::sim
