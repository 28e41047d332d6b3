#include "core/wire/peer_port.h"

#include <gtest/gtest.h>

#include "core/base/limits.h"
#include "tests/support/memory_network.h"

namespace detcd::wire {
namespace {

using member::PeerChannel;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr ClusterId kCluster(0xc1);

// One member as its peers see it, remembering what its carrier told.
class Member final : public member::PeerCarrierListener, public PeerInfo {
 public:
  Member(MemoryNetwork& network, uint64_t id) : id_(id), port_(Config(id), *this, network, network, network, network) {
    EXPECT_TRUE(port_.Listen().ok());
    network.AtEndOfTurn([this] { port_.EndTurn(); });
  }
  static uint16_t PortOf(uint64_t id) { return static_cast<uint16_t>(2380 + id); }
  static std::string UrlOf(uint64_t id) { return "http://127.0.0.1:" + std::to_string(PortOf(id)); }
  static PeerPortConfig Config(uint64_t id) {
    return {.self = {.id = MemberId(id), .cluster = kCluster, .peer_urls = {UrlOf(id)}}, .listen = {{.host = "127.0.0.1", .port = PortOf(id)}}};
  }
  void Start(const std::vector<uint64_t>& ids) {
    std::vector<member::PeerRow> rows;
    for (const uint64_t id : ids) rows.push_back({.id = MemberId(id), .urls = {UrlOf(id)}});
    port_.Start(*this, rows);
  }
  bool Send(uint64_t to, PeerChannel channel, uint64_t term) {
    return port_.Send(MemberId(to), channel,
                      {.from = MemberId(id_), .to = MemberId(to), .term = Term(term), .body = raft::Append{.prev_index = LogIndex(9), .prev_term = Term(term)}});
  }
  bool SendLarge(uint64_t to, size_t bytes) {
    raft::Append append{.prev_index = LogIndex(9), .prev_term = Term(3)};
    append.entries.push_back({.term = Term(3), .index = LogIndex(10), .data = Bytes::Copy(std::string(bytes, 'v'))});
    return port_.Send(MemberId(to), PeerChannel::kAppend, {.from = MemberId(id_), .to = MemberId(to), .term = Term(3), .body = append});
  }
  bool Post(uint64_t to, uint64_t term, size_t bytes = 0) {
    raft::Append append{.prev_index = LogIndex(9), .prev_term = Term(term)};
    if (bytes > 0) append.entries.push_back({.term = Term(term), .index = LogIndex(10), .data = Bytes::Copy(std::string(bytes, 'v'))});
    return port_.Post(MemberId(to), {.from = MemberId(id_), .to = MemberId(to), .term = Term(term), .body = append});
  }
  void AskVersion(uint64_t peer) { port_.AskVersion(MemberId(peer)); }
  bool IsUp(uint64_t peer) const { return port_.IsUp(MemberId(peer), PeerChannel::kAppend) && port_.IsUp(MemberId(peer), PeerChannel::kMessage); }

  void OnPeerMessage(raft::Message message) override { messages.push_back(message); }
  void OnChannelUp(MemberId, PeerChannel channel) override { events.push_back(Name("up", channel)); }
  void OnChannelRoom(MemberId, PeerChannel channel) override { events.push_back(Name("room", channel)); }
  void OnChannelDown(MemberId, PeerChannel channel) override { events.push_back(Name("down", channel)); }
  void OnPostFailed(MemberId peer) override { events.push_back("post failed " + std::to_string(peer.value)); }
  void OnPeerVersion(MemberId peer, std::string version) override {
    events.push_back("version of " + std::to_string(peer.value) + " " + version);
  }
  std::string VersionJson() const override { return R"({"etcdserver":"3.7.3"})"; }
  std::string MembersJson() const override { return "[]"; }
  bool IsRemoved(MemberId id) const override { return id == removed; }
  void OnSelfRemoved() override { self_removed = true; }

  std::vector<raft::Message> messages;
  std::vector<std::string> events;
  MemberId removed;
  bool self_removed = false;

