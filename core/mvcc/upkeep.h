// The store's work in the background: the removals of compactions, each preceded by the hash that etcd makes of what a
// compaction walks over, and the hashes that were asked for. One queue, first in, first out, done in slices: so each
// hash sees exactly the history that etcd would show it once its own compactions have settled, on a slow member and on
// a fast one.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <vector>

#include "core/base/types.h"
#include "core/mvcc/compaction.h"
#include "core/mvcc/hash.h"
#include "core/mvcc/key_index.h"

namespace detcd::mvcc {

class Upkeep {
 public:
  // All outlive this object. A removal waits while a revision below it is among `holds`.
  Upkeep(KeyIndex& index, Garbage& garbage, const std::multiset<Revision>& holds)
      : index_(index), garbage_(garbage), holds_(holds) {}

  // Compaction to `revision`, the one before having been to `former` (-1: none).
  void AddCompaction(Revision revision, Revision former);
  // Whether one of the last ten compactions, done or not, was to exactly this number.
  bool KeepsHash(Revision revision) const;
  // The hash for a request of `asked`: the kept one when `kept`, else that of `scope`. nullopt: too many wait.
  std::optional<uint64_t> AddHash(Revision asked, const HashScope& scope, bool kept);

  bool HasWork() const { return !jobs_.empty() && !Held(jobs_.front()); }
  // One slice. The bytes of memory it freed.
  uint64_t Work(size_t changes_max);

  Revision removed_revision() const { return removed_revision_; }
  std::vector<FinishedHash> TakeHashes();

 private:
  struct Job {
    enum class Kind : uint8_t { kCompaction, kHash };
    Kind kind;
    bool hash_wanted = true;  // still to be made, before the removal of a compaction begins
    bool kept = false;        // answered with the kept result for `asked`
    HashScope scope;          // a compaction's own revision and the one before it, or what the hash covers
    Revision asked;
    uint64_t ticket = 0;
  };
  struct KeptHash {
    Revision asked;  // the compaction's number
    HashResult result;
  };

  bool Held(const Job& job) const;
  bool WorkOnHash(Job& job, size_t changes_max);
  void FinishHash(const Job& job, const HashResult& result);
  const HashResult& KeptFor(Revision asked) const;
  void Forgo();

  KeyIndex& index_;
  Garbage& garbage_;
  const std::multiset<Revision>& holds_;
  std::deque<Job> jobs_;
  std::optional<HashJob> hash_;         // of the first job, while it goes on
  std::deque<KeptHash> kept_;           // of the last compactions that are done, ascending
  size_t compactions_waiting_ = 0;      // in jobs_
  size_t hashes_waiting_ = 0;           // in jobs_
  uint64_t next_ticket_ = 1;
  Revision removed_revision_{-1};
  std::vector<FinishedHash> finished_;
};

}  // namespace detcd::mvcc
