// Pings in both directions, silent clients, the limit of streams, and the goodbye of a server that stops.
#include "tests/core/wire/grpc_world.h"
#include "tests/core/wire/http2_frames.h"

namespace detcd::wire {
namespace {

using rpc::Method;

const std::string kPing = Encode(FrameType::kPing, 0, 0, "12345678");
const std::string kPingAnswer = Encode(FrameType::kPing, kAck, 0, std::string(8, '\0'));

TEST(GrpcKeepaliveTest, SilentClientIsPingedAndThenCut) {
  GrpcWorld world({.keepalive_interval = Seconds(60), .keepalive_timeout = Seconds(20)});
  auto& raw = world.AddRaw();
  raw.Write(Hello());
  world.Run();
  world.clock.Advance(Seconds(59));
  world.Run();
  EXPECT_EQ(CountOf(Decode(raw.received), FrameType::kPing), 0u);
  world.clock.Advance(Seconds(1));
  world.Run();
  EXPECT_EQ(CountOf(Decode(raw.received), FrameType::kPing), 1u);
  world.clock.Advance(Seconds(19));
  world.Run();
  EXPECT_FALSE(raw.ended);
  world.clock.Advance(Seconds(1));
  world.Run();
  EXPECT_TRUE(raw.ended);
  EXPECT_EQ(world.clock.armed(), 0u);
}

TEST(GrpcKeepaliveTest, AnythingFromTheClientIsASignOfLife) {
  GrpcWorld world({.keepalive_interval = Seconds(60), .keepalive_timeout = Seconds(20)});
  auto& answering = world.AddRaw();
  auto& talking = world.AddRaw();
  answering.Write(Hello());
  talking.Write(Hello());
  size_t answered = 0;
  for (int i = 0; i < 3'600; ++i) {
    world.Run();
    world.clock.Advance(Seconds(1));
    if (i % 50 == 0) talking.Write(Encode(FrameType::kWindowUpdate, 0, 0, Number(1)));
    for (const size_t pings = CountOf(Decode(answering.received), FrameType::kPing); answered < pings; ++answered) {
      answering.Write(kPingAnswer);
    }
  }
  EXPECT_FALSE(answering.ended);
  EXPECT_FALSE(talking.ended);
  EXPECT_NEAR(static_cast<double>(answered), 60, 2);
  EXPECT_EQ(CountOf(Decode(talking.received), FrameType::kPing), 0u);
}

TEST(GrpcKeepaliveTest, IntervalBelowTheTimeoutCutsNobodyWhoAnswers) {
  GrpcWorld world({.keepalive_interval = Seconds(1), .keepalive_timeout = Seconds(20)});
  auto& raw = world.AddRaw();
  raw.Write(Hello());
  size_t answered = 0;
  for (int i = 0; i < 100; ++i) {
    world.Run();
    world.clock.Advance(Seconds(1));
    world.Run();
    for (const size_t pings = CountOf(Decode(raw.received), FrameType::kPing); answered < pings; ++answered) {
      raw.Write(kPingAnswer);
    }
  }
  EXPECT_FALSE(raw.ended);
  EXPECT_GE(answered, 45u);
}

TEST(GrpcKeepaliveTest, ZeroMeansTheDefaultAndTheIntervalHasALeast) {
  GrpcWorld world({.ping_interval_min = {}, .keepalive_interval = {}, .keepalive_timeout = Seconds(1)});
  auto& raw = world.AddRaw();
  raw.Write(Hello());
  world.Run();
  world.clock.Advance(kKeepaliveInterval - Seconds(1));
  world.Run();
  EXPECT_EQ(CountOf(Decode(raw.received), FrameType::kPing), 0u);
  GrpcWorld short_world({.keepalive_interval = Nanos(1)});
  auto& other = short_world.AddRaw();
  other.Write(Hello());
  short_world.Run();
  short_world.clock.Advance(kKeepaliveIntervalMin - Nanos(1));
  short_world.Run();
  EXPECT_EQ(CountOf(Decode(other.received), FrameType::kPing), 0u);
}

TEST(GrpcKeepaliveTest, ClientWithoutPrefaceOrSettingsIsCut) {
  GrpcWorld world;
  auto& silent = world.AddRaw();
  auto& halfway = world.AddRaw();
  halfway.Write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  auto& good = world.AddRaw();
  good.Write(Hello());
  world.Run();
  world.clock.Advance(kHttp2HandshakeTimeout - Nanos(1));
  world.Run();
  EXPECT_FALSE(silent.ended || halfway.ended);
  world.clock.Advance(Nanos(1));
  world.Run();
  EXPECT_TRUE(silent.ended);
  EXPECT_TRUE(halfway.ended);
  EXPECT_FALSE(good.ended);
}

// The largest that --grpc-keepalive-interval takes, which is how operators say `never`.
TEST(GrpcKeepaliveTest, LongestIntervalIsNoOverflow) {
  GrpcWorld world({.keepalive_interval = Nanos(std::numeric_limits<int64_t>::max()),
                   .keepalive_timeout = Nanos(std::numeric_limits<int64_t>::max())});
  world.clock.Advance(Seconds(1));
  auto& raw = world.AddRaw();
  raw.Write(Hello());
  world.Run();
  world.clock.Advance(Seconds(1'000'000));
  world.Run();
  EXPECT_EQ(CountOf(Decode(raw.received), FrameType::kPing), 0u);
  EXPECT_FALSE(raw.ended);
}

// etcd#8905, jetcd#1041: clients that ping faster than --grpc-keepalive-min-time are told `too_many_pings`.
TEST(GrpcKeepaliveTest, MinTimeIsTheFlagsWithOpenCallsAndTwoHoursWithout) {
  for (const bool with_call : {true, false}) {
    GrpcWorld world({.ping_interval_min = Seconds(1), .keepalive_interval = Seconds(1'000'000)});
    auto& raw = world.AddRaw();
    raw.Write(Hello());
    if (with_call) raw.Write(OpenCall(1));
    world.Run();
    for (int i = 0; i < 4; ++i) {
      raw.Write(kPing);
      world.Run();
      world.clock.Advance(Seconds(1));
    }
    EXPECT_EQ(GoAwayOf(Decode(raw.received)), with_call ? "" : "11 too_many_pings");
    if (!with_call) continue;
    for (int i = 0; i < 4; ++i) {
      raw.Write(kPing);
      world.Run();
      world.clock.Advance(Seconds(1) - Nanos(1));
    }
    EXPECT_EQ(GoAwayOf(Decode(raw.received)), "11 too_many_pings");
  }
}

TEST(GrpcStreamsMaxTest, IsAnnouncedAndKept) {
  GrpcWorld world({.streams_max = 2});
  auto& raw = world.AddRaw();
  world.service.on_message = nullptr;
  raw.Write(Hello() + OpenCall(1) + OpenCall(3) + OpenCall(5));
  world.Run();
  const std::vector<Frame> frames = Decode(raw.received);
  EXPECT_TRUE(frames[0].payload.ends_with(Number(3, 2) + Number(2)));
  EXPECT_EQ(world.service.calls.size(), 2u);
  // A client that has not acknowledged the limit may try: REFUSED_STREAM says that nothing was done.
  ASSERT_EQ(CountOf(frames, FrameType::kReset), 1u);
  EXPECT_EQ(frames.back().payload, Number(7));
  raw.Write(Encode(FrameType::kReset, 0, 1, Number(8)) + OpenCall(7));
  world.Run();
  EXPECT_EQ(world.service.calls.size(), 3u);
}

// As in etcd 3.7.3, whose SETTINGS hold no MAX_CONCURRENT_STREAMS then.
TEST(GrpcStreamsMaxTest, OfZeroIsNoLimit) {
  GrpcWorld world({.streams_max = 0});
  auto& raw = world.AddRaw();
  raw.Write(Hello() + OpenCall(1) + OpenCall(3));
  world.Run();
  EXPECT_EQ(world.service.calls.size(), 2u);
  EXPECT_EQ(Decode(raw.received)[0].payload.find(Number(3, 2)), std::string::npos);
}

// RFC 9113 §6.8: what a client sent before it heard of the end is served.
TEST(GrpcGoodbyeTest, CallThatCrossesTheFirstGoAwayIsServed) {
  GrpcWorld world;
  auto& raw = world.AddRaw();
  raw.Write(Hello() + OpenCall(1));
  world.Run();
  raw.received.clear();
  world.server->Shutdown();
  world.Run();
  std::vector<Frame> frames = Decode(raw.received);
  ASSERT_EQ(CountOf(frames, FrameType::kGoAway), 1u);
  const auto is_goaway = [](const Frame& frame) { return frame.type == FrameType::kGoAway; };
  EXPECT_EQ(std::find_if(frames.begin(), frames.end(), is_goaway)->payload, Number(0x7FFFFFFF) + Number(0));
  const std::string message = Encode(FrameType::kData, kEndStream, 3, std::string("\0\0\0\0\3\x0A\1a", 8));
  raw.Write(OpenCall(3) + message + kPingAnswer + OpenCall(5));
  world.Run();
  frames = Decode(raw.received);
  EXPECT_EQ(world.service.calls.size(), 2u);  // 5 came after the client knew
  ASSERT_EQ(CountOf(frames, FrameType::kGoAway), 2u);
  const auto last = std::find_if(frames.rbegin(), frames.rend(), is_goaway);
  EXPECT_EQ(last->payload, Number(3) + Number(0));
  EXPECT_EQ(CountOf(frames, FrameType::kData), 1u);
  EXPECT_FALSE(raw.ended);
  raw.Write(Encode(FrameType::kReset, 0, 1, Number(8)));
  world.Run();
  EXPECT_TRUE(raw.ended);
  EXPECT_EQ(world.server->connection_count(), 0u);
}

}  // namespace
}  // namespace detcd::wire
