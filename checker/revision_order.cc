#include "checker/revision_order.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "core/base/check.h"

namespace detcd::checker {
namespace {

// Keys and values are any bytes: as they are, a zero byte would end what is printed of the story there.
std::string Shorten(const std::string& bytes) {
  const std::string text = absl::CEscape(bytes);
  return text.size() <= 24 ? text : text.substr(0, 21) + "...";
}

std::string ShowRange(const Request& request) {
  if (request.range_end.empty()) return Shorten(request.key);
  if (request.range_end == std::string(1, '\0')) return absl::StrFormat("[%s, ...)", Shorten(request.key));
  return absl::StrFormat("[%s, %s)", Shorten(request.key), Shorten(request.range_end));
}

std::string Show(const Effect& effect) {
  if (effect.kind == EffectKind::kPut) {
    return absl::StrFormat("put %s=%s", Shorten(effect.key), effect.ignore_value ? "(kept)" : Shorten(effect.value));
  }
  return "delete " + ShowRange(Request{.key = effect.key, .range_end = effect.range_end});
}

std::string Show(const std::vector<ObservedKeyValue>& kvs) {
  if (kvs.empty()) return "none";
  const ObservedKeyValue& kv = kvs.front();
  return absl::StrFormat("%s=%s (create %d, mod %d, version %d)%s", Shorten(kv.key), Shorten(kv.value),
                         kv.create_revision, kv.mod_revision, kv.version, kvs.size() > 1 ? " and more" : "");
}

}  // namespace

std::string Describe(const Operation& operation) {
  const Request& request = operation.request;
  std::string what;
  switch (request.kind) {
    case OperationKind::kPut:
      what = absl::StrFormat("put %s=%s", Shorten(request.key),
                             request.ignore_value ? "(kept)" : Shorten(request.value));
      break;
    case OperationKind::kDelete: what = "delete " + ShowRange(request); break;
    case OperationKind::kRange:
      what = (request.serializable ? "serializable range " : "range ") + ShowRange(request);
      if (request.revision > 0) what += absl::StrFormat(" at revision %d", request.revision);
      break;
  }
  return absl::StrFormat("operation %d (client %d: %s)", operation.id, operation.client, what);
}

RevisionOrder::RevisionOrder(Verdict& verdict) : verdict_(verdict) {}

RevisionOrder::EffectKey RevisionOrder::KeyOf(const Request& request) {
  if (request.kind == OperationKind::kPut) {
    return {EffectKind::kPut, request.ignore_value, request.key, request.value};
  }
  return {EffectKind::kDelete, false, request.key, request.range_end};
}

RevisionOrder::EffectKey RevisionOrder::KeyOf(const Effect& effect) {
  if (effect.kind == EffectKind::kPut) return {EffectKind::kPut, effect.ignore_value, effect.key, effect.value};
  return {EffectKind::kDelete, false, effect.key, effect.range_end};
}

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
  if (operation.request.kind != OperationKind::kRange) {
    unpaired_[KeyOf(operation.request)].operations.push_back(operation.id);
  }
}

void RevisionOrder::OnCommitted(const CommittedEntry& entry, Moment moment) {
  if (entry.is_conf_change) return;
  Effect effect = model_.Apply(entry.data.view());
  if (effect.kind == EffectKind::kNone) return;
  if (effect.kind == EffectKind::kForeign) {
    verdict_.Report("model", "a committed request that the model does not know",
                    absl::StrFormat("entry %d holds a request whose effect the model does not know", entry.index.value),
                    moment);
    return;
  }
  Unpaired& unpaired = unpaired_[KeyOf(effect)];
  unpaired.revisions.push_back(effect.revision);
  made_.push_back(Made{.effect = std::move(effect), .committed = moment});
  JudgeUnpaired(unpaired, moment);
}

