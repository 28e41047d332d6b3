// The client's rules about trying again, over calls that end as the test says.
#include "sim/client.h"

#include <gtest/gtest.h>

#include "sim/sim_universe.h"

namespace detcd::sim {
namespace {

class ClientTest : public testing::Test, private ClientListener, private ClientCalls {
 protected:
  ClientTest() : client_(universe_.Start(0), {.members = {1, 2, 3}}, static_cast<ClientListener&>(*this)) {
    client_.SetCalls(*this);
  }

  void Begin(checker::OperationKind kind) {
    PlannedOperation operation = {.id = 1};
    operation.request.kind = kind;
    operation.request.key = "k";
    client_.Plan(std::move(operation));
    while (tries_.empty()) universe_.Step();
  }
  void EndCall(std::string_view error) {
    client_.OnCallEnd(token_, nullptr, {.code = rpc::StatusCode::kUnavailable, .message = std::string(error)}, true);
  }

  std::vector<EndpointId> tries_;
  std::vector<checker::Outcome> ended_;

 private:
  void OnOperationCall(checker::Operation&) override {}
  void OnOperationEnd(checker::Operation& operation) override { ended_.push_back(operation.outcome); }
  MemberId MemberAt(EndpointId endpoint) const override { return MemberId(endpoint); }

  bool IsUp(EndpointId) override { return true; }
  bool Start(EndpointId member, rpc::Method, std::unique_ptr<google::protobuf::Message>, uint64_t token, Duration) override {
    tries_.push_back(member);
    token_ = token;
    return true;
  }
  void Cancel() override {}
  void EndTurn() override {}

  SimUniverse universe_{{.seed = 1, .endpoints = 1}};
  Client client_;
  uint64_t token_ = 0;
};

TEST_F(ClientTest, AReadThatIsUnavailableIsAskedOfTheNextMember) {
  Begin(checker::OperationKind::kRange);
  EndCall("etcdserver: leader changed");
  EndCall("etcdserver: request timed out");
  ASSERT_EQ(tries_.size(), 3u);
  EXPECT_NE(tries_[0], tries_[1]);
  EXPECT_NE(tries_[1], tries_[2]);
  EXPECT_TRUE(ended_.empty());
}

TEST_F(ClientTest, AWriteThatMayHaveHappenedIsNotTriedAgain) {
  Begin(checker::OperationKind::kPut);
  EndCall("etcdserver: request timed out");
  EXPECT_EQ(tries_.size(), 1u);
  EXPECT_EQ(ended_, std::vector{checker::Outcome::kUnknown});
}

}  // namespace
}  // namespace detcd::sim
