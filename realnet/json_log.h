// The trace as JSON lines in the shape of etcd's zap logger:
//   {"level":"info","ts":"2024-05-01T10:20:30.123456Z","caller":"raft/role","msg":"became leader","term":3}
// A line is one write. A reader that stalls or goes away must not stop a member: on a pipe, terminal or socket a line
// that does not fit is dropped, and the next one that fits is followed by how many were.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/time.h"
#include "core/io/trace.h"

namespace detcd::realnet {

// Appends `text` as the inside of a JSON string; bytes that are not UTF-8 become \ufffd, one each.
void AppendJsonText(std::string& out, std::string_view text);

// Appends one line without its end. `offset_seconds` is the time zone's distance from UTC.
void AppendJsonLine(std::string& out, const TraceEvent& event, WallTime time, int64_t offset_seconds);

class JsonLog final : public Trace {
 public:
  // Writes to `descriptor`, which stays the caller's and open, events of `level` and above.
  JsonLog(int descriptor, LogLevel level);
  ~JsonLog();
  JsonLog(const JsonLog&) = delete;
  JsonLog& operator=(const JsonLog&) = delete;

  bool Wants(LogLevel level) const override { return level >= level_; }
  void Emit(const TraceEvent& event) override;

  // Lines dropped and not yet told.
  uint64_t dropped() const { return dropped_; }

 private:
  enum class Kind : uint8_t { kFile, kStream, kSocket };

  ssize_t WriteOnce(std::string_view bytes);
  // False when nothing of it went out.
  bool WriteLine(std::string_view line);

  Kind kind_ = Kind::kFile;
  int descriptor_;
  bool owned_ = false;    // descriptor_ is our own non-blocking view of the caller's pipe or terminal
  const LogLevel level_;
  std::string line_;      // reused
  std::string unsent_;    // the end of a line of which the beginning went out
  uint64_t dropped_ = 0;
};

}  // namespace detcd::realnet
