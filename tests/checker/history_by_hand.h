// Requests in few words, and a history whose operations come with their call and end as numbers.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "checker/history.h"

namespace detcd::checker {

inline Request Put(std::string key, std::string value = "v") {
  return {.kind = OperationKind::kPut, .key = std::move(key), .value = std::move(value)};
}
inline Request Delete(std::string key, std::string range_end = "") {
  return {.kind = OperationKind::kDelete, .key = std::move(key), .range_end = std::move(range_end)};
}
inline Request Get(std::string key, int64_t revision = 0) { return {.key = std::move(key), .revision = revision}; }

class HistoryByHand : public testing::Test {
 protected:
  // `end` 0: no answer.
  Operation& Add(Request request, uint64_t call, uint64_t end, Answer answer = {}) {
    Operation operation{.id = history_.size() + 1, .client = 1, .request = std::move(request)};
    operation.call.event = call;
    operation.end.event = end;
    operation.outcome = end == 0 ? Outcome::kUnknown : Outcome::kAnswered;
    operation.answer = std::move(answer);
    history_.push_back(operation);
    return history_.back();
  }

  std::vector<Operation> history_;
};

}  // namespace detcd::checker
