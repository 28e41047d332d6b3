#include "core/rpc/txn.h"

#include <google/protobuf/text_format.h>

#include <string>
#include <tuple>
#include <vector>

#include "core/base/limits.h"
#include "core/proto/rpc.pb.h"

namespace detcd::rpc {
namespace {

using etcdserverpb::Compare;
using etcdserverpb::TxnRequest;

TxnRequest Parse(const std::string& text) {
  TxnRequest request;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request)) << text;
  return request;
}
ApiError Check(const std::string& text) { return CheckTxn(Parse(text), kTxnOpsMax); }

std::string Put(const std::string& key) { return "request_put { key: \"" + key + "\" }"; }
std::string Delete(const std::string& key, const std::string& end = "") {
  return "request_delete_range { key: \"" + key + "\" range_end: \"" + end + "\" }";
}
std::string Success(const std::string& op) { return " success { " + op + " }"; }
std::string Failure(const std::string& op) { return " failure { " + op + " }"; }
std::string Txn(const std::string& text) { return "request_txn { " + text + " }"; }

std::string Keep(const std::string& key, const std::string& what = "ignore_value") {
  return "request_put { key: \"" + key + "\" " + what + ": true }";
}
std::string DeleteFrom(const std::string& key) { return Delete(key, "\\000"); }

// An etcd 3.7.3 takes the refused ones, and ends when it applies them.
TEST(TxnCheckTest, NothingIsKeptOfWhatAnOpenEndedDeleteTook) {
  const std::vector<std::pair<std::string, bool>> rows = {
      {Success(DeleteFrom("m")) + Success(Keep("m")), false},
      {Success(DeleteFrom("m")) + Success(Keep("n", "ignore_lease")), false},
      {Failure(DeleteFrom("m")) + Failure(Keep("n")), false},
      {Success(DeleteFrom("m")) + Success(Keep("l")), true},
      {Success(DeleteFrom("m")) + Success(Put("n")), true},
      {Success(Keep("n")) + Success(DeleteFrom("m")), true},
      {Success(DeleteFrom("m")) + Failure(Keep("n")), true},
      {Success(DeleteFrom("x")) + Success(DeleteFrom("m")) + Success(DeleteFrom("z")) + Success(Keep("n")), false},
      // nested: either branch may be the one that runs
      {Success(Txn(Success(DeleteFrom("m")))) + Success(Keep("n")), false},
      {Success(Txn(Failure(DeleteFrom("m")))) + Success(Txn(Failure(Keep("n")))), false},
      {Success(DeleteFrom("m")) + Success(Txn(Success(Txn(Success(Keep("n")))))), false},
      {Success(Txn(Success(DeleteFrom("m")) + Failure(Keep("n")))), true},
      {Success(Txn(Success(Keep("n")))) + Success(DeleteFrom("m")), true},
  };
  for (const auto& [text, fine] : rows) EXPECT_EQ(Check(text), fine ? ApiError::kOk : ApiError::kDuplicateKey) << text;
}