 private:
  static std::string Name(std::string_view what, PeerChannel channel) {
    return std::string(what) + (channel == PeerChannel::kAppend ? " append" : " message");
  }
  uint64_t id_;
  PeerPort port_;
};

// A plain HTTP client: sends bytes, keeps what comes.
class Client final : public StreamListener {
 public:
  Client(MemoryNetwork& network, uint16_t port, std::string bytes) : bytes_(std::move(bytes)) {
    stream_ = network.Connect({.host = "127.0.0.1", .port = port}, *this);
  }
  void Say(std::string_view more) { stream_->Write(std::vector{Bytes::Copy(more)}); }
  void OnConnected() override { Say(bytes_); }
  void OnData(std::string_view bytes) override { heard += bytes; }
  void OnReadEnd() override { ended = true; }
  void OnWritable() override {}
  void OnClosed(IoError) override { ended = true; }
  std::string Body() const { return heard.substr(std::min(heard.size(), heard.find("\r\n\r\n") + 4)); }
  int Status() const { return heard.size() < 12 ? 0 : std::stoi(heard.substr(9, 3)); }

  std::string heard;
  bool ended = false;

 private:
  std::string bytes_;
  std::unique_ptr<Stream> stream_;
};

class PeerPortTest : public testing::Test {
 protected:
  void StartBoth() {
    one.Start({1, 2});
    two.Start({1, 2});
    network.Run();
    ASSERT_TRUE(one.IsUp(2)) << testing::PrintToString(network.trace());
    ASSERT_TRUE(two.IsUp(1));
  }
  std::string StreamRequest(std::string_view path, std::string_view headers) {
    return "GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n" + std::string(headers) + "\r\n";
  }

