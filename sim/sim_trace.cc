#include "sim/sim_trace.h"

#include <utility>

#include "absl/strings/str_format.h"

namespace detcd::sim {

std::string FormatTraceEvent(const TraceEvent& event) {
  std::string text = absl::StrFormat("%s: %s", event.place, event.message);
  for (uint64_t i = 0; i < event.field_count; ++i) {
    const TraceField& field = event.fields[i];
    if (field.is_text) {
      absl::StrAppendFormat(&text, " %s=\"%s\"", field.name, field.text);
    } else if (field.is_id) {
      absl::StrAppendFormat(&text, " %s=%x", field.name, field.number);
    } else {
      absl::StrAppendFormat(&text, " %s=%d", field.name, field.number);
    }
  }
  return text;
}

std::string FormatTraceRecord(const TraceRecord& record) {
  return absl::StrFormat("%12d.%06d e%d.%d #%d<-#%d %s", record.time / 1'000'000, record.time % 1'000'000, record.endpoint,
                         record.incarnation, record.event, record.parent, record.text);
}

void TraceLog::Enable(LogLevel level, size_t records_max) {
  on_ = true;
  level_ = level;
  records_max_ = records_max;
}

void TraceLog::Add(TraceRecord record) {
  if (sink_ != nullptr) sink_(sink_context_, record);
  if (records_max_ == 0) return;
  if (records_.size() == records_max_) records_.pop_front();
  records_.push_back(std::move(record));
}

}  // namespace detcd::sim
