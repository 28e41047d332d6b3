#include "core/raft/raft_log.h"

#include <algorithm>

namespace detcd::raft {
namespace {

Entry At(uint64_t index, uint64_t term, std::string_view data = "x") {
  return {.term = Term(term), .index = LogIndex(index), .data = Bytes::Copy(data)};
}

// Entries from index 1 on with the given terms.
RaftLog LogOf(const std::vector<uint64_t>& terms) {
  RaftLog log;
  std::vector<Entry> entries;
  for (uint64_t term : terms) entries.push_back(At(entries.size() + 1, term));
  log.Append(std::move(entries));
  return log;
}

std::vector<uint64_t> TermsOf(const RaftLog& log) {
  std::vector<uint64_t> terms;
  for (LogIndex i(1); i <= log.last_index(); ++i) terms.push_back(log.TermAt(i)->value);
  return terms;
}

TEST(RaftLogTest, AnEmptyLogStandsBeforeIndexOne) {
  RaftLog log;
  EXPECT_EQ(log.last_index(), LogIndex(0));
  EXPECT_EQ(log.last_term(), Term(0));
  EXPECT_EQ(log.first_in_memory(), LogIndex(1));
  EXPECT_EQ(log.TermAt(LogIndex(0)), Term(0));
  EXPECT_EQ(log.TermAt(LogIndex(1)), std::nullopt);
  EXPECT_EQ(log.NewestAtMost(LogIndex(9), Term(9)), LogIndex(0));
  EXPECT_TRUE(log.TakeUnwritten().empty());
  EXPECT_TRUE(log.IsUpToDate(Term(0), LogIndex(0)));
}

TEST(RaftLogTest, RecoveredEntriesAreHandedAndDurable) {
  RaftLog log;
  log.Recover({At(1, 1), At(2, 2)});
  EXPECT_FALSE(log.HasUnwritten());
  EXPECT_EQ(log.durable_index(), LogIndex(2));
}

TEST(RaftLogTest, AppendDropsConflictingSuffix) {
  RaftLog log = LogOf({1, 1, 2, 2});
  EXPECT_EQ(log.AppendFromLeader(LogIndex(1), {At(2, 1), At(3, 3)}, LogIndex(2)), LogIndex(3));
  EXPECT_EQ(TermsOf(log), (std::vector<uint64_t>{1, 1, 3}));
}

TEST(RaftLogTest, AnOldAppendDoesNotShortenTheLog) {
  RaftLog log = LogOf({1, 1, 2, 2});
  EXPECT_EQ(log.AppendFromLeader(LogIndex(0), {At(1, 1), At(2, 1)}, LogIndex(0)), LogIndex(2));
  EXPECT_EQ(log.last_index(), LogIndex(4));
}

TEST(RaftLogDeathTest, AConflictAtACommittedEntryIsABrokenPromise) {
  RaftLog log = LogOf({1, 1});
  EXPECT_DEATH(log.AppendFromLeader(LogIndex(1), {At(2, 2)}, LogIndex(2)), "first_fresh > commit");
}

TEST(RaftLogTest, NewestAtMostSkipsWholeTerms) {
  RaftLog log = LogOf({1, 1, 3, 3, 5});
  EXPECT_EQ(log.NewestAtMost(LogIndex(5), Term(4)), LogIndex(4));
  EXPECT_EQ(log.NewestAtMost(LogIndex(5), Term(2)), LogIndex(2));
  EXPECT_EQ(log.NewestAtMost(LogIndex(3), Term(9)), LogIndex(3));
  EXPECT_EQ(log.NewestAtMost(LogIndex(9), Term(9)), LogIndex(5));
  EXPECT_EQ(log.NewestAtMost(LogIndex(5), Term(0)), LogIndex(0));
}

TEST(RaftLogTest, UpToDateComparesTermsBeforeIndices) {
  RaftLog log = LogOf({1, 2, 2});
  EXPECT_TRUE(log.IsUpToDate(Term(3), LogIndex(1)));
  EXPECT_TRUE(log.IsUpToDate(Term(2), LogIndex(3)));
  EXPECT_FALSE(log.IsUpToDate(Term(2), LogIndex(2)));
  EXPECT_FALSE(log.IsUpToDate(Term(1), LogIndex(9)));
}

TEST(RaftLogTest, DurableNeverPassesWhatWasCut) {
  RaftLog log = LogOf({1, 1, 1});
  log.TakeUnwritten();
  log.AppendFromLeader(LogIndex(1), {At(2, 2)}, LogIndex(0));
  EXPECT_TRUE(log.MarkDurable(Term(1), LogIndex(3)));
  EXPECT_EQ(log.durable_index(), LogIndex(1));
}

// F19: [b of term 1] is written, replaced by [c of term 2], and put back by a leader of term 3. When the first write
// ends, c may still come between: b is durable only with the third.
TEST(RaftLogTest, AnEqualEntryPutBackIsNotDurableByItsFirstWrite) {
  RaftLog log = LogOf({1, 1});
  log.TakeUnwritten();
  log.AppendFromLeader(LogIndex(1), {At(2, 2)}, LogIndex(0));
  log.TakeUnwritten();
  log.AppendFromLeader(LogIndex(1), {At(2, 1)}, LogIndex(0));
  log.TakeUnwritten();
  EXPECT_TRUE(log.MarkDurable(Term(1), LogIndex(2)));
  EXPECT_EQ(log.durable_index(), LogIndex(1));
  EXPECT_FALSE(log.MarkDurable(Term(2), LogIndex(2)));
  EXPECT_EQ(log.durable_index(), LogIndex(1));
  EXPECT_TRUE(log.MarkDurable(Term(1), LogIndex(2)));
  EXPECT_EQ(log.durable_index(), LogIndex(2));
}

TEST(RaftLogTest, SliceStopsAfterTheEntryThatReachesTheLimit) {
  RaftLog log;
  log.Append({At(1, 1, "aaaa"), At(2, 1, "bbbb"), At(3, 1, "cccc")});
  EXPECT_EQ(log.Slice(LogIndex(1), LogIndex(3), 0).size(), 1u);
  EXPECT_EQ(log.Slice(LogIndex(1), LogIndex(3), 4).size(), 1u);
  EXPECT_EQ(log.Slice(LogIndex(1), LogIndex(3), 5).size(), 2u);
  EXPECT_EQ(log.Slice(LogIndex(1), LogIndex(2), 99).size(), 2u);
  EXPECT_EQ(log.Slice(LogIndex(4), LogIndex(9), 99).size(), 0u);
}

TEST(RaftLogTest, TrimKeepsEntriesThatAreNotDurableOrNotApplied) {
  RaftLog log = LogOf({1, 1, 1, 1});
  log.Trim(LogIndex(4), 0, 0);
  EXPECT_EQ(log.first_in_memory(), LogIndex(1));
  log.TakeUnwritten();
  log.MarkDurable(Term(1), LogIndex(4));
  log.Trim(LogIndex(3), 2, 100);
  EXPECT_EQ(log.first_in_memory(), LogIndex(2));
  log.Trim(LogIndex(3), 2, 2);
  EXPECT_EQ(log.first_in_memory(), LogIndex(3));
  log.Trim(LogIndex(3), 0, 0);
  EXPECT_EQ(log.first_in_memory(), LogIndex(4));
  EXPECT_EQ(TermsOf(log), (std::vector<uint64_t>{1, 1, 1, 1}));
}

// The plain twin: all entries in a vector, and the disk as a vector that batches overwrite in order.
struct PlainLog {
  std::vector<Entry> entries;
  std::vector<std::vector<Entry>> batches;
  std::vector<Entry> disk;
  size_t handed = 0;

