#include "tests/checker/referee.h"

#include <optional>
#include <utility>
#include <vector>

#include "checker/execution.h"
#include "checker/requests.h"
#include "checker/revision_order.h"
#include "checker/search.h"
#include "checker/triage.h"
#include "tests/checker/history_corruption.h"
#include "tests/checker/history_oracle.h"

namespace detcd::checker {
namespace {

using Kind = HistoryEvent::Kind;

constexpr uint64_t kOracleTriesMax = 200'000;
constexpr int kCorruptionTries = 6;

// The operations, and one more for each revision of the log: a serializable read of all keys at that revision, which
// ended when it was committed. It shows the content of the revision, and that its author was called before. At the end a
// read that is not serializable: there are no further revisions.
std::vector<Operation> WithLogAsReads(const History& history) {
  std::vector<Operation> operations = history.operations;
  SpecState state;
  int64_t revision = 1;
  auto add_read = [&](bool serializable, uint64_t call, uint64_t end) {
    Operation read{.id = operations.size() + 1, .call = {.event = call}, .end = {.event = end}};
    read.request = {.key = std::string(1, '\0'), .range_end = std::string(1, '\0'), .serializable = serializable};
    read.outcome = Outcome::kAnswered;
    read.answer = RunSpec(read.request, state, revision);
    operations.push_back(std::move(read));
  };
  for (size_t i = 0; i < history.events.size(); ++i) {
    if (history.events[i].kind != Kind::kCommit) continue;
    int64_t before = revision;
    RunSpec(history.events[i].committed, state, revision);
    if (revision > before) add_read(true, 0, i + 1);
  }
  add_read(false, history.events.size() + 1, history.events.size() + 2);
  return operations;
}

// Whether some answer rests on a revision that was not committed when it came: no client can see that.
bool AnswersTooEarly(const History& history) {
  std::vector<uint64_t> committed{0, 0};  // by revision: event
  SpecState state;
  int64_t revision = 1;
  for (size_t i = 0; i < history.events.size(); ++i) {
    if (history.events[i].kind != Kind::kCommit) continue;
    RunSpec(history.events[i].committed, state, revision);
    if (static_cast<int64_t>(committed.size()) <= revision) committed.push_back(i + 1);
  }
  for (const Operation& operation : history.operations) {
    if (operation.outcome != Outcome::kAnswered) continue;
    int64_t header = operation.answer.header_revision;
    if (header < 1 || header > revision || committed[static_cast<size_t>(header)] > operation.end.event) return true;
  }
  return false;
}

class Comparer {
 public:
  explicit Comparer(Comparison& comparison) : comparison_(comparison) {}

  void Compare() {
    const History& history = comparison_.history;
    const std::optional<Violation> violation = JudgeHistory(history);
    comparison_.judge_accepts = !violation.has_value();
    comparison_.answers_are_legal = IsLegal(history.operations, Evidence::kAll);
    comparison_.values_are_legal = IsLegal(history.operations, Evidence::kValues);
    bool judge = comparison_.judge_accepts;
    Expect(judge == LogOracleAccepts(history, LogEvidence::kRequests), "revision_order and the oracle with the log");
    CompareWithOracle(comparison_.answers_are_legal, true, "search and oracle");
    CompareWithOracle(comparison_.values_are_legal, false, "search and oracle by values");
    bool with_log = IsLegal(WithLogAsReads(history), Evidence::kAll) && !AnswersTooEarly(history);
    Expect(with_log == LogOracleAccepts(history, LogEvidence::kStates), "search and oracle, both with the log's states");
    Expect(!judge || with_log, "legal by revision_order, illegal for the search that sees the log's states");
    comparison_.differs_by_request = judge != with_log;
    Expect(!judge || comparison_.answers_are_legal, "legal with the log, illegal without");
    Expect(!comparison_.answers_are_legal || comparison_.values_are_legal, "legal with revisions, illegal without");
    if (judge) return;
    const Opinion opinion = Classify(*violation, history.operations);
    Expect(opinion.triage == ExpectedTriage(*violation), "triage and verdicts (" + opinion.sentence + ")");
  }

 private:
  void Expect(bool holds, const std::string& what) {
    if (!holds && comparison_.mismatch.empty()) comparison_.mismatch = what;
  }

  bool IsLegal(const std::vector<Operation>& operations, Evidence evidence) {
    SearchResult result = Search(operations, {.evidence = evidence});
    comparison_.steps += result.steps;
    Expect(result.verdict != SearchVerdict::kUndetermined, "a search without verdict: " + result.trouble);
    return result.verdict == SearchVerdict::kLegal;
  }

  void CompareWithOracle(bool search, bool revisions, const std::string& who) {
    std::optional<bool> oracle = ClientOracleAccepts(comparison_.history.operations, revisions, kOracleTriesMax);
    if (!oracle.has_value()) {
      comparison_.oracle_gave_up = true;
    } else {
      Expect(search == *oracle, who + (search ? " (search: legal)" : " (search: illegal)"));
    }
  }

  Triage ExpectedTriage(const Violation& violation) const {
    if (!violation.property.starts_with("K") && violation.property != "R2") return Triage::kNotAsked;
    if (comparison_.answers_are_legal) return Triage::kLogOnly;
    return comparison_.values_are_legal ? Triage::kMetadataOnly : Triage::kDataAnomaly;
  }

  Comparison& comparison_;
};

}  // namespace

Comparison CompareJudges(uint64_t seed, size_t operations_max) {
  Draws draws(seed ^ 0x5EED'0F'C0D5u);
  HistoryOptions options{.operations = 1 + draws.Below(operations_max)};
  options.clients = 2 + draws.Below(4);
  options.keys = 1 + draws.Below(4);
  options.unknown_percent = 20 * draws.Below(4);
  options.values = draws.Chance(30) ? 2 : 0;
  options.txn_percent = 25 * draws.Below(4);
  options.conditions_on_values = draws.Chance(70);
  Comparison comparison{.corruption = "nothing", .history = GenerateHistory(seed, options)};
  if (draws.Chance(90)) {
    std::optional<std::string_view> way;
    for (int i = 0; i < kCorruptionTries && !way.has_value(); ++i) way = Corrupt(comparison.history, draws);
    if (way.has_value()) comparison.corruption = *way;
  }
  Comparer(comparison).Compare();
  return comparison;
}

std::string Story(const History& history) {
  std::string text;
  for (const HistoryEvent& event : history.events) {
    if (event.kind == Kind::kCommit) {
      text += "commit " + Describe(event.committed) + "\n";
      continue;
    }
    const Operation& operation = history.operations[event.operation];
    if (event.kind == Kind::kCall) {
      text += "call   " + Describe(operation) + "\n";
      continue;
    }
    text += "end    " + Describe(operation);
    if (operation.outcome == Outcome::kUnknown) {
      text += ": unknown\n";
      continue;
    }
    text += ": revision " + std::to_string(operation.answer.header_revision) + ", count " +
            std::to_string(operation.answer.count) + " " + operation.answer.error;
    if (operation.request.kind == OperationKind::kTxn) text += operation.answer.succeeded ? " success" : " failure";
    for (const ShownPair& pair : ShownPairs(operation.request, operation.answer)) text += " " + Describe(*pair.kv);
    text += "\n";
  }
  return text;
}

}  // namespace detcd::checker
