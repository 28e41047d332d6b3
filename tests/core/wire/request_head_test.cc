// Header blocks, and what etcd's gRPC library says of each.
#include "core/wire/request_head.h"

#include <gtest/gtest.h>

#include "core/base/limits.h"

namespace detcd::wire {
namespace {

using rpc::StatusCode;
using Fields = std::vector<std::pair<std::string, std::string>>;

const Fields kGood = {{":method", "POST"},
                      {":scheme", "http"},
                      {":path", "/etcdserverpb.KV/Range"},
                      {":authority", "a"},
                      {"content-type", "application/grpc"},
                      {"te", "trailers"}};

Fields With(std::string name, std::string value) {
  Fields fields = kGood;
  fields.emplace_back(std::move(name), std::move(value));
  return fields;
}

Fields Without(std::string_view name) {
  Fields fields = kGood;
  std::erase_if(fields, [&](const auto& field) { return field.first == name; });
  return fields;
}

Fields Replaced(std::string_view name, std::string value) {
  Fields fields = kGood;
  for (auto& field : fields) {
    if (field.first == name) field.second = value;
  }
  return fields;
}

// `good`, `malformed`, or `HTTP-STATUS CODE text`.
std::string Verdict(const Fields& fields) {
  RequestHead head;
  for (const auto& [name, value] : fields) head.Add(name, value);
  const auto verdict = head.Judge();
  if (std::holds_alternative<MalformedHead>(verdict)) return "malformed";
  if (const auto* refusal = std::get_if<HeadRefusal>(&verdict)) {
    return std::string(refusal->http_status) + " " + std::to_string(static_cast<int>(refusal->code)) + " " +
           refusal->message;
  }
  return "good";
}

TEST(RequestHeadTest, WhatEtcdServesIsGood) {
  EXPECT_EQ(Verdict(kGood), "good");
  EXPECT_EQ(Verdict(Without("te")), "good");
  EXPECT_EQ(Verdict(Replaced("te", "gzip")), "good");
  EXPECT_EQ(Verdict(With("x", "tab\tand \xC3\xA9 and \xFF")), "good");
  EXPECT_EQ(Verdict(With("x", "")), "good");
  EXPECT_EQ(Verdict(With("content-length", "3")), "good");
  EXPECT_EQ(Verdict(With("grpc-encoding", "identity")), "good");
  EXPECT_EQ(Verdict(With("grpc-encoding", "gzip")), "good");
  EXPECT_EQ(Verdict(With("grpc-timeout", "99999999H")), "good");
  EXPECT_EQ(Verdict(With("x-bin", "")), "good");
  EXPECT_EQ(Verdict(With("x-bin", "YWI=")), "good");
  EXPECT_EQ(Verdict(With("x-bin", "YWI")), "good");
  Fields host = Without(":authority");
  host.emplace_back("host", "b");
  EXPECT_EQ(Verdict(host), "good");
  EXPECT_EQ(Verdict(With("host", "b")), "good");
}

TEST(RequestHeadTest, WhatIsNoRequestIsMalformed) {
  for (const std::string_view name : {":method", ":scheme", ":path"}) EXPECT_EQ(Verdict(Without(name)), "malformed");
  EXPECT_EQ(Verdict(With(":path", "/late")), "malformed");
  EXPECT_EQ(Verdict(With("X-Capital", "a")), "malformed");
  EXPECT_EQ(Verdict(With("", "a")), "malformed");
  EXPECT_EQ(Verdict(With("a b", "a")), "malformed");
  EXPECT_EQ(Verdict(With("\xC3\xA9", "a")), "malformed");
  EXPECT_EQ(Verdict(With("x", std::string("a\0b", 3))), "malformed");
  EXPECT_EQ(Verdict(With("x", "a\nb")), "malformed");
  EXPECT_EQ(Verdict(With("x", "a\x7F")), "malformed");
  EXPECT_EQ(Verdict(With("connection", "close")), "malformed");
  for (const std::string_view name : {":method", ":status", ":x", ":"}) {
    Fields fields = kGood;
    fields.insert(fields.begin(), {std::string(name), "POST"});
    EXPECT_EQ(Verdict(fields), "malformed") << name;
  }
}

TEST(RequestHeadTest, RefusalsHaveEtcdsWords) {
  EXPECT_EQ(Verdict(Without(":authority")), "400 13 no host or :authority header present");
  Fields two_hosts = With("host", "b");
  two_hosts.emplace_back("host", "c");
  EXPECT_EQ(
      Verdict(two_hosts),
      "400 13 num values of :authority: 1, num values of host: 2, both must only have 1 value as per HTTP/2 spec");
  EXPECT_EQ(Verdict(Replaced("content-type", "Application/grpc")),
            "415 3 invalid gRPC request content-type \"Application/grpc\"");
  EXPECT_EQ(Verdict(With("grpc-timeout", "-1S")),
            "400 13 malformed grpc-timeout: strconv.ParseUint: parsing \"-1\": invalid syntax");
  EXPECT_EQ(Verdict(With("grpc-timeout", "0S")), "200 4 context deadline exceeded");
  EXPECT_EQ(Verdict(With("x-bin", "@@@")),
            "400 13 malformed binary metadata \"@@@\" in header \"x-bin\": illegal base64 data at input byte 0");
  EXPECT_EQ(Verdict(Replaced(":method", "GET")),
            "405 13 Received a HEADERS frame with :method \"GET\" which should be POST");
  EXPECT_EQ(Verdict(Replaced(":path", "")), "200 12 malformed method name: \"\"");
  EXPECT_EQ(Verdict(Replaced(":path", "/")), "200 12 malformed method name: \"/\"");
  EXPECT_EQ(Verdict(With("grpc-encoding", "GZIP")),
            "200 12 grpc: Decompressor is not installed for grpc-encoding \"GZIP\"");
}

TEST(RequestHeadTest, FirstCheckThatFailsIsTheAnswer) {
  Fields fields = Without(":authority");
  fields.emplace_back("grpc-timeout", "0S");
  fields.emplace_back("content-type", "text/plain");  // a second one does not undo the first
  EXPECT_EQ(Verdict(fields), "400 13 no host or :authority header present");
  fields.emplace_back("grpc-timeout", "x");
  EXPECT_EQ(Verdict(fields), "400 13 malformed grpc-timeout: transport: timeout string is too short: \"x\"");
  fields.emplace_back("connection", "close");
  EXPECT_EQ(Verdict(fields), "malformed");
}

TEST(RequestHeadTest, ListAtTheLimitIsGoodAndOneByteMoreIsNot) {
  size_t size = 0;
  for (const auto& [name, value] : kGood) size += name.size() + value.size() + 32;
  const std::string fill(kHttpHeaderBytesMax - size - 33, 'x');
  EXPECT_EQ(Verdict(With("x", fill)), "good");
  EXPECT_EQ(Verdict(With("x", fill + "x")), "431 8 header list size 65537 exceeds 65536");
}

TEST(RequestHeadTest, ContentTypeOfAnswersKeepsTheSubtype) {
  for (const auto& [asked, answered] : Fields{{"application/grpc", ""},
                                              {"application/grpc+", ""},
                                              {"application/grpc+proto", "application/grpc+proto"},
                                              {"application/grpc;x", "application/grpc+x"}}) {
    RequestHead head;
    for (const auto& [name, value] : Replaced("content-type", asked)) head.Add(name, value);
    EXPECT_EQ(head.content_type(), answered) << asked;
  }
}

}  // namespace
}  // namespace detcd::wire
