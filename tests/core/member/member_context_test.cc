#include "core/member/member_context.h"

namespace detcd::member {
namespace {

TEST(MemberContextTest, WritesWhatEtcdWrites) {
  EXPECT_EQ(EncodeMemberContext({.member = {.id = MemberId(15508556745550127957u),
                                            .name = "a",
                                            .peer_urls = {"http://127.0.0.1:23080", "http://b"},
                                            .client_urls = {}}}),
            R"({"id":15508556745550127957,"peerURLs":["http://127.0.0.1:23080","http://b"],"name":"a"})");
  EXPECT_EQ(EncodeMemberContext({.member = {.id = MemberId(7)}, .is_promote = true}),
            R"({"id":7,"peerURLs":null,"isPromote":true})");
  EXPECT_EQ(EncodeMemberContext({.member = {.name = "<&>\"\\\n\x01\xE2\x80\xA8"}}),
            R"({"id":0,"peerURLs":null,"name":"\u003c\u0026\u003e\"\\\n\u0001\u2028"})");
}

TEST(MemberContextTest, PassesOverWhatItDoesNotKnow) {
  const auto context = DecodeMemberContext(
      R"( { "x" : [1, -2.5e3, {"y":null,"z":{}}, [], true], "id":9, "peerURLs":null, "name":"\u00e4\ud83d\ude00\/" } )");
  ASSERT_TRUE(context.has_value());
  EXPECT_EQ(context->member, (rpc::MemberRow{.id = MemberId(9), .name = "\xC3\xA4\xF0\x9F\x98\x80/"}));
}

TEST(MemberContextTest, RefusesWhatIsNoMember) {
  for (const char* text :
       {"", "{", "[]", "null", "{}x", R"({"id":"9"})", R"({"id":-1})", R"({"id":18446744073709551616})", R"({"id":1,})",
        R"({"name":"a)", R"({"name":"\ud800"})", R"({"peerURLs":"a"})", R"({"peerURLs":["a",]})", R"({"isLearner":1})",
        R"({"name":"\q"})", R"({1:2})"}) {
    EXPECT_FALSE(DecodeMemberContext(text).has_value()) << text;
  }
  EXPECT_FALSE(DecodeMemberContext(R"({"x":)" + std::string(100, '[')).has_value());
  EXPECT_FALSE(DecodeMemberContext(R"({"x":)" + std::string(100, '[') + std::string(100, ']') + "}").has_value());
}

RC_GTEST_PROP(MemberContextProperty, RoundTrips,
              (uint64_t id, std::string name, std::vector<std::string> urls, std::vector<std::string> client_urls,
               bool learner, bool promote)) {
  const MemberContext context = {.member = {.id = MemberId(id),
                                            .name = name,
                                            .peer_urls = urls,
                                            .client_urls = client_urls,
                                            .is_learner = learner},
                                 .is_promote = promote};
  const std::string json = EncodeMemberContext(context);
  RC_ASSERT(DecodeMemberContext(json) == context);
  const auto cut = *rc::gen::inRange<size_t>(0, json.size());
  RC_ASSERT(!DecodeMemberContext(json.substr(0, cut)).has_value());
}

}  // namespace
}  // namespace detcd::member
