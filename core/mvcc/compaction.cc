#include "core/mvcc/compaction.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/probe.h"

namespace detcd::mvcc {
namespace {

uint64_t BytesOf(const KeyVersion& version) { return sizeof(KeyVersion) + version.value.size(); }

}  // namespace

Garbage::Collected Garbage::Collect(KeyIndex& index, Revision compact, size_t changes_max) {
  Collected collected;
  size_t left = changes_max;
  const auto take_oldest = [&](KeyRecord& record, size_t count) {
    for (const KeyVersion* version = record.versions.begin(); version != record.versions.begin() + count; ++version) {
      collected.bytes += BytesOf(*version);
    }
    record.versions.RemoveOldest(count);
    left -= std::min(left, count);
  };

  for (; left > 0 && !hidden_.empty() && hidden_.front().main <= compact; hidden_.pop_front()) {
    // The note's own change stays; what stands before it is hidden by it. There is one, the put, or two: a tombstone
    // before that put, when the key came to life again.
    const Note& note = hidden_.front();
    VersionList& versions = note.record->versions;
    size_t older = 0;
    while (std::pair(versions.begin()[older].main, versions.begin()[older].sub) < std::pair(note.main, note.sub)) ++older;
    CHECK(older <= 2);
    take_oldest(*note.record, older);
    left -= std::min<size_t>(left, 1);
  }

  // Only now: the notes above hold records that may end here. A record with a hiding change above `compact` in its
  // notes has that change, so it does not end.
  for (; left > 0 && !tombstones_.empty() && tombstones_.front().main < compact; tombstones_.pop_front()) {
    const Note& note = tombstones_.front();
    left -= 1;
    const KeyVersion& oldest = note.record->versions.front();
    if (oldest.main != note.main || oldest.sub != note.sub) {
      PROBE("mvcc.tombstone_taken_with_later_change");
      continue;
    }
    take_oldest(*note.record, 1);
    if (!note.record->versions.empty()) continue;
    collected.bytes += KeyIndex::KeyBytes(note.record->key.size());
    index.Remove(*note.record);
  }

  const bool hidden_left = !hidden_.empty() && hidden_.front().main <= compact;
  const bool tombstones_left = !tombstones_.empty() && tombstones_.front().main < compact;
  collected.done = !hidden_left && !tombstones_left;
  return collected;
}

}  // namespace detcd::mvcc
