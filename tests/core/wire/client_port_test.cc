// HTTP/1.x and the choice of protocol on the client port.
#include "core/wire/client_port.h"

#include "absl/strings/str_format.h"
#include "core/wire/peer_http.h"
#include "tests/core/wire/grpc_world.h"

namespace detcd::wire {
namespace {

using rpc::Method;

// Answers /health at once, /slow when told, wrong methods and other paths as etcd does.
class Pages final : public rpc::HttpHandler {
 public:
  void Handle(rpc::HttpResponder& responder, rpc::HttpRequestId id, const rpc::HttpRequest& request) override {
    seen.push_back(request.method + " " + request.target + " " + request.body);
    if (request.path() == "/slow") {
      slow.push_back(id);
    } else if (request.path() == "/echo") {
      responder.Respond(id, {.body = request.body});
    } else if (request.path() != "/health") {
      responder.Respond(id, rpc::NotFound());
    } else if (request.method != "GET") {
      responder.Respond(id, rpc::MethodNotAllowed());
    } else {
      responder.Respond(id, {.body = "{\"health\":\"true\",\"reason\":\"\"}"});
    }
  }
  void Abandon(rpc::HttpRequestId) override { ++abandoned; }

  std::vector<std::string> seen;
  std::vector<rpc::HttpRequestId> slow;
  int abandoned = 0;
};

struct PortWorld {
  ~PortWorld() {
    port.reset();
    http1.reset();
    for (auto& raw : raws) raw->stream.reset();
  }

  GrpcWorld::Raw& Connect() {
    raws.push_back(std::make_unique<GrpcWorld::Raw>(std::numeric_limits<size_t>::max()));
    GrpcWorld::Raw& raw = *raws.back();
    raw.stream = raw.pair.TakeEnd(0);
    raw.stream->SetListener(raw);
    port->OnAccept(raw.pair.TakeEnd(1));
    raw.pair.Connect();
    return raw;
  }

  void Run(size_t segment = std::numeric_limits<size_t>::max()) {
    for (bool any = true; any;) {
      any = grpc.events.RunOne();
      http1->EndTurn();
      grpc.server->EndTurn();
      for (auto& raw : raws) {
        any |= raw->pair.Deliver(1, segment);
        any |= raw->pair.Deliver(0, segment);
      }
    }
  }

