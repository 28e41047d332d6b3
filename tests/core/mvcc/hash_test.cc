#include "core/mvcc/hash.h"

#include <string>

#include "core/mvcc/store.h"

namespace detcd::mvcc {
namespace {

const std::string kNul(1, '\0');

// HashKV of an etcd 3.7.3 with one member, asked by gRPC for the same requests in the same order: each compaction was
// physical and had ended before the next request.
class HashTest : public ::testing::Test {
 protected:
  void Put(std::string_view key, std::string_view value) {
    store.Begin();
    PutInside(key, value);
    store.Commit();
  }
  void PutInside(std::string_view key, std::string_view value) {
    store.Put(Bytes::Copy(key), Bytes::Copy(value), LeaseId());
  }
  void Delete(std::string_view key, std::string_view end = "") {
    store.Begin();
    store.DeleteRange({key, end});
    store.Commit();
  }
  void Compact(int64_t revision) { EXPECT_EQ(store.Compact(Revision(revision)), RangeError::kOk); }

  // The history of the first test up to revision 12, in short.
  void EqualHistoryTo12() {
    Put("a", "1");
    Put("b", "");
    Put("a", "2");
    Delete("b");
    store.Begin();
    PutInside("c", std::string(200, 'x'));
    PutInside("d", "y");
    store.DeleteRange({"a", ""});
    store.Commit();
    Put("b", "again");
    Put("c", "z");
    Delete("d");
    Compact(5);
    Compact(9);
    Put("e", "1");
    Compact(10);
    Delete("a", kNul);
    Compact(11);
    Put("f", "1");
    Compact(12);
  }

  // In slices of one change: their size must not matter.
  HashResult Hash(int64_t revision) {
    const Store::HashRequest request = store.RequestHash(Revision(revision));
    EXPECT_EQ(request.error, RangeError::kOk);
    while (store.HasWork()) store.Work(1);
    const std::vector<FinishedHash> finished = store.TakeHashes();
    EXPECT_EQ(finished.size(), 1u);
    if (finished.size() != 1) return {};
    EXPECT_EQ(finished[0].ticket, request.ticket);
    return finished[0].result;
  }
  static HashResult Result(uint32_t hash, int64_t compact, int64_t revision) {
    return {.hash = hash, .compact_revision = Revision(compact), .revision = Revision(revision)};
  }