// Each row as an etcd 3.7.3 answers it.
TEST(TxnCheckTest, DuplicateKeys) {
  const std::vector<std::pair<std::string, bool>> rows = {
      {Success(Put("a")) + Success(Put("b")), true},
      {Success(Put("a")) + Success(Put("a")), false},
      {Success(Put("a")) + Failure(Put("a")), true},
      {Failure(Put("a")) + Failure(Put("a")), false},
      // puts against deletes, in either order
      {Success(Put("a")) + Success(Delete("a")), false},
      {Success(Delete("a")) + Success(Put("a")), false},
      {Success(Put("x")) + Success(Delete("a", "z")), false},
      {Success(Put("z")) + Success(Delete("a", "z")), true},
      {Success(Put("a")) + Success(Delete("a", "z")), false},
      {Success(Put("b")) + Success(Delete("c", "a")), true},  // an empty range
      {Success(Put("x")) + Success(Delete("x", "\\000")), true},  // the open end is not seen
      {Success(Delete("a", "m")) + Success(Delete("c", "z")), true},
      {Success(Put("n")) + Success(Delete("a", "c")) + Success(Delete("a", "z")), false},
      // nested
      {Success(Put("a")) + Success(Txn(Success(Put("a")))), false},
      {Success(Txn(Success(Put("a")))) + Success(Txn(Success(Put("a")))), false},
      {Success(Txn(Success(Put("a")))) + Success(Txn(Failure(Put("a")))), false},
      {Success(Txn(Success(Put("a")) + Failure(Put("a")))), true},
      {Success(Txn(Success(Put("a")) + Failure(Put("a")))) + Success(Put("a")), false},
      {Success(Delete("a", "z")) + Success(Txn(Success(Put("n")))), false},
      {Success(Delete("a", "z")) + Success(Txn(Failure(Put("n")))), false},
      {Success(Txn(Success(Delete("a", "z")))) + Success(Put("n")), false},
      {Success(Txn(Failure(Delete("n")))) + Success(Put("n")), false},
      {Success(Txn(Success(Delete("a", "z")))) + Success(Txn(Success(Put("n")))), false},
      {Success(Txn(Success(Put("n")))) + Success(Txn(Success(Delete("a", "z")))), true},  // missed by etcd
      {Success(Txn(Success(Txn(Success(Put("n")))))) + Success(Put("n")), false},
      {Success(Txn(Success(Delete("n")) + Failure(Put("n")))), true},
  };
  for (const auto& [text, good] : rows) {
    EXPECT_EQ(Check(text), good ? ApiError::kOk : ApiError::kDuplicateKey) << text;
  }
}

TEST(TxnCheckTest, DeletedRangesThatMeetAreOne) {
  const std::string apart = Success(Delete("b", "d")) + Success(Delete("f", "h")) + Success(Delete("k", "m"));
  const std::vector<std::pair<std::string, std::string>> rows = {
      // what is deleted beside `apart`, and then of a..n what may still be put
      {"", "adehijmn"},
      {Success(Delete("d", "f")), "ahijmn"},
      {Success(Delete("c", "e")), "aehijmn"},
      {Success(Delete("a", "b")), "dehijmn"},
      {Success(Delete("a", "l")), "mn"},
      {Success(Delete("bb", "c")), "adehijmn"},
      {Success(Delete("h", "k")), "ademn"},
      {Success(Txn(Success(Delete("g", "i")) + Failure(Delete("a", "c")))), "deijmn"},
  };
  for (const auto& [more, free] : rows) {
    for (char key = 'a'; key <= 'n'; ++key) {
      const bool good = free.find(key) != std::string::npos;
      for (const std::string& text : {apart + more, more + apart}) {
        EXPECT_EQ(Check(text + Success(Put({key}))), good ? ApiError::kOk : ApiError::kDuplicateKey) << key << text;
      }
    }
  }
}

// 25,000 ranges and as many puts in 2 MB: a look at every range for each put would take seconds, in which nobody
// is served and no heartbeat leaves.
TEST(TxnCheckTest, ManyNestedRangesAreNotScannedForEachPut) {
  constexpr size_t kEach = 37;
  size_t number = 0;
  const auto nested = [&](auto fill) {
    TxnRequest outer;
    for (size_t i = 0; i < kEach; ++i) {
      TxnRequest& inner = *outer.add_success()->mutable_request_txn();
      for (size_t k = 0; k < kEach; ++k, ++number) {
        const std::string key = std::to_string(1'000'000 + number);
        fill(*inner.add_success(), key);
      }
    }
    return outer;
  };
  TxnRequest request;
  for (int i = 0; i < 18; ++i) {
    *request.add_success()->mutable_request_txn() = nested([](auto& op, const std::string& key) {
      op.mutable_request_delete_range()->set_key(key);
      op.mutable_request_delete_range()->set_range_end(key + "5");
    });
  }
  for (int i = 0; i < 18; ++i) {
    *request.add_success()->mutable_request_txn() =
        nested([](auto& op, const std::string& key) { op.mutable_request_put()->set_key(key); });
  }
  EXPECT_LE(request.ByteSizeLong(), kReceiveBytesMax);
  EXPECT_EQ(CheckTxn(request, kTxnOpsMax), ApiError::kOk);
}

