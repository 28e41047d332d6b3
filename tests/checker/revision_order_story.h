// A history told to RevisionOrder by hand; each step is one event.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "checker/revision_order.h"
#include "tests/checker/history_by_hand.h"
#include "tests/checker/history_generator.h"

namespace detcd::checker {

class RevisionOrderStory : public testing::Test {
 protected:
  uint64_t Call(Request request) {
    Operation operation{.id = ++last_id_, .client = 1, .request = std::move(request), .call = Next()};
    operations_[operation.id] = operation;
    judge_.OnCall(operation);
    return operation.id;
  }
  void Commit(const Request& request) {
    judge_.OnCommitted({.index = LogIndex(++index_), .term = Term(1), .data = Encode(request)}, Next());
  }
  void End(uint64_t id, Answer answer, Outcome outcome = Outcome::kAnswered) {
    Operation& operation = operations_[id];
    operation.end = Next();
    operation.outcome = outcome;
    operation.answer = std::move(answer);
    judge_.OnEnd(operation);
  }
  std::string Broken() const { return verdict_.broken() ? verdict_.violation()->property : ""; }
  Moment Next() { return {.event = ++event_}; }

  Verdict verdict_;
  RevisionOrder judge_{verdict_};
  std::map<uint64_t, Operation> operations_;
  uint64_t last_id_ = 0;
  uint64_t index_ = 0;
  uint64_t event_ = 0;
};

}  // namespace detcd::checker
