#include "checker/execution.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "checker/requests.h"

namespace detcd::checker {
namespace {

enum class Truth : uint8_t { kFalse, kTrue, kOpen };

template <typename T>
bool Holds(CompareResult result, const T& have, const T& want) {
  switch (result) {
    case CompareResult::kEqual: return have == want;
    case CompareResult::kGreater: return have > want;
    case CompareResult::kLess: return have < want;
    case CompareResult::kNotEqual: return have != want;
  }
  return true;  // an operator that etcd does not know holds
}

bool RestsOnRevisions(CompareTarget target) {
  return target == CompareTarget::kVersion || target == CompareTarget::kCreate || target == CompareTarget::kMod;
}

// A number of a live pair that is at least 1 and otherwise not known.
Truth OfPositive(CompareResult result, int64_t want) {
  if (want >= 1) return result == CompareResult::kLess && want == 1 ? Truth::kFalse : Truth::kOpen;
  return Holds<int64_t>(result, 1, want) ? Truth::kTrue : Truth::kFalse;
}

Truth OfPair(const Condition& compare, const ObservedKeyValue& kv, Evidence evidence) {
  auto truth = [](bool holds) { return holds ? Truth::kTrue : Truth::kFalse; };
  if (evidence == Evidence::kValues && RestsOnRevisions(compare.target)) return OfPositive(compare.result, compare.number);
  switch (compare.target) {
    case CompareTarget::kVersion: return truth(Holds(compare.result, kv.version, compare.number));
    case CompareTarget::kCreate: return truth(Holds(compare.result, kv.create_revision, compare.number));
    case CompareTarget::kMod: return truth(Holds(compare.result, kv.mod_revision, compare.number));
    case CompareTarget::kValue: return truth(Holds(compare.result, kv.value, compare.value));
    case CompareTarget::kLease: return truth(Holds<int64_t>(compare.result, 0, compare.number));
  }
  return Truth::kTrue;  // as is one of a target that etcd does not know
}

// An absent key is all zero, and has no value: that comparison never holds.
Truth OfAbsent(const Condition& compare) {
  if (compare.target == CompareTarget::kValue) return Truth::kFalse;
  return Holds<int64_t>(compare.result, 0, compare.number) ? Truth::kTrue : Truth::kFalse;
}

Truth Both(Truth a, Truth b) {
  if (a == Truth::kFalse || b == Truth::kFalse) return Truth::kFalse;
  return a == Truth::kTrue ? b : a;
}

std::string Show(const std::vector<ObservedKeyValue>& kvs) {
  if (kvs.empty()) return "none";
  return Describe(kvs.front()) + (kvs.size() > 1 ? " and more" : "");
}

class Executor {
 public:
  Executor(const StateView& state, uint32_t guess) : state_(state), guess_(guess) {}

  Execution Run(const Request& request, const Answer* answer) {
    Choose(request, answer);
    if (result_.trouble.empty()) result_.error = FirstError(request);
    if (result_.trouble.empty() && result_.error.empty()) {
      next_choice_ = 0;
      Perform(request, answer, true);
    }
    return std::move(result_);
  }

  // As Run, but of the errors only; a past revision may be compacted or not.
  bool MayFailWith(const Request& request, std::string_view error) {
    Choose(request, nullptr);
    if (error != kErrorCompacted) return FirstError(request) == error;
    compacted_anywhere_ = true;
    return FirstError(request) == error;
  }

 private:
  void Wrong(std::string_view property, std::string trouble) {
    if (!result_.trouble.empty()) return;
    result_.trouble = std::move(trouble);
    result_.property = property;
  }

  bool all() const { return state_.evidence() == Evidence::kAll; }

  Truth Compares(const Request& request) const {
    Truth truth = Truth::kTrue;
    for (const Condition& compare : request.compares) {
      const std::vector<ObservedKeyValue> live = state_.Live(compare.key, compare.range_end);
      if (live.empty()) truth = Both(truth, OfAbsent(compare));
      for (const ObservedKeyValue& kv : live) truth = Both(truth, OfPair(compare, kv, state_.evidence()));
    }
    return truth;
  }

