// The key-value state: every key with its history of puts and deletes, in memory, ordered by revision. Changes come from
// the apply loop only, one transaction (one main revision) at a time; reads see one revision. Semantics:
// reference/semantics.md 2, 3, 5, 6, 8, 17.
//
// Compaction counts at once: from Compact on, reads below its revision fail. What it makes superfluous is removed later,
// in slices that the owner asks for, and nobody can tell how far that has come: a read at or above the compaction
// revision is the same before and after, and hashes wait their turn behind the removals that came before them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/bytes.h"
#include "core/base/limits.h"
#include "core/base/types.h"
#include "core/mvcc/hash.h"

namespace detcd::mvcc {

// One key at one revision. Shares the store's bytes.
struct KeyValue {
  Bytes key;
  Bytes value;
  Revision create_revision;
  Revision mod_revision;
  int64_t version = 0;
  LeaseId lease;

  friend bool operator==(const KeyValue&, const KeyValue&) = default;
};

// The keys of a request: `end` empty: `key` alone; one byte 0x00: all keys >= key; otherwise [key, end).
struct KeyRange {
  std::string_view key;
  std::string_view end;
};

enum class SortOrder : uint8_t { kNone, kAscend, kDescend };
enum class SortTarget : uint8_t { kKey, kVersion, kCreate, kMod, kValue };

struct RangeOptions {
  Revision revision;             // <= 0: current
  int64_t limit = 0;             // <= 0: none
  SortOrder sort_order = SortOrder::kNone;
  SortTarget sort_target = SortTarget::kKey;
  bool keys_only = false;
  bool count_only = false;
  Revision min_mod_revision;     // 0: off, for all four
  Revision max_mod_revision;
  Revision min_create_revision;
  Revision max_create_revision;
};

// What can be wrong with a revision that a request names.
enum class RangeError : uint8_t { kOk, kFutureRevision, kCompacted };

// Bounds of one slice of a range: keys walked over, pairs given, and their bytes (the last pair may pass them).
struct RangeSlice {
  size_t keys_max = std::numeric_limits<size_t>::max();
  size_t pairs_max = std::numeric_limits<size_t>::max();
  size_t bytes_max = std::numeric_limits<size_t>::max();
};

struct RangeResult {
  RangeError error = RangeError::kOk;
  std::vector<KeyValue> kvs;
  int64_t count = 0;   // before limit and filters
  bool more = false;
};

class RangeScan;

class Store {
 public:
  Store();
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  Revision revision() const;          // 1 when empty
  Revision compact_revision() const;  // -1: never compacted

  RangeResult Range(const KeyRange& range, const RangeOptions& options) const;
  // As above when one slice is enough. nullopt: it is not, and the answer takes a Scan.
  std::optional<RangeResult> RangeWithin(const KeyRange& range, const RangeOptions& options,
                                         const RangeSlice& slice) const;
  // A range in slices, for which the store may change between them; not of one single key. `options.revision` is positive
  // and can be read, and a Hold of it lives as long as the scan. So do the bytes of `range`.
  RangeScan Scan(const KeyRange& range, const RangeOptions& options) const;

  // While it lives, what can be read at `revision` stays, also below a later compaction: that counts at once, as ever, and
  // its removals wait.
  class Hold {
   public:
    Hold(const Store& store, Revision revision);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    std::multiset<Revision>& holds_;
    std::multiset<Revision>::iterator place_;
  };

  // Part of a range: its first pairs in key order, until `pairs_max` of them or `bytes_max` bytes of keys and values (but
  // at least one) have been read. `more`: there are others behind. Nothing is counted, so the cost is that of the part.
  struct Part {
    RangeError error = RangeError::kOk;
    std::vector<KeyValue> kvs;
    bool more = false;
  };
  struct PartOptions {
    Revision revision;  // positive
    size_t pairs_max = 0;
    size_t bytes_max = 0;
    bool keys_only = false;
  };
  Part ReadPart(const KeyRange& range, const PartOptions& options) const;

  // One key at the current revision.
  std::optional<KeyValue> Get(std::string_view key) const;
  // Calls visit(pair) for the live keys of the range at the current revision in key order, until it says false. The pair
  // is good for the visit only.
  void Visit(const KeyRange& range, absl::FunctionRef<bool(const KeyValue& pair)> visit) const;

  // --- one transaction: Begin, changes, Commit ----------------------------------------------------------------------
  // All changes of one transaction get one main revision, with sub revisions in execution order.
  void Begin();
  // The pair before, when it existed.
  std::optional<KeyValue> Put(Bytes key, Bytes value, LeaseId lease);
  // The pairs deleted, in key order.
  std::vector<KeyValue> DeleteRange(const KeyRange& range);
  // The revision as the open transaction sees it: one higher from its first change on.
  Revision transaction_revision() const;
  // Whether the store changed: then its revision is one higher.
  bool Commit();

  // --- compaction and hashes ----------------------------------------------------------------------------------------
  // Ends all history before `revision`, which must be above compact_revision() (else kCompacted) and not above
  // revision() (else kFutureRevision).
  RangeError Compact(Revision revision);
  // Removals are done up to here; at most compact_revision().
  Revision removed_revision() const;

  struct HashRequest {
    RangeError error = RangeError::kOk;
    bool too_many = false;  // kHashesWaitingMax are under way already
    uint64_t ticket = 0;    // of the answer among TakeHashes
  };
  // Asks for the HashKV at `revision`; 0: the current one; a negative number is answered with the hash of nothing. A
  // compaction's own hash is kept until ten newer ones have pushed it out, and is the answer for its exact revision, as
  // asked, also after later compactions.
  HashRequest RequestHash(Revision revision);
  // Hands out the hashes that are done.
  std::vector<FinishedHash> TakeHashes();

  // Whether Work has anything to do now.
  bool HasWork() const;
  // One slice of the oldest removal or hash: about `changes_max` changes at most.
  void Work(size_t changes_max = kStoreSliceChanges);

  // --- size and fingerprint -----------------------------------------------------------------------------------------
  // A digest of all changes and compactions so far, in order, and of the revision: equal on members with equal
  // histories, however far their removals have come. O(1).
  uint64_t history_digest() const;
  uint64_t bytes() const;  // approximate memory of keys and values
  uint64_t key_count() const;  // live keys

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace detcd::mvcc