  void Cut(size_t size) {
    entries.resize(size);
    handed = std::min(handed, size);
  }
  void AppendFromLeader(const std::vector<Entry>& from) {
    for (const Entry& entry : from) {
      const size_t position = entry.index.value - 1;
      if (position < entries.size() && entries[position].term == entry.term) continue;
      Cut(std::min(position, entries.size()));
      entries.push_back(entry);
    }
  }
  // What would be read back after any crash from now on: equal on the disk, and not to be overwritten by a batch.
  size_t Durable() const {
    size_t durable = 0;
    while (durable < std::min({disk.size(), entries.size(), handed}) && disk[durable] == entries[durable]) ++durable;
    for (const auto& batch : batches) durable = std::min(durable, size_t{batch.front().index.value} - 1);
    return durable;
  }
};

constexpr uint64_t kTermMax = 9;

std::vector<Entry> RandomBatch(uint64_t first, uint64_t term_first, uint64_t term_last) {
  std::vector<Entry> entries;
  uint64_t term = term_first;
  const auto count = *rc::gen::inRange<uint64_t>(0, 4);
  for (uint64_t i = 0; i < count; ++i) {
    term = std::min(term_last, term + *rc::gen::inRange<uint64_t>(0, 2));
    if (term == 0) term = 1;
    // Equal (index, term) means an equal entry, as log matching has it.
    entries.push_back(At(first + i, term, std::to_string(term)));
  }
  return entries;
}

RC_GTEST_PROP(RaftLogTest, AgreesWithAPlainVector, ()) {
  RaftLog log;
  PlainLog plain;
  uint64_t applied = 0;
  const auto steps = *rc::gen::inRange(1, 40);
  for (int step = 0; step < steps; ++step) {
    const uint64_t last = plain.entries.size();
    switch (*rc::gen::inRange(0, 6)) {
      case 0: {
        std::vector<Entry> entries = RandomBatch(last + 1, log.last_term().value, kTermMax);
        log.Append(entries);
        plain.entries.insert(plain.entries.end(), entries.begin(), entries.end());
        break;
      }
      case 1: {
        const auto prev = *rc::gen::inRange<uint64_t>(applied, last + 1);
        std::vector<Entry> entries = RandomBatch(prev + 1, log.TermAt(LogIndex(prev))->value, kTermMax);
        // What is applied is committed, and no leader would change it.
        log.AppendFromLeader(LogIndex(prev), entries, LogIndex(applied));
        plain.AppendFromLeader(entries);
        break;
      }
      case 2: {
        std::vector<Entry> taken = log.TakeUnwritten();
        RC_ASSERT(taken == std::vector<Entry>(plain.entries.begin() + static_cast<std::ptrdiff_t>(plain.handed),
                                              plain.entries.end()));
        plain.handed = plain.entries.size();
        if (!taken.empty()) plain.batches.push_back(taken);
        break;
      }
      case 3: {
        if (plain.batches.empty()) break;
        const std::vector<Entry> batch = plain.batches.front();
        plain.batches.erase(plain.batches.begin());
        plain.disk.resize(batch.front().index.value - 1);
        plain.disk.insert(plain.disk.end(), batch.begin(), batch.end());
        log.MarkDurable(batch.back().term, batch.back().index);
        break;
      }
      case 4:
        applied = *rc::gen::inRange<uint64_t>(applied, last + 1);
        log.Trim(LogIndex(applied), *rc::gen::inRange<uint64_t>(0, 4), *rc::gen::inRange<uint64_t>(0, 8));
        break;
      default: {
        const auto index = *rc::gen::inRange<uint64_t>(0, last + 3);
        const auto term = *rc::gen::inRange<uint64_t>(0, 10);
        uint64_t newest = std::min(index, last);
        while (newest > 0 && plain.entries[newest - 1].term.value > term) --newest;
        RC_ASSERT(log.NewestAtMost(LogIndex(index), Term(term)) == LogIndex(newest));
      }
    }
    RC_ASSERT(log.last_index().value == plain.entries.size());
    RC_ASSERT(log.handed_index().value == plain.handed);
    RC_ASSERT(log.durable_index().value <= plain.Durable());
    uint64_t bytes = 0;
    for (const Entry& entry : plain.entries) {
      RC_ASSERT(log.TermAt(entry.index) == entry.term);
      if (entry.index < log.first_in_memory()) continue;
      RC_ASSERT(log.At(entry.index) == entry);
      bytes += entry.data.size();
    }
    RC_ASSERT(log.bytes_in_memory() == bytes);
    RC_ASSERT(log.first_in_memory().value <= std::min<uint64_t>(applied, log.durable_index().value) + 1);
  }
  // Once all is written and synced, all is durable.
  std::vector<Entry> rest = log.TakeUnwritten();
  if (!rest.empty()) plain.batches.push_back(rest);
  for (const auto& batch : plain.batches) log.MarkDurable(batch.back().term, batch.back().index);
  RC_ASSERT(log.durable_index() == log.last_index());
}

}  // namespace
}  // namespace detcd::raft
