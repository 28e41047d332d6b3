// What the gRPC port answers to each kind of request, field by field (etcd's behaviour, which is grpc-go's), and to bytes
// that are none.
#include "absl/strings/str_format.h"
#include "core/wire/gzip.h"
#include "core/wire/http2_session.h"
#include "tests/core/wire/grpc_world.h"
#include "tests/core/wire/http2_frames.h"

namespace detcd::wire {
namespace {

using ::testing::ElementsAre;

// A bare HTTP/2 client: any headers, any body, and what came back as text.
class BareClient final : private Http2Listener {
 public:
  struct Exchange final : Http2Stream {
    std::string text;     // `:status=200;...` of each header block, `[5]` for body bytes, `end` or `reset N`
    std::string body;
  };

  explicit BareClient(GrpcWorld& world) : world_(world), raw_(world.AddRaw()) { Pump(); }

  // Sends a request and returns all that came back. `end` half-closes after the body.
  std::string Ask(std::vector<Http2Header> headers, std::string body, bool end = true) {
    Submit(std::move(headers), std::move(body), end);
    Pump();
    return exchanges_.back()->text;
  }

  void Submit(std::vector<Http2Header> headers, std::string body, bool end = true) {
    exchanges_.push_back(std::make_unique<Exchange>());
    Exchange& exchange = *exchanges_.back();
    exchange.outgoing = std::move(body);
    exchange.body_ended = end;
    EXPECT_TRUE(session_.SubmitRequest(headers, exchange));
  }

  // One turn of the server, then the bytes of both sides are delivered. False: nothing happened.
  bool Step() {
    std::string out;
    EXPECT_TRUE(session_.Drain(out, 1 << 24));
    if (!out.empty() && !raw_.ended) raw_.Write(out);
    const bool any = world_.Step() || !out.empty();
    EXPECT_TRUE(session_.Receive(raw_.received));
    raw_.received.clear();
    return any;
  }

  void Pump() {
    while (Step()) {
    }
  }

  const std::string& last_text() const { return exchanges_.back()->text; }
  const std::string& last_body() const { return exchanges_.back()->body; }
  Http2Session& session() { return session_; }
  bool ended() const { return raw_.ended; }
  std::string goaway;

 private:
  Http2Stream* OnStreamBegin(int32_t) override { return nullptr; }
  void OnHeader(Http2Stream& stream, std::string_view name, std::string_view value) override {
    static_cast<Exchange&>(stream).text += absl::StrFormat("%s=%s;", name, value);
  }
  void OnHeadersEnd(Http2Stream&, bool) override {}
  void OnBody(Http2Stream& stream, std::string_view bytes) override {
    static_cast<Exchange&>(stream).text += absl::StrFormat("[%d]", bytes.size());
    static_cast<Exchange&>(stream).body += bytes;
  }
  void OnRemoteEnd(Http2Stream& stream) override { static_cast<Exchange&>(stream).text += "end"; }
  void OnStreamClosed(Http2Stream& stream, Http2Error error) override {
    if (!stream.remote_ended) {
      static_cast<Exchange&>(stream).text += absl::StrFormat("reset %d", static_cast<uint32_t>(error));
    }
  }
  void OnBodyFramed(Http2Stream&) override {}
  void OnBodySent(Http2Stream&, size_t) override {}
  void OnHeadersSent(Http2Stream&, bool) override {}
  void OnResetForced() override {}
  void OnOverhead(Http2Overhead) override {}
  void OnPing(bool) override {}
  void OnGoAway(Http2Error error, std::string_view debug) override {
    goaway = absl::StrFormat("%d %s", static_cast<uint32_t>(error), debug);
  }

