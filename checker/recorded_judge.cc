#include "checker/recorded_judge.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "checker/api_messages.h"
#include "checker/durability.h"
#include "checker/execution.h"
#include "checker/range_rules.h"
#include "checker/requests.h"
#include "checker/revision_order.h"
#include "checker/search.h"
#include "core/base/check.h"

namespace detcd::checker {
namespace {

constexpr size_t kConcernedMax = 6;

bool Succeeded(const Operation& operation) {
  return operation.outcome == Outcome::kAnswered && operation.answer.error.empty();
}

// Once it has a place as an effect: whether it made a revision. Without an answer it has one only where it does.
bool MadeRevision(const Operation& operation) {
  if (operation.outcome != Outcome::kAnswered) return true;
  return operation.answer.error.empty() && SaysItChanged(operation.request, operation.answer);
}

// The lowest compaction revision that explains the error `compacted`; `seen`: the newest revision that was shown.
int64_t CompactionNeeded(const Request& request, int64_t seen) {
  if (request.kind == OperationKind::kCompact) return request.revision;
  if (request.kind != OperationKind::kTxn) return (request.revision > 0 ? request.revision : seen) + 1;
  int64_t needed = INT64_MAX;
  for (const std::vector<Request>* branch : {&request.success, &request.failure}) {
    for (const Request& step : *branch) {
      if (step.kind == OperationKind::kTxn) needed = std::min(needed, CompactionNeeded(step, seen));
      if (step.kind == OperationKind::kRange && step.revision > 0) needed = std::min(needed, step.revision + 1);
    }
  }
  return needed;
}

// Puts of one value to one key, in any branch.
void CollectPuts(const Request& request, std::set<std::pair<std::string, std::string>>& puts) {
  if (request.kind == OperationKind::kPut && !request.ignore_value) puts.emplace(request.key, request.value);
  for (const Request& step : request.success) CollectPuts(step, puts);
  for (const Request& step : request.failure) CollectPuts(step, puts);
}

// Shows all keys that there are.
bool ShowsAll(const Operation& operation, std::string_view first_key, std::string_view last_key) {
  const Request& request = operation.request;
  if (!Succeeded(operation) || request.kind != OperationKind::kRange || request.count_only || request.keys_only) return false;
  return operation.answer.count == static_cast<int64_t>(operation.answer.kvs.size()) &&
         InRange(first_key, request.key, request.range_end) && InRange(last_key, request.key, request.range_end);
}

// What is sure of the log. A revision that no answered operation made was given to one without an answer, by the search's
// choice among several that explain the answers; the choice shows in hashes, and in states that nobody read.
class Certainty {
 public:
  // `authors`: of revisions from 2 on, in order, as indexes into `operations`.
  Certainty(std::span<const Operation> operations, std::span<const size_t> authors) {
    std::map<std::pair<std::string, std::string>, size_t> put_by;  // how many operations
    std::set<std::string> keys;
    for (const Operation& operation : operations) {
      std::set<std::pair<std::string, std::string>> puts;
      CollectPuts(operation.request, puts);
      for (const auto& put : puts) ++put_by[put];
      for (const KeyRange& range : WrittenRanges(operation.request)) keys.insert(range.key);
    }
    std::map<int64_t, std::vector<std::pair<std::string, std::string>>> shown;  // pairs by mod revision
    for (const Operation& operation : operations) {
      if (!Succeeded(operation)) continue;
      for (const ShownPair& pair : ShownPairs(operation.request, operation.answer)) {
        if (pair.has_value) shown[pair.kv->mod_revision].emplace_back(pair.kv->key, pair.kv->value);
      }
      if (keys.empty() || !ShowsAll(operation, *keys.begin(), *keys.rbegin())) continue;
      const int64_t asked = operation.request.revision;
      read_.insert(asked > 0 ? asked : operation.answer.header_revision);
    }
    for (size_t i = 0; i < authors.size(); ++i) {
      const Operation& author = operations[authors[i]];
      const auto revision = static_cast<int64_t>(i) + 2;
      std::set<std::pair<std::string, std::string>> puts;
      CollectPuts(author.request, puts);
      const bool seen = std::ranges::any_of(shown[revision], [&](const auto& pair) {
        return puts.contains(pair) && put_by.at(pair) == 1;
      });
      // What was there just before and just after tells as much.
      const bool framed = read_.contains(revision) && read_.contains(revision - 1);
      if (!Succeeded(author) && !seen && !framed) open_.push_back(revision);
    }
  }

