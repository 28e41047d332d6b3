// etcd's key-value semantics as a sequential specification: the second, independent implementation, written to be
// obviously right. It keeps every version of every key, so any past revision can be asked. Pure: no clock, no I/O.
// Facts: reference/semantics.md 1-3, 5, 6, 8.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checker/history.h"

namespace detcd::checker {

// What one committed entry did to the store.
enum class EffectKind : uint8_t {
  kNone,     // changed no key: another kind of request, a delete of nothing, a put that had to fail
  kPut,
  kDelete,
  kForeign,  // a request whose effect this model does not know, or bytes that are no request
};

struct Effect {
  EffectKind kind = EffectKind::kNone;
  std::string key;
  std::string range_end;      // delete
  std::string value;          // put: as requested (empty with ignore_value)
  bool ignore_value = false;  // put
  int64_t deleted = 0;        // delete: how many keys, at least 1
  int64_t revision = 0;       // the store's revision after the entry: a new one for kPut and kDelete
};

// Whether `key` lies in the range of a request: `range_end` empty: the key alone; one byte 0x00: all keys from it on.
bool InRange(std::string_view candidate, std::string_view key, std::string_view range_end);

// What is wrong with a successful answer to the range `request` where `pairs` are the live pairs of its range, in key
// order: empty when it is right. Where etcd leaves the order open (equal sort values) every order is right.
std::string RangeTrouble(const Request& request, const Answer& answer, std::vector<ObservedKeyValue> pairs);

class KvModel {
 public:
  // Applies the data of a committed entry: an encoded InternalRaftRequest, or empty.
  Effect Apply(std::string_view entry_data);

  int64_t revision() const { return revision_; }                  // 1 when empty
  // The revision compacted last; -1: never compacted.
  int64_t compact_revision() const { return compactions_.empty() ? -1 : compactions_.back().compacted; }
  // The store's revision at the first compaction that took `revision` away; nullopt: it can still be read.
  std::optional<int64_t> CompactedAt(int64_t revision) const;

  // One key, and the keys of a range in key order, at revision `at` in [1, revision()]. Not affected by compaction:
  // whether a revision may still be asked is for the judge to say.
  std::optional<ObservedKeyValue> Get(std::string_view key, int64_t at) const;
  std::vector<ObservedKeyValue> Live(std::string_view key, std::string_view range_end, int64_t at) const;

  // As the free function, had it been read at revision `at`.
  std::string RangeTrouble(const Request& request, const Answer& answer, int64_t at) const;

  // The first revision in [from, revision()] at which `key` does not exist; nullopt: there is none.
  std::optional<int64_t> FirstAbsent(std::string_view key, int64_t from) const;

 private:
  struct Version {
    int64_t mod = 0;
    int64_t create = 0;   // 0: this version is a deletion
    int64_t version = 0;
    std::string value;
  };
  struct Compaction {
    int64_t compacted = 0;  // ascending
    int64_t revision = 0;   // of the store at that time
  };
  using History = std::vector<Version>;  // ascending in mod

  static const Version* At(const History& history, int64_t at);
  const History* Find(std::string_view key) const;
  Effect Put(std::string key, std::string value, bool ignore_value, bool ignore_lease);
  Effect Delete(std::string key, std::string range_end);
  Effect Nothing(EffectKind kind = EffectKind::kNone) const;

  std::map<std::string, History, std::less<>> keys_;
  int64_t revision_ = 1;
  std::vector<Compaction> compactions_;
};

}  // namespace detcd::checker