// The i-th revision needs the i-th operation, called before the revision was committed.
void RevisionOrder::JudgeUnpaired(const Unpaired& unpaired, Moment moment) {
  for (size_t i = 0; i < unpaired.revisions.size(); ++i) {
    int64_t revision = unpaired.revisions[i];
    const Made& made = made_[static_cast<size_t>(revision - 2)];
    if (i < unpaired.operations.size() &&
        records_.at(unpaired.operations[i]).operation.call.event < made.committed.event) {
      continue;
    }
    std::string what = absl::StrFormat("revision %d (%s)", revision, Show(made.effect));
    if (!unpaired.refused.empty()) {
      const Operation& refused = records_.at(unpaired.refused.front()).operation;
      verdict_.Report("K16", "a refused operation took effect",
                      absl::StrFormat("%s was refused (%s), yet only it can have made %s", Describe(refused),
                                      refused.answer.error, what),
                      moment, {refused.id});
      return;
    }
    for (const Made& other : made_) {
      if (&other == &made || KeyOf(other.effect) != KeyOf(made.effect)) continue;
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
  if (record.operation.request.kind == OperationKind::kRange) return;
  Unpaired& unpaired = unpaired_[KeyOf(record.operation.request)];
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
  int64_t revision = operation.answer.header_revision;
  if (revision < 1 || revision > model_.revision()) {
    bool write = operation.request.kind != OperationKind::kRange;
    Broken(write ? "K17" : "K14", "an answer at a revision that is not committed", record,
           absl::StrFormat("was answered at revision %d while only %d is committed", revision, model_.revision()));
    return;
  }
  switch (operation.request.kind) {
    case OperationKind::kPut: JudgeWrite(record); break;
    case OperationKind::kDelete:
      if (operation.answer.count == 0) {
        JudgeIdleDelete(record);
      } else {
        JudgeWrite(record);
      }
      break;
    case OperationKind::kRange: JudgeRange(record); break;
  }
  if (!verdict_.broken()) JudgeMember(record);
}

bool RevisionOrder::OwnRevision(Record& record) {
  int64_t revision = record.operation.answer.header_revision;
  if (revision < 2) {
    Broken("K3", "a change without a new revision", record, "says it changed the store at revision 1");
    return false;
  }
  Made& made = made_[static_cast<size_t>(revision - 2)];
  EffectKey key = KeyOf(record.operation.request);
  if (key != KeyOf(made.effect)) {
    Broken("K5", "a revision with another effect", record,
           absl::StrFormat("says it made revision %d, which is %s", revision, Show(made.effect)), made.owner);
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
  Unpaired& unpaired = unpaired_[key];
  std::erase(unpaired.operations, record.operation.id);
  std::erase(unpaired.revisions, revision);
  JudgeUnpaired(unpaired, record.operation.end);
  return !verdict_.broken();
}

void RevisionOrder::JudgeWrite(Record& record) {
  if (!OwnRevision(record)) return;
  const Operation& operation = record.operation;
  const Request& request = operation.request;
  const Answer& answer = operation.answer;
  int64_t revision = answer.header_revision;
  std::vector<ObservedKeyValue> before;
  if (request.prev_kv) before = model_.Live(request.key, request.range_end, revision - 1);
  if (answer.kvs != before) {
    Broken("K10", "a wrong previous pair", record,
           absl::StrFormat("at revision %d shows as previous pair %s instead of %s", revision, Show(answer.kvs),
                           Show(before)));
    return;
  }
  int64_t deleted = EffectAt(revision).deleted;
  if (request.kind == OperationKind::kDelete && answer.count != deleted) {
    Broken("K11", "a wrong number of deleted keys", record,
           absl::StrFormat("at revision %d deleted %d keys instead of %d", revision, answer.count, deleted));
    return;
  }
  Settle(record, 2 * revision);
}

void RevisionOrder::JudgeIdleDelete(Record& record) {
  const Operation& operation = record.operation;
  int64_t revision = operation.answer.header_revision;
  CloseWithoutEffect(record, false);
  if (verdict_.broken()) return;
  std::vector<ObservedKeyValue> live = model_.Live(operation.request.key, operation.request.range_end, revision);
  if (!live.empty() || !operation.answer.kvs.empty()) {
    Broken("K11", "a delete that missed keys", record,
           absl::StrFormat("deleted nothing at revision %d, where %s exists", revision, Show(live)));
    return;
  }
  Settle(record, 2 * revision + 1);
}

void RevisionOrder::JudgeRange(Record& record) {
  const Operation& operation = record.operation;
  const Request& request = operation.request;
  int64_t revision = operation.answer.header_revision;
  int64_t at = request.revision > 0 ? request.revision : revision;
  if (at > revision) {
    Broken("K13", "a read of the future", record, absl::StrFormat("was answered at revision %d", revision));
    return;
  }
  // A serializable read may be served by a member that has not seen the compaction.
  if (at < record.compacted_at_call && request.revision > 0 && !request.serializable) {
    Broken("K13", "a read of a compacted revision", record,
           absl::StrFormat("was answered though revision %d was compacted before the call", record.compacted_at_call));
    return;
  }
  std::string trouble = model_.RangeTrouble(request, operation.answer, at);
  if (!trouble.empty()) {
    Broken(request.revision > 0 ? "K13" : (request.serializable ? "R2" : "K5"), "a wrong answer to a range", record,
           absl::StrFormat("at revision %d shows %s", at, trouble));
    return;
  }
  if (!request.serializable) Settle(record, 2 * revision + 1);
}

// Places a definite error that is a statement about the state; errors that state nothing about it need no place.
void RevisionOrder::JudgeError(Record& record) {
  const Operation& operation = record.operation;
  const Request& request = operation.request;
  const std::string& error = operation.answer.error;
  bool is_range = request.kind == OperationKind::kRange;
  int64_t seen = record.seen_at_call.kappa / 2;  // the revision at the earliest place
  if (error == kErrorFutureRevision) {
    bool possible = is_range && request.revision > 1 && (request.serializable || request.revision > seen);
    if (possible) return;
    Broken("K13", "a false future revision", record,
           absl::StrFormat("was refused as a read of the future though revision %d was seen before the call", seen),
           record.seen_at_call.operation);
  } else if (error == kErrorCompacted) {
    auto compacted_at = model_.CompactedAt(request.revision);
    if (is_range && request.revision > 0 && compacted_at.has_value()) {
      if (!request.serializable) Settle(record, std::max(record.seen_at_call.kappa, 2 * *compacted_at + 1));
      return;
    }
    Broken("K13", "a false compacted revision", record,
           absl::StrFormat("was refused as compacted while the compaction revision is %d", model_.compact_revision()));
  } else if (error == kErrorKeyNotFound) {
    auto absent = model_.FirstAbsent(request.key, std::max<int64_t>(seen, 1));
    if (request.kind == OperationKind::kPut && request.ignore_value && absent.has_value()) {
      Settle(record, std::max(record.seen_at_call.kappa, 2 * *absent + 1));
      return;
    }
    Broken("K18", "a false key not found", record, "was refused though its key existed all the time");
  } else if (error == kErrorEmptyKey) {
    if (!request.key.empty()) Broken("K5", "a false empty key", record, "was refused for an empty key");
  } else if (error == kErrorValueProvided) {
    if (!request.ignore_value || request.value.empty()) {
      Broken("K18", "a false value provided", record, "was refused for a value it does not have");
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

// R3. Only operations called after the incarnation began are surely served by it.
void RevisionOrder::JudgeMember(Record& record) {
  const Operation& operation = record.operation;
  auto it = members_.find(MemberId(operation.answer.header_member));
  if (it == members_.end() || operation.call.event <= it->second.started.event) return;
  auto& risen = it->second.risen;
  int64_t revision = operation.answer.header_revision;
  auto after = std::upper_bound(risen.begin(), risen.end(), operation.call.event,
                                [](uint64_t event, const auto& rise) { return event < rise.first; });
  if (after != risen.begin() && std::prev(after)->second.kappa > revision) {
    const Place& place = std::prev(after)->second;
    Broken("R3", "a member answered backwards", record,
           absl::StrFormat("was answered at revision %d by member %x, which had answered operation %d at revision %d "
                           "before the call",
                           revision, it->first.value, place.operation, place.kappa),
           place.operation);
    return;
  }
  if (risen.empty() || revision > risen.back().second.kappa) {
    risen.emplace_back(operation.end.event, Place{revision, operation.id});
  }
}

}  // namespace detcd::checker