  GrpcWorld grpc;
  Pages pages;
  std::vector<std::unique_ptr<GrpcWorld::Raw>> raws;
  std::unique_ptr<Http1Server> http1 = std::make_unique<Http1Server>(grpc.clock, pages);
  std::unique_ptr<ClientPort> port = std::make_unique<ClientPort>(grpc.clock, grpc.server.get(), http1.get());
};

// Every answer of a handler, as etcd's: CORS headers first, the date before the length.
std::string Answer(PortWorld& world, std::string_view status, std::string_view headers, size_t size) {
  return absl::StrFormat(
      "HTTP/1.1 %s\r\nAccess-Control-Allow-Headers: accept, content-type, authorization\r\n"
      "Access-Control-Allow-Methods: POST, GET, OPTIONS, PUT, DELETE\r\nAccess-Control-Allow-Origin: *\r\n"
      "%sDate: %s\r\nContent-Length: %d\r\n\r\n",
      status, headers, FormatHttpDate(world.grpc.clock.Wall()), size);
}
constexpr std::string_view kText = "Content-Type: text/plain; charset=utf-8\r\n";
constexpr std::string_view kRefused = "Content-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n";

std::string Good(PortWorld& world) {
  return Answer(world, "200 OK", kText, 29) + "{\"health\":\"true\",\"reason\":\"\"}";
}

TEST(ClientPortTest, SniffNeedsTheWholePrefaceStart) {
  EXPECT_EQ(Sniff(""), std::nullopt);
  EXPECT_EQ(Sniff("P"), std::nullopt);
  EXPECT_EQ(Sniff("PRI * HTTP/2."), std::nullopt);
  EXPECT_EQ(Sniff("PRI * HTTP/2.0"), Protocol::kHttp2);
  EXPECT_EQ(Sniff("PRI * HTTP/2.0\r\n\r\nSM"), Protocol::kHttp2);
  EXPECT_EQ(Sniff("PO"), Protocol::kHttp1);
  EXPECT_EQ(Sniff(std::string_view("\0", 1)), Protocol::kHttp1);
}

TEST(ClientPortTest, OnePortServesBothProtocols) {
  PortWorld world;
  auto& http = world.Connect();
  http.Write("GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
  NotingListener listener;
  StreamPair pair;
  GrpcClient client(world.grpc.clock, listener);
  auto stream = pair.TakeEnd(0);
  stream->SetListener(client.stream_listener());
  client.Attach(std::move(stream));
  world.port->OnAccept(pair.TakeEnd(1));
  pair.Connect();
  const auto request = RangeOf("a");
  client.Start(Method::kRange, &request, {.token = 1});
  for (int i = 0; i < 200; ++i) {
    client.EndTurn();
    pair.Deliver(1, 7);
    pair.Deliver(0, 7);
    world.Run(7);
  }
  EXPECT_EQ(http.received, Good(world));
  EXPECT_TRUE(listener.ended[1].ok());
  pair.Reset();
}

TEST(ClientPortTest, SilentConnectionIsClosed) {
  PortWorld world;
  auto& silent = world.Connect();
  auto& halfway = world.Connect();
  halfway.Write("PRI * HT");
  auto& slow_head = world.Connect();
  slow_head.Write("GET / HTT");
  world.Run();
  world.grpc.clock.Advance(kHttpHeaderTimeout);
  world.Run();
  EXPECT_TRUE(silent.ended);
  EXPECT_TRUE(halfway.ended);
  EXPECT_TRUE(slow_head.ended);
  EXPECT_EQ(world.port->undecided_count(), 0u);
  EXPECT_EQ(world.grpc.clock.armed(), 0u);
}

// A listening socket that notes whether it accepts.
class FakeNetwork final : public Network {
 public:
  struct FakeAcceptor final : Acceptor {
    explicit FakeAcceptor(bool& accepting) : accepting_(accepting) { accepting_ = true; }
    Address Local() const override { return {.host = "127.0.0.1", .port = 7}; }
    void PauseAccepting() override { accepting_ = false; }
    void ResumeAccepting() override { accepting_ = true; }
    bool& accepting_;
  };
  ListenResult Listen(const Address&, AcceptListener&) override {
    return {.acceptor = std::make_unique<FakeAcceptor>(accepting)};
  }
  std::unique_ptr<Stream> Connect(const Address&, StreamListener&) override { return nullptr; }
  void Resolve(const std::string&, uint16_t, ResolveListener&, uint64_t) override {}
  bool accepting = false;
};

TEST(ClientPortTest, AtItsBoundOfConnectionsThePortStopsAcceptingUntilOneIsGone) {
  PortWorld world;
  world.port = std::make_unique<ClientPort>(world.grpc.clock, world.grpc.server.get(), world.http1.get(), 3);
  FakeNetwork network;
  Address local;
  ASSERT_EQ(world.port->Listen(network, {.host = "127.0.0.1"}, local), IoError::kOk);
  EXPECT_EQ(local.port, 7);
  auto& undecided = world.Connect();
  auto& http = world.Connect();
  http.Write("GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
  world.Run();
  EXPECT_TRUE(network.accepting);
  auto& grpc = world.Connect();
  grpc.Write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  world.Run();
  EXPECT_FALSE(network.accepting);
  EXPECT_EQ(world.port->connection_count(), 3u);
  for (GrpcWorld::Raw* one : {&undecided, &http, &grpc}) {
    one->pair.Reset();
    world.Run();
    EXPECT_TRUE(network.accepting);
    EXPECT_EQ(world.port->connection_count(), 2u);
    world.Connect();
    world.Run();
    EXPECT_FALSE(network.accepting);
  }
  world.port->StopListening();
  world.port.reset();  // the streams may outlive it
  world.raws.back()->pair.Reset();
}

TEST(ClientPortTest, ConnectionThatEndsUndecidedIsForgotten) {
  PortWorld world;
  auto& gone = world.Connect();
  gone.Write("PRI");
  gone.stream->CloseWrite();
  auto& reset = world.Connect();
  world.Run();
  reset.pair.Reset();
  EXPECT_EQ(world.port->undecided_count(), 0u);
}

TEST(Http1ServerTest, PipelinedRequestsAreAnsweredInOrder) {
  PortWorld world;
  auto& raw = world.Connect();
  raw.Write("GET /slow HTTP/1.1\r\nHost: x\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n");
  world.Run(5);
  EXPECT_EQ(world.pages.seen.size(), 1u);
  EXPECT_EQ(raw.received, "");
  world.http1->Respond(world.pages.slow[0], {.body = "late"});
  world.http1->Respond(world.pages.slow[0], {.body = "twice"});
  world.Run(5);
  EXPECT_EQ(raw.received, Answer(world, "200 OK", kText, 4) + "late" + Good(world));
  EXPECT_FALSE(raw.ended);
}

TEST(Http1ServerTest, WrongMethodAndUnknownPathAnswerAsEtcd) {
  PortWorld world;
  auto& raw = world.Connect();
  raw.Write("POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
  world.Run();
  EXPECT_EQ(raw.received,
            Answer(world, "405 Method Not Allowed", std::string(kRefused) + "Allow: GET\r\n", 19) + "Method Not Allowed\n");
  raw.received.clear();
  raw.Write("HEAD /nothing HTTP/1.1\r\nHost: x\r\n\r\n");
  world.Run();
  EXPECT_EQ(raw.received,
            Answer(world, "404 Not Found", kRefused, 19));
}

TEST(Http1ServerTest, OptionsIsAnsweredEmptyForAnyPath) {
  PortWorld world;
  auto& raw = world.Connect();
  raw.Write("OPTIONS /nothing HTTP/1.1\r\nHost: x\r\n\r\n");
  world.Run();
  EXPECT_EQ(raw.received, Answer(world, "200 OK", "", 0));
  EXPECT_TRUE(world.pages.seen.empty());
}

TEST(Http1ServerTest, Http11NeedsAHost) {
  PortWorld world;
  auto& raw = world.Connect();
  raw.Write("GET /health HTTP/1.1\r\n\r\n");
  world.Run();
  EXPECT_EQ(raw.received,
            "HTTP/1.1 400 Bad Request: missing required Host header\r\nContent-Type: text/plain; charset=utf-8\r\n"
            "Connection: close\r\n\r\n400 Bad Request: missing required Host header");
  EXPECT_TRUE(raw.ended);
}

TEST(Http1ServerTest, Http10ClosesAfterTheAnswer) {
  PortWorld world;
  auto& raw = world.Connect();
  raw.Write("GET /health HTTP/1.0\r\n\r\n");
  world.Run();
  EXPECT_TRUE(raw.ended);
  EXPECT_TRUE(raw.received.starts_with("HTTP/1.0 200 OK\r\n"));
}

TEST(Http1ServerTest, BadRequestIsToldAndClosed) {
  PortWorld world;
  auto& raw = world.Connect();
  raw.Write("NONSENSE\r\n\r\n");
  world.Run();
  EXPECT_TRUE(raw.received.starts_with("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_TRUE(raw.ended);
  EXPECT_EQ(world.http1->connection_count(), 0u);
}

TEST(Http1ServerTest, HeadAndBodyHaveTheirLimits) {
  PortWorld world;
  auto& head = world.Connect();
  head.Write("GET / HTTP/1.1\r\nX: " + std::string(kHttpHeaderBytesMax, 'x') + "\r\n\r\n");
  auto& body = world.Connect();
  body.Write("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(kHttpBodyBytesMax + 1) + "\r\n\r\n");
  auto& endless = world.Connect();
  endless.Write(std::string(kHttpHeaderBytesMax + 1, 'G'));
  auto& fits = world.Connect();
  fits.Write("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(kHttpBodyBytesMax) + "\r\n\r\n" +
             std::string(kHttpBodyBytesMax, 'b'));
  world.Run(50'000);
  EXPECT_TRUE(head.received.starts_with("HTTP/1.1 431 ")) << head.received;
  EXPECT_TRUE(body.received.starts_with("HTTP/1.1 413 ")) << body.received;
  EXPECT_TRUE(endless.received.starts_with("HTTP/1.1 4")) << endless.received;
  EXPECT_TRUE(fits.received.starts_with("HTTP/1.1 200 OK"));
  EXPECT_TRUE(head.ended && body.ended && endless.ended);
  EXPECT_FALSE(fits.ended);
}

TEST(Http1ServerTest, ChunkedBodyAndExpectContinue) {
  PortWorld world;
  auto& raw = world.Connect();
  raw.Write("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n");
  world.Run();
  EXPECT_EQ(raw.received, "HTTP/1.1 100 Continue\r\n\r\n");
  raw.received.clear();
  raw.Write("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  world.Run(1);
  EXPECT_TRUE(raw.received.ends_with("\r\n\r\nabcde"));
}

TEST(Http1ServerTest, PipelinedRequestsBeforeAHalfCloseAreAllAnswered) {
  for (const size_t segment : {size_t{1}, size_t{1'000}}) {
    PortWorld world;
    auto& raw = world.Connect();
    const std::string request = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n";
    raw.Write(request + request + request + "GET /health HT");
    raw.stream->CloseWrite();
    world.Run(segment);
    EXPECT_EQ(raw.received, Good(world) + Good(world) + Good(world));
    EXPECT_TRUE(raw.ended);  // the fourth will never be whole
    EXPECT_EQ(world.http1->connection_count(), 0u);
  }
}

TEST(Http1ServerTest, SlowAnswersAfterAHalfCloseComeInOrder) {
  PortWorld world;
  auto& raw = world.Connect();
  raw.Write("GET /slow HTTP/1.1\r\nHost: x\r\n\r\nGET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  raw.stream->CloseWrite();
  world.Run();
  ASSERT_EQ(world.pages.slow.size(), 1u);
  world.http1->Respond(world.pages.slow[0], {.body = "first"});
  world.Run();
  ASSERT_EQ(world.pages.slow.size(), 2u);
  EXPECT_FALSE(raw.ended);
  world.http1->Respond(world.pages.slow[1], {.body = "second"});
  world.Run();
  EXPECT_TRUE(raw.received.ends_with("second"));
  EXPECT_TRUE(raw.ended);
  EXPECT_EQ(world.pages.abandoned, 0);
}

TEST(Http1ServerTest, ClientThatLeavesAbandonsItsRequest) {
  PortWorld world;
  auto& raw = world.Connect();
  raw.Write("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  world.Run();
  raw.pair.Reset();
  EXPECT_EQ(world.pages.abandoned, 1);
  world.http1->Respond(world.pages.slow[0], {.body = "late"});
  world.Run();
}

TEST(Http1ServerTest, ShutdownClosesIdleConnectionsAtOnceAndBusyOnesAfterTheAnswer) {
  PortWorld world;
  auto& idle = world.Connect();
  idle.Write("GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
  auto& busy = world.Connect();
  busy.Write("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  world.Run();
  world.http1->Shutdown();
  world.Run();
  EXPECT_TRUE(idle.ended);
  EXPECT_FALSE(busy.ended);
  world.http1->Respond(world.pages.slow[0], {.body = "late"});
  world.Run();
  EXPECT_TRUE(busy.ended);
  EXPECT_TRUE(busy.received.ends_with("Connection: close\r\n\r\nlate"));
}

RC_GTEST_PROP(ClientPortProperty, AnyBytesEndInAnAnswerOrAClose, (std::vector<uint8_t> noise)) {
  PortWorld world;
  const auto segment = *rc::gen::inRange<size_t>(1, 50);
  const auto start = *rc::gen::element<std::string>("", "GET ", "GET /health HTTP/1.1\r\n", "POST /echo HTTP/1.1\r\n",
                                                    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "PRI * HTTP/2.0");
  auto& raw = world.Connect();
  auto& other = world.Connect();
  raw.Write(start + std::string(noise.begin(), noise.end()));
  raw.stream->CloseWrite();
  world.Run(segment);
  world.grpc.clock.Advance(kHttpHeaderTimeout);
  world.Run(segment);
  RC_ASSERT(raw.ended);
  RC_ASSERT(world.grpc.server->connection_count() == 0);
  RC_ASSERT(world.grpc.service.live.empty());
  auto& late = world.Connect();
  late.Write("GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
  world.Run(segment);
  RC_ASSERT(late.received == Good(world));
  RC_ASSERT(other.ended);
}

}  // namespace
}  // namespace detcd::wire