  Store store;
};

TEST_F(HashTest, EqualsEtcdsOverAHistoryWithCompactions) {
  EXPECT_EQ(Hash(0), Result(1084519789, -1, 1));
  EXPECT_EQ(Hash(-7), Result(1084519789, -1, -7));
  Put("a", "1");
  Put("b", "");
  Put("a", "2");
  EXPECT_EQ(Hash(0), Result(1543627925, -1, 4));
  EXPECT_EQ(Hash(2), Result(2587454935, -1, 2));
  EXPECT_EQ(Hash(3), Result(2496657716, -1, 3));
  Delete("b");
  store.Begin();  // 6
  PutInside("c", std::string(200, 'x'));
  PutInside("d", "y");
  store.DeleteRange({"a", ""});
  store.Commit();
  EXPECT_EQ(Hash(0), Result(799465287, -1, 6));
  EXPECT_EQ(Hash(5), Result(1817197504, -1, 5));
  Put("b", "again");
  Put("c", "z");
  Delete("d");
  EXPECT_EQ(Hash(0), Result(2972058130, -1, 9));
  EXPECT_EQ(Hash(7), Result(2077010572, -1, 7));
  EXPECT_EQ(Hash(8), Result(2177190940, -1, 8));

  Compact(5);
  EXPECT_EQ(Hash(0), Result(4259663722, 5, 9));
  EXPECT_EQ(store.RequestHash(Revision(4)).error, RangeError::kCompacted);
  EXPECT_EQ(Hash(5), Result(1817197504, -1, 5));  // the compaction's own
  EXPECT_EQ(Hash(6), Result(2138463323, 5, 6));
  EXPECT_EQ(Hash(7), Result(4165777132, 5, 7));
  EXPECT_EQ(Hash(8), Result(3428242330, 5, 8));

  Compact(9);
  EXPECT_EQ(Hash(0), Result(96241714, 9, 9));
  EXPECT_EQ(Hash(5), Result(1817197504, -1, 5));
  EXPECT_EQ(store.RequestHash(Revision(6)).error, RangeError::kCompacted);
  EXPECT_EQ(Hash(9), Result(4259663722, 5, 9));
  Put("e", "1");
  EXPECT_EQ(Hash(0), Result(3085242969, 9, 10));
  Compact(10);
  EXPECT_EQ(Hash(0), Result(3085242969, 10, 10));
  EXPECT_EQ(Hash(10), Result(3085242969, 9, 10));

  Delete("a", kNul);  // 11: nothing lives
  Compact(11);
  EXPECT_EQ(Hash(0), Result(1084519789, 11, 11));
  EXPECT_EQ(Hash(11), Result(3411078480, 10, 11));
  Put("f", "1");
  EXPECT_EQ(Hash(0), Result(1065654295, 11, 12));
  Compact(12);
  EXPECT_EQ(Hash(0), Result(1065654295, 12, 12));
}

TEST_F(HashTest, LastTenCompactionsKeepTheirHashes) {
  EqualHistoryTo12();
  for (int i = 0; i < 12; ++i) {
    Put("g", std::to_string(i));
    Compact(13 + i);
  }
  EXPECT_EQ(Hash(0), Result(2834207087, 24, 24));
  EXPECT_EQ(store.RequestHash(Revision(14)).error, RangeError::kCompacted);
  EXPECT_EQ(Hash(15), Result(454197218, 14, 15));
  EXPECT_EQ(Hash(16), Result(2144055661, 15, 16));
  EXPECT_EQ(Hash(24), Result(2834207087, 23, 24));
  store.Begin();
  PutInside("h", "1");
  store.DeleteRange({"h", kNul});
  store.Commit();
  EXPECT_EQ(Hash(0), Result(3429935352, 24, 25));
  Compact(25);
  EXPECT_EQ(Hash(0), Result(2834207087, 25, 25));
  EXPECT_EQ(Hash(25), Result(3429935352, 24, 25));
}

TEST_F(HashTest, CompactionAtZeroKeepsTheHashOfNothing) {
  Put("a", "1");
  Compact(0);
  EXPECT_EQ(Hash(0), Result(1084519789, -1, 0));
  EXPECT_EQ(Hash(-7), Result(1084519789, 0, -7));
  EXPECT_EQ(Hash(2), Result(2587454935, 0, 2));
}

TEST_F(HashTest, PutsDuringAJobDoNotChangeIt) {
  for (char c = 'a'; c <= 'z'; ++c) Put(std::string(1, c), "1");
  const HashResult expected = Hash(0);
  const Store::HashRequest request = store.RequestHash(Revision(0));
  for (char c = 'z'; store.HasWork(); c = c == 'a' ? 'z' : static_cast<char>(c - 1)) {
    store.Work(3);
    Put(std::string(1, c), "2");
    Put(std::string(2, c), "new");
  }
  const std::vector<FinishedHash> finished = store.TakeHashes();
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].ticket, request.ticket);
  EXPECT_EQ(finished[0].result, expected);
}

TEST_F(HashTest, ManyRequestsAreRefused) {
  for (size_t i = 0; i < kHashesWaitingMax; ++i) EXPECT_FALSE(store.RequestHash(Revision(0)).too_many);
  EXPECT_TRUE(store.RequestHash(Revision(0)).too_many);
  while (store.HasWork()) store.Work();
  EXPECT_EQ(store.TakeHashes().size(), kHashesWaitingMax);
  EXPECT_FALSE(store.RequestHash(Revision(0)).too_many);
}

TEST_F(HashTest, ManyWaitingCompactionsForgoWhatNobodyCanAskFor) {
  for (int i = 0; i < 1000; ++i) {
    Put("a", std::to_string(i));
    Compact(2 + i);
  }
  size_t slices = 0;
  for (; store.HasWork(); ++slices) store.Work();
  EXPECT_LT(slices, 200u);
  EXPECT_EQ(store.removed_revision(), Revision(1001));
  EXPECT_EQ(store.RequestHash(Revision(991)).error, RangeError::kCompacted);
  const HashResult oldest = Hash(992);
  EXPECT_EQ(oldest.compact_revision, Revision(991));
}

}  // namespace
}  // namespace detcd::mvcc