  // The choices of all transactions that run, outer before inner, on the state before.
  void Choose(const Request& request, const Answer* answer) {
    if (request.kind != OperationKind::kTxn) return;
    const Truth truth = Compares(request);
    bool chosen = truth == Truth::kTrue;
    if (truth == Truth::kOpen) {
      chosen = answer != nullptr ? answer->succeeded : (guess_ >> guesses_used_++ & 1) != 0;
    }
    if (answer != nullptr && answer->succeeded != chosen) {
      return Wrong("K8", absl::StrFormat("took the branch of %s though the comparisons %s", answer->succeeded ? "success" : "failure",
                                         chosen ? "hold" : "do not hold"));
    }
    choices_.push_back(chosen);
    const std::vector<Request>& branch = chosen ? request.success : request.failure;
    if (answer != nullptr && answer->responses.size() != branch.size()) {
      return Wrong("K7", absl::StrFormat("has %d responses to %d operations", answer->responses.size(), branch.size()));
    }
    for (size_t i = 0; i < branch.size(); ++i) {
      const Answer* response = answer == nullptr ? nullptr : &answer->responses[i];
      if (response != nullptr && response->kind != branch[i].kind) {
        return Wrong("K7", absl::StrFormat("has a response of another kind to its operation %d", i + 1));
      }
      Choose(branch[i], response);
      if (!result_.trouble.empty()) return;
    }
  }

  const std::vector<Request>& NextBranch(const Request& request) {
    return choices_[next_choice_++] ? request.success : request.failure;
  }

  std::string FirstError(const Request& request) {
    next_choice_ = 0;
    return Error(request, request.kind == OperationKind::kTxn);
  }

  std::string Error(const Request& request, bool inside) {
    switch (request.kind) {
      case OperationKind::kRange: return RangeError(request, inside);
      case OperationKind::kPut: {
        bool keeps = request.ignore_value || request.ignore_lease;
        return keeps && state_.Live(request.key, "").empty() ? std::string(kErrorKeyNotFound) : "";
      }
      case OperationKind::kTxn:
        for (const Request& operation : NextBranch(request)) {
          if (std::string error = Error(operation, true); !error.empty()) return error;
        }
        return "";
      case OperationKind::kDelete: case OperationKind::kCompact: case OperationKind::kHashKv: return "";
    }
    return "";
  }

  // Inside a transaction a negative revision is a number like any other; outside it means the present one.
  std::string RangeError(const Request& request, bool inside) const {
    if (request.revision == 0 || (request.revision < 0 && !inside)) return "";
    if (!all()) return "";
    if (request.revision > state_.revision()) return std::string(kErrorFutureRevision);
    bool compacted = request.revision < state_.compact_revision() ||
                     (compacted_anywhere_ && request.revision < state_.revision());
    return compacted ? std::string(kErrorCompacted) : "";
  }

  // The pairs of a range as the operations so far left them.
  std::vector<ObservedKeyValue> Live(const std::string& key, const std::string& range_end) const {
    std::vector<ObservedKeyValue> base = state_.Live(key, range_end);
    if (changed_.empty()) return base;
    std::map<std::string, ObservedKeyValue> pairs;
    for (ObservedKeyValue& kv : base) pairs[kv.key] = std::move(kv);
    for (const auto& [name, now] : changed_) {
      if (!InRange(name, key, range_end)) continue;
      if (now.has_value()) pairs[name] = *now;
      if (!now.has_value()) pairs.erase(name);
    }
    std::vector<ObservedKeyValue> live;
    for (auto& [name, kv] : pairs) live.push_back(std::move(kv));
    return live;
  }

  void Make(std::string key, std::optional<ObservedKeyValue> now) {
    changed_[key] = now;
    result_.changes.push_back({std::move(key), std::move(now)});
  }

  void Perform(const Request& request, const Answer* answer, bool outermost) {
    switch (request.kind) {
      case OperationKind::kRange: PerformRange(request, answer); break;
      case OperationKind::kPut: PerformPut(request, answer); break;
      case OperationKind::kDelete: PerformDelete(request, answer); break;
      case OperationKind::kTxn: {
        const std::vector<Request>& branch = NextBranch(request);
        for (size_t i = 0; i < branch.size(); ++i) {
          Perform(branch[i], answer == nullptr ? nullptr : &answer->responses[i], false);
        }
        break;
      }
      case OperationKind::kCompact: case OperationKind::kHashKv: break;
    }
    // Inside a transaction headers carry the revision as it is by then; that of a nested one is empty.
    if (answer == nullptr || outermost || !all()) return;
    int64_t revision = state_.revision() + (result_.changes.empty() ? 0 : 1);
    if (request.kind == OperationKind::kTxn) revision = 0;
    if (answer->header_revision == revision) return;
    Wrong("K7", absl::StrFormat("has a response (%s) at revision %d instead of %d", Describe(request),
                                answer->header_revision, revision));
  }

