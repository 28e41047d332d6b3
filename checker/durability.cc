#include "checker/durability.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace detcd::checker {

Durability::Durability(const WorldObservation& world, const RevisionOrder& order, Verdict& verdict)
    : order_(order), verdict_(verdict), members_(world.members) {}

void Durability::OnEnd(const Operation& operation) {
  if (operation.outcome != Outcome::kAnswered || !operation.answer.error.empty()) return;
  if (operation.request.kind == OperationKind::kCompact) {
    if (order_.HasCompacted(operation.request.revision)) return;
    verdict_.Report("K17", "a compaction acknowledged before it was committed",
                    Describe(operation) + " was acknowledged and is not committed", operation.end, {operation.id});
    return;
  }
  if (!SaysItChanged(operation.request, operation.answer)) return;
  int64_t revision = operation.answer.header_revision;
  acknowledged_.emplace(revision, operation);
  if (revision >= 2 && revision <= order_.model().revision()) return;
  verdict_.Report("K17", "a write acknowledged before it was committed",
                  absl::StrFormat("%s was acknowledged at revision %d while %d is the newest that is committed",
                                  Describe(operation), revision, order_.model().revision()),
                  operation.end, {operation.id});
}

void Durability::Lost(MemberId member, const std::string& key, std::string what, Moment moment) {
  std::string sentence = absl::StrFormat("member %x in the end %s", member.value, what);
  for (auto it = acknowledged_.rbegin(); it != acknowledged_.rend(); ++it) {
    const Operation& operation = it->second;
    auto writes_it = [&](const KeyRange& range) { return InRange(key, range.key, range.range_end); };
    if (!std::ranges::any_of(WrittenRanges(operation.request), writes_it)) continue;
    sentence += absl::StrFormat("; the last acknowledged write of it is %s at revision %d", Describe(operation),
                                it->first);
    verdict_.Report("K17", "a final state that is not the log's", std::move(sentence), moment, {operation.id});
    return;
  }
  verdict_.Report("K17", "a final state that is not the log's", std::move(sentence), moment);
}

void Durability::OnFinal(MemberId member, std::span<const FinalKey> keys, Moment moment) {
  shown_.insert(member);
  const KvModel& model = order_.model();
  std::vector<ObservedKeyValue> expected = model.Live("", std::string(1, '\0'), model.revision());
  size_t i = 0;
  for (const FinalKey& got : keys) {
    if (i < expected.size() && expected[i].key < got.key) break;
    if (i == expected.size() || got.key < expected[i].key) {
      return Lost(member, got.key, absl::StrFormat("has key %s=%s, which does not exist", got.key, got.value), moment);
    }
    const ObservedKeyValue& want = expected[i++];
    ObservedKeyValue seen{.key = got.key,
                          .value = got.value,
                          .create_revision = got.create_revision.value,
                          .mod_revision = got.mod_revision.value,
                          .version = got.version};
    if (seen == want) continue;
    return Lost(member, got.key,
                absl::StrFormat("has %s=%s (create %d, mod %d, version %d) instead of %s (create %d, mod %d, "
                                "version %d)",
                                got.key, got.value, seen.create_revision, seen.mod_revision, seen.version, want.value,
                                want.create_revision, want.mod_revision, want.version),
                moment);
  }
  if (i == expected.size()) return;
  Lost(member, expected[i].key,
       absl::StrFormat("lacks key %s=%s of revision %d", expected[i].key, expected[i].value, expected[i].mod_revision),
       moment);
}

void Durability::Finish(Moment moment) {
  if (!acknowledged_.empty() && acknowledged_.rbegin()->first > order_.model().revision()) {
    const Operation& operation = acknowledged_.rbegin()->second;
    verdict_.Report("K17", "an acknowledged write is not in the log", Describe(operation) + " is not in the log",
                    moment, {operation.id});
  }
  if (shown_.empty()) return;
  for (MemberId member : members_) {
    if (shown_.contains(member)) continue;
    verdict_.Report("K17", "a member without a final state",
                    absl::StrFormat("member %x showed no final state though others did", member.value), moment);
  }
}

}  // namespace detcd::checker
