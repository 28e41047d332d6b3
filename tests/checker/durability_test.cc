#include "checker/durability.h"

#include <gtest/gtest.h>

#include "tests/checker/history_generator.h"

namespace detcd::checker {
namespace {

class DurabilityTest : public testing::Test {
 protected:
  DurabilityTest() : durability_({.members = {MemberId(1), MemberId(2)}}, order_, verdict_) {}

  // The order of revisions knows the operation; durability hears of its end alone.
  Operation Make(Request request, Answer answer) {
    Operation operation{.id = ++last_id_, .client = 1, .request = std::move(request), .call = {.event = ++event_}};
    order_.OnCall(operation);
    operation.outcome = Outcome::kAnswered;
    operation.answer = std::move(answer);
    return operation;
  }
  void Commit(const Request& request) {
    order_.OnCommitted({.index = LogIndex(++index_), .term = Term(1), .data = Encode(request)}, {.event = ++event_});
  }
  std::string Broken() const { return verdict_.broken() ? verdict_.violation()->signature : ""; }

  static Request Put(std::string key) { return {.kind = OperationKind::kPut, .key = std::move(key), .value = "v"}; }

  Verdict verdict_;
  RevisionOrder order_{verdict_};
  Durability durability_;
  uint64_t last_id_ = 0;
  uint64_t event_ = 0;
  uint64_t index_ = 0;
};

TEST_F(DurabilityTest, AnAcknowledgedWriteIsCommitted) {
  Operation put = Make(Put("a"), {.header_revision = 2});
  Commit(put.request);
  durability_.OnEnd(put);
  EXPECT_EQ(Broken(), "");
  durability_.OnEnd(Make(Put("b"), {.header_revision = 3}));
  EXPECT_EQ(Broken(), "K17: a write acknowledged before it was committed");
}

TEST_F(DurabilityTest, SoIsATransactionThatChangedSomething) {
  const Request txn{.kind = OperationKind::kTxn, .success = {Put("a")}, .failure = {{.key = "a"}}};
  Answer read{.header_revision = 9, .responses = {{.header_revision = 9}}};
  durability_.OnEnd(Make(txn, read));  // the branch that reads
  EXPECT_EQ(Broken(), "");
  durability_.OnEnd(Make(txn, {.header_revision = 2, .succeeded = true, .responses = {{.kind = OperationKind::kPut}}}));
  EXPECT_EQ(Broken(), "K17: a write acknowledged before it was committed");
}

TEST_F(DurabilityTest, SoIsACompaction) {
  const Request compact{.kind = OperationKind::kCompact, .revision = 1};
  Operation first = Make(compact, {.header_revision = 1});
  Commit(compact);
  durability_.OnEnd(first);
  EXPECT_EQ(Broken(), "");
  durability_.OnEnd(Make({.kind = OperationKind::kCompact, .revision = 2}, {.header_revision = 1}));
  EXPECT_EQ(Broken(), "K17: a compaction acknowledged before it was committed");
}

TEST_F(DurabilityTest, AFinalStateThatLacksAKeyOfATransactionNamesIt) {
  Operation txn = Make({.kind = OperationKind::kTxn, .success = {Put("a"), Put("b")}},
                       {.header_revision = 2,
                        .succeeded = true,
                        .responses = {{.header_revision = 2, .kind = OperationKind::kPut},
                                      {.header_revision = 2, .kind = OperationKind::kPut}}});
  Commit(txn.request);
  durability_.OnEnd(txn);
  const FinalKey a{"a", "v", Revision(2), Revision(2), 1};
  durability_.OnFinal(MemberId(1), {&a, 1}, {});
  ASSERT_EQ(Broken(), "K17: a final state that is not the log's");
  EXPECT_EQ(verdict_.violation()->operations, std::vector<uint64_t>{txn.id});
}

TEST_F(DurabilityTest, EveryMemberOwesAFinalStateUnlessItIsLost) {
  durability_.OnFinal(MemberId(1), {}, {});
  durability_.OnLost(MemberId(2));
  durability_.Finish({});
  EXPECT_EQ(Broken(), "");
}

TEST_F(DurabilityTest, AMemberWithoutAFinalState) {
  durability_.OnFinal(MemberId(1), {}, {});
  durability_.Finish({});
  EXPECT_EQ(Broken(), "K17: a member without a final state");
}

}  // namespace
}  // namespace detcd::checker
