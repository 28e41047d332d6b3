// The replicated log as raft sees it: a bounded tail of entries in memory, the terms of all entries as runs, and the
// marks of what was handed to the write-ahead log and what is durable there.
//
//   0 ... | first_in_memory ... applied ... commit ... | handed ... | last
//          older: in the segments only                  not given to the write-ahead log yet
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "core/base/types.h"
#include "core/raft/message.h"

namespace detcd::raft {

class RaftLog {
 public:
  // An empty log before index 1.
  RaftLog() = default;

  // --- recovery: before MakeRaft -----------------------------------------------------------------------------------
  // Adds recovered entries in order; all count as handed and durable.
  void Recover(std::vector<Entry> entries);

  // --- positions ---------------------------------------------------------------------------------------------------
  LogIndex last_index() const;
  Term last_term() const;
  LogIndex durable_index() const { return durable_; }  // highest entry on our disk past a completed fsync
  LogIndex handed_index() const { return handed_; }    // highest entry given to the write-ahead log
  LogIndex first_in_memory() const;                    // last_index() + 1 when none is

  // The term of the entry at `index`, also of entries no longer in memory; 0 for index 0; nullopt beyond the end.
  std::optional<Term> TermAt(LogIndex index) const;
  // An entry in memory; the caller keeps the index in [first_in_memory, last_index].
  const Entry& At(LogIndex index) const;
  // The newest index at or below min(index, last) whose term is <= `term` (rejection hints skip whole terms).
  LogIndex NewestAtMost(LogIndex index, Term term) const;
  // Whether a log ending in (last_term, last_index) is at least as new as ours (Raft §5.4.1).
  bool IsUpToDate(Term other_last_term, LogIndex other_last_index) const;

  // --- changes -----------------------------------------------------------------------------------------------------
  // Adds entries that follow last_index(), in order.
  void Append(std::vector<Entry> entries);
  // A leader's entries after an accepted prev: skips those we have, cuts the log at the first conflict, appends the
  // rest. `commit` guards: a conflict at or below it is a broken promise (CHECK). Returns the last index of `entries`.
  LogIndex AppendFromLeader(LogIndex prev, std::vector<Entry> entries, LogIndex commit);

  // Entries not handed over yet, marked as handed by this call.
  std::vector<Entry> TakeUnwritten();
  bool HasUnwritten() const { return handed_ < last_index(); }
  // The batch of TakeUnwritten whose last entry was (term, index) is durable. What was cut from it since does not
  // count, also when an equal entry stands there again: that one is on its way to the disk behind the one that replaced
  // it (ABA). Called once a batch, in their order; ignored when no such batch waits. Returns whether durable_index rose.
  bool MarkDurable(Term term, LogIndex index);

  // Entries from `first` on, up to `last`, stopping after the one that reaches `bytes_max` (at least one).
  // Only those in memory; the caller checks first >= first_in_memory().
  std::vector<Entry> Slice(LogIndex first, LogIndex last, size_t bytes_max) const;

  // Forgets durable entries at or below `applied` beyond the two limits.
  void Trim(LogIndex applied, uint64_t entries_max, uint64_t bytes_max);
  uint64_t bytes_in_memory() const { return bytes_; }

 private:
  struct TermRun {
    Term term;
    LogIndex first;  // runs are ascending in both
  };
  // One result of TakeUnwritten that is not durable yet.
  struct Batch {
    Term term;  // of its last entry, when it was taken
    LogIndex last;
    LogIndex kept;  // entries above this were cut since
  };

  void CutAfter(LogIndex index);

  std::deque<Entry> entries_;  // (last_ - size, last_]
  std::vector<TermRun> runs_;  // of all entries: one a leader, so few
  std::deque<Batch> batches_;
  LogIndex last_;
  LogIndex handed_;   // durable_ <= handed_ <= last_
  LogIndex durable_;
  uint64_t bytes_ = 0;  // of entry data in memory
};

}  // namespace detcd::raft