  // Whether the state at `revision`, and its versions since `since`, are the same whatever the search chose.
  bool Known(int64_t revision, int64_t since) const {
    return std::ranges::all_of(open_, [&](int64_t open) {
      if (open > revision) return true;
      const auto read = read_.lower_bound(open);
      return read != read_.end() && *read <= since;
    });
  }

 private:
  std::vector<int64_t> open_;   // revisions that are not sure, ascending
  std::set<int64_t> read_;      // revisions at which all keys were read
};

// Plays the operations to the judges that want a log, with the search's order in its place.
class Replay {
 public:
  Replay(std::span<const Operation> operations, std::span<const Place> order, const WorldObservation& world)
      : operations_(operations), judge_(verdict_), durability_(world, judge_, verdict_) {
    for (size_t i = 0; i < operations.size(); ++i) {
      const Operation& operation = operations[i];
      edges_.push_back({operation.call.event, i, false});
      if (operation.outcome != Outcome::kPending) edges_.push_back({operation.end.event, i, true});
      if (operation.request.kind == OperationKind::kCompact && operation.outcome == Outcome::kUnknown) {
        guesses_.emplace(operation.request.revision, i);
      }
      if (operation.request.kind == OperationKind::kHashKv && Succeeded(operation)) {
        hashed_.insert(operation.answer.compact_revision);
      }
    }
    std::ranges::sort(edges_, {}, &Edge::event);
    MakeLog(order);
    std::vector<size_t> authors;
    for (const size_t entry : change_at_) authors.push_back(log_[entry].operation);
    certainty_.emplace(operations, authors);
  }

  void Run() {
    for (const Edge& edge : edges_) {
      if (verdict_.broken()) return;
      const Operation& operation = operations_[edge.operation];
      if (!edge.is_end) {
        judge_.OnCall(operation);
        continue;
      }
      const bool says_something = operation.outcome == Outcome::kAnswered || !operation.answer.error.empty();
      if (says_something && !CommitFor(edge)) continue;
      if (verdict_.broken()) return;
      durability_.OnEnd(operation);
      if (!verdict_.broken()) judge_.OnEnd(operation);
    }
  }

  void Finish(std::span<const RecordedFinal> finals) {
    for (const RecordedFinal& final_state : finals) {
      if (verdict_.broken() || !certainty_->Known(judge_.model().revision(), judge_.model().revision())) return;
      durability_.OnFinal(final_state.member, final_state.keys, final_state.at);
      if (verdict_.broken() || final_state.revision == judge_.model().revision()) continue;
      verdict_.Report("K17", "a final state that is not the log's",
                      absl::StrFormat("member %d in the end is at revision %d instead of %d", final_state.member.value,
                                      final_state.revision, judge_.model().revision()),
                      final_state.at);
    }
    if (!finals.empty() && !verdict_.broken()) durability_.Finish(finals.back().at);
  }

  const std::optional<Violation>& violation() const { return verdict_.violation(); }
  int64_t revision() const { return judge_.model().revision(); }
  // Some compaction was put where it seemed to belong, or could have been.
  bool guesses() const { return has_guesses_; }

 private:
  struct Edge {
    uint64_t event = 0;
    size_t operation = 0;
    bool is_end = false;
  };
  struct Entry {
    size_t operation = 0;
    bool is_compaction = false;
  };

  // Changes in the search's order; behind each, the compactions answered at its revision, the lower ones first.
  void MakeLog(std::span<const Place> order) {
    has_guesses_ = !guesses_.empty();
    std::map<int64_t, std::vector<size_t>> compactions;  // by revision in the header
    std::vector<size_t> changes;
    for (const Place& place : order) {
      const Operation& operation = operations_[place.operation];
      if (place.part == Part::kHeader && operation.request.kind == OperationKind::kCompact) {
        compactions[operation.answer.header_revision].push_back(place.operation);
      } else if (place.part == Part::kEffect && MadeRevision(operation)) {
        changes.push_back(place.operation);
      } else if (!operation.answer.error.empty()) {
        rests_on_[place.operation] = changes.size();
      }
    }
    auto add_compactions = [&](int64_t revision) {
      std::vector<size_t>& here = compactions[revision];
      std::ranges::sort(here, {}, [&](size_t i) { return operations_[i].request.revision; });
      for (const size_t i : here) Add(i, true);
    };
    add_compactions(1);
    for (const size_t i : changes) {
      Add(i, false);
      add_compactions(static_cast<int64_t>(change_at_.size()) + 1);
    }
  }

  void Add(size_t operation, bool is_compaction) {
    if (!is_compaction) change_at_.push_back(log_.size());
    entry_of_[operation] = log_.size();
    log_.push_back({operation, is_compaction});
  }

