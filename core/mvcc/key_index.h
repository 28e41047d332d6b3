// Every key with its versions, found by hash (the newest version of one key: most of what clients ask) and in byte
// order (ranges). The hash costs about 12 bytes a key and finds one of a million keys with a common prefix in a fifth
// to a tenth of the tree's time. A key stays in the index with its tombstones, which reads at old revisions need, until
// compaction takes its last change.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_set.h"
#include "core/base/bytes.h"
#include "core/base/digest.h"
#include "core/base/types.h"

namespace detcd::mvcc {

// One change of one key: a put, or a tombstone when `version` is 0 (then only main and sub mean something).
struct KeyVersion {
  Revision main;
  Revision create;
  int64_t version = 0;
  LeaseId lease;
  Bytes value;
  uint32_t sub = 0;

  bool IsTombstone() const { return version == 0; }
};
static_assert(sizeof(KeyVersion) <= 64, "one cache line a version");

// The changes of one key, oldest first. One block that is exact for one change (what most keys have), doubles from
// there, and is given back by halves as compaction takes the oldest: taking one costs no move of the rest.
class VersionList {
 public:
  VersionList() = default;
  ~VersionList() { Release(); }
  VersionList(const VersionList&) = delete;
  VersionList& operator=(const VersionList&) = delete;

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  const KeyVersion* begin() const { return block_ + first_; }
  const KeyVersion* end() const { return begin() + size_; }
  const KeyVersion& front() const { return *begin(); }
  const KeyVersion& back() const { return begin()[size_ - 1]; }

  KeyVersion& Add();
  // The caller knows that there are `count`.
  void RemoveOldest(size_t count);

 private:
  void Move(uint32_t capacity);
  void Release();

  KeyVersion* block_ = nullptr;
  uint32_t first_ = 0;  // places before it are empty
  uint32_t size_ = 0;
  uint32_t capacity_ = 0;
};

// One key. `versions` rises in (main, sub), is never empty once the change that made the key has been added, and two
// tombstones never follow each other.
struct KeyRecord {
  Bytes key;
  VersionList versions;

  // The put visible at main revision `at`; null when the key does not exist then.
  const KeyVersion* VisibleAt(Revision at) const;
  // The newest put; null when the key does not exist now.
  const KeyVersion* Newest() const;
};

class KeyIndex {
 public:
  // Null: no change of it is kept. A record stays where it is until it is removed.
  KeyRecord* Find(std::string_view key) const;
  // The record of `key`, made without versions when it is new. A new one holds a copy of the key, because the bytes
  // given are a slice of a whole request that would live on with it.
  KeyRecord& FindOrAdd(std::string_view key);
  // Ends the life of a record of this index, whose versions are empty.
  void Remove(KeyRecord& record);

  // Calls visit(record) for the keys in [first, limit) in byte order; no limit: to the end. `visit` returns whether to
  // go on, and may change the versions of the record but not the index.
  template <class Visit>
  void ForEach(std::string_view first, std::optional<std::string_view> limit, Visit&& visit) const {
    for (auto it = ordered_.lower_bound(Probe::Of(first)); it != ordered_.end(); ++it) {
      if (limit && it->record->key.view() >= *limit) return;
      if (!visit(*it->record)) return;
    }
  }

  size_t size() const { return ordered_.size(); }
  // Approximate memory of one more key with its place in both structures, without its versions.
  static uint64_t KeyBytes(size_t key_size);

 private:
  // Both structures compare the first eight bytes of a key as one number before they touch the key itself.
  struct Probe {
    uint64_t prefix;  // big-endian, padded with zero bytes: its order agrees with byte order, equality decides nothing
    std::string_view key;

    static Probe Of(std::string_view key);
  };
  struct Slot {
    uint64_t prefix;
    std::unique_ptr<KeyRecord> record;
  };
  struct Less {
    using is_transparent = void;
    static Probe ProbeOf(const Slot& slot) { return {slot.prefix, slot.record->key.view()}; }
    static const Probe& ProbeOf(const Probe& probe) { return probe; }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      if (a.prefix != b.prefix) return a.prefix < b.prefix;
      return ProbeOf(a).key < ProbeOf(b).key;
    }
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view key) const { return DigestBytes(key); }
    size_t operator()(const KeyRecord* record) const { return DigestBytes(record->key.view()); }
  };
  struct Equal {
    using is_transparent = void;
    static std::string_view KeyOf(std::string_view key) { return key; }
    static std::string_view KeyOf(const KeyRecord* record) { return record->key.view(); }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return KeyOf(a) == KeyOf(b);
    }
  };

  absl::btree_set<Slot, Less> ordered_;
  absl::flat_hash_set<KeyRecord*, Hash, Equal> by_key_;  // look-up only, never iterated
};

}  // namespace detcd::mvcc
