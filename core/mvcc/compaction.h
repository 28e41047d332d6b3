// What compaction may take. Every change that hides an older one of its key is noted as it is made; compaction to
// revision C then looks at the notes up to C and at nothing else, so its cost is that of the garbage, not of the keys.
//
// What stays (reference/semantics.md 8): per key the newest change at or below C if it is a put, or a tombstone whose
// main revision is C; and everything newer. In a transaction that deletes a key and puts it again, the put is the newest
// (etcd 3.7.3 forgets it when it compacts at that very revision; see client_pitfalls, Txn).
#pragma once

#include <cstdint>
#include <deque>

#include "core/base/types.h"
#include "core/mvcc/key_index.h"

namespace detcd::mvcc {

class Garbage {
 public:
  // `change`, the newest of `record`, hides the put before it.
  void NoteHidden(KeyRecord& record, const KeyVersion& change) { hidden_.push_back({change.main, change.sub, &record}); }
  // `tombstone`, the newest of `record`, goes by itself once compaction has passed it.
  void NoteTombstone(KeyRecord& record, const KeyVersion& tombstone) {
    tombstones_.push_back({tombstone.main, tombstone.sub, &record});
  }

  struct Collected {
    bool done = false;           // nothing is left to take for this revision
    uint64_t bytes = 0;          // of keys, versions and values
  };
  // Takes at most about `changes_max` changes that compaction to `compact` removes. Reads at or above `compact` see no
  // difference between before, halfway and after.
  Collected Collect(KeyIndex& index, Revision compact, size_t changes_max);

 private:
  struct Note {
    Revision main;  // of the noted change
    uint32_t sub;
    KeyRecord* record;
  };

  std::deque<Note> hidden_;      // ascending by (main, sub), as are the tombstones
  std::deque<Note> tombstones_;
};

}  // namespace detcd::mvcc