  // Commits what the answer that ends at `edge` rests on. False: nobody can judge it.
  bool CommitFor(const Edge& edge) {
    const Operation& operation = operations_[edge.operation];
    const Request& request = operation.request;
    const Answer& answer = operation.answer;
    if (!answer.error.empty()) {
      if (answer.error == kErrorCompacted) ExplainCompacted(CompactionNeeded(request, seen_), operation.end);
      // The state that a key was missing from may be one that no answer shows.
      if (answer.error == kErrorKeyNotFound) CommitChanges(rests_on_[edge.operation], operation.end);
      return true;
    }
    const int64_t newest = static_cast<int64_t>(change_at_.size()) + 1;
    // The one answer that the order does not explain, at the end of an illegal beginning, is given the next place.
    if (SaysItChanged(request, answer) && !entry_of_.contains(edge.operation) && answer.header_revision == newest + 1) {
      Add(edge.operation, false);
    }
    if (request.kind == OperationKind::kCompact && !entry_of_.contains(edge.operation)) Add(edge.operation, true);
    // The order has no place for hashes: that they show more than all other answers says nothing.
    if (request.kind == OperationKind::kHashKv && answer.header_revision > newest) return false;
    seen_ = std::max(seen_, answer.header_revision);
    CommitChanges(static_cast<size_t>(std::max<int64_t>(0, answer.header_revision - 1)), operation.end);
    if (request.kind == OperationKind::kCompact) CommitThrough(entry_of_.at(edge.operation), operation.end);
    if (request.kind != OperationKind::kHashKv) return true;
    ExplainHash(answer.compact_revision, operation.end);
    if (certainty_->Known(answer.hash_revision, answer.compact_revision)) return true;
    CompareHashes(operation);
    return false;
  }

  // Members must agree, even where the right hash is not known. At a compaction there are two right ones.
  void CompareHashes(const Operation& operation) {
    const Answer& answer = operation.answer;
    if (judge_.HasCompacted(answer.hash_revision)) return;
    const auto key = std::pair(answer.hash_revision, answer.compact_revision);
    const Operation& first = *hashes_.emplace(key, &operation).first->second;
    if (first.answer.hash == answer.hash) return;
    verdict_.Report("H1", "different hashes of one state",
                    absl::StrFormat("%s has hash %d of revision %d compacted at %d, where %s had %d", Describe(operation), answer.hash,
                                    key.first, key.second, Describe(first), first.answer.hash),
                    operation.end, {first.id, operation.id});
  }

  // The first `count` changes, or all.
  void CommitChanges(size_t count, Moment moment) {
    if (count > 0 && !change_at_.empty()) CommitThrough(change_at_[std::min(count, change_at_.size()) - 1], moment);
  }

  void CommitThrough(size_t entry, Moment moment) {
    for (; committed_ <= entry; ++committed_) {
      const Entry& next = log_[committed_];
      const Request& request = operations_[next.operation].request;
      if (next.is_compaction) CommitHashed(request.revision, moment);
      Commit(request, moment);
    }
  }

  void Commit(const Request& request, Moment moment) {
    if (verdict_.broken()) return;
    judge_.OnCommitted({.index = LogIndex(++index_), .term = Term(1), .data = MakeEntry(request)}, moment);
  }

  bool CanGuess(std::multimap<int64_t, size_t>::const_iterator guess, Moment moment) const {
    return guess->first > judge_.model().compact_revision() && guess->first <= judge_.model().revision() &&
           operations_[guess->second].call.event < moment.event;
  }

  // Before the compaction to `limit`: those without an answer whose compaction revision some hash shows.
  void CommitHashed(int64_t limit, Moment moment) {
    for (auto guess = guesses_.begin(); guess != guesses_.end() && guess->first < limit;) {
      if (!hashed_.contains(guess->first) || !CanGuess(guess, moment)) {
        ++guess;
        continue;
      }
      Commit(operations_[guess->second].request, moment);
      guess = guesses_.erase(guess);
    }
  }

  // The first compaction of the log to at least `needed` that can have been applied before `moment`; or log_.size().
  size_t NextCompaction(int64_t needed, Moment moment) const {
    for (size_t i = committed_; i < log_.size() && operations_[log_[i].operation].call.event < moment.event; ++i) {
      if (log_[i].is_compaction && operations_[log_[i].operation].request.revision >= needed) return i;
    }
    return log_.size();
  }

