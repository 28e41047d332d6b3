// What a member did, as typed events for people and tools. Off in production unless asked for; no judge reads it.
#pragma once

#include <cstdint>
#include <string_view>

namespace detcd {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarn, kError, kPanic, kFatal };

// One field of a trace event: a name and a number or a text.
struct TraceField {
  std::string_view name;
  uint64_t number = 0;
  std::string_view text = {};
  bool is_text = false;
  bool is_id = false;  // a number that is printed in lower-case hex

  static TraceField Number(std::string_view name, uint64_t n) { return {.name = name, .number = n}; }
  static TraceField Id(std::string_view name, uint64_t n) { return {.name = name, .number = n, .is_id = true}; }
  static TraceField Text(std::string_view name, std::string_view t) { return {.name = name, .text = t, .is_text = true}; }
};

// One event. Views are good until the call returns. `message` is a line of etcd's log where etcd has one.
struct TraceEvent {
  LogLevel level = LogLevel::kInfo;
  std::string_view place;    // area/file, e.g. `raft/election`
  std::string_view message;
  const TraceField* fields = nullptr;
  uint64_t field_count = 0;
};

// The causal parent is the event being run, which the implementation knows.
class Trace {
 public:
  virtual ~Trace() = default;
  // Whether events of this level go anywhere: callers skip building them otherwise.
  virtual bool Wants(LogLevel level) const = 0;
  virtual void Emit(const TraceEvent& event) = 0;
};

// Builds and emits in one call: Emit(trace, LogLevel::kInfo, "raft/role", "became leader", {Number("term", 3)});
template <size_t N>
void Emit(Trace& trace, LogLevel level, std::string_view place, std::string_view message, const TraceField (&fields)[N]) {
  if (trace.Wants(level)) trace.Emit({level, place, message, fields, N});
}
inline void Emit(Trace& trace, LogLevel level, std::string_view place, std::string_view message) {
  if (trace.Wants(level)) trace.Emit({level, place, message, nullptr, 0});
}

}  // namespace detcd
