// The verdict on a recorded history, which has no log to go by.
//
// The general search comes first: is there an order of the operations that explains every answer, revisions included?
// Its order, accepted by the kernel of witness.h, then stands in for the log, so that revision_order and durability can
// judge the rest: hashes, compactions, reads of the past, and the final states. So a legal history has passed both judges.
//
// Of an illegal one the shortest illegal beginning is searched for: it ends with one answer, the one to look at. The order
// of the beginning just before it is the log under which revision_order says what is wrong with that answer.
//
// When each entry was committed is known only from answers: it counts as committed when the first answer ends that rests
// on it (theorem 2 of revision_order.h). Compactions without an answer are no part of the search's order; they are put
// where the first answer needs them. A complaint that could come of that choice is undetermined, not a violation. And
// where several operations without an answer could have made a revision, hashes over it are only held against each other,
// until all keys were read and the revision was compacted.
//
// Deterministic; memory is that of the operations and of every version of every key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checker/history_file.h"
#include "checker/observation.h"
#include "checker/triage.h"

namespace detcd::checker {

enum class RecordedVerdict : uint8_t { kFine, kViolation, kUndetermined };

struct RecordedJudgement {
  RecordedVerdict verdict = RecordedVerdict::kFine;
  std::optional<Violation> violation;  // kUndetermined: what one judge complains of, if any
  Opinion opinion;                     // on a violation
  std::string sentence;                // kUndetermined: why
  uint64_t steps = 0;                  // of all searches
  int64_t revision = 1;                // the last one that an answer shows
};

// Steps of one search: a floor, and so many for each operation.
inline constexpr uint64_t kRecordedStepsMin = 20'000'000;
inline constexpr uint64_t kRecordedStepsPerOperation = 2'000;

RecordedJudgement JudgeRecorded(const RecordedHistory& history, uint64_t steps_max);

}  // namespace detcd::checker