  void ExplainCompacted(int64_t needed, Moment moment) {
    if (judge_.model().compact_revision() >= needed) return;
    const size_t next = NextCompaction(needed, moment);
    for (auto guess = guesses_.lower_bound(needed); guess != guesses_.end(); ++guess) {
      if (!CanGuess(guess, moment)) continue;
      if (next < log_.size() && operations_[log_[next].operation].request.revision < guess->first) break;
      Commit(operations_[guess->second].request, moment);
      guesses_.erase(guess);
      return;
    }
    if (next < log_.size()) CommitThrough(next, moment);
  }

  void ExplainHash(int64_t compacted, Moment moment) {
    if (compacted == -1 || judge_.HasCompacted(compacted)) return;
    const size_t next = NextCompaction(compacted, moment);
    if (next < log_.size() && operations_[log_[next].operation].request.revision == compacted) {
      return CommitThrough(next, moment);
    }
    for (auto [guess, end] = guesses_.equal_range(compacted); guess != end; ++guess) {
      if (!CanGuess(guess, moment)) continue;
      Commit(operations_[guess->second].request, moment);
      guesses_.erase(guess);
      return;
    }
  }

  std::span<const Operation> operations_;
  Verdict verdict_;
  RevisionOrder judge_;
  Durability durability_;
  std::vector<Edge> edges_;
  std::vector<Entry> log_;
  std::vector<size_t> change_at_;              // by revision, from 2 on: indexes into log_
  std::map<size_t, size_t> rests_on_;          // by operation that was refused: how many changes stand before it
  std::map<std::pair<int64_t, int64_t>, const Operation*> hashes_;  // by revision and compaction revision: who had one first
  std::optional<Certainty> certainty_;
  std::map<size_t, size_t> entry_of_;          // by operation: indexes into log_
  std::multimap<int64_t, size_t> guesses_;     // compactions without an answer, not committed, by their revision
  std::set<int64_t> hashed_;                   // compaction revisions that hashes show
  size_t committed_ = 0;                       // entries of log_
  uint64_t index_ = 0;
  int64_t seen_ = 1;
  bool has_guesses_ = false;
};

// The operations that were called up to the event, with the answers that had come by then.
std::vector<Operation> Beginning(std::span<const Operation> operations, uint64_t event) {
  std::vector<Operation> beginning;
  for (const Operation& operation : operations) {
    if (operation.call.event > event) break;
    Operation& copy = beginning.emplace_back(operation);
    if (copy.end.event <= event || copy.outcome == Outcome::kUnknown) continue;
    copy.outcome = Outcome::kPending;
    copy.answer = {};
  }
  return beginning;
}

// When revision_order finds words for nothing: the answer, and the last writes that may have touched what it shows.
Violation Unexplained(std::span<const Operation> operations, const Operation& last) {
  Violation violation{.property = "K",
                      .signature = "K: no order of the operations explains an answer",
                      .sentence = Describe(last) + " has an answer that no order of the operations called until then explains",
                      .moment = last.end,
                      .operations = {last.id}};
  std::vector<const Operation*> writers;
  for (const Operation& other : operations) {
    if (other.id == last.id || ReadsOnly(other.request) || other.outcome == Outcome::kRefused) continue;
    if (MayTouch(other.request, last.request)) writers.push_back(&other);
  }
  for (size_t i = writers.size() - std::min(writers.size(), kConcernedMax); i < writers.size(); ++i) {
    violation.operations.push_back(writers[i]->id);
  }
  return violation;
}

// An answer at a revision that the operations up to it cannot have made; nullopt: they can. `order` explains all else.
std::optional<Violation> MissingAuthor(std::span<const Operation> operations, std::span<const Place> order, const Operation& last) {
  if (!Succeeded(last) || last.request.kind == OperationKind::kHashKv) return std::nullopt;
  const bool changes = SaysItChanged(last.request, last.answer);
  int64_t made = 1 + (changes ? 1 : 0);
  for (const Place& place : order) {
    const Operation& operation = operations[place.operation];
    if (place.part != Part::kEffect || operation.id == last.id) continue;
    made += MadeRevision(operation) ? 1 : 0;
  }
  if (last.answer.header_revision <= made) return std::nullopt;
  std::set<int64_t> owned;
  for (const Operation& operation : operations) {
    if (Succeeded(operation) && SaysItChanged(operation.request, operation.answer)) owned.insert(operation.answer.header_revision);
  }
  std::string missing;
  size_t count = 0;
  for (int64_t revision = last.answer.header_revision; revision >= 2 && count < kConcernedMax; --revision) {
    if (owned.contains(revision)) continue;
    missing = absl::StrFormat(" %d", revision) + missing;
    ++count;
  }
  return Violation{.property = "K14",
                   .signature = "K14: a revision without author",
                   .sentence = absl::StrFormat("%s was answered at revision %d; no answered operation made%s%s, and those without "
                                               "an answer cannot have made all that are missing",
                                               Describe(last), last.answer.header_revision,
                                               count == kConcernedMax ? " (among others)" : "", missing),
                   .moment = last.end,
                   .operations = {last.id}};
}

class Judge {
 public:
  Judge(const RecordedHistory& history, uint64_t steps_max) : history_(history), steps_max_(steps_max) {
    for (size_t i = 0; i < history.endpoints.size(); ++i) world_.members.push_back(MemberId(i + 1));
  }

