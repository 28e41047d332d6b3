#include "core/raft/raft_log.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/probe.h"

namespace detcd::raft {

void RaftLog::Recover(std::vector<Entry> entries) {
  CHECK(!HasUnwritten());
  Append(std::move(entries));
  handed_ = durable_ = last_;
}

LogIndex RaftLog::last_index() const { return last_; }

Term RaftLog::last_term() const { return runs_.empty() ? Term() : runs_.back().term; }

LogIndex RaftLog::first_in_memory() const { return last_ + 1 - entries_.size(); }

std::optional<Term> RaftLog::TermAt(LogIndex index) const {
  if (index > last_) return std::nullopt;
  if (index.IsZero()) return Term();
  // Nearly always the newest run; older ones are asked for by probes only.
  if (runs_.back().first <= index) return runs_.back().term;
  auto after = std::upper_bound(runs_.begin(), runs_.end(), index,
                                [](LogIndex i, const TermRun& run) { return i < run.first; });
  return std::prev(after)->term;
}

const Entry& RaftLog::At(LogIndex index) const {
  CHECK(index >= first_in_memory() && index <= last_);
  return entries_[index - first_in_memory()];
}

LogIndex RaftLog::NewestAtMost(LogIndex index, Term term) const {
  index = std::min(index, last_);
  // The first run of a higher term bounds the answer: terms ascend.
  auto above = std::upper_bound(runs_.begin(), runs_.end(), term,
                                [](Term t, const TermRun& run) { return t < run.term; });
  return above == runs_.end() ? index : std::min(index, above->first - 1);
}

bool RaftLog::IsUpToDate(Term other_last_term, LogIndex other_last_index) const {
  if (other_last_term != last_term()) return other_last_term > last_term();
  return other_last_index >= last_;
}

void RaftLog::Append(std::vector<Entry> entries) {
  for (Entry& entry : entries) {
    CHECK(entry.index == last_ + 1);
    CHECK(entry.term >= last_term());
    if (entry.term != last_term()) runs_.push_back({.term = entry.term, .first = entry.index});
    ++last_;
    bytes_ += entry.data.size();
    entries_.push_back(std::move(entry));
  }
}

LogIndex RaftLog::AppendFromLeader(LogIndex prev, std::vector<Entry> entries, LogIndex commit) {
  const LogIndex last_of_message = prev + entries.size();
  // Entries we have already stay: an old message must not undo a newer one (Raft §5.3, step 3 and 4 of AppendEntries).
  size_t fresh = 0;
  while (fresh < entries.size() && TermAt(entries[fresh].index) == entries[fresh].term) ++fresh;
  if (fresh == entries.size()) return last_of_message;
  const LogIndex first_fresh = entries[fresh].index;
  if (first_fresh <= last_) {
    PROBE("raft.log_conflict_cut");
    CHECK(first_fresh > commit);
    CutAfter(first_fresh - 1);
  }
  entries.erase(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(fresh));
  Append(std::move(entries));
  return last_of_message;
}

void RaftLog::CutAfter(LogIndex index) {
  CHECK(index + 1 >= first_in_memory());
  while (last_ > index) {
    bytes_ -= entries_.back().data.size();
    entries_.pop_back();
    last_ = last_ - 1;
  }
  while (!runs_.empty() && runs_.back().first > last_) runs_.pop_back();
  if (handed_ > last_) {
    PROBE("raft.log_cut_handed_entries");
    handed_ = last_;
  }
  durable_ = std::min(durable_, last_);
  for (Batch& batch : batches_) batch.kept = std::min(batch.kept, last_);
}

std::vector<Entry> RaftLog::TakeUnwritten() {
  std::vector<Entry> taken;
  if (!HasUnwritten()) return taken;
  taken.reserve(last_ - handed_);
  for (LogIndex i = handed_ + 1; i <= last_; ++i) taken.push_back(At(i));
  handed_ = last_;
  batches_.push_back({.term = last_term(), .last = last_, .kept = last_});
  return taken;
}

bool RaftLog::MarkDurable(Term term, LogIndex index) {
  auto batch = std::find_if(batches_.begin(), batches_.end(),
                            [&](const Batch& b) { return b.term == term && b.last == index; });
  if (batch == batches_.end()) return false;
  if (batch->kept < batch->last) PROBE("raft.log_durable_batch_was_cut");
  const LogIndex kept = batch->kept;
  batches_.erase(batches_.begin(), batch + 1);
  if (kept <= durable_) return false;
  durable_ = kept;
  return true;
}

std::vector<Entry> RaftLog::Slice(LogIndex first, LogIndex last, size_t bytes_max) const {
  CHECK(first >= first_in_memory());
  last = std::min(last, last_);
  size_t bytes = 0;
  LogIndex limit = first;
  while (limit <= last && (limit == first || bytes < bytes_max)) {
    bytes += At(limit).data.size();
    ++limit;
  }
  const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(first - first_in_memory());
  return std::vector<Entry>(begin, begin + static_cast<std::ptrdiff_t>(limit - first));
}

void RaftLog::Trim(LogIndex applied, uint64_t entries_max, uint64_t bytes_max) {
  const LogIndex forgettable = std::min(applied, durable_);
  while (!entries_.empty() && entries_.front().index <= forgettable) {
    const uint64_t applied_in_memory = applied - entries_.front().index + 1;
    if (applied_in_memory <= entries_max && bytes_ <= bytes_max) return;
    bytes_ -= entries_.front().data.size();
    entries_.pop_front();
  }
}

}  // namespace detcd::raft
