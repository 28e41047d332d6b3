// The client's rules about trying again, over calls that end as the test says.
#include "sim/client.h"

#include <gtest/gtest.h>

#include "core/proto/rpc.pb.h"
#include "sim/sim_universe.h"

namespace detcd::sim {
namespace {

class ClientTest : public testing::Test, private ClientListener, private ClientCalls {
 protected:
  ClientTest() : client_(universe_.Start(0), {.members = {1, 2, 3}}, static_cast<ClientListener&>(*this)) {
    client_.SetCalls(*this);
  }

  void Begin(checker::OperationKind kind, PlannedOperation operation = {}) {
    operation.id = 1;
    operation.request.kind = kind;
    operation.request.key = "k";
    client_.Plan(std::move(operation));
    WaitForTries(1);
  }
  void WaitForTries(size_t tries) {
    while (tries_.size() < tries) universe_.Step();
  }
  void EndCall(std::string_view error) {
    client_.OnCallEnd(token_, nullptr, {.code = rpc::StatusCode::kUnavailable, .message = std::string(error)}, true);
  }

  SimUniverse universe_{{.seed = 1, .endpoints = 1}};
  Client client_;
  std::vector<EndpointId> tries_;
  std::vector<checker::Outcome> ended_;
  std::vector<checker::Answer> answers_;
  uint64_t token_ = 0;

 protected:
  void OnOperationCall(checker::Operation&) override {}
  void OnOperationEnd(checker::Operation& operation) override {
    ended_.push_back(operation.outcome);
    answers_.push_back(operation.answer);
  }
  MemberId MemberAt(EndpointId endpoint) const override { return MemberId(endpoint); }

  bool IsUp(EndpointId) override { return true; }
  bool Start(EndpointId member, rpc::Method, std::unique_ptr<google::protobuf::Message>, uint64_t token, Duration) override {
    tries_.push_back(member);
    token_ = token;
    return true;
  }
  void Cancel() override {}
  void EndTurn() override {}

};

TEST_F(ClientTest, AReadThatIsUnavailableIsAskedOfTheNextMember) {
  Begin(checker::OperationKind::kRange);
  EndCall("etcdserver: leader changed");
  ASSERT_EQ(tries_.size(), 2u);
  EndCall("etcdserver: request timed out");
  EXPECT_EQ(tries_.size(), 2u);  // as many as a quorum: a pause first
  WaitForTries(3);
  EXPECT_NE(tries_[0], tries_[1]);
  EXPECT_NE(tries_[1], tries_[2]);
  EXPECT_TRUE(ended_.empty());
}

TEST_F(ClientTest, WhatIsPlannedAheadComesBeforeWhatIsDueLater) {
  std::vector<uint64_t> begun;
  client_.Plan({.id = 1, .at = Instant() + Millis(1)});
  client_.Plan({.id = 2, .at = Instant() + Millis(50)});
  client_.PlanAhead({.id = 3, .at = Instant() + Millis(20)});
  client_.PlanAhead({.id = 4, .at = Instant() + Millis(20)});
  client_.PlanAhead({.id = 5, .at = Instant()});  // before all
  for (size_t tries = 1; tries <= 5; ++tries) {
    WaitForTries(tries);
    begun.push_back(client_.current().id);
    EndCall("etcdserver: too many requests");
    client_.OnCallEnd(token_, nullptr, {.code = rpc::StatusCode::kInvalidArgument}, true);
  }
  EXPECT_EQ(begun, (std::vector<uint64_t>{5, 1, 3, 4, 2}));
  EXPECT_LT(universe_.now(), Millis(60).nanos);
}

TEST_F(ClientTest, AWriteThatMayHaveHappenedIsNotTriedAgain) {
  Begin(checker::OperationKind::kPut);
  EndCall("etcdserver: request timed out");
  EXPECT_EQ(tries_.size(), 1u);
  EXPECT_EQ(ended_, std::vector{checker::Outcome::kUnknown});
}

TEST_F(ClientTest, ATransactionOfRangesIsNotTriedAgain) {
  Begin(checker::OperationKind::kTxn);
  EndCall("etcdserver: leader changed");
  EXPECT_EQ(tries_.size(), 1u);
  EXPECT_EQ(ended_, std::vector{checker::Outcome::kUnknown});
}

TEST_F(ClientTest, ACancelledOperationIsUnknown) {
  PlannedOperation operation;
  operation.cancel_after = Millis(20);
  Begin(checker::OperationKind::kCompact, std::move(operation));
  while (ended_.empty()) universe_.Step();
  EXPECT_EQ(universe_.now(), Millis(20).nanos);
  EXPECT_EQ(ended_, std::vector{checker::Outcome::kUnknown});
}

TEST_F(ClientTest, PiecesOfAStreamMakeOneAnswer) {
  PlannedOperation operation;
  operation.request.streamed = true;
  Begin(checker::OperationKind::kRange, std::move(operation));
  etcdserverpb::RangeStreamResponse piece;
  piece.mutable_range_response()->add_kvs()->set_key("k");
  client_.OnCallMessage(token_, piece);
  piece.mutable_range_response()->mutable_kvs(0)->set_key("l");
  piece.mutable_range_response()->mutable_header()->set_revision(7);
  piece.mutable_range_response()->set_count(2);
  client_.OnCallMessage(token_, piece);
  client_.OnCallEnd(token_, nullptr, {}, true);
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_[0].kvs.size(), 2u);
  EXPECT_EQ(answers_[0].count, 2);
  EXPECT_EQ(answers_[0].header_revision, 7);
}

TEST_F(ClientTest, PiecesOfABrokenStreamAreForgotten) {
  PlannedOperation operation;
  operation.request.streamed = true;
  Begin(checker::OperationKind::kRange, std::move(operation));
  etcdserverpb::RangeStreamResponse piece;
  piece.mutable_range_response()->add_kvs()->set_key("k");
  client_.OnCallMessage(token_, piece);
  EndCall("connection reset");
  EXPECT_EQ(tries_.size(), 1u);  // a stream that has begun is not begun again
  EXPECT_EQ(ended_, std::vector{checker::Outcome::kUnknown});
  EXPECT_EQ(answers_[0], checker::Answer());
}

}  // namespace
}  // namespace detcd::sim