  RecordedJudgement Run() {
    const SearchResult whole = Look(history_.operations);
    switch (whole.verdict) {
      case SearchVerdict::kLegal: JudgeLegal(whole); break;
      case SearchVerdict::kIllegal: JudgeIllegal(); break;
      case SearchVerdict::kUndetermined:
        judgement_.verdict = RecordedVerdict::kUndetermined;
        judgement_.sentence = whole.trouble.empty()
                                  ? absl::StrFormat("the search for an order gave up after %d steps", whole.steps)
                                  : "checker failure: the search found an order that does not hold: " + whole.trouble;
        break;
    }
    return std::move(judgement_);
  }

 private:
  SearchResult Look(std::span<const Operation> operations) {
    SearchResult result = Search(operations, {.evidence = Evidence::kAll, .steps_max = steps_max_});
    judgement_.steps += result.steps;
    return result;
  }

  void JudgeLegal(const SearchResult& whole) {
    Replay replay(history_.operations, whole.order, world_);
    replay.Run();
    replay.Finish(history_.finals);
    judgement_.revision = replay.revision();
    judgement_.violation = replay.violation();
    if (!judgement_.violation.has_value()) return;
    // What the search does not look at, or knows less of; anything else it has just shown to be in order.
    static constexpr std::string_view kBeyondTheSearch[] = {"C1", "H1", "H2", "K13", "K17"};
    const std::string& property = judgement_.violation->property;
    if (std::ranges::count(kBeyondTheSearch, property) == 0) {
      judgement_.verdict = RecordedVerdict::kUndetermined;
      judgement_.sentence = "checker failure: revision_order refuses what the search explains, and one of them errs";
    } else if (replay.guesses() && property != "K17") {
      judgement_.verdict = RecordedVerdict::kUndetermined;
      judgement_.sentence = "a compaction had no answer, and when it took effect, if it did, is not known";
    } else {
      judgement_.verdict = RecordedVerdict::kViolation;
    }
  }

  void JudgeIllegal() {
    judgement_.verdict = RecordedVerdict::kViolation;
    std::vector<const Operation*> ends;
    for (const Operation& operation : history_.operations) {
      if (operation.outcome == Outcome::kAnswered) ends.push_back(&operation);
    }
    std::ranges::sort(ends, {}, [](const Operation* operation) { return operation->end.event; });
    CHECK(!ends.empty());  // without answers every order explains them
    // Beginnings of a legal beginning are legal: what is illegal stays it.
    size_t legal = 0;
    size_t illegal = ends.size();
    std::vector<Place> order;
    while (illegal - legal > 1) {
      const size_t middle = legal + (illegal - legal) / 2;
      SearchResult result = Look(Beginning(history_.operations, ends[middle - 1]->end.event));
      if (result.verdict == SearchVerdict::kLegal) {
        legal = middle;
        order = std::move(result.order);
      } else {
        illegal = middle;
      }
    }
    const Operation& last = *ends[illegal - 1];
    const std::vector<Operation> beginning = Beginning(history_.operations, last.end.event);
    Replay replay(beginning, order, world_);
    replay.Run();
    judgement_.revision = replay.revision();
    judgement_.violation = MissingAuthor(beginning, order, last);
    if (!judgement_.violation.has_value()) judgement_.violation = replay.violation();
    if (!judgement_.violation.has_value()) judgement_.violation = Unexplained(beginning, last);
    judgement_.opinion = Classify(*judgement_.violation, beginning);
    judgement_.steps += judgement_.opinion.steps;
  }

  const RecordedHistory& history_;
  const uint64_t steps_max_;
  WorldObservation world_;
  RecordedJudgement judgement_;
};

}  // namespace

RecordedJudgement JudgeRecorded(const RecordedHistory& history, uint64_t steps_max) {
  return Judge(history, steps_max).Run();
}

}  // namespace detcd::checker