  MemoryNetwork network;
  Member one{network, 1};
  Member two{network, 2};
};

TEST_F(PeerPortTest, BothChannelsComeUpAndCarryMessagesInOrder) {
  StartBoth();
  EXPECT_THAT(one.events, testing::UnorderedElementsAre("up append", "up message"));
  for (uint64_t term = 3; term < 8; ++term) EXPECT_TRUE(one.Send(2, PeerChannel::kAppend, term));
  EXPECT_TRUE(one.Send(2, PeerChannel::kMessage, 9));
  network.Run();
  ASSERT_EQ(two.messages.size(), 6u);
  std::vector<uint64_t> terms;
  for (const auto& message : two.messages) terms.push_back(message.term.value);
  EXPECT_THAT(std::vector(terms.begin(), terms.end()), testing::UnorderedElementsAre(3, 4, 5, 6, 7, 9));
}

TEST_F(PeerPortTest, AnyPieceSizeCarriesTheSame) {
  network.SetPiece(1);
  StartBoth();
  EXPECT_TRUE(one.SendLarge(2, 1000));
  network.Run();
  ASSERT_EQ(two.messages.size(), 1u);
}

TEST_F(PeerPortTest, OneWriteForManyMessagesOfATurn) {
  StartBoth();
  const size_t before = network.writes();
  for (uint64_t term = 3; term < 50; ++term) one.Send(2, PeerChannel::kAppend, term);
  network.Run();
  EXPECT_EQ(network.writes() - before, 1u);
}

TEST_F(PeerPortTest, SendToNobodyIsRefused) {
  EXPECT_FALSE(one.Send(2, PeerChannel::kAppend, 3));
  one.Start({1, 2});
  EXPECT_FALSE(one.Send(2, PeerChannel::kAppend, 3));
  EXPECT_FALSE(one.Send(7, PeerChannel::kAppend, 3));
}

TEST_F(PeerPortTest, PostsReachAPeerInOrderOverOneConnection) {
  StartBoth();
  const size_t connects = network.connects();
  for (uint64_t term = 3; term < 8; ++term) EXPECT_TRUE(one.Post(2, term));
  EXPECT_TRUE(one.Post(2, 8, 100'000));
  network.Run();
  ASSERT_EQ(two.messages.size(), 6u);
  for (uint64_t i = 0; i < 6; ++i) EXPECT_EQ(two.messages[i].term, Term(3 + i));
  EXPECT_EQ(network.connects(), connects + 1);
}

TEST_F(PeerPortTest, PostsAreBoundedAndTheirLossIsTold) {
  StartBoth();
  network.Cut(Member::PortOf(2));
  network.Run();
  one.events.clear();
  size_t taken = 0;
  while (one.Post(2, 3)) ++taken;
  EXPECT_EQ(taken, kPeerPostsMax);
  network.Run();
  EXPECT_THAT(one.events, testing::Contains("post failed 2").Times(1));
  EXPECT_TRUE(one.Post(2, 3));  // room again
}

TEST_F(PeerPortTest, APostThatIsRefusedIsToldAndTheNextOneGoesOn) {
  StartBoth();
  two.removed = MemberId(1);
  one.events.clear();
  EXPECT_TRUE(one.Post(2, 3));
  network.Run();
  EXPECT_THAT(one.events, testing::Contains("post failed 2"));
  EXPECT_TRUE(two.messages.empty());
  two.removed = MemberId();
  EXPECT_TRUE(one.Post(2, 4));
  network.Advance(kPeerRedialInterval);
  EXPECT_EQ(two.messages.size(), 1u);
}

TEST_F(PeerPortTest, TheVersionOfAPeerIsAnsweredOnceForAllThatAsk) {
  StartBoth();
  one.events.clear();
  one.AskVersion(2);
  one.AskVersion(2);
  network.Run();
  EXPECT_THAT(one.events, ElementsAre("version of 2 3.7.3"));
  network.Cut(Member::PortOf(2));
  network.Run();
  one.events.clear();
  one.AskVersion(2);
  network.Advance(kPeerRedialInterval);
  EXPECT_THAT(one.events, testing::Contains("version of 2 "));
}

TEST_F(PeerPortTest, APeerThatDoesNotAnswerIsGivenUp) {
  StartBoth();
  one.AskVersion(2);
  network.Run();
  one.events.clear();
  network.Stall(Member::PortOf(2));
  one.AskVersion(2);
  network.Advance(kPeerAnswerTimeout + Seconds(1));
  EXPECT_THAT(one.events, testing::Contains("version of 2 "));
}

TEST_F(PeerPortTest, PeersAreProbedAndTroubleIsTold) {
  StartBoth();
  network.Advance(kPeerProbeInterval * 3);
  EXPECT_FALSE(network.Traced("a probe of a peer failed"));
  network.Cut(Member::PortOf(2));
  network.Advance(kPeerProbeInterval * 2);
  EXPECT_TRUE(network.Traced("a probe of a peer failed"));
  network.Heal(Member::PortOf(2));
  network.Advance(kPeerProbeInterval * 2);
  EXPECT_TRUE(network.Traced("a peer answers probes again"));
}

TEST_F(PeerPortTest, ResetStreamsComeBack) {
  StartBoth();
  network.Cut(Member::PortOf(1));
  network.Run();
  EXPECT_FALSE(one.IsUp(2));
  EXPECT_TRUE(two.IsUp(1));  // its streams are on its own port
  EXPECT_FALSE(one.Send(2, PeerChannel::kAppend, 3));
  network.Heal(Member::PortOf(1));
  network.Advance(kPeerRedialInterval);
  EXPECT_TRUE(one.IsUp(2));
}

TEST_F(PeerPortTest, RedialsAtMostOnceAnInterval) {
  StartBoth();
  network.Cut(Member::PortOf(1));
  network.Run();
  const size_t before = network.connects();
  network.Advance(Seconds(1));
  EXPECT_LE(network.connects() - before, 2u * 11u);
  EXPECT_GE(network.connects() - before, 2u * 9u);
}

TEST_F(PeerPortTest, LinkHeartbeatsKeepAnIdleStreamAlive) {
  StartBoth();
  network.Advance(Seconds(60));
  EXPECT_TRUE(one.IsUp(2));
  EXPECT_EQ(network.connects(), 4u + 2u);  // and one each for probes
}

TEST_F(PeerPortTest, SilentStreamIsClosedAndDialledAgain) {
  StartBoth();
  network.Stall(Member::PortOf(1));
  network.Advance(kPeerReadTimeout + Millis(10));
  EXPECT_TRUE(network.Traced("read timeout"));
  EXPECT_GT(network.connects(), 4u);
  network.Unstall(Member::PortOf(1));
  network.Advance(kPeerReadTimeout);
  EXPECT_TRUE(one.IsUp(2));
}

TEST_F(PeerPortTest, FullStreamRefusesAndTellsWhenThereIsRoom) {
  StartBoth();
  one.events.clear();
  network.Stall(Member::PortOf(1));
  size_t taken = 0;
  while (one.SendLarge(2, 1'000'000)) {
    ASSERT_LT(++taken, 20u);
    network.Run();
  }
  EXPECT_GE(taken, kPeerStreamBufferBytesMax / 1'000'000);
  network.Unstall(Member::PortOf(1));
  network.Run();
  EXPECT_THAT(one.events, ElementsAre("room append"));
  EXPECT_TRUE(one.SendLarge(2, 10));
  network.Run();
  EXPECT_EQ(two.messages.size(), taken + 1);
}

TEST_F(PeerPortTest, FullInOneTurnHasRoomAfterIt) {
  network.SetCapacity(64 * 1'048'576);
  StartBoth();
  one.events.clear();
  while (one.SendLarge(2, 1'000'000)) continue;
  EXPECT_TRUE(one.events.empty());
  network.Run();
  EXPECT_THAT(one.events, ElementsAre("room append"));
}

TEST_F(PeerPortTest, PeerThatTakesNothingIsCutOff) {
  StartBoth();
  one.events.clear();
  network.SetCapacity(0);
  one.Send(2, PeerChannel::kAppend, 3);
  network.Advance(kPeerWriteTimeout - Millis(1));
  EXPECT_TRUE(one.events.empty());
  network.Advance(Millis(2));
  ASSERT_FALSE(one.events.empty());
  EXPECT_EQ(one.events.front(), "down append");
  EXPECT_TRUE(network.Traced("write timeout"));
}

constexpr std::string_view kGood =
    "X-Etcd-Cluster-ID: c1\r\nX-Server-Version: 3.7.1\r\nX-Min-Cluster-Version: 3.0.0\r\nX-Raft-To: 1\r\n";

TEST_F(PeerPortTest, NewerStreamReplacesTheOlder) {
  StartBoth();
  one.events.clear();
  Client client(network, Member::PortOf(1), StreamRequest("/raft/stream/message/2", kGood));
  network.Run();
  ASSERT_GE(one.events.size(), 2u);
  EXPECT_EQ(one.events[0], "down message");
  EXPECT_EQ(one.events[1], "up message");
  EXPECT_TRUE(one.IsUp(2));
}

TEST_F(PeerPortTest, GrantedStreamAnswersAtOnce) {
  one.Start({1, 2});
  Client client(network, Member::PortOf(1), StreamRequest("/raft/stream/msgapp/2", kGood));
  network.Run();
  EXPECT_THAT(client.heard, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(client.heard, HasSubstr("X-Etcd-Cluster-Id: c1\r\n"));
  EXPECT_THAT(client.heard, HasSubstr("X-Server-Version: 3.7.3\r\n"));
  EXPECT_THAT(client.heard, HasSubstr("Transfer-Encoding: chunked\r\n"));
  network.Advance(kPeerLinkHeartbeat);
  EXPECT_EQ(client.Body(), std::string("1\r\n\0\r\n", 6));
}

TEST_F(PeerPortTest, RequestsAreAnsweredRowByRow) {
  one.Start({1, 2});
  one.removed = MemberId(0xdead);
  const std::string version = "X-Server-Version: 3.7.1\r\nX-Min-Cluster-Version: 3.0.0\r\n";
  const std::string good(kGood);
  struct Row {
    std::string request;
    int status;
    std::string body;
  };
  const auto get = [&](std::string_view path, std::string_view headers) { return StreamRequest(path, headers); };
  const auto post = [](std::string_view path, std::string_view headers, std::string_view body) {
    return "POST " + std::string(path) + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
           std::string(headers) + "\r\n" + std::string(body);
  };
  const auto encoded = [](uint64_t from, uint64_t to) {
    std::string out;
    raft::EncodeMessage({.from = MemberId(from), .to = MemberId(to), .term = Term(3), .body = raft::Heartbeat{}}, out);
    return out;
  };
  const std::vector<Row> rows = {
      {get("/raft/stream/message/2", ""), 412, "incompatible version\n"},
      {get("/raft/stream/message/2", version), 412, "cluster ID mismatch\n"},
      {get("/raft/stream/message/2", version + "X-Etcd-Cluster-ID: c2\r\n"), 412, "cluster ID mismatch\n"},
      {get("/raft/stream/message/2", "X-Etcd-Cluster-ID: c1\r\nX-Server-Version: 2.9.9\r\n"), 412, "incompatible version\n"},
      {get("/raft/stream/message/2", "X-Etcd-Cluster-ID: c1\r\nX-Server-Version: junk\r\n"), 412, "incompatible version\n"},
      {get("/raft/stream/message/2", "X-Etcd-Cluster-ID: c1\r\nX-Server-Version: 4.0.0\r\nX-Min-Cluster-Version: 3.8.0\r\n"), 412, "incompatible version\n"},
      {get("/raft/stream/message/2", "X-Etcd-Cluster-ID: c1\r\nX-Server-Version: 3.0.0\r\n"), 412, "to field mismatch\n"},
      {get("/raft/stream/message/2", version + "X-Etcd-Cluster-ID: c1\r\n"), 412, "to field mismatch\n"},
      {get("/raft/stream/message/2", version + "X-Etcd-Cluster-ID: c1\r\nX-Raft-To: 01\r\n"), 412, "to field mismatch\n"},
      {get("/raft/stream/other/2", good), 404, "invalid path\n"},
      {get("/raft/stream/", good), 404, "invalid path\n"},
      {get("/raft/stream/message", good), 404, "invalid path\n"},
      {get("/raft/stream/message/2/3", good), 404, "invalid path\n"},
      {get("/raft/stream/message/xyz", good), 404, "invalid from\n"},
      {get("/raft/stream/message/11112222333344445", good), 404, "invalid from\n"},
      {get("/raft/stream/message/dead", good), 410, "removed member\n"},
      {get("/raft/stream/message/3", good), 404, "error sender not found\n"},
      {post("/raft/stream/message/2", good, ""), 405, "Method Not Allowed\n"},
      {get("/raft", good), 405, "Method Not Allowed\n"},
      {post("/raft", "", ""), 412, "incompatible version\n"},
      {post("/raft", version, ""), 412, "cluster ID mismatch\n"},
      {post("/raft", good, "junk"), 400, "error unmarshalling raft message\n"},
      {post("/raft", good, encoded(2, 1)), 204, ""},
      {get("/raft/probing", ""), 200, "{\"OK\":true,\"Now\":\"2026-11-30T18:00:01Z\"}\n"},
      {get("/version", ""), 200, "{\"etcdserver\":\"3.7.3\"}"},
      {get("/members", ""), 200, "[]\n"},
      {post("/members", "", ""), 405, "Method Not Allowed\n"},
      {post("/version", "", ""), 405, "Method Not Allowed\n"},
      {get("/members/", ""), 404, "404 page not found\n"},
      {get("/health", ""), 404, "404 page not found\n"},
      {get("/", ""), 404, "404 page not found\n"},
      {"GET / HTTP/1.1\r\n\r\n", 400, "400 Bad Request: missing required Host header\n"},
      {"nonsense\r\n\r\n", 400, "400 Bad Request\n"},
      {"PRI * HTTP/2.0\r\n\r\n", 505, "505 HTTP Version Not Supported\n"},
  };
  for (const Row& row : rows) {
    Client client(network, Member::PortOf(1), row.request);
    network.Run();
    EXPECT_EQ(client.Status(), row.status) << row.request;
    EXPECT_EQ(client.Body(), row.body) << row.request;
  }
  EXPECT_EQ(one.messages.size(), 1u);
  for (const auto& [from, to] : {std::pair(2, 3), std::pair(0xdead, 1)}) {
    Client client(network, Member::PortOf(1), post("/raft", good, encoded(static_cast<uint64_t>(from), static_cast<uint64_t>(to))));
    network.Run();
    EXPECT_EQ(client.Status(), 500);
    EXPECT_EQ(client.Body(), "1e\r\nerror processing raft message\n\r\n");  // and no last chunk
    EXPECT_TRUE(client.ended);
  }
}

TEST_F(PeerPortTest, RequestsFollowEachOtherOnAConnection) {
  Client client(network, Member::PortOf(1), StreamRequest("/version", "") + StreamRequest("/members", "Connection: close\r\n"));
  network.Run();
  EXPECT_THAT(client.heard, testing::ContainsRegex("3.7.3.*"));
  EXPECT_THAT(client.heard, HasSubstr("[]\n"));
  EXPECT_TRUE(client.ended);
}

TEST_F(PeerPortTest, IdleConnectionIsClosed) {
  Client client(network, Member::PortOf(1), "GET / HT");
  network.Advance(kPeerReadTimeout - Millis(1));
  EXPECT_FALSE(client.ended);
  network.Advance(Millis(2));
  EXPECT_TRUE(client.ended);
}

// A peer that is nothing but a script: it listens, answers every request with the same bytes.
class Script final : public AcceptListener, public StreamListener {
 public:
  Script(MemoryNetwork& network, uint16_t port, std::string answer) : answer_(std::move(answer)) {
    acceptor_ = std::move(network.Listen({.host = "127.0.0.1", .port = port}, *this).acceptor);
  }
  void OnAccept(std::unique_ptr<Stream> stream) override {
    stream->SetListener(*this);
    streams_.push_back(std::move(stream));
  }
  void OnConnected() override {}
  void OnData(std::string_view bytes) override {
    heard += bytes;
    streams_.back()->Write(std::vector{Bytes::Copy(answer_)});
  }
  void OnReadEnd() override {}
  void OnWritable() override {}
  void OnClosed(IoError) override {}

  std::string heard;

 private:
  std::string answer_;
  std::unique_ptr<Acceptor> acceptor_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

TEST_F(PeerPortTest, AsksForAStreamAsEtcdDoes) {
  Script script(network, Member::PortOf(3), "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n");
  one.Start({1, 3});
  network.Run();
  EXPECT_THAT(script.heard, StartsWith("GET /raft/stream/msgapp/1 HTTP/1.1\r\nHost: 127.0.0.1:2383\r\n"));
  for (const std::string_view line : {"X-Etcd-Cluster-Id: c1\r\n", "X-Min-Cluster-Version: 3.0.0\r\n", "X-Peerurls: http://127.0.0.1:2381\r\n",
                                      "X-Raft-To: 3\r\n", "X-Server-From: 1\r\n", "X-Server-Version: 3.7.3\r\n"}) {
    EXPECT_THAT(script.heard, HasSubstr(std::string(line)));
  }
  EXPECT_TRUE(one.self_removed);
}

TEST_F(PeerPortTest, StrayAndDamagedFramesAreTraced) {
  std::string frames(8, '\0');
  raft::EncodeMessage({.from = MemberId(9), .to = MemberId(1), .term = Term(3), .body = raft::Heartbeat{}}, frames);
  frames[7] = static_cast<char>(frames.size() - 8);
  frames += std::string(8, '\xff');
  Script script(network, Member::PortOf(3), "HTTP/1.1 200 OK\r\nX-Server-Version: 3.7.1\r\nTransfer-Encoding: chunked\r\n\r\n" +
                                                ChunkHead(frames.size()) + frames + "\r\n");
  one.Start({1, 3});
  network.Run();
  EXPECT_TRUE(one.messages.empty());
  EXPECT_TRUE(network.Traced("not from this peer to us"));
  EXPECT_TRUE(network.Traced("frame is over the limit"));
}

}  // namespace
}  // namespace detcd::wire
