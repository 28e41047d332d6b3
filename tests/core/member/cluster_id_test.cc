#include "core/member/cluster_id.h"

namespace detcd::member {
namespace {

// reference/peer.md 15: measured on etcd.
TEST(ClusterIdTest, WorkedExampleOfOneMember) {
  const MemberId member = DeriveMemberId({"http://127.0.0.1:32380"}, "tok");
  EXPECT_EQ(member, MemberId(0xca7a34e16cff9c1b));
  EXPECT_EQ(DeriveClusterId({member}), ClusterId(0xcce94708faa3944e));
}

TEST(ClusterIdTest, OrderOfUrlsAndMembersMeansNothing) {
  EXPECT_EQ(DeriveMemberId({"http://b", "http://a"}, "tok"), DeriveMemberId({"http://a", "http://b"}, "tok"));
  EXPECT_EQ(DeriveClusterId({MemberId(2), MemberId(1)}), DeriveClusterId({MemberId(1), MemberId(2)}));
}

TEST(ClusterIdTest, TokenAndUrlsTellMembersApart) {
  const MemberId member = DeriveMemberId({"http://a"}, "tok");
  EXPECT_NE(DeriveMemberId({"http://a"}, "other"), member);
  EXPECT_NE(DeriveMemberId({"http://b"}, "tok"), member);
}

}  // namespace
}  // namespace detcd::member