TEST(TxnCheckTest, OperationsAreLimitedWithWhatParentsLeaveOver) {
  auto flat = [](size_t compares, size_t success, size_t failure) {
    TxnRequest request;
    for (size_t i = 0; i < compares; ++i) request.add_compare()->set_key("k");
    for (size_t i = 0; i < success; ++i) request.add_success()->mutable_request_range()->set_key("k");
    for (size_t i = 0; i < failure; ++i) request.add_failure()->mutable_request_range()->set_key("k");
    return request;
  };
  EXPECT_EQ(CheckTxn(flat(128, 128, 128), kTxnOpsMax), ApiError::kOk);
  EXPECT_EQ(CheckTxn(flat(129, 0, 0), kTxnOpsMax), ApiError::kTooManyOps);
  EXPECT_EQ(CheckTxn(flat(0, 129, 0), kTxnOpsMax), ApiError::kTooManyOps);
  EXPECT_EQ(CheckTxn(flat(0, 0, 129), kTxnOpsMax), ApiError::kTooManyOps);
  TxnRequest outer = flat(0, 27, 0);
  *outer.add_success()->mutable_request_txn() = flat(0, 100, 0);
  EXPECT_EQ(CheckTxn(outer, kTxnOpsMax), ApiError::kOk);
  outer.add_compare()->set_key("k");
  EXPECT_EQ(CheckTxn(outer, kTxnOpsMax), ApiError::kOk);  // the longest list counts
  outer.add_success()->mutable_request_range()->set_key("k");
  EXPECT_EQ(CheckTxn(outer, kTxnOpsMax), ApiError::kTooManyOps);
}

TEST(TxnCheckTest, ComesInEtcdsOrder) {
  EXPECT_EQ(Check("compare { }" + Success("request_put { }")), ApiError::kEmptyKey);
  EXPECT_EQ(Check(Success("") + Failure("request_put { }")), ApiError::kKeyNotFound);  // an op with nothing set
  EXPECT_EQ(Check(Success("request_put { key: \"a\" value: \"v\" ignore_value: true }") + Failure("")),
            ApiError::kValueProvided);
  EXPECT_EQ(Check(Success("request_put { key: \"a\" lease: 1 ignore_lease: true }")), ApiError::kLeaseProvided);
  EXPECT_EQ(Check(Success("request_range { key: \"a\" sort_order: 3 }")), ApiError::kInvalidSortOption);
  EXPECT_EQ(Check(Success("request_delete_range { }")), ApiError::kEmptyKey);
  EXPECT_EQ(Check(Success(Txn("compare { }"))), ApiError::kEmptyKey);
  EXPECT_EQ(Check(Success(Put("a")) + Success(Put("a")) + Failure("request_put { }")), ApiError::kEmptyKey);
}

TEST(TxnTest, ReadOnlyAndSerializable) {
  const std::string range = "request_range { key: \"a\" }";
  const std::string serializable = "request_range { key: \"a\" serializable: true }";
  EXPECT_TRUE(IsReadOnly(Parse("")));
  EXPECT_TRUE(IsSerializable(Parse("")));
  EXPECT_TRUE(IsReadOnly(Parse(Success(range) + Failure(range))));
  EXPECT_FALSE(IsReadOnly(Parse(Success(range) + Failure(Put("a")))));
  EXPECT_FALSE(IsReadOnly(Parse(Success(Txn(Success(range))))));
  EXPECT_TRUE(IsSerializable(Parse(Success(serializable) + Failure(serializable))));
  EXPECT_FALSE(IsSerializable(Parse(Success(serializable) + Failure(range))));
}

class TxnCompareTest : public ::testing::Test {
 protected:
  TxnCompareTest() {
    Put("a", "m", 0);
    Put("b", "m", 0);
    Put("b", "m", 7);
  }
  void Put(std::string_view key, std::string_view value, int64_t lease) {
    store.Begin();
    store.Put(Bytes::Copy(key), Bytes::Copy(value), LeaseId(lease));
    store.Commit();
  }
  bool Holds(const std::string& text) { return ChoosePath(store, Parse("compare { " + text + " }")).front(); }

  mvcc::Store store;
};

