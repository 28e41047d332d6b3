// Connections: both directions, their ends, back-pressure, and listening.
#include "tests/seam/contract.h"

namespace detcd {
namespace {

constexpr size_t kBufferedBytesMax = 64 << 20;  // more than any implementation holds for a reader that does not read

TEST_P(SeamContract, BytesFlowBothWaysInOrder) {
  auto pair = Connect(Boot(1), Boot(0), 0);
  const Bytes ask[] = {Bytes::Copy("ask"), Bytes(), Bytes::Copy("ing")};
  const size_t taken = pair->client.stream->Write(ask);
  EXPECT_LE(taken, 6u);
  EXPECT_EQ(pair->peer().events, 0u) << "an event inside Write";
  if (taken < 6) {
    ASSERT_TRUE(Run([&] { return pair->client.writable > 0; })) << "a short write is followed by OnWritable";
    ASSERT_TRUE(WriteAll(*world_, pair->client, Bytes::Copy("asking").Slice(taken, 6 - taken)));
  }
  ASSERT_TRUE(Run([&] { return pair->peer().data.size() == 6; }));
  ASSERT_TRUE(WriteAll(*world_, pair->peer(), Bytes::Copy("answer")));
  ASSERT_TRUE(Run([&] { return pair->client.data.size() == 6; }));
  EXPECT_EQ(pair->peer().data, "asking");
  EXPECT_EQ(pair->client.data, "answer");
  EXPECT_EQ(pair->client.stream->Remote(), pair->acceptor->Local());
  EXPECT_FALSE(pair->peer().stream->Remote().host.empty());
}

TEST_P(SeamContract, OneHostTalksToItself) {
  Host& host = Boot(0);
  auto pair = Connect(host, host, 0);
  ASSERT_TRUE(WriteAll(*world_, pair->client, Bytes::Copy("self")));
  EXPECT_TRUE(Run([&] { return pair->peer().data == "self"; }));
}

TEST_P(SeamContract, MuchDataArrivesUnalteredThroughPartialWrites) {
  auto pair = Connect(Boot(1), Boot(0), 0);
  const std::string text = Pattern(3'000'000);
  ASSERT_TRUE(WriteAll(*world_, pair->client, Bytes::Copy(text)));
  ASSERT_TRUE(Run([&] { return pair->peer().data.size() == text.size(); }));
  EXPECT_TRUE(pair->peer().data == text);
}

TEST_P(SeamContract, WriteBeforeConnectedTakesNothing) {
  Host& host = Boot();
  AcceptRecorder server;
  auto listening = host.network().Listen(world_->NewAddress(0), server);
  StreamRecorder client;
  client.stream = host.network().Connect(listening.acceptor->Local(), client);
  const Bytes early = Bytes::Copy("early");
  EXPECT_EQ(client.stream->Write({&early, 1}), 0u);
  ASSERT_TRUE(Run([&] { return client.connected; }));
  EXPECT_TRUE(WriteAll(*world_, client, early));
}

TEST_P(SeamContract, HalfCloseLeavesTheOtherDirectionOpen) {
  auto pair = Connect(Boot(1), Boot(0), 0);
  StreamRecorder& client = pair->client;
  ASSERT_TRUE(WriteAll(*world_, client, Bytes::Copy("last words")));
  client.stream->CloseWrite();
  const Bytes more = Bytes::Copy("more");
  EXPECT_EQ(client.stream->Write({&more, 1}), 0u) << "after CloseWrite";
  ASSERT_TRUE(Run([&] { return pair->peer().read_end; }));
  EXPECT_EQ(pair->peer().data, "last words");
  EXPECT_FALSE(client.read_end);
  const std::string answer = Pattern(200'000);
  ASSERT_TRUE(WriteAll(*world_, pair->peer(), Bytes::Copy(answer)));
  pair->peer().stream->CloseWrite();
  ASSERT_TRUE(Run([&] { return client.read_end; }));
  EXPECT_TRUE(client.data == answer);
  Pass();
  EXPECT_FALSE(client.closed || pair->peer().closed) << "both ends were told in order: nothing is wrong";
}

TEST_P(SeamContract, DestroyingAStreamResetsThePeer) {
  auto pair = Connect(Boot(1), Boot(0), 0);
  pair->client.stream.reset();
  ASSERT_TRUE(Run([&] { return pair->peer().closed.has_value(); }));
  EXPECT_EQ(*pair->peer().closed, IoError::kReset);
  const Bytes late = Bytes::Copy("late");
  EXPECT_EQ(pair->peer().stream->Write({&late, 1}), 0u) << "after OnClosed";
}

TEST_P(SeamContract, DestroyingAfterCloseWriteStillDeliversAll) {
  auto pair = Connect(Boot(1), Boot(0), 0, /*start_paused=*/true);
  const std::string text = Pattern(2'000);  // fits any buffer: nobody reads yet
  ASSERT_TRUE(WriteAll(*world_, pair->client, Bytes::Copy(text)));
  pair->client.stream->CloseWrite();
  pair->client.stream.reset();
  Pass(Millis(5));
  pair->peer().stream->ResumeReading();
  ASSERT_TRUE(Run([&] { return pair->peer().read_end; }));
  EXPECT_TRUE(pair->peer().data == text);
}

TEST_P(SeamContract, DestroyedStreamIsSilent) {
  auto pair = Connect(Boot(1), Boot(0), 0);
  ASSERT_TRUE(WriteAll(*world_, pair->client, Bytes::Copy("on the way")));
  const uint64_t heard = pair->peer().events;
  pair->peer().stream.reset();
  Pass();
  EXPECT_EQ(pair->peer().events, heard);
  EXPECT_EQ(pair->client.closed, IoError::kReset);
}

TEST_P(SeamContract, ListenerMayDestroyItsStreamInsideAnEvent) {
  struct Destroyer final : StreamListener {
    void OnConnected() override {}
    void OnData(std::string_view) override { stream.reset(), ++heard; }
    void OnReadEnd() override { ++heard; }
    void OnWritable() override {}
    void OnClosed(IoError) override { ++heard; }
    std::unique_ptr<Stream> stream;
    int heard = 0;
  } destroyer;
  Host& host = Boot();
  AcceptRecorder server;
  auto listening = host.network().Listen(world_->NewAddress(0), server);
  destroyer.stream = host.network().Connect(listening.acceptor->Local(), destroyer);
  ASSERT_TRUE(Run([&] { return server.accepted.size() == 1; }));
  WriteAll(*world_, *server.accepted[0], Bytes::Copy("bang"));  // a reset may come before all is taken
  server.accepted[0]->stream->CloseWrite();
  ASSERT_TRUE(Run([&] { return destroyer.heard > 0; }));
  Pass();
  EXPECT_EQ(destroyer.heard, 1);
}

TEST_P(SeamContract, PausedReaderStopsItsWriterUntilItResumes) {
  auto pair = Connect(Boot(1), Boot(0), 0, /*start_paused=*/true);
  StreamRecorder& client = pair->client;
  const Bytes piece = Bytes::Copy(Pattern(65'536));
  uint64_t written = 0;
  std::string expected;
  for (bool room = true; room && written < kBufferedBytesMax;) {
    const int writable = client.writable;
    const size_t taken = client.stream->Write({&piece, 1});
    written += taken;
    expected.append(piece.view().substr(0, taken));
    if (taken < piece.size()) room = Run([&] { return client.writable > writable; }, Millis(300));
  }
  ASSERT_LT(written, kBufferedBytesMax) << "a writer without bounds";
  EXPECT_TRUE(pair->peer().data.empty());
  const int writable = client.writable;
  pair->peer().stream->ResumeReading();
  EXPECT_TRUE(pair->peer().data.empty()) << "an event inside ResumeReading";
  ASSERT_TRUE(Run([&] { return pair->peer().data.size() == written && client.writable > writable; }));
  EXPECT_TRUE(pair->peer().data == expected);
}

TEST_P(SeamContract, PauseInsideOnDataHoldsTheRest) {
  struct Pausing final : StreamListener {
    void OnConnected() override {}
    void OnData(std::string_view bytes) override { stream->PauseReading(), size += bytes.size(), ++pieces; }
    void OnReadEnd() override { ended = true; }
    void OnWritable() override {}
    void OnClosed(IoError) override {}
    std::unique_ptr<Stream> stream;
    size_t size = 0;
    int pieces = 0;
    bool ended = false;
  } reader;
  Host& host = Boot();
  AcceptRecorder server;
  auto listening = host.network().Listen(world_->NewAddress(0), server);
  reader.stream = host.network().Connect(listening.acceptor->Local(), reader);
  ASSERT_TRUE(Run([&] { return server.accepted.size() == 1; }));
  ASSERT_TRUE(WriteAll(*world_, *server.accepted[0], Bytes::Copy("first")));
  ASSERT_TRUE(Run([&] { return reader.pieces == 1; }));
  ASSERT_TRUE(WriteAll(*world_, *server.accepted[0], Bytes::Copy("second")));
  server.accepted[0]->stream->CloseWrite();
  Pass();
  EXPECT_EQ(reader.pieces, 1);
  EXPECT_FALSE(reader.ended) << "a pause holds the end too";
  for (int i = 0; i < 20 && !reader.ended; ++i) {
    reader.stream->ResumeReading();
    Pass(Millis(5));
  }
  EXPECT_TRUE(reader.ended);
  EXPECT_EQ(reader.size, 11u);
}

TEST_P(SeamContract, ConnectWhereNobodyListensIsRefused) {
  Host& host = Boot();
  Boot(1);
  StreamRecorder here, there;
  here.stream = host.network().Connect(world_->NewAddress(0), here);
  there.stream = host.network().Connect(world_->NewAddress(1), there);
  EXPECT_EQ(here.events + there.events, 0u) << "an event inside Connect";
  ASSERT_TRUE(Run([&] { return here.closed && there.closed; }));
  EXPECT_EQ(*here.closed, IoError::kRefused);
  EXPECT_EQ(*there.closed, IoError::kRefused);
  EXPECT_FALSE(here.connected || there.connected);
}

TEST_P(SeamContract, AnAddressIsListenedOnOnce) {
  Host& host = Boot();
  AcceptRecorder first, second;
  const Address address = world_->NewAddress(0);
  ListenResult listening = host.network().Listen(address, first);
  ASSERT_EQ(listening.error, IoError::kOk);
  EXPECT_EQ(listening.acceptor->Local(), address);
  ListenResult again = host.network().Listen(address, second);
  EXPECT_EQ(again.error, IoError::kAddressInUse);
  EXPECT_EQ(again.acceptor, nullptr);
  listening.acceptor.reset();
  EXPECT_EQ(host.network().Listen(address, second).error, IoError::kOk);
  EXPECT_EQ(host.network().Listen({.host = "no address", .port = 1}, second).error, IoError::kInvalid);
}

TEST_P(SeamContract, PortZeroPicksAFreePort) {
  Host& host = Boot();
  AcceptRecorder server;
  Address any = world_->NewAddress(0);
  any.port = 0;
  ListenResult first = host.network().Listen(any, server);
  ListenResult second = host.network().Listen(any, server);
  ASSERT_EQ(first.error, IoError::kOk);
  ASSERT_EQ(second.error, IoError::kOk);
  EXPECT_NE(first.acceptor->Local().port, 0);
  EXPECT_NE(first.acceptor->Local().port, second.acceptor->Local().port);
  StreamRecorder client;
  client.stream = host.network().Connect(first.acceptor->Local(), client);
  EXPECT_TRUE(Run([&] { return client.connected && server.accepted.size() == 1; }));
}

TEST_P(SeamContract, PausedAcceptorLeavesConnectionsInItsQueue) {
  Host& host = Boot();
  AcceptRecorder server;
  ListenResult listening = host.network().Listen(world_->NewAddress(0), server);
  listening.acceptor->PauseAccepting();
  StreamRecorder client;
  client.stream = host.network().Connect(listening.acceptor->Local(), client);
  ASSERT_TRUE(Run([&] { return client.connected; }));
  ASSERT_TRUE(WriteAll(*world_, client, Bytes::Copy("waiting")));
  Pass();
  EXPECT_TRUE(server.accepted.empty());
  listening.acceptor->ResumeAccepting();
  EXPECT_TRUE(server.accepted.empty()) << "an event inside ResumeAccepting";
  EXPECT_TRUE(Run([&] { return server.accepted.size() == 1 && server.accepted[0]->data == "waiting"; }));
}

TEST_P(SeamContract, UnacceptedAndDroppedConnectionsAreReset) {
  Host& host = Boot();
  AcceptRecorder paused, dropping;
  ListenResult queue = host.network().Listen(world_->NewAddress(0), paused);
  queue.acceptor->PauseAccepting();
  dropping.drop = true;
  ListenResult drops = host.network().Listen(world_->NewAddress(0), dropping);
  StreamRecorder queued, dropped;
  queued.stream = host.network().Connect(queue.acceptor->Local(), queued);
  dropped.stream = host.network().Connect(drops.acceptor->Local(), dropped);
  ASSERT_TRUE(Run([&] { return queued.connected; }));
  Pass(Millis(5));
  queue.acceptor.reset();
  ASSERT_TRUE(Run([&] { return queued.closed && dropped.closed; }));
  EXPECT_EQ(*queued.closed, IoError::kReset);
  EXPECT_EQ(*dropped.closed, IoError::kReset);
  EXPECT_TRUE(paused.accepted.empty());
}

TEST_P(SeamContract, UnixSocketsCarryBytes) {
  Host& host = Boot();
  AcceptRecorder server;
  const Address path{.host = "seam_contract.sock", .is_unix = true};
  ListenResult listening = host.network().Listen(path, server);
  ASSERT_EQ(listening.error, IoError::kOk);
  StreamRecorder client;
  client.stream = host.network().Connect(path, client);
  ASSERT_TRUE(Run([&] { return client.connected; }));
  ASSERT_TRUE(WriteAll(*world_, client, Bytes::Copy("local")));
  EXPECT_TRUE(Run([&] { return server.accepted.size() == 1 && server.accepted[0]->data == "local"; }));
}

}  // namespace
}  // namespace detcd
