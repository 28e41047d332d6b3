#include "scenarios/operations.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace detcd::scenario {
namespace {

using checker::OperationKind;
using checker::Request;

constexpr size_t kKeyBytesMax = 10'000;
constexpr size_t kValueBytesMax = 1'000'000;
constexpr uint32_t kSortOrderMax = 2;   // of etcdserverpb.RangeRequest, as the next
constexpr uint32_t kSortTargetMax = 4;

// Names the values of one operation: `v7`, and inside a transaction `v7.1`, `v7.2`, ... in order.
class Maker {
 public:
  explicit Maker(uint32_t id) : name_(absl::StrFormat("v%d", id)) {}

  Request Make(const Put& put, bool inside) {
    Request request{.kind = OperationKind::kPut,
                    .key = put.key(),
                    .value = put.value(),
                    .prev_kv = put.prev_kv(),
                    .ignore_value = put.ignore_value()};
    if (request.value.empty() && !put.ignore_value()) {
      request.value = inside ? absl::StrFormat("%s.%d", name_, ++steps_) : name_;
      if (request.value.size() < put.value_bytes()) request.value.resize(put.value_bytes(), '.');
    }
    return request;
  }

  static Request Make(const Range& range) {
    return {.kind = OperationKind::kRange,
            .key = range.key(),
            .range_end = range.range_end(),
            .revision = range.revision(),
            .limit = range.limit(),
            .sort_order = static_cast<checker::SortOrder>(range.sort_order()),
            .sort_target = static_cast<checker::SortTarget>(range.sort_target()),
            .serializable = range.serializable(),
            .keys_only = range.keys_only(),
            .count_only = range.count_only(),
            .min_mod_revision = range.min_mod_revision(),
            .max_mod_revision = range.max_mod_revision(),
            .min_create_revision = range.min_create_revision(),
            .max_create_revision = range.max_create_revision(),
            .streamed = range.stream()};
  }

  static Request Make(const Delete& deletion) {
    return {.kind = OperationKind::kDelete,
            .key = deletion.key(),
            .range_end = deletion.range_end(),
            .prev_kv = deletion.prev_kv()};
  }

  Request Make(const Txn& txn) {
    Request request{.kind = OperationKind::kTxn};
    for (const Compare& compare : txn.compare()) {
      request.compares.push_back({.result = static_cast<checker::CompareResult>(compare.result()),
                                  .target = static_cast<checker::CompareTarget>(compare.target()),
                                  .key = compare.key(),
                                  .range_end = compare.range_end(),
                                  .number = compare.number(),
                                  .value = compare.value()});
    }
    for (const Step& step : txn.success()) request.success.push_back(Make(step));
    for (const Step& step : txn.failure()) request.failure.push_back(Make(step));
    return request;
  }

 private:
  Request Make(const Step& step) {
    switch (step.step_case()) {
      case Step::kPut: return Make(step.put(), true);
      case Step::kDelete: return Make(step.delete_());
      case Step::kTxn: return Make(step.txn());
      case Step::kRange: case Step::STEP_NOT_SET: break;
    }
    return Make(step.range());
  }

  const std::string name_;
  int steps_ = 0;
};

std::string RangeTrouble(const Range& range) {
  if (range.sort_order() > kSortOrderMax) return "range.sort_order: is no known order";
  if (range.sort_target() > kSortTargetMax) return "range.sort_target: is no known target";
  return "";
}

std::string PutTrouble(const Put& put) {
  if (put.key().size() > kKeyBytesMax) return absl::StrFormat("put.key: want at most %d bytes, got %d", kKeyBytesMax, put.key().size());
  const size_t bytes = std::max<size_t>(put.value_bytes(), put.value().size());
  if (bytes > kValueBytesMax) return absl::StrFormat("put.value_bytes: want at most %d, got %d", kValueBytesMax, bytes);
  return "";
}

std::string TxnTrouble(const Txn& txn, int depth) {
  if (depth > kTxnDepthMax) return absl::StrFormat("txn: nested more than %d deep", kTxnDepthMax);
  if (txn.success_size() > kTxnStepsMax || txn.failure_size() > kTxnStepsMax || txn.compare_size() > kTxnStepsMax) {
    return absl::StrFormat("txn: more than %d of a kind", kTxnStepsMax);
  }
  for (const Compare& compare : txn.compare()) {
    if (!Compare::Target_IsValid(compare.target())) return "txn.compare.target: is no known target";
    if (!Compare::Result_IsValid(compare.result())) return "txn.compare.result: is no known result";
    if (compare.as_seen() && depth > 1) return "txn.compare.as_seen: inside another transaction";
  }
  for (const auto* branch : {&txn.success(), &txn.failure()}) {
    for (const Step& step : *branch) {
      std::string trouble;
      switch (step.step_case()) {
        case Step::kPut: trouble = PutTrouble(step.put()); break;
        case Step::kRange:
          trouble = RangeTrouble(step.range());
          if (step.range().stream() || step.range().revisions_back() != 0) trouble = "range: stream or revisions_back inside a transaction";
          break;
        case Step::kTxn: trouble = TxnTrouble(step.txn(), depth + 1); break;
        case Step::kDelete: case Step::STEP_NOT_SET: break;
      }
      if (!trouble.empty()) return "txn: " + trouble;
    }
  }
  return "";
}

}  // namespace

sim::PlannedOperation MakeOperation(const Operation& operation, Instant zero) {
  sim::PlannedOperation planned = {.id = operation.id(), .at = zero + Millis(operation.at_ms())};
  planned.cancel_after = Millis(operation.cancel_after_ms());
  Maker maker(operation.id());
  switch (operation.call_case()) {
    case Operation::kPut: planned.request = maker.Make(operation.put(), false); break;
    case Operation::kRange:
      planned.request = Maker::Make(operation.range());
      if (operation.range().revisions_back() > 0) planned.revisions_back = operation.range().revisions_back();
      break;
    case Operation::kDelete: planned.request = Maker::Make(operation.delete_()); break;
    case Operation::kTxn:
      planned.request = maker.Make(operation.txn());
      for (int i = 0; i < operation.txn().compare_size(); ++i) {
        if (operation.txn().compare(i).as_seen()) planned.as_seen.push_back(static_cast<size_t>(i));
      }
      break;
    case Operation::kCompact:
      planned.request.kind = OperationKind::kCompact;
      planned.request.revision = operation.compact().revision();
      planned.request.physical = operation.compact().physical();
      if (operation.compact().revision() == 0) planned.revisions_back = operation.compact().revisions_back();
      break;
    case Operation::kHashKv:
      planned.request.kind = OperationKind::kHashKv;
      planned.request.revision = operation.hash_kv().revision();
      if (operation.hash_kv().revisions_back() > 0) planned.revisions_back = operation.hash_kv().revisions_back();
      break;
    case Operation::CALL_NOT_SET:
      break;
  }
  return planned;
}

std::string CallTrouble(const Operation& operation) {
  switch (operation.call_case()) {
    case Operation::kPut: return PutTrouble(operation.put());
    case Operation::kRange: return RangeTrouble(operation.range());
    case Operation::kTxn: return TxnTrouble(operation.txn(), 1);
    case Operation::kHashKv:
      return operation.hash_kv().revision() < 0 ? "hash_kv.revision: is negative" : "";
    case Operation::kDelete: case Operation::kCompact: case Operation::CALL_NOT_SET: break;
  }
  return "";
}

}  // namespace detcd::scenario