  GrpcWorld& world_;
  GrpcWorld::Raw& raw_;
  Http2Session session_{Http2Session::Side::kClient, *this};
  std::vector<std::unique_ptr<Exchange>> exchanges_;
};

std::vector<Http2Header> HeadersOf(std::string_view path = "/etcdserverpb.KV/Range",
                                   std::string_view content_type = "application/grpc") {
  return {{":method", "POST"}, {":scheme", "http"}, {":path", path}, {":authority", "#initially=[x]"},
          {"content-type", content_type}, {"te", "trailers"}};
}

std::string BodyOf(const google::protobuf::Message& message) {
  std::string body;
  AppendMessage(message, body);
  return body;
}

std::string Refusal(std::string_view http, int code, std::string_view message,
                    std::string_view content_type = "application/grpc") {
  return absl::StrFormat(":status=%s;content-type=%s;grpc-status=%d;grpc-message=%s;end", http, content_type, code,
                         message);
}

constexpr std::string_view kGoodRange =
    ":status=200;content-type=application/grpc;[10]grpc-status=0;grpc-message=;end";

TEST(GrpcFactsTest, GoodAnswerEndsWithStatusZeroAndEmptyMessage) {
  GrpcWorld world;
  BareClient client(world);
  EXPECT_EQ(client.Ask(HeadersOf(), BodyOf(RangeOf("a"))), kGoodRange);
}

TEST(GrpcFactsTest, ContentTypeIsEchoedOrRefused) {
  GrpcWorld world;
  BareClient client(world);
  const std::string body = BodyOf(RangeOf("a"));
  EXPECT_EQ(client.Ask(HeadersOf("/etcdserverpb.KV/Range", "application/grpc+json"), body),
            ":status=200;content-type=application/grpc+json;[10]grpc-status=0;grpc-message=;end");
  EXPECT_EQ(client.Ask(HeadersOf("/etcdserverpb.KV/Range", "text/plain"), body),
            Refusal("415", 3, "invalid gRPC request content-type \"text/plain\""));
  EXPECT_EQ(client.Ask(HeadersOf("/etcdserverpb.KV/Range", "application/grpcx"), body),
            Refusal("415", 3, "invalid gRPC request content-type \"application/grpcx\""));
  std::vector<Http2Header> none = HeadersOf();
  none.erase(none.begin() + 4);
  EXPECT_EQ(client.Ask(none, body), Refusal("415", 3, "invalid gRPC request content-type \"\""));
}

TEST(GrpcFactsTest, MethodOtherThanPostIs405) {
  GrpcWorld world;
  BareClient client(world);
  std::vector<Http2Header> headers = HeadersOf();
  headers[0].value = "PUT";
  EXPECT_EQ(client.Ask(headers, BodyOf(RangeOf("a"))),
            Refusal("405", 13, "Received a HEADERS frame with :method \"PUT\" which should be POST"));
}

TEST(GrpcFactsTest, PathsThatNameNoMethodAreUnimplementedAtOnce) {
  GrpcWorld world;
  BareClient client(world);
  EXPECT_EQ(client.Ask(HeadersOf("/foo"), "", false).substr(0, 91),
            Refusal("200", 12, "malformed method name: \"/foo\"").substr(0, 91));
  EXPECT_EQ(client.Ask(HeadersOf("foo/bar"), ""), Refusal("200", 12, "malformed method name: \"foo/bar\""));
  EXPECT_EQ(client.Ask(HeadersOf("/a.B/C"), ""), Refusal("200", 12, "unknown service a.B"));
  EXPECT_EQ(client.Ask(HeadersOf("/etcdserverpb.KV/C"), ""),
            Refusal("200", 12, "unknown method C for service etcdserverpb.KV"));
  EXPECT_TRUE(world.service.heard.empty());
}

TEST(GrpcFactsTest, DeadlineEndsACallWithinItsFirstTurnAndLater) {
  GrpcWorld world;
  BareClient client(world);
  world.service.on_message = nullptr;
  std::vector<Http2Header> headers = HeadersOf();
  headers.push_back({"grpc-timeout", "50m"});
  const std::string late =
      ":status=200;content-type=application/grpc;grpc-status=4;grpc-message=context deadline exceeded;end";

  client.Submit(headers, BodyOf(RangeOf("a")));
  client.Step();  // the server has the request, and its turn goes on
  world.clock.Advance(Millis(50));
  client.Pump();
  EXPECT_EQ(client.last_text(), late);

  EXPECT_EQ(client.Ask(headers, BodyOf(RangeOf("a"))), "");
  world.clock.Advance(Millis(49));
  client.Pump();
  EXPECT_EQ(client.last_text(), "");
  world.clock.Advance(Millis(1));
  client.Pump();
  EXPECT_EQ(client.last_text(), late);
  EXPECT_EQ(world.service.canceled, 2);
}

TEST(GrpcFactsTest, MalformedTimeoutIs400) {
  GrpcWorld world;
  BareClient client(world);
  for (const auto& [value, why] : std::vector<std::pair<std::string, std::string>>{
           {"5", "transport: timeout string is too short: \"5\""},
           {"123456789S", "transport: timeout string is too long: \"123456789S\""},
           {"5x", "transport: timeout unit is not recognized: \"5x\""},
           {"-1S", "strconv.ParseUint: parsing \"-1\": invalid syntax"},
           {"aS", "strconv.ParseUint: parsing \"a\": invalid syntax"}}) {
    std::vector<Http2Header> headers = HeadersOf();
    headers.push_back({"grpc-timeout", value});
    EXPECT_EQ(client.Ask(headers, BodyOf(RangeOf("a"))), Refusal("400", 13, "malformed grpc-timeout: " + why));
  }
}

TEST(GrpcFactsTest, EncodingsOtherThanIdentityAreRefused) {
  GrpcWorld world;
  BareClient client(world);
  std::vector<Http2Header> headers = HeadersOf();
  headers.push_back({"grpc-encoding", "snappy"});
  EXPECT_EQ(client.Ask(headers, BodyOf(RangeOf("a"))),
            Refusal("200", 12, "grpc: Decompressor is not installed for grpc-encoding \"snappy\""));
  headers.back().value = "identity";
  EXPECT_EQ(client.Ask(headers, BodyOf(RangeOf("a"))), kGoodRange);
  std::string compressed = BodyOf(RangeOf("a"));
  compressed[0] = 1;
  EXPECT_EQ(client.Ask(HeadersOf(), compressed),
            Refusal("200", 13, "grpc: compressed flag set with identity or empty encoding"));
}

std::string GzipBodyOf(std::string_view bytes) {
  Gzip gzip;
  std::string compressed;
  gzip.Compress(bytes, compressed);
  std::string body = std::string("\1\0\0", 3);
  body.push_back(static_cast<char>(compressed.size() >> 8));
  body.push_back(static_cast<char>(compressed.size() & 0xFF));
  return body + compressed;
}

std::vector<Http2Header> GzipHeaders() {
  std::vector<Http2Header> headers = HeadersOf();
  headers.push_back({"grpc-encoding", "gzip"});
  return headers;
}

TEST(GrpcFactsTest, GzipRequestIsTakenAndAnsweredInGzip) {
  GrpcWorld world;
  BareClient client(world);
  for (const std::string& body : {GzipBodyOf(RangeOf("a").SerializeAsString()), BodyOf(RangeOf("a"))}) {
    const std::string text = client.Ask(GzipHeaders(), body);
    EXPECT_TRUE(text.starts_with(":status=200;content-type=application/grpc;grpc-encoding=gzip;[")) << text;
    EXPECT_TRUE(text.ends_with("]grpc-status=0;grpc-message=;end")) << text;
    const std::string answer = client.last_body();
    ASSERT_EQ(answer[0], 1);
    std::string plain;
    Gzip gzip;
    ASSERT_EQ(gzip.Decompress(std::string_view(answer).substr(5), 1'000, plain), Gzip::Result::kOk);
    etcdserverpb::RangeResponse response;
    ASSERT_TRUE(response.ParseFromString(plain));
    EXPECT_EQ(response.ShortDebugString(), "kvs { key: \"a\" }");
  }
}

// An answer that comes encoded, in pieces, is that of one message. Clients set no bound on answers of servers, and etcd
// has none (etcd#9043): this one is longer than any request may be.
TEST(GrpcFactsTest, EncodedAnswerIsOneMessage) {
  GrpcWorld world;
  BareClient client(world);
  etcdserverpb::RangeResponse whole;
  std::vector<Bytes> pieces;
  for (size_t i = 0; i < 5; ++i) {
    etcdserverpb::RangeResponse part;
    part.add_kvs()->set_value(std::string(i * 300'000, static_cast<char>('a' + i)));
    whole.MergeFrom(part);
    pieces.push_back(Bytes::Copy(part.SerializeAsString()));
    pieces.push_back(Bytes());
  }
  world.service.on_message = [&](auto& transport, auto call, auto&) {
    transport.SendEncoded(call, pieces);
    transport.Finish(call, {});
  };
  const std::string text = client.Ask(HeadersOf(), BodyOf(RangeOf("a")));
  EXPECT_TRUE(text.ends_with("]grpc-status=0;grpc-message=;end"));
  EXPECT_TRUE(client.last_body() == BodyOf(whole));
  client.Ask(GzipHeaders(), BodyOf(RangeOf("a")));
  std::string plain;
  Gzip gzip;
  ASSERT_EQ(gzip.Decompress(std::string_view(client.last_body()).substr(5), 10'000'000, plain), Gzip::Result::kOk);
  EXPECT_TRUE(plain == whole.SerializeAsString());
  EXPECT_EQ(world.server->held(), 0u);
}

TEST(GrpcFactsTest, ErrorsAndEmptyAnswersStayPlainForGzipClients) {
  GrpcWorld world;
  BareClient client(world);
  world.service.on_message = [](auto& transport, auto call, auto&) {
    transport.Finish(call, {rpc::StatusCode::kInvalidArgument, "etcdserver: key is not provided"});
  };
  EXPECT_EQ(client.Ask(GzipHeaders(), GzipBodyOf("")), Refusal("200", 3, "etcdserver: key is not provided"));
  world.service.on_message = [](auto& transport, auto call, auto&) {
    transport.Send(call, etcdserverpb::RangeResponse());
    transport.Finish(call, {});
  };
  EXPECT_EQ(client.Ask(GzipHeaders(), GzipBodyOf("")),
            ":status=200;content-type=application/grpc;grpc-encoding=gzip;[5]grpc-status=0;grpc-message=;end");
}

TEST(GrpcFactsTest, WrongGzipIsInternalAndABombIsExhaustion) {
  GrpcWorld world;
  BareClient client(world);
  const std::string good = GzipBodyOf(RangeOf("a").SerializeAsString());
  const auto with = [&](std::string_view payload) {
    return std::string("\1\0\0\0", 4) + std::string(1, static_cast<char>(payload.size())) + std::string(payload);
  };
  const auto payload = std::string_view(good).substr(5);
  EXPECT_EQ(client.Ask(GzipHeaders(), with("")), Refusal("200", 13, "grpc: failed to decompress the message: EOF"));
  EXPECT_EQ(client.Ask(GzipHeaders(), with("garbage")),
            Refusal("200", 13, "grpc: failed to decompress the message: unexpected EOF"));
  EXPECT_EQ(client.Ask(GzipHeaders(), with("no gzip at all")),
            Refusal("200", 13, "grpc: failed to decompress the message: gzip: invalid header"));
  EXPECT_EQ(client.Ask(GzipHeaders(), with(payload.substr(0, payload.size() - 4))),
            Refusal("200", 13, "grpc: failed to read decompressed data: unexpected EOF"));
  std::string wrong_sum(payload);
  wrong_sum[wrong_sum.size() - 8] ^= 1;
  EXPECT_EQ(client.Ask(GzipHeaders(), with(wrong_sum)),
            Refusal("200", 13, "grpc: failed to read decompressed data: gzip: invalid checksum"));
  EXPECT_EQ(client.Ask(GzipHeaders(), GzipBodyOf(std::string(kReceiveBytesMax + 1, '\0'))),
            Refusal("200", 8, "grpc: received message after decompression larger than max 2097152"));
  EXPECT_EQ(client.Ask(GzipHeaders(), std::string("\2\0\0\0\0", 5)),
            Refusal("200", 13, "grpc: received unexpected payload format 2"));
  EXPECT_TRUE(world.service.live.empty());
}

TEST(GrpcFactsTest, TextsOfErrorsAreUtf8WhateverTheyQuote) {
  GrpcWorld world;
  BareClient client(world);
  EXPECT_EQ(client.Ask(HeadersOf("/\xFF\xC3\xA9.B/C"), ""), Refusal("200", 12, "unknown service %EF%BF%BD%C3%A9.B"));
}

TEST(GrpcFactsTest, TrailersOfAClientEndItsRequestAndMayBeWrong) {
  GrpcWorld world;
  auto& raw = world.AddRaw();
  const std::string message = Encode(FrameType::kData, 0, 1, BodyOf(RangeOf("a")));
  raw.Write(Hello() + OpenCall(1) + message +
            Encode(FrameType::kHeaders, kEndHeaders | kEndStream, 1, Field("x", "y")));
  world.Run();
  EXPECT_EQ(CountOf(Decode(raw.received), FrameType::kData), 1u);
  raw.Write(OpenCall(3) + Encode(FrameType::kHeaders, kEndHeaders | kEndStream, 3, Field(":path", "y")));
  world.Run();
  const std::vector<Frame> frames = Decode(raw.received);
  ASSERT_EQ(CountOf(frames, FrameType::kReset), 1u);
  EXPECT_EQ(frames.back().payload, Number(1));
}

TEST(GrpcFactsTest, UnaryCallWithoutAWholeMessageEndsInEof) {
  GrpcWorld world;
  BareClient client(world);
  EXPECT_EQ(client.Ask(HeadersOf(), ""), Refusal("200", 2, "EOF"));
  const std::string body = BodyOf(RangeOf("abc"));
  for (size_t size = 1; size < body.size(); ++size) {
    const std::string_view text = size < kMessagePrefixBytes ? "EOF" : "unexpected EOF";
    EXPECT_EQ(client.Ask(HeadersOf(), body.substr(0, size)), Refusal("200", 2, std::string(text))) << size;
  }
  EXPECT_TRUE(world.service.live.empty());
}

TEST(GrpcFactsTest, EmptyMessageIsAMessage) {
  GrpcWorld world;
  BareClient client(world);
  EXPECT_EQ(client.Ask(HeadersOf(), std::string(5, '\0')),
            ":status=200;content-type=application/grpc;[7]grpc-status=0;grpc-message=;end");
}

TEST(GrpcFactsTest, SecondMessageOfAUnaryCallIsIgnored) {
  GrpcWorld world;
  BareClient client(world);
  EXPECT_EQ(client.Ask(HeadersOf(), BodyOf(RangeOf("a")) + BodyOf(RangeOf("b"))), kGoodRange);
  EXPECT_EQ(world.service.heard.size(), 2u);
}

TEST(GrpcFactsTest, MessageThatDoesNotParseIsInternalAndUnknownFieldsParse) {
  GrpcWorld world;
  BareClient client(world);
  EXPECT_TRUE(client.Ask(HeadersOf(), std::string("\0\0\0\0\1\xFF", 6)).find("grpc-status=13;") != std::string::npos);
  EXPECT_EQ(client.Ask(HeadersOf(), std::string("\0\0\0\0\3\xA0\x3F\x01", 8)),
            ":status=200;content-type=application/grpc;[7]grpc-status=0;grpc-message=;end");
}

TEST(GrpcFactsTest, TooLongAPrefixIsRefusedBeforeItsBytes) {
  GrpcWorld world;
  BareClient client(world);
  const std::string text = client.Ask(HeadersOf(), std::string("\0\x7F\xFF\xFF\xFF", 5), false);
  EXPECT_TRUE(text.starts_with(":status=200;content-type=application/grpc;grpc-status=8;grpc-message=grpc: received "
                               "message larger than max (2147483647 vs. 2097152);end"))
      << text;
}

TEST(GrpcFactsTest, HeadersMayHoldAnyBytesAndTokenGoesBeforeAuthorization) {
  GrpcWorld world;
  BareClient client(world);
  std::vector<Http2Header> headers = HeadersOf();
  headers.push_back({"authorization", "second"});
  headers.push_back({"token", ""});
  headers.push_back({"client-api-version", "\xFF\xFE"});
  headers.push_back({"x-any", "\xC3\xA9"});
  headers.push_back({"hasleader", "True"});
  EXPECT_EQ(client.Ask(headers, BodyOf(RangeOf("a"))), kGoodRange);
  EXPECT_EQ(world.service.contexts[0].token, "");
  EXPECT_EQ(world.service.contexts[0].client_api_version, "\xFF\xFE");
  EXPECT_FALSE(world.service.contexts[0].has_leader);
}

TEST(GrpcFactsTest, HeaderListBeyondTheLimitIsRefused) {
  GrpcWorld world;
  BareClient client(world);
  std::vector<Http2Header> headers = HeadersOf();
  // The second of the smaller ones is one byte in HPACK: what counts is the list, not its bytes.
  const std::string big(15'000, 'x');
  const std::string indexed(4'000, 'y');
  for (int i = 0; i < 4; ++i) headers.push_back({"x-big", big});
  for (int i = 0; i < 2; ++i) headers.push_back({"x-big", indexed});
  EXPECT_TRUE(client.Ask(headers, BodyOf(RangeOf("a"))).starts_with(":status=431;"));
  EXPECT_EQ(client.Ask(HeadersOf(), BodyOf(RangeOf("a"))), kGoodRange);
}

TEST(GrpcFactsTest, ErrorTextQuotesALongPathUpToALimit) {
  GrpcWorld world;
  BareClient client(world);
  const std::string path = "/" + std::string(60'000, '%') + "/x";
  const std::string text = client.Ask(HeadersOf(path), "");
  EXPECT_TRUE(text.starts_with(":status=200;content-type=application/grpc;grpc-status=12;grpc-message=unknown service "
                               "%25%25")) << text.substr(0, 200);
  EXPECT_TRUE(text.ends_with(";end"));
}

TEST(GrpcFactsTest, ConnectionHeaderResetsTheStreamOnly) {
  GrpcWorld world;
  BareClient client(world);
  std::vector<Http2Header> headers = HeadersOf();
  headers.push_back({"connection", "close"});
  EXPECT_EQ(client.Ask(headers, BodyOf(RangeOf("a"))), "reset 1");
  EXPECT_EQ(client.Ask(HeadersOf(), BodyOf(RangeOf("a"))), kGoodRange);
}

TEST(GrpcFactsTest, AnswerBeforeTheEndOfTheRequestFreesTheStream) {
  GrpcWorld world;
  BareClient client(world);
  const std::string text = client.Ask(HeadersOf(), BodyOf(RangeOf("a")), false);
  EXPECT_TRUE(text.starts_with(kGoodRange)) << text;
  world.server->Shutdown();
  client.Pump();
  EXPECT_EQ(world.server->connection_count(), 0u);
}

TEST(GrpcFactsTest, TooManyPingsSaysSo) {
  GrpcWorld world;
  BareClient client(world);
  for (int i = 0; i < 4; ++i) {
    client.session().Ping();
    client.Pump();
  }
  EXPECT_EQ(client.goaway, "11 too_many_pings");
  EXPECT_TRUE(client.ended());
}

TEST(GrpcFactsTest, SettingsNameNoStreamLimit) {
  GrpcWorld world;
  auto& raw = world.AddRaw();
  world.server->EndTurn();
  raw.pair.Deliver(0);
  // SETTINGS: MAX_FRAME_SIZE (5) 16384, INITIAL_WINDOW_SIZE (4) 1 MiB; then WINDOW_UPDATE of the connection.
  EXPECT_EQ(raw.received.substr(0, 21),
            std::string("\0\0\x0C\x04\0\0\0\0\0" "\0\5\0\0\x40\0" "\0\4\0\x10\0\0", 21));
}

// Frames of any kind, well formed or not, behind a good preface.
rc::Gen<std::string> Frames() {
  return rc::gen::map(
      rc::gen::container<std::vector<std::tuple<uint8_t, uint8_t, uint8_t, std::vector<uint8_t>>>>(
          rc::gen::tuple(rc::gen::inRange<uint8_t>(0, 11), rc::gen::arbitrary<uint8_t>(),
                         rc::gen::inRange<uint8_t>(0, 6), rc::gen::arbitrary<std::vector<uint8_t>>())),
      [](const auto& frames) {
        std::string out;
        for (const auto& [type, flags, stream, payload] : frames) {
          const size_t size = payload.size();
          for (const size_t byte : {size >> 16, size >> 8, size, size_t{type}, size_t{flags}, size_t{0}, size_t{0},
                                    size_t{0}, size_t{stream}}) {
            out.push_back(static_cast<char>(byte & 0xFF));
          }
          out.append(payload.begin(), payload.end());
        }
        return out;
      });
}

RC_GTEST_PROP(GrpcFactsProperty, AnyFramesLeaveOthersUnharmed, ()) {
  const std::string frames = *Frames();
  const auto segment = *rc::gen::inRange<size_t>(1, 100);
  GrpcWorld world;
  auto& good = world.AddClient();
  auto& bad = world.AddRaw();
  bad.Write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\0\4\0\0\0\0\0", 9) + frames);
  const auto request = RangeOf("a");
  good.client->Start(rpc::Method::kRange, &request, {.token = 1});
  world.Run(segment);
  bad.stream->CloseWrite();
  world.Run(segment);
  RC_ASSERT(bad.ended);
  RC_ASSERT(world.server->connection_count() == 1);
  RC_ASSERT(good.listener.ended[1].ok());
}

// One byte of a good conversation changed: an answer, a reset or a close, and no call left open.
RC_GTEST_PROP(GrpcFactsProperty, OneWrongByteEndsInAnAnswerOrAClose, ()) {
  class Recorder final : public StreamListener {
   public:
    void OnConnected() override {}
    void OnData(std::string_view bytes) override { text.append(bytes); }
    void OnReadEnd() override {}
    void OnWritable() override {}
    void OnClosed(IoError) override {}
    std::string text;
  };
  ManualClock clock;
  NotingListener listener;
  StreamPair pair;
  Recorder recorder;
  GrpcClient client(clock, listener);
  auto end = pair.TakeEnd(0);
  end->SetListener(client.stream_listener());
  client.Attach(std::move(end));
  auto far = pair.TakeEnd(1);
  far->SetListener(recorder);
  pair.Connect();
  for (uint64_t i = 0; i < 3; ++i) {
    const auto request = PutOf("key", 20 * i);
    client.Start(rpc::Method::kPut, &request, {.token = i, .timeout = Seconds(1), .auth_token = "abc"});
  }
  client.EndTurn();
  pair.Deliver(1);
  std::string bytes = recorder.text;
  pair.Reset();

  const auto at = *rc::gen::inRange<size_t>(0, bytes.size());
  bytes[at] = static_cast<char>(bytes[at] ^ *rc::gen::inRange<int>(1, 256));
  GrpcWorld world;
  auto& raw = world.AddRaw();
  raw.Write(bytes);
  world.Run();
  raw.stream->CloseWrite();
  world.Run();
  RC_ASSERT(raw.ended);
  RC_ASSERT(world.server->connection_count() == 0);
}

TEST(GrpcFormatTest, TimeoutsRoundUpToEightDigits) {
  EXPECT_EQ(FormatTimeout(Nanos(-5)), "1n");
  EXPECT_EQ(FormatTimeout(Nanos(99'999'999)), "99999999n");
  EXPECT_EQ(FormatTimeout(Nanos(100'000'001)), "100001u");
  EXPECT_EQ(FormatTimeout(Seconds(5)), "5000000u");
  EXPECT_EQ(std::get<Duration>(ParseTimeout("5000000u")), Seconds(5));
  EXPECT_EQ(std::get<Duration>(ParseTimeout("99999999H")), kTimeoutMax);
  EXPECT_EQ(std::get<Duration>(ParseTimeout("0S")), Seconds(0));
}

RC_GTEST_PROP(GrpcFormatProperty, PercentEncodingComesBack, (std::string text)) {
  const std::string encoded = EncodePercent(text);
  for (const char c : encoded) RC_ASSERT(c >= 0x20 && c <= 0x7E);
  RC_ASSERT(DecodePercent(encoded) == text);
}

RC_GTEST_PROP(GrpcFormatProperty, TimeoutComesBackNoShorter, ()) {
  const auto nanos = *rc::gen::inRange<int64_t>(1, kTimeoutMax.nanos);
  const Duration back = std::get<Duration>(ParseTimeout(FormatTimeout(Nanos(nanos))));
  RC_ASSERT(back.nanos >= nanos);
  RC_ASSERT(back.nanos - nanos <= nanos / 1'000 + 60'000'000);
}

}  // namespace
}  // namespace detcd::wire
