// etcd's key-value semantics as a sequential specification: the second, independent implementation, written to be
// obviously right. It keeps every version of every key, so any past revision can be asked. Pure: no clock, no I/O.
// Facts: reference/semantics.md 1-8, 17; what one request does to one state is in execution.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checker/execution.h"
#include "checker/history.h"
#include "checker/range_rules.h"

namespace detcd::checker {

// What one committed entry did to the store.
enum class EffectKind : uint8_t {
  kNone,        // changed nothing: another kind of request, a delete of nothing, a transaction that only read or had to fail
  kChange,      // made a revision
  kCompaction,  // raised the compaction revision
  kForeign,     // a request whose effect this model does not know, or bytes that are no request
};

struct Effect {
  EffectKind kind = EffectKind::kNone;
  Request request;        // kChange, kCompaction: as committed
  int64_t changes = 0;    // kChange: how many sub revisions
  int64_t revision = 0;   // the store's revision after the entry: a new one for kChange
};

class KvModel {
 public:
  struct Compaction {
    int64_t compacted = 0;  // ascending
    int64_t revision = 0;   // of the store at that time
  };

  // Applies the data of a committed entry: an encoded InternalRaftRequest, or empty.
  Effect Apply(std::string_view entry_data);

  int64_t revision() const { return revision_; }                  // 1 when empty
  // The revision compacted last; -1: never compacted.
  int64_t compact_revision() const { return compactions_.empty() ? -1 : compactions_.back().compacted; }
  // The store's revision at the first compaction that took `revision` away; nullopt: it can still be read.
  std::optional<int64_t> CompactedAt(int64_t revision) const;
  const std::vector<Compaction>& compactions() const { return compactions_; }
  // What every member that has made `revision` had compacted before it did.
  int64_t CompactedBefore(int64_t revision) const;

  // One key, and the keys of a range in key order, at revision `at` in [1, revision()]. Not affected by compaction:
  // whether a revision may still be asked is for the judge to say.
  std::optional<ObservedKeyValue> Get(std::string_view key, int64_t at) const;
  std::vector<ObservedKeyValue> Live(std::string_view key, std::string_view range_end, int64_t at) const;

  // `request` run on the state at revision `at`, and held against its answer when there is one. `compacted`: the
  // compaction revision then.
  Execution ExecuteAt(const Request& request, int64_t at, int64_t compacted, const Answer* answer) const;
  // As the free function, had it been read at revision `at`.
  std::string RangeTrouble(const Request& request, const Answer& answer, int64_t at) const;

  // The first revision in [from, revision()] at which `request` fails for an absent key; nullopt: there is none.
  std::optional<int64_t> FirstAbsent(const Request& request, int64_t from) const;

  // HashKV at `revision` of a store whose last compaction is `compacted`.
  uint32_t Hash(int64_t revision, int64_t compacted) const;

 private:
  struct Version {
    int64_t mod = 0;
    int64_t sub = 0;
    int64_t create = 0;   // 0: this version is a deletion
    int64_t version = 0;
    std::string value;
  };
  using History = std::vector<Version>;  // ascending in (mod, sub)

  static const Version* At(const History& history, int64_t at);
  const History* Find(std::string_view key) const;
  Effect Compact(Request request);
  Effect Nothing(EffectKind kind = EffectKind::kNone) const;

  std::map<std::string, History, std::less<>> keys_;
  int64_t revision_ = 1;
  std::vector<Compaction> compactions_;
};

}  // namespace detcd::checker