// The attribute of key "b" against a number or text below it, its own, and above it.
TEST_F(TxnCompareTest, EveryTargetAndOperator) {
  const std::vector<std::tuple<std::string, std::string, std::vector<std::string>>> targets = {
      {"VERSION", "version", {"1", "2", "3"}},
      {"CREATE", "create_revision", {"2", "3", "4"}},
      {"MOD", "mod_revision", {"3", "4", "5"}},
      {"LEASE", "lease", {"-1", "7", "8"}},
      {"VALUE", "value", {"\"l\"", "\"m\"", "\"m\\000\""}},
  };
  for (const auto& [target, field, operands] : targets) {
    for (int i = 0; i < 3; ++i) {  // what "b" has is greater than, equal to, less than operand i
      const std::string on = "key: \"b\" target: " + target + " " + field + ": " + operands[static_cast<size_t>(i)];
      EXPECT_EQ(Holds(on + " result: EQUAL"), i == 1) << on;
      EXPECT_EQ(Holds(on + " result: NOT_EQUAL"), i != 1) << on;
      EXPECT_EQ(Holds(on + " result: GREATER"), i == 0) << on;
      EXPECT_EQ(Holds(on + " result: LESS"), i == 2) << on;
      EXPECT_TRUE(Holds(on + " result: 9")) << on;
    }
  }
}

TEST_F(TxnCompareTest, AbsentKeyIsZeroButHasNoValue) {
  for (const std::string range : {"", " range_end: \"x0\"", " range_end: \"a\"", " range_end: \"\\000\""}) {
    const std::string absent = "key: \"x\"" + range;
    for (const std::string target : {"VERSION", "CREATE", "MOD", "LEASE"}) {
      EXPECT_TRUE(Holds(absent + " target: " + target + " result: EQUAL"));
      EXPECT_FALSE(Holds(absent + " target: " + target + " result: NOT_EQUAL"));
      EXPECT_FALSE(Holds(absent + " target: " + target + " result: GREATER"));
    }
    for (const std::string result : {"EQUAL", "NOT_EQUAL", "GREATER", "LESS", "9"}) {
      EXPECT_FALSE(Holds(absent + " target: VALUE result: " + result)) << result;
      EXPECT_FALSE(Holds(absent + " target: VALUE value: \"v\" result: " + result)) << result;
    }
  }
}

TEST_F(TxnCompareTest, RangeMustHoldForEveryKey) {
  EXPECT_TRUE(Holds("key: \"a\" range_end: \"c\" target: VALUE value: \"m\""));
  EXPECT_FALSE(Holds("key: \"a\" range_end: \"c\" target: VERSION version: 1"));
  EXPECT_TRUE(Holds("key: \"a\" range_end: \"b\" target: VERSION version: 1"));
  EXPECT_TRUE(Holds("key: \"a\" range_end: \"\\000\" target: MOD result: GREATER mod_revision: 1"));
}

TEST_F(TxnCompareTest, OddUnionsAndTargets) {
  EXPECT_FALSE(Holds("key: \"a\" target: VERSION create_revision: 1"));  // another member of the union: 0
  EXPECT_TRUE(Holds("key: \"a\" target: VERSION result: GREATER"));
  EXPECT_TRUE(Holds("key: \"a\" target: 9"));  // an unknown target compares as equal
  EXPECT_FALSE(Holds("key: \"a\" target: 9 result: NOT_EQUAL"));
  EXPECT_FALSE(Holds("key: \"a\" target: 9 result: GREATER version: -5"));
}

TEST_F(TxnCompareTest, AllComparesMustHold) {
  EXPECT_EQ(ChoosePath(store, Parse("")), TxnPath{true});
  EXPECT_EQ(ChoosePath(store, Parse("compare { key: \"a\" target: VERSION version: 1 } compare { key: \"x\" result: LESS }")),
            TxnPath{false});
}

TEST_F(TxnCompareTest, PathIsPreorderOverTheChosenBranches) {
  const std::string no = "compare { key: \"a\" result: LESS }";
  EXPECT_EQ(ChoosePath(store, Parse(Success(Txn(no + Failure(Txn("")))) + Success(Txn("")) + Failure(Txn(no)))),
            (TxnPath{true, false, true, true}));
}

}  // namespace
}  // namespace detcd::rpc
