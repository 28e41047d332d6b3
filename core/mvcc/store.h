// The key-value state: every key with its history of puts and deletes, in memory, ordered by revision. Changes come
// from the apply loop only, one transaction (one main revision) at a time; reads see one revision. Nothing is compacted
// yet. Semantics: reference/semantics.md 2, 3, 5, 6.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/types.h"

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

enum class RangeError : uint8_t { kOk, kFutureRevision, kCompacted };

struct RangeResult {
  RangeError error = RangeError::kOk;
  std::vector<KeyValue> kvs;
  int64_t count = 0;   // before limit and filters
  bool more = false;
};

class Store {
 public:
  Store();
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  Revision revision() const;          // 1 when empty
  Revision compact_revision() const;  // -1: never compacted

  RangeResult Range(const KeyRange& range, const RangeOptions& options) const;

  // One key at the current revision.
  std::optional<KeyValue> Get(std::string_view key) const;

  // --- one transaction: Begin, changes, Commit ----------------------------------------------------------------------
  // All changes of one transaction get one main revision, with sub revisions in execution order.
  void Begin();
  // The pair before, when it existed.
  std::optional<KeyValue> Put(Bytes key, Bytes value, LeaseId lease);
  // The pairs deleted, in key order.
  std::vector<KeyValue> DeleteRange(const KeyRange& range);
  // Whether the store changed: then its revision is one higher.
  bool Commit();

  // --- size and fingerprint -----------------------------------------------------------------------------------------
  // A digest of all changes so far, in order, and of the revision: equal on members with equal histories. O(1).
  uint64_t history_digest() const;
  uint64_t bytes() const;  // approximate memory of keys and values
  uint64_t key_count() const;  // live keys

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace detcd::mvcc
