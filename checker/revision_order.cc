#include "checker/revision_order.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "core/base/check.h"

namespace detcd::checker {
namespace {

// Whether some range asks for a past revision.
bool AsksForPast(const Request& request, bool inside) {
  if (request.kind == OperationKind::kRange) return inside ? request.revision != 0 : request.revision > 0;
  auto asks = [](const Request& operation) { return AsksForPast(operation, true); };
  return std::ranges::any_of(request.success, asks) || std::ranges::any_of(request.failure, asks);
}

}  // namespace

RevisionOrder::RevisionOrder(Verdict& verdict) : verdict_(verdict) {}

void RevisionOrder::Broken(std::string_view property, std::string_view trouble, const Record& record, std::string what,
                           uint64_t other) {
  std::vector<uint64_t> operations{record.operation.id};
  if (other != 0) operations.push_back(other);
  verdict_.Report(property, trouble, Describe(record.operation) + " " + what, record.operation.end,
                  std::move(operations));
}

RevisionOrder::Record* RevisionOrder::Find(const Operation& operation) {
  auto it = records_.find(operation.id);
  CHECK(it != records_.end());  // the world tells of a call before its end
  it->second.operation = operation;
  return &it->second;
}

void RevisionOrder::OnCall(const Operation& operation) {
  bool fresh = records_
                   .emplace(operation.id, Record{.operation = operation,
                                                 .seen_at_call = highest_,
                                                 .compacted_at_call = model_.compact_revision()})
                   .second;
  CHECK(fresh);
  if (!ReadsOnly(operation.request)) unpaired_[EffectText(operation.request)].operations.push_back(operation.id);
}

void RevisionOrder::OnCommitted(const CommittedEntry& entry, Moment moment) {
  if (entry.is_conf_change) return;
  const int64_t compacted = model_.compact_revision();
  Effect effect = model_.Apply(entry.data.view());
  if (effect.kind == EffectKind::kNone) return;
  if (effect.kind == EffectKind::kForeign) {
    verdict_.Report("model", "a committed request that the model does not know",
                    absl::StrFormat("entry %d holds a request whose effect the model does not know", entry.index.value),
                    moment);
    return;
  }
  if (std::string_view error = StaticError(effect.request); !error.empty()) {
    verdict_.Report(error == kErrorDuplicateKey ? "K9" : "K5", "a committed request that had to be refused",
                    absl::StrFormat("revision %d (%s) was made by a request that had to be refused: %s", effect.revision,
                                    Describe(effect.request), error),
                    moment);
    return;
  }
  if (effect.kind == EffectKind::kChange) {
    by_revision_.push_back(made_.size());
  } else {
    compactions_[effect.request.revision] = made_.size();
  }
  std::string text = EffectText(effect.request);
  Unpaired& unpaired = unpaired_[text];
  unpaired.made.push_back(made_.size());
  made_.push_back(Made{.effect = std::move(effect), .text = std::move(text), .compacted = compacted, .committed = moment});
  JudgeUnpaired(unpaired, moment);
}

// The i-th effect needs the i-th operation, called before it was committed.
void RevisionOrder::JudgeUnpaired(const Unpaired& unpaired, Moment moment) {
  for (size_t i = 0; i < unpaired.made.size(); ++i) {
    const Made& made = made_[unpaired.made[i]];
    if (i < unpaired.operations.size() &&
        records_.at(unpaired.operations[i]).operation.call.event < made.committed.event) {
      continue;
    }
    std::string what = absl::StrFormat("revision %d (%s)", made.effect.revision, Describe(made.effect.request));
    if (!unpaired.refused.empty()) {
      const Operation& refused = records_.at(unpaired.refused.front()).operation;
      verdict_.Report("K16", "a refused operation took effect",
                      absl::StrFormat("%s was refused (%s), yet only it can have made %s", Describe(refused),
                                      refused.answer.error, what),
                      moment, {refused.id});
      return;
    }
    for (const Made& other : made_) {
      if (&other == &made || other.text != made.text) continue;
      verdict_.Report("K15", "an operation took effect twice",
                      absl::StrFormat("%s repeats revision %d, and no other operation can have made it", what,
                                      other.effect.revision),
                      moment, other.owned ? std::vector<uint64_t>{other.owner} : std::vector<uint64_t>{});
      return;
    }
    verdict_.Report("K14", "a revision without author", what + " was made by no operation called before", moment);
    return;
  }
}

// The operation takes no place among the authors any more.
void RevisionOrder::CloseWithoutEffect(Record& record, bool refused) {
  if (ReadsOnly(record.operation.request)) return;
  Unpaired& unpaired = unpaired_[EffectText(record.operation.request)];
  std::erase(unpaired.operations, record.operation.id);
  if (refused) unpaired.refused.push_back(record.operation.id);
  JudgeUnpaired(unpaired, record.operation.end);
}

void RevisionOrder::OnEnd(const Operation& operation) {
  if (verdict_.broken()) return;
  Record& record = *Find(operation);
  if (operation.outcome == Outcome::kUnknown) return;  // stays open for ever
  CHECK(operation.outcome != Outcome::kPending);
  if (operation.outcome == Outcome::kRefused || !operation.answer.error.empty()) {
    CloseWithoutEffect(record, true);
    if (!verdict_.broken()) JudgeError(record);
    return;
  }
  const Request& request = operation.request;
  if (std::string_view error = StaticError(request); !error.empty()) {
    Broken(error == kErrorDuplicateKey ? "K9" : "K5", "a request that had to be refused", record,
           absl::StrFormat("was not refused with `%s`", error));
    return;
  }
  int64_t revision = operation.answer.header_revision;
  if (revision < 1 || revision > model_.revision()) {
    Broken(ReadsOnly(request) ? "K14" : "K17", "an answer at a revision that is not committed", record,
           absl::StrFormat("was answered at revision %d while only %d is committed", revision, model_.revision()));
    return;
  }
  if (request.kind == OperationKind::kCompact) {
    JudgeCompaction(record);
  } else if (request.kind == OperationKind::kHashKv) {
    JudgeHash(record);
  } else if (SaysItChanged(request, operation.answer)) {
    JudgeChange(record);
  } else {
    JudgeIdle(record);
  }
  if (!verdict_.broken()) JudgeMember(record);
}

// The operation says that it made that.
bool RevisionOrder::Own(Record& record, size_t index) {
  Made& made = made_[index];
  const int64_t revision = made.effect.revision;
  if (EffectText(record.operation.request) != made.text) {
    Broken("K5", "a revision with another effect", record,
           absl::StrFormat("says it made revision %d, which is %s", revision, Describe(made.effect.request)), made.owner);
    return false;
  }
  if (made.owned) {
    Broken("K1", "a revision with two authors", record,
           absl::StrFormat("says it made revision %d, as operation %d did before", revision, made.owner), made.owner);
    return false;
  }
  if (record.operation.call.event >= made.committed.event) {
    Broken("K4", "a revision older than its author", record,
           absl::StrFormat("says it made revision %d, which was committed before the call", revision));
    return false;
  }
  made.owned = true;
  made.owner = record.operation.id;
  Unpaired& unpaired = unpaired_[made.text];
  std::erase(unpaired.operations, record.operation.id);
  std::erase(unpaired.made, index);
  JudgeUnpaired(unpaired, record.operation.end);
  return !verdict_.broken();
}

void RevisionOrder::JudgeChange(Record& record) {
  const Operation& operation = record.operation;
  int64_t revision = operation.answer.header_revision;
  if (revision < 2) {
    Broken("K3", "a change without a new revision", record, "says it changed the store at revision 1");
    return;
  }
  const size_t made = by_revision_[static_cast<size_t>(revision - 2)];
  if (!Own(record, made)) return;
  Execution right = model_.ExecuteAt(operation.request, revision - 1, made_[made].compacted, &operation.answer);
  if (!right.trouble.empty()) {
    Broken(right.property, "a wrong answer to a change", record,
           absl::StrFormat("at revision %d %s", revision, right.trouble));
    return;
  }
  Settle(record, 2 * revision);
}

// A range, a delete of nothing, or a transaction that changed nothing.
void RevisionOrder::JudgeIdle(Record& record) {
  const Operation& operation = record.operation;
  const Request& request = operation.request;
  int64_t revision = operation.answer.header_revision;
  CloseWithoutEffect(record, false);
  if (verdict_.broken()) return;
  if (ReadsAreCompacted(record, request, request.kind == OperationKind::kTxn)) return;
  Execution right = model_.ExecuteAt(request, revision, model_.CompactedBefore(revision), &operation.answer);
  if (right.trouble.empty() && !right.error.empty()) {
    Broken("K13", "a read that had to be refused", record,
           absl::StrFormat("was answered at revision %d instead of refused: %s", revision, right.error));
    return;
  }
  if (right.trouble.empty() && !right.changes.empty()) {
    Broken("K3", "a change without a new revision", record,
           absl::StrFormat("says it changed nothing at revision %d, where it changes %s", revision,
                           right.changes.front().key));
    return;
  }
  bool local = ReadsLocally(request);
  if (!right.trouble.empty()) {
    std::string_view property = right.property == "K12" ? (local ? "R2" : "K5") : right.property;
    Broken(property, "a wrong answer to a read", record, absl::StrFormat("at revision %d %s", revision, right.trouble));
    return;
  }
  if (!local) Settle(record, 2 * revision + 1);
}

// What is asked of a revision that was compacted before the call. A member that serves from its own state may not have
// seen the compaction.
bool RevisionOrder::ReadsAreCompacted(Record& record, const Request& request, bool inside) {
  const Operation& operation = record.operation;
  if (request.kind == OperationKind::kRange && (inside ? request.revision != 0 : request.revision > 0)) {
    if (request.revision >= record.compacted_at_call || ReadsLocally(operation.request)) return false;
    Broken("K13", "a read of a compacted revision", record,
           absl::StrFormat("was answered though revision %d was compacted before the call", record.compacted_at_call));
    return true;
  }
  if (request.kind != OperationKind::kTxn) return false;
  for (const Request& step : operation.answer.succeeded ? operation.request.success : operation.request.failure) {
    if (step.kind == OperationKind::kRange && ReadsAreCompacted(record, step, true)) return true;
  }
  return false;
}

// The answer comes after the compaction was applied on the member that gives it.
void RevisionOrder::JudgeCompaction(Record& record) {
  const Operation& operation = record.operation;
  auto made = compactions_.find(operation.request.revision);
  if (made == compactions_.end()) {
    Broken("C1", "a compaction that did not happen", record,
           absl::StrFormat("was acknowledged while the compaction revision is %d", model_.compact_revision()));
    return;
  }
  const int64_t applied_at = made_[made->second].effect.revision;
  if (!Own(record, made->second)) return;
  if (operation.answer.header_revision < applied_at) {
    Broken("C1", "a compaction acknowledged before it was applied", record,
           absl::StrFormat("was acknowledged at revision %d, and took effect at %d", operation.answer.header_revision,
                           applied_at));
    return;
  }
  Settle(record, 2 * operation.answer.header_revision + 1);
}

// Of the state of one member, at some moment between the call and the answer, whose header may be younger. What that state
// had made, the revision hashed and all that the member had answered before the call, it made after the compactions before
// it. A stored result may have been made at its own compaction, before which another one was the last.
void RevisionOrder::JudgeHash(Record& record) {
  const Operation& operation = record.operation;
  const Answer& answer = operation.answer;
  const int64_t asked = operation.request.revision;
  const int64_t revision = answer.header_revision;
  const int64_t hashed = answer.hash_revision;
  // Stored results are looked up by number before 0 is taken for the present: one of a compaction at 0 answers for it.
  const bool is_zero = asked == 0 && hashed == 0 && compactions_.contains(0);
  if (hashed > revision || (asked != 0 && hashed != asked) || (asked == 0 && hashed < 1 && !is_zero)) {
    Broken("H2", "a hash of another revision", record,
           absl::StrFormat("has the hash of revision %d at revision %d", hashed, revision));
    return;
  }
  const int64_t compacted = answer.compact_revision;
  const bool known = compacted == -1 || compactions_.contains(compacted);
  const auto stored = compactions_.find(hashed);
  const bool is_stored = stored != compactions_.end() && made_[stored->second].compacted == compacted;
  const Place* before = AnsweredBefore(operation);
  const int64_t least = model_.CompactedBefore(before == nullptr ? hashed : std::max(hashed, before->kappa));
  const bool is_beyond = asked >= 0 && compacted > hashed;  // a negative number is not refused as compacted
  if (!known || (!is_stored && (compacted < least || is_beyond))) {
    Broken("H2", "a hash with a wrong compaction revision", record,
           absl::StrFormat("of revision %d has compaction revision %d, where the member had compacted %d, and %d is the last",
                           hashed, compacted, least, model_.compact_revision()));
    return;
  }
  const uint32_t right = model_.Hash(hashed, compacted);
  const auto first = hashes_.emplace(std::pair(hashed, compacted), std::pair(operation.id, answer.hash)).first;
  if (right == answer.hash || (is_stored && model_.Hash(hashed, compacted, true) == answer.hash)) return;
  if (first->second.second != answer.hash) {
    Broken("H1", "different hashes of one state", record,
           absl::StrFormat("has hash %d of revision %d compacted at %d, where operation %d had %d", answer.hash, hashed,
                           compacted, first->second.first, first->second.second),
           first->second.first);
    return;
  }
  Broken("H2", "a hash that is not the model's", record,
         absl::StrFormat("has hash %d of revision %d compacted at %d instead of %d", answer.hash, hashed, compacted, right));
}

void RevisionOrder::JudgeFutureRevision(Record& record) {
  const Request& request = record.operation.request;
  int64_t seen = record.seen_at_call.kappa / 2;
  int64_t asked = HighestAsked(request);
  if (asked > 1 && (ReadsLocally(request) || asked > seen)) return;
  Broken("K13", "a false future revision", record,
         absl::StrFormat("was refused for a revision of the future though revision %d was seen before the call", seen),
         record.seen_at_call.operation);
}

void RevisionOrder::JudgeCompacted(Record& record) {
  const Request& request = record.operation.request;
  const int64_t seen = std::max<int64_t>(record.seen_at_call.kappa / 2, 1);
  std::optional<int64_t> compacted_at;
  bool possible = true;
  if (request.kind == OperationKind::kCompact) {
    if (request.revision < 0) return;  // as if -1 had been compacted from the start
    compacted_at = model_.CompactedAt(request.revision - 1);
  } else if (request.kind == OperationKind::kTxn) {
    // The earliest compaction that takes away what some operation asks for.
    possible = AsksForPast(request, false);
    for (const std::vector<Request>* branch : {&request.success, &request.failure}) {
      for (const Request& step : *branch) {
        if (!AsksForPast(step, true)) continue;
        if (step.kind == OperationKind::kTxn || step.revision < -1) return;  // refused whatever is compacted, or nested
        auto at = model_.CompactedAt(step.revision);
        if (at.has_value()) compacted_at = std::min(compacted_at.value_or(*at), *at);
      }
    }
  } else if (request.streamed && request.revision <= 0) {
    compacted_at = model_.CompactedAt(seen);  // while the stream was under way
  } else {
    possible = request.revision > 0;
    compacted_at = model_.CompactedAt(request.revision);
  }
  if (possible && compacted_at.has_value()) {
    if (!ReadsLocally(request)) Settle(record, std::max(record.seen_at_call.kappa, 2 * *compacted_at + 1));
    return;
  }
  Broken("K13", "a false compacted revision", record,
         absl::StrFormat("was refused as compacted while the compaction revision is %d", model_.compact_revision()));
}

// Places a definite error that is a statement about the state; errors that state nothing about it need no place.
void RevisionOrder::JudgeError(Record& record) {
  const Operation& operation = record.operation;
  const Request& request = operation.request;
  const std::string& error = operation.answer.error;
  const std::string_view earned = StaticError(request);
  if (IsStaticError(error) && error != earned) {
    bool keeps = error == kErrorValueProvided;
    Broken(keeps ? "K18" : (error == kErrorDuplicateKey ? "K9" : "K5"), "a false refusal", record,
           absl::StrFormat("was refused with `%s`, which its request does not earn", error));
    return;
  }
  if (error == kErrorFutureRevision || error == kErrorCompacted || error == kErrorKeyNotFound) {
    if (!earned.empty()) {
      Broken("K5", "a request that had to be refused", record,
             absl::StrFormat("was refused with `%s` instead of `%s`", error, earned));
    } else if (error == kErrorFutureRevision) {
      JudgeFutureRevision(record);
    } else if (error == kErrorCompacted) {
      JudgeCompacted(record);
    } else if (auto absent = model_.FirstAbsent(request, std::max<int64_t>(record.seen_at_call.kappa / 2, 1))) {
      Settle(record, std::max(record.seen_at_call.kappa, 2 * *absent + 1));
    } else {
      Broken("K18", "a false key not found", record, "was refused though its key existed all the time");
    }
  }
}

// Real time: nothing that returned before our call stands behind us.
void RevisionOrder::Settle(Record& record, int64_t kappa) {
  if (kappa < record.seen_at_call.kappa) {
    const Operation& earlier = records_.at(record.seen_at_call.operation).operation;
    Broken("K4", "an answer older than one returned before the call", record,
           absl::StrFormat("stands at revision %d, but %s had returned before it was called and stands at revision %d",
                           kappa / 2, Describe(earlier), record.seen_at_call.kappa / 2),
           earlier.id);
    return;
  }
  if (kappa > highest_.kappa) highest_ = Place{kappa, record.operation.id};
}

void RevisionOrder::OnStarted(MemberId member, Moment moment) {
  members_[member] = MemberAnswers{.started = moment, .risen = {}};
}

// The incarnation that answered: only operations called after it began are surely served by it. nullptr: not known.
RevisionOrder::MemberAnswers* RevisionOrder::Server(const Operation& operation) {
  auto it = members_.find(MemberId(operation.answer.header_member));
  if (it == members_.end() || operation.call.event <= it->second.started.event) return nullptr;
  return &it->second;
}

// The highest revision that the incarnation had answered before the call, in kappa's place. nullptr: none is known.
const RevisionOrder::Place* RevisionOrder::AnsweredBefore(const Operation& operation) {
  const MemberAnswers* server = Server(operation);
  if (server == nullptr) return nullptr;
  auto after = std::upper_bound(server->risen.begin(), server->risen.end(), operation.call.event,
                                [](uint64_t event, const auto& rise) { return event < rise.first; });
  return after == server->risen.begin() ? nullptr : &std::prev(after)->second;
}

// R3.
void RevisionOrder::JudgeMember(Record& record) {
  const Operation& operation = record.operation;
  MemberAnswers* server = Server(operation);
  if (server == nullptr) return;
  auto& risen = server->risen;
  int64_t revision = operation.answer.header_revision;
  if (const Place* place = AnsweredBefore(operation); place != nullptr && place->kappa > revision) {
    Broken("R3", "a member answered backwards", record,
           absl::StrFormat("was answered at revision %d by member %x, which had answered operation %d at revision %d "
                           "before the call",
                           revision, operation.answer.header_member, place->operation, place->kappa),
           place->operation);
    return;
  }
  if (risen.empty() || revision > risen.back().second.kappa) {
    risen.emplace_back(operation.end.event, Place{revision, operation.id});
  }
}

}  // namespace detcd::checker
