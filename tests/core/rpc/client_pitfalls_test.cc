// What other servers of this API got wrong, as their clients reported it, where no test of a single part shows it whole.
// Each test names its report.
#include "core/proto/rpc.pb.h"
#include "core/rpc/services.h"
#include "tests/support/fake_backend.h"

namespace detcd::rpc {
namespace {

using etcdserverpb::RangeRequest;

class ClientPitfallTest : public ::testing::Test, protected testing::ServicesHarness {
 protected:
  ClientPitfallTest() {
    backend.Put("a", "1");  // revisions 2 to 6
    backend.Put("b", "1");
    backend.Put("c", "1");
    backend.Put("b", "2");
    backend.Put("b", "3");
  }
  RangeRequest RangeOf(std::string_view key, std::string_view end = {}, int64_t revision = 0) {
    RangeRequest request;
    request.set_key(std::string(key));
    request.set_range_end(std::string(end));
    request.set_revision(revision);
    request.set_serializable(true);
    return request;
  }
  const testing::FakeTransport::Call& Ask(const RangeRequest& request) {
    return transport.calls[Start(Method::kRange, request)];
  }
  std::string Answer(const RangeRequest& request) {
    const auto& call = Ask(request);
    EXPECT_TRUE(call.status.ok()) << call.status.message;
    return call.sent.size() == 1 ? call.sent[0] : "no answer";
  }
};

constexpr char kHeaderNow[] = "header { cluster_id: 10 member_id: 11 revision: 6 raft_term: 4 }";

// kine pull request 595: informers went on watching from the old revision that the header repeated.
TEST_F(ClientPitfallTest, HeaderOfAnOldRevisionShowsTheCurrentOne) {
  EXPECT_EQ(Answer(RangeOf("b", {}, 3)),
            std::string(kHeaderNow) +
                " kvs { key: \"b\" create_revision: 3 mod_revision: 3 version: 1 value: \"1\" } count: 1");
}

// kine pull request 595: also a negative number is no revision.
TEST_F(ClientPitfallTest, RevisionOfZeroOrLessIsTheNewest) {
  for (const int64_t revision : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    EXPECT_EQ(Answer(RangeOf("b", {}, revision)),
              std::string(kHeaderNow) +
                  " kvs { key: \"b\" create_revision: 3 mod_revision: 6 version: 3 value: \"3\" } count: 1");
  }
}

// kine#231, etcd#4610, etcd#4612: an empty answer hides both. etcd#7794: a key that never changed since is no exception.
TEST_F(ClientPitfallTest, RevisionsOutsideOfWhatIsKeptAreErrorsForEveryKey) {
  ASSERT_EQ(backend.mutable_store().Compact(Revision(5)), mvcc::RangeError::kOk);
  for (const auto& [key, end] : {std::pair("a", ""), std::pair("b", ""), std::pair("a", "z"), std::pair("none", "")}) {
    EXPECT_EQ(Ask(RangeOf(key, end, 4)).status, ToCallStatus(ApiError::kCompacted)) << key;
    EXPECT_EQ(Ask(RangeOf(key, end, 7)).status, ToCallStatus(ApiError::kFutureRev)) << key;
    EXPECT_TRUE(Ask(RangeOf(key, end, 5)).status.ok()) << key;
    EXPECT_TRUE(Ask(RangeOf(key, end, 6)).status.ok()) << key;
  }
}

// etcd#6145, etcd#18267, etcd-io/website#1063: count is of the range, `more` of what the filters leave.
TEST_F(ClientPitfallTest, CountKnowsNeitherLimitNorFilters) {
  RangeRequest request = RangeOf("a", "z");
  request.set_keys_only(true);
  request.set_limit(1);
  EXPECT_EQ(Answer(request), std::string(kHeaderNow) +
                                 " kvs { key: \"a\" create_revision: 2 mod_revision: 2 version: 1 } more: true count: 3");
  request.set_min_mod_revision(6);
  EXPECT_EQ(Answer(request), std::string(kHeaderNow) +
                                 " kvs { key: \"b\" create_revision: 3 mod_revision: 6 version: 3 } count: 3");
  request.set_max_create_revision(1);
  EXPECT_EQ(Answer(request), std::string(kHeaderNow) + " count: 3");
}

// etcd#11319, dotnet-etcd#56: a key or an end of one zero byte is not an empty one.
TEST_F(ClientPitfallTest, ZeroByteIsAKeyAndAnEnd) {
  const std::string zero(1, '\0');
  backend.Put(zero, "z");
  const auto count_of = [&](std::string_view key, std::string_view end) {
    RangeRequest request = RangeOf(key, end);
    request.set_count_only(true);
    const std::string text = Answer(request);
    const size_t at = text.find("count: ");
    return at == std::string::npos ? 0 : text[at + 7] - '0';
  };
  EXPECT_EQ(count_of(zero, ""), 1);
  EXPECT_EQ(count_of(zero, zero), 4);
  EXPECT_EQ(count_of("b", zero), 2);
  EXPECT_EQ(count_of("b", ""), 1);
  EXPECT_EQ(count_of("b", "b"), 0);
  EXPECT_EQ(count_of("b", "a"), 0);
}

// etcd pull request 5351: one error for the three calls.
TEST_F(ClientPitfallTest, EmptyKeyIsRefusedByRangePutAndDeleteRange) {
  const auto refuse = [&](Method method, const google::protobuf::Message& request) {
    return transport.calls[Start(method, request)].status;
  };
  const CallStatus expected{StatusCode::kInvalidArgument, "etcdserver: key is not provided"};
  EXPECT_EQ(refuse(Method::kRange, RangeOf("", "z")), expected);
  EXPECT_EQ(refuse(Method::kPut, etcdserverpb::PutRequest()), expected);
  EXPECT_EQ(refuse(Method::kDeleteRange, etcdserverpb::DeleteRangeRequest()), expected);
  EXPECT_TRUE(backend.proposals.empty());
}

}  // namespace
}  // namespace detcd::rpc