  void PerformRange(const Request& request, const Answer* answer) {
    if (answer == nullptr) return;
    std::optional<std::vector<ObservedKeyValue>> live;
    if (request.revision > 0 && (!all() || request.revision <= state_.revision())) {
      live = state_.LiveAt(request.key, request.range_end, request.revision);
    } else {
      live = Live(request.key, request.range_end);
    }
    if (!live.has_value()) return;
    std::string trouble = all() ? RangeTrouble(request, *answer, *std::move(live))
                                : ValuesTrouble(request, *answer, *std::move(live));
    if (!trouble.empty()) Wrong(request.revision > 0 ? "K13" : "K12", Describe(request) + " shows " + trouble);
  }

  void PerformPut(const Request& request, const Answer* answer) {
    const std::vector<ObservedKeyValue> before = Live(request.key, "");
    CheckPrevious(request, answer, before);
    ObservedKeyValue now = before.empty() ? ObservedKeyValue{.key = request.key} : before.front();
    if (!request.ignore_value) now.value = request.value;
    if (all()) {
      now.mod_revision = state_.revision() + 1;
      if (before.empty()) now.create_revision = now.mod_revision;
      ++now.version;
    }
    Make(request.key, std::move(now));
  }

  void PerformDelete(const Request& request, const Answer* answer) {
    const std::vector<ObservedKeyValue> before = Live(request.key, request.range_end);
    CheckPrevious(request, answer, before);
    auto count = static_cast<int64_t>(before.size());
    if (answer != nullptr && answer->count != count) {
      Wrong("K11", absl::StrFormat("deleted %d keys instead of %d (%s)", answer->count, count, Show(before)));
    }
    for (const ObservedKeyValue& kv : before) Make(kv.key, std::nullopt);
  }

  void CheckPrevious(const Request& request, const Answer* answer, const std::vector<ObservedKeyValue>& before) {
    if (answer == nullptr) return;
    const std::vector<ObservedKeyValue>& expected = request.prev_kv ? before : kNothing;
    if (answer->kvs == expected) return;
    Wrong("K10", absl::StrFormat("shows as previous pair %s instead of %s", Show(answer->kvs), Show(expected)));
  }

  inline static const std::vector<ObservedKeyValue> kNothing;

  const StateView& state_;
  const uint32_t guess_;
  uint32_t guesses_used_ = 0;
  bool compacted_anywhere_ = false;
  std::vector<bool> choices_;  // of transactions, outer before inner
  size_t next_choice_ = 0;
  std::map<std::string, std::optional<ObservedKeyValue>> changed_;
  Execution result_;
};

void CollectShown(const Request& request, const Answer& answer, std::vector<ShownPair>& shown) {
  bool has_value = request.kind != OperationKind::kRange || !request.keys_only;
  for (const ObservedKeyValue& kv : answer.kvs) shown.push_back({&kv, has_value});
  if (request.kind != OperationKind::kTxn) return;
  const std::vector<Request>& branch = answer.succeeded ? request.success : request.failure;
  for (size_t i = 0; i < std::min(branch.size(), answer.responses.size()); ++i) {
    CollectShown(branch[i], answer.responses[i], shown);
  }
}

}  // namespace

Execution Execute(const Request& request, const StateView& state, const Answer* answer, uint32_t guess) {
  return Executor(state, guess).Run(request, answer);
}

uint32_t GuessesNeeded(const Request& request, Evidence evidence) {
  if (evidence == Evidence::kAll || request.kind != OperationKind::kTxn) return 0;
  uint32_t guesses = 0;
  for (const Condition& compare : request.compares) {
    if (RestsOnRevisions(compare.target)) guesses = 1;
  }
  for (const std::vector<Request>* branch : {&request.success, &request.failure}) {
    for (const Request& operation : *branch) guesses += GuessesNeeded(operation, evidence);
  }
  return guesses;
}

bool MayFail(const Request& request, const StateView& state, std::string_view error) {
  const uint32_t guesses = GuessesNeeded(request, state.evidence());
  for (uint32_t guess = 0; guess < 1u << guesses; ++guess) {
    if (Executor(state, guess).MayFailWith(request, error)) return true;
  }
  return false;
}

bool SaysItChanged(const Request& request, const Answer& answer) {
  switch (request.kind) {
    case OperationKind::kPut: return true;
    case OperationKind::kDelete: return answer.count != 0;
    case OperationKind::kRange: case OperationKind::kCompact: case OperationKind::kHashKv: return false;
    case OperationKind::kTxn: break;
  }
  const std::vector<Request>& branch = answer.succeeded ? request.success : request.failure;
  for (size_t i = 0; i < std::min(branch.size(), answer.responses.size()); ++i) {
    if (SaysItChanged(branch[i], answer.responses[i])) return true;
  }
  return false;
}

std::vector<ShownPair> ShownPairs(const Request& request, const Answer& answer) {
  std::vector<ShownPair> shown;
  CollectShown(request, answer, shown);
  return shown;
}

}  // namespace detcd::checker
