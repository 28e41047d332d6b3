// Histories as files, for clusters outside the simulator (history.proto says what a file promises).
//
// Writing:   out << EncodeHeader(endpoints, note) << EncodeOperation(operation) ... << EncodeEnd(operations, finals);
// Reading:   ReadHistory(bytes), which believes nothing: what is wrong is named with the offset of its record.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "checker/history.h"
#include "checker/observation.h"

namespace detcd::checker {

inline constexpr uint64_t kHistoryBytesMax = 1'073'741'824;     // of one file; all of it is held while it is judged
inline constexpr uint64_t kHistoryRecordBytesMax = 67'108'864;
inline constexpr uint64_t kHistoryOperationsMax = 1'000'000;

// What one member's own store held in the end.
struct RecordedFinal {
  MemberId member;        // the place of its endpoint, from 1
  Moment at;
  int64_t revision = 0;
  std::vector<FinalKey> keys;  // in order of key
};

struct RecordedHistory {
  std::vector<std::string> endpoints;  // the members, who are numbered by their place, from 1
  std::string note;
  // In order of call. Event numbers are distinct and rise with time; what has equal times is concurrent. True time is
  // since the first call. `member` is an endpoint's place, 0: nobody was asked.
  std::vector<Operation> operations;
  std::vector<RecordedFinal> finals;
};

// Records, each behind its length. Times are in nanoseconds of the recorder's one clock: `true_time` of the moments,
// whose event numbers are not used.
std::string EncodeHeader(const std::vector<std::string>& endpoints, const std::string& note);
// Of an operation that has ended.
std::string EncodeOperation(const Operation& operation);
std::string EncodeFinalState(const RecordedFinal& final_state);
std::string EncodeEnd(uint64_t operations, uint64_t final_states);

// kInvalidArgument: no history, or one that contradicts itself; kResourceExhausted: beyond the limits above.
absl::StatusOr<RecordedHistory> ReadHistory(std::string_view bytes);

}  // namespace detcd::checker
