// HashKV: the checksum of the changes that a member still has, as etcd 3.7 computes it over the key bucket of its page
// file (reference/semantics.md 17): CRC-32C of the bucket's name, then of each change in the order of revisions, its
// 17 or 18 byte revision key before its encoded mvccpb.KeyValue. Members that agree here have applied the same history.
//
// The key index knows no order of revisions, so a job gathers the changes key by key in short sorted runs and then
// merges the runs into the checksum, each step short. What compaction to the scope's own compaction revision takes makes
// no difference, taken or not; nothing more may be taken while a job runs. Puts and deletes may go on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/types.h"
#include "core/mvcc/key_index.h"

namespace detcd::mvcc {

// What a hash covers.
struct HashScope {
  Revision revision;          // changes above it are left out
  Revision compact_revision;  // changes at or below it count only where compaction to `revision` would keep them
  // The hash that compaction itself makes counts a tombstone at `revision` among the kept ones. Others do not.
  bool keeps_tombstones = false;
};

// The HashKV of one scope.
struct HashResult {
  uint32_t hash = 0;
  Revision compact_revision;
  Revision revision;

  friend bool operator==(const HashResult&, const HashResult&) = default;
};

// A hash that somebody asked for, done.
struct FinishedHash {
  uint64_t ticket = 0;
  HashResult result;
};

class HashJob {
 public:
  // `index` outlives the job.
  HashJob(const KeyIndex& index, const HashScope& scope);

  // Goes on with at most about `changes_max` changes. Whether the hash is done; call no more then.
  bool Step(size_t changes_max);
  // Once done.
  HashResult result() const;

 private:
  struct Item {
    Revision main;
    uint32_t sub;
    bool hidden;  // at or below the compaction, and not kept
    const KeyRecord* record;
  };
  struct Run {  // of items_, ascending
    size_t next;
    size_t limit;
  };

  void Gather(size_t changes_max);
  void Merge(size_t changes_max);
  void AddRecord(const KeyRecord& record);
  void AddToHash(const Item& item);
  static bool Later(const Item& a, const Item& b);

  const KeyIndex& index_;
  HashScope scope_;
  uint32_t crc_ = 0;
  bool gathered_ = false;
  bool any_kept_ = false;       // etcd leaves nothing out when nothing at all is kept
  std::string next_key_;        // where gathering goes on
  std::vector<Item> items_;
  std::vector<Run> runs_;       // while merging: a heap, the earliest item on top
};

}  // namespace detcd::mvcc
