// Calls between our client and our server.
#include "tests/core/wire/grpc_world.h"

namespace detcd::wire {
namespace {

using ::testing::ElementsAre;
using rpc::CallStatus;
using rpc::Method;
using rpc::StatusCode;

TEST(GrpcCallTest, UnaryCallBringsMessageAndStatus) {
  GrpcWorld world;
  auto& c = world.AddClient();
  const auto request = RangeOf("a");
  ASSERT_TRUE(c.client->Start(Method::kRange, &request, {.token = 7}));
  world.Run();
  EXPECT_THAT(world.service.heard, ElementsAre("open /etcdserverpb.KV/Range", "message {key: \"a\"}"));
  EXPECT_THAT(c.listener.heard[7], ElementsAre("response {kvs { key: \"a\" }}", "end 0 "));
  EXPECT_EQ(c.client->open_calls(), 0u);
  EXPECT_EQ(world.service.canceled, 0);
}

TEST(GrpcCallTest, BrokenCallsLeaveAsTheyAre) {
  GrpcWorld world;
  auto& c = world.AddClient();
  std::string body;
  AppendMessage(RangeOf("a"), body);
  ASSERT_TRUE(c.client->StartRaw("/etcdserverpb.KV/Range", Method::kRange, body, {.token = 1}));
  ASSERT_TRUE(c.client->StartRaw(std::string("/a.B/") + "C", Method::kRange, body, {.token = 2}));  // the path is copied
  ASSERT_TRUE(c.client->StartRaw("/etcdserverpb.KV/Range", Method::kRange, body.substr(0, 6), {.token = 3}));
  ASSERT_TRUE(c.client->StartRaw("/etcdserverpb.KV/Range", Method::kRange, "", {.token = 4}));
  world.Run();
  EXPECT_THAT(c.listener.heard[1], ElementsAre("response {kvs { key: \"a\" }}", "end 0 "));
  EXPECT_THAT(c.listener.heard[2], ElementsAre("end 12 unknown service a.B"));
  EXPECT_THAT(c.listener.heard[3], ElementsAre("end 2 unexpected EOF"));
  EXPECT_THAT(c.listener.heard[4], ElementsAre("end 2 EOF"));
  EXPECT_EQ(c.client->open_calls(), 0u);
  EXPECT_EQ(c.client->backlog(), 0u);
}

TEST(GrpcCallTest, AnswersOfOneTurnLeaveInOneWrite) {
  GrpcWorld world;
  auto& c = world.AddClient();
  world.Run();
  const size_t before = c.pair.writes(1);
  const auto request = RangeOf("a");
  for (uint64_t i = 0; i < 100; ++i) c.client->Start(Method::kRange, &request, {.token = i});
  c.client->EndTurn();
  c.pair.Deliver(1);
  world.server->EndTurn();
  EXPECT_EQ(c.pair.writes(1), before + 1);
  world.Run();
  EXPECT_EQ(c.listener.ended.size(), 100u);
}

TEST(GrpcCallTest, MetadataReachesTheContext) {
  GrpcWorld world;
  auto& c = world.AddClient();
  const auto request = RangeOf("a");
  c.client->Start(Method::kRange, &request,
                  {.timeout = Millis(1500), .has_leader = true, .auth_token = "t.1", .client_api_version = "3.7"});
  world.Run();
  ASSERT_EQ(world.service.contexts.size(), 1u);
  const rpc::CallContext& context = world.service.contexts[0];
  EXPECT_TRUE(context.has_leader);
  EXPECT_EQ(context.token, "t.1");
  EXPECT_EQ(context.client_api_version, "3.7");
  EXPECT_EQ(context.deadline, world.clock.Now() + Millis(1500));
}

TEST(GrpcCallTest, ErrorTextSurvivesPercentEncoding) {
  GrpcWorld world;
  auto& c = world.AddClient();
  world.service.on_message = [](auto& transport, auto call, auto&) {
    transport.Finish(call, {StatusCode::kOutOfRange, "100% of \"\xC3\xA9\"\n"});
  };
  const auto request = RangeOf("a");
  c.client->Start(Method::kRange, &request, {.token = 1});
  world.Run();
  EXPECT_EQ(c.listener.ended[1], (CallStatus{StatusCode::kOutOfRange, "100% of \"\xC3\xA9\"\n"}));
}

TEST(GrpcCallTest, RequestAtTheLimitIsTakenAndOneByteMoreIsNot) {
  GrpcWorld world;
  auto& c = world.AddClient();
  const size_t overhead = PutOf("k", kReceiveBytesMax / 2).ByteSizeLong() - kReceiveBytesMax / 2;
  const auto fits = PutOf("k", kReceiveBytesMax - overhead);
  const auto too_large = PutOf("k", kReceiveBytesMax - overhead + 1);
  ASSERT_EQ(fits.ByteSizeLong(), kReceiveBytesMax);
  c.client->Start(Method::kPut, &fits, {.token = 1});
  c.client->Start(Method::kPut, &too_large, {.token = 2});
  world.Run();
  EXPECT_EQ(c.listener.ended[1], CallStatus{});
  EXPECT_EQ(c.listener.ended[2],
            (CallStatus{StatusCode::kResourceExhausted, "grpc: received message larger than max (2097153 vs. 2097152)"}));
  EXPECT_EQ(world.service.canceled, 1);
}

TEST(GrpcCallTest, BidirectionalStreamOutlivesHalfClose) {
  GrpcWorld world;
  auto& c = world.AddClient();
  const auto id = c.client->Start(Method::kWatch, nullptr, {.token = 1});
  ASSERT_TRUE(id);
  c.client->Send(*id, etcdserverpb::WatchRequest());
  world.Run();
  c.client->Send(*id, etcdserverpb::WatchRequest());
  c.client->HalfClose(*id);
  world.Run();
  EXPECT_THAT(c.listener.heard[1], ElementsAre("response {created: true}", "response {created: true}"));
  EXPECT_EQ(world.service.heard.back(), "half-close");
  world.server->Finish(world.service.calls[0], {StatusCode::kUnavailable, "etcdserver: no leader"});
  world.Run();
  EXPECT_EQ(c.listener.ended[1], (CallStatus{StatusCode::kUnavailable, "etcdserver: no leader"}));
}

TEST(GrpcCallTest, CancelReachesTheServiceOnce) {
  GrpcWorld world;
  auto& c = world.AddClient();
  world.service.on_message = nullptr;
  const auto request = RangeOf("a");
  const auto id = c.client->Start(Method::kRange, &request, {.token = 1});
  world.Run();
  c.client->Cancel(*id);
  world.Run();
  EXPECT_EQ(world.service.canceled, 1);
  EXPECT_TRUE(c.listener.ended.empty());
}

TEST(GrpcCallTest, CancelBeforeAnythingLeftIsQuiet) {
  GrpcWorld world;
  auto& c = world.AddClient();
  const auto request = RangeOf("a");
  const auto id = c.client->Start(Method::kRange, &request, {.token = 1});
  c.client->Cancel(*id);
  world.Run();
  EXPECT_TRUE(c.listener.heard.empty());
  c.client->Start(Method::kRange, &request, {.token = 2});
  world.Run();
  EXPECT_EQ(c.listener.ended[2], CallStatus{});
}

TEST(GrpcCallTest, DeadlineEndsTheCallOnBothSides) {
  GrpcWorld world;
  auto& c = world.AddClient();
  world.service.on_message = nullptr;
  const auto request = RangeOf("a");
  c.client->Start(Method::kRange, &request, {.token = 1, .timeout = Millis(100)});
  c.client->Start(Method::kRange, &request, {.token = 2, .timeout = Millis(50)});
  c.client->Start(Method::kRange, &request, {.token = 3});
  world.Run();
  world.clock.Advance(Millis(50));
  world.Run();
  EXPECT_EQ(c.listener.ended.size(), 1u);
  EXPECT_EQ(c.listener.ended[2], (CallStatus{StatusCode::kDeadlineExceeded, "context deadline exceeded"}));
  EXPECT_EQ(world.service.canceled, 1);
  world.clock.Advance(Millis(50));
  world.Run();
  EXPECT_EQ(c.listener.ended.size(), 2u);
  EXPECT_EQ(world.service.canceled, 2);
}

TEST(GrpcCallTest, LostConnectionEndsAllCalls) {
  GrpcWorld world;
  auto& c = world.AddClient();
  world.service.on_message = nullptr;
  const auto request = RangeOf("a");
  for (uint64_t i = 0; i < 10; ++i) c.client->Start(Method::kRange, &request, {.token = i});
  world.Run();
  c.pair.Reset();
  EXPECT_EQ(world.service.canceled, 10);
  EXPECT_EQ(c.listener.ended.size(), 10u);
  EXPECT_EQ(c.listener.ended[3].code, StatusCode::kUnavailable);
  EXPECT_EQ(world.server->connection_count(), 0u);
  EXPECT_FALSE(c.client->Start(Method::kRange, &request, {}));
}

TEST(GrpcCallTest, ThousandsOfCallsAtOnce) {
  GrpcWorld world;
  auto& c = world.AddClient(65'536);
  world.service.on_message = nullptr;
  for (uint64_t i = 0; i < 5'000; ++i) {
    const auto request = PutOf("k", i % 300);
    c.client->Start(Method::kPut, &request, {.token = i});
  }
  world.Run();
  ASSERT_EQ(world.service.calls.size(), 5'000u);
  // The answers come in another order.
  for (size_t i = 0; i < 5'000; ++i) {
    const rpc::CallId call = world.service.calls[i * 7 % 5'000];
    world.server->Send(call, etcdserverpb::PutResponse());
    world.server->Finish(call, {});
  }
  world.Run();
  EXPECT_EQ(c.listener.ended.size(), 5'000u);
  EXPECT_EQ(c.listener.responses, 5'000u);
}

TEST(GrpcCallTest, ReaderThatStopsHoldsTheServiceBackAndCreditComesLater) {
  GrpcWorld world;
  auto& c = world.AddClient(1'000);
  world.Run();
  const auto id = c.client->Start(Method::kWatch, nullptr, {.token = 1});
  c.client->Send(*id, etcdserverpb::WatchRequest());
  world.service.on_message = nullptr;
  world.Run();
  const rpc::CallId call = world.service.calls[0];
  etcdserverpb::WatchResponse big;
  big.set_cancel_reason(std::string(100'000, 'x'));
  size_t sent = 0;
  const auto push = [&](rpc::CallTransport& transport, rpc::CallId to) {
    for (; sent < 100 && transport.Writable(to); ++sent) transport.Send(to, big);
  };
  world.service.on_credit = push;
  push(*world.server, call);
  EXPECT_LE(sent, kCallSendBacklogMax / 100'000 + 1);
  world.server->EndTurn();
  EXPECT_LT(sent, 100u);
  world.Run();
  EXPECT_EQ(sent, 100u);
  EXPECT_EQ(c.listener.responses, 100u);
}

TEST(GrpcCallTest, ShutdownServesCallsUnderWayAndThenCloses) {
  GrpcWorld world;
  auto& c = world.AddClient();
  world.service.on_message = nullptr;
  const auto request = RangeOf("a");
  c.client->Start(Method::kRange, &request, {.token = 1});
  world.Run();
  world.server->Shutdown();
  world.Run();
  EXPECT_EQ(c.listener.goaways, 1);
  EXPECT_FALSE(c.client->Start(Method::kRange, &request, {.token = 2}));
  EXPECT_EQ(world.server->connection_count(), 1u);
  AnswerAll(*world.server, world.service.calls[0], request);
  world.Run();
  EXPECT_EQ(c.listener.ended[1], CallStatus{});
  EXPECT_EQ(world.server->connection_count(), 0u);
  EXPECT_TRUE(c.listener.disconnected.has_value());
}

TEST(GrpcCallTest, ConnectionMadeAfterShutdownIsToldToGo) {
  GrpcWorld world;
  world.server->Shutdown();
  auto& c = world.AddClient();
  world.Run();
  EXPECT_EQ(c.listener.goaways, 1);
  EXPECT_EQ(world.server->connection_count(), 0u);
}

TEST(GrpcCallTest, ClientClosesWhenItsCallsAreDone) {
  GrpcWorld world;
  auto& c = world.AddClient();
  const auto request = RangeOf("a");
  c.client->Start(Method::kRange, &request, {.token = 1});
  c.client->Close();
  world.Run();
  EXPECT_EQ(c.listener.ended[1], CallStatus{});
  EXPECT_EQ(c.listener.disconnected, IoError::kOk);
  EXPECT_EQ(world.server->connection_count(), 0u);
  EXPECT_EQ(world.service.canceled, 0);
}

TEST(GrpcCallTest, FourthPingInARowIsOneTooMany) {
  GrpcWorld world;
  auto& c = world.AddClient();
  world.Run();
  for (int i = 0; i < 3; ++i) {
    c.client->Ping();
    world.Run();
  }
  EXPECT_EQ(c.listener.goaways, 0);
  c.client->Ping();
  world.Run();
  EXPECT_EQ(c.listener.goaways, 1);
  EXPECT_EQ(world.server->connection_count(), 0u);
}

TEST(GrpcCallTest, PingsAtTheAllowedIntervalOrBesideAnswersAreFine) {
  GrpcWorld world;
  auto& c = world.AddClient();
  const auto id = c.client->Start(Method::kWatch, nullptr, {.token = 1});
  world.Run();
  for (int i = 0; i < 10; ++i) {
    c.client->Ping();
    world.Run();
    world.clock.Advance(kPingIntervalMin);
  }
  for (int i = 0; i < 10; ++i) {
    c.client->Send(*id, etcdserverpb::WatchRequest());
    world.Run();
    c.client->Ping();
    world.Run();
  }
  EXPECT_EQ(c.listener.goaways, 0);
}

TEST(GrpcCallTest, MoreResetsInASecondThanAllowedCloseTheConnection) {
  GrpcWorld world;
  auto& c = world.AddClient();
  world.service.on_message = nullptr;
  const auto request = RangeOf("a");
  for (uint32_t i = 0; i < kHttp2ResetsPerSecondMax; ++i) {
    const auto id = c.client->Start(Method::kRange, &request, {});
    c.client->EndTurn();
    c.client->Cancel(*id);
    c.client->EndTurn();
  }
  world.Run();
  EXPECT_EQ(c.listener.goaways, 0);
  const auto id = c.client->Start(Method::kRange, &request, {});
  c.client->EndTurn();
  c.client->Cancel(*id);
  world.Run();
  EXPECT_EQ(c.listener.goaways, 1);
  EXPECT_EQ(world.server->connection_count(), 0u);
}

// What a client hears must not depend on how bytes are cut, nor on the room of sockets.
RC_GTEST_PROP(GrpcCallProperty, AnySegmentationGivesTheSameCalls, ()) {
  const auto sizes = *rc::gen::container<std::vector<uint32_t>>(rc::gen::inRange<uint32_t>(0, 40'000));
  const auto segment = *rc::gen::inRange<size_t>(1, 300);
  const auto room = *rc::gen::inRange<size_t>(1, 5'000);
  GrpcWorld whole;
  GrpcWorld cut;
  for (GrpcWorld* world : {&whole, &cut}) {
    auto& c = world->AddClient(world == &cut ? room : std::numeric_limits<size_t>::max());
    for (size_t i = 0; i < sizes.size() && i < 20; ++i) {
      const auto request = PutOf("k", sizes[i]);
      c.client->Start(Method::kPut, &request, {.token = i});
    }
    world->Run(world == &cut ? segment : std::numeric_limits<size_t>::max());
  }
  RC_ASSERT(whole.clients[0]->listener.heard == cut.clients[0]->listener.heard);
  RC_ASSERT(whole.clients[0]->listener.ended.size() == std::min<size_t>(sizes.size(), 20));
}

// A connection that dies, or a call that is canceled, at any step leaves no call open at the service.
RC_GTEST_PROP(GrpcCallProperty, CancelAtEveryPointLeavesNothingOpen, ()) {
  const auto steps = *rc::gen::inRange<int>(0, 40);
  const auto segment = *rc::gen::inRange<size_t>(1, 60);
  const bool reset = *rc::gen::arbitrary<bool>();
  GrpcWorld world;
  auto& c = world.AddClient();
  auto& other = world.AddClient();
  world.service.on_message = nullptr;
  const auto request = PutOf("k", 100);
  const auto id = c.client->Start(Method::kPut, &request, {.token = 1});
  for (int i = 0; i < steps; ++i) world.Step(segment);
  if (reset) {
    c.pair.Reset();
  } else {
    c.client->Cancel(*id);
  }
  world.Run(segment);
  RC_ASSERT(world.service.live.empty());
  RC_ASSERT(static_cast<size_t>(world.service.canceled) == world.service.calls.size());
  world.service.on_message = AnswerAll;
  other.client->Start(Method::kPut, &request, {.token = 2});
  world.Run();
  RC_ASSERT(other.listener.ended[2].ok());
}

}  // namespace
}  // namespace detcd::wire
