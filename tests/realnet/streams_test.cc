// What the contract suite does not reach: Unix sockets, IPv6, running out of descriptors, and the kernel's ways of
// ending a connection.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "realnet/real_acceptor.h"
#include "realnet/real_host.h"
#include "realnet/socket_address.h"
#include "tests/realnet/real_world.h"

namespace detcd::realnet {
namespace {

struct Listener final : StreamListener {
  void OnConnected() override { connected = true; }
  void OnData(std::string_view bytes) override {
    data += bytes;
    ++pieces;
    if (on_data) on_data();
  }
  void OnReadEnd() override { read_end = true; }
  void OnWritable() override {}
  void OnClosed(IoError error) override { closed = error; }

  std::unique_ptr<Stream> stream;
  std::string data;
  int pieces = 0;
  bool connected = false;
  bool read_end = false;
  IoError closed = IoError::kOk;
  std::function<void()> on_data;
};

struct Server final : AcceptListener {
  void OnAccept(std::unique_ptr<Stream> stream) override {
    streams.push_back(std::make_unique<Listener>());
    stream->SetListener(*streams.back());
    streams.back()->stream = std::move(stream);
  }
  std::vector<std::unique_ptr<Listener>> streams;
};

class StreamsTest : public ::testing::Test {
 protected:
  StreamsTest() : host_({.data_folder = folder_.path(), .log_level = LogLevel::kPanic}) {}

  bool Run(const std::function<bool()>& done) {
    const Instant give_up = Loop::Now() + Seconds(10);
    while (!done()) {
      if (Loop::Now() > give_up) return false;
      RunOneTurn({&host_});
    }
    return true;
  }
  // A connection of the test's own, without detcd's code; blocking.
  int RawConnect(const Address& address) {
    const SocketAddress to = *ToSocketAddress(address);
    const int descriptor = ::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::connect(descriptor, to.get(), to.size), 0);
    return descriptor;
  }
  std::unique_ptr<Acceptor> ListenAnywhere() {
    return host_.network().Listen({.host = "127.0.0.1"}, server_).acceptor;
  }

  TemporaryFolder folder_;
  RealHost host_;
  Server server_;
};

TEST_F(StreamsTest, UnixSocketsCarryBytesBothWays) {
  const Address address{.host = folder_.path() + "/socket", .is_unix = true};
  auto acceptor = host_.network().Listen(address, server_).acceptor;
  ASSERT_NE(acceptor, nullptr);
  Listener client;
  client.stream = host_.network().Connect(address, client);
  EXPECT_FALSE(client.connected);
  ASSERT_TRUE(Run([&] { return client.connected && !server_.streams.empty(); }));
  EXPECT_EQ(client.stream->Remote(), address);
  const Bytes text = Bytes::Copy("text");
  EXPECT_EQ(client.stream->Write({&text, 1}), 4u);
  EXPECT_EQ(server_.streams[0]->stream->Write({&text, 1}), 4u);
  client.stream->CloseWrite();
  ASSERT_TRUE(Run([&] { return server_.streams[0]->read_end && client.data == "text"; }));
  EXPECT_EQ(server_.streams[0]->data, "text");
}

TEST_F(StreamsTest, SocketFileIsReplacedOnlyWhenDesertedAndRemovedAtTheEnd) {
  const Address address{.host = folder_.path() + "/socket", .is_unix = true};
  {
    const int deserted = ::socket(AF_UNIX, SOCK_STREAM, 0);
    const SocketAddress at = *ToSocketAddress(address);
    ASSERT_EQ(::bind(deserted, at.get(), at.size), 0);
    ::close(deserted);
  }
  Listener refused;
  refused.stream = host_.network().Connect(address, refused);
  ASSERT_TRUE(Run([&] { return refused.closed != IoError::kOk; }));
  EXPECT_EQ(refused.closed, IoError::kRefused);
  auto acceptor = host_.network().Listen(address, server_).acceptor;
  ASSERT_NE(acceptor, nullptr);
  EXPECT_EQ(host_.network().Listen(address, server_).error, IoError::kAddressInUse);
  acceptor.reset();
  EXPECT_NE(::access(address.host.c_str(), F_OK), 0);
  const int file = ::open(address.host.c_str(), O_CREAT | O_WRONLY, 0600);
  ::close(file);
  EXPECT_EQ(host_.network().Listen(address, server_).error, IoError::kAddressInUse) << "a file is not ours to replace";
}

TEST_F(StreamsTest, BadAddressesAreTold) {
  for (const Address& address : {Address{.host = "localhost", .port = 1}, Address{.host = "", .port = 1},
                                 Address{.host = "127.0.0.1.1"}, Address{.host = "fe80::1%nosuchlink"},
                                 Address{.host = std::string(200, 'a'), .is_unix = true},
                                 Address{.host = "", .is_unix = true}, Address{.host = "203.0.113.1"}}) {
    EXPECT_EQ(host_.network().Listen(address, server_).error, IoError::kInvalid) << address.host;
  }
  Listener client;
  client.stream = host_.network().Connect({.host = "localhost", .port = 1}, client);
  EXPECT_EQ(client.closed, IoError::kOk) << "an event inside Connect";
  ASSERT_TRUE(Run([&] { return client.closed != IoError::kOk; }));
  EXPECT_EQ(client.closed, IoError::kInvalid);
}

TEST_F(StreamsTest, AddressesSurviveTheWayThereAndBack) {
  for (const Address& address :
       {Address{.host = "10.1.2.3", .port = 2379}, Address{.host = "::1", .port = 65'535},
        Address{.host = "2001:db8::2", .port = 1}, Address{.host = "fe80::1%lo", .port = 2},
        Address{.host = "/a/path", .is_unix = true}, Address{.host = std::string(107, 'p'), .is_unix = true}}) {
    const auto there = ToSocketAddress(address);
    ASSERT_TRUE(there.has_value()) << address.host;
    EXPECT_EQ(FromSocketAddress(*there), address) << address.host;
  }
  EXPECT_EQ(FromSocketAddress(*ToSocketAddress({.host = "::ffff:10.0.0.1", .port = 3})),
            (Address{.host = "10.0.0.1", .port = 3}));
}

TEST_F(StreamsTest, Ipv6WildcardTakesIpv4Too) {
  ListenResult listening = host_.network().Listen({.host = "::"}, server_);
  if (listening.error != IoError::kOk) GTEST_SKIP() << "no IPv6 here";
  const int raw = RawConnect({.host = "127.0.0.1", .port = listening.acceptor->Local().port});
  ASSERT_TRUE(Run([&] { return server_.streams.size() == 1; }));
  EXPECT_EQ(server_.streams[0]->stream->Remote().host, "127.0.0.1");
  ::close(raw);
}

TEST_F(StreamsTest, LastWordsArriveThoughThePeersAreUnread) {
  auto acceptor = ListenAnywhere();
  const int raw = RawConnect(acceptor->Local());
  ASSERT_TRUE(Run([&] { return server_.streams.size() == 1; }));
  Listener& peer = *server_.streams[0];
  peer.stream->PauseReading();
  ASSERT_EQ(::send(raw, "unread", 6, 0), 6);
  const Bytes words = Bytes::Copy("last words");
  peer.stream->Write({&words, 1});
  peer.stream->CloseWrite();
  peer.stream.reset();
  RunOneTurn({&host_});
  ASSERT_EQ(::send(raw, "late", 4, MSG_NOSIGNAL), 4);
  for (int i = 0; i < 3; ++i) RunOneTurn({&host_});
  char buffer[32];
  EXPECT_EQ(::recv(raw, buffer, sizeof(buffer), 0), 10) << "reset instead of the words";
  EXPECT_EQ(::recv(raw, buffer, sizeof(buffer), 0), 0);
  ::close(raw);
}

TEST_F(StreamsTest, BytesBeforeAResetAreStillRead) {
  auto acceptor = ListenAnywhere();
  const int raw = RawConnect(acceptor->Local());
  ASSERT_TRUE(Run([&] { return server_.streams.size() == 1; }));
  ASSERT_EQ(::send(raw, "words", 5, 0), 5);
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  ::setsockopt(raw, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  ::close(raw);
  Listener& peer = *server_.streams[0];
  ASSERT_TRUE(Run([&] { return peer.closed != IoError::kOk; }));
  EXPECT_EQ(peer.closed, IoError::kReset);
}

TEST_F(StreamsTest, PausedReaderStillHearsAReset) {
  auto acceptor = ListenAnywhere();
  const int raw = RawConnect(acceptor->Local());
  ASSERT_TRUE(Run([&] { return server_.streams.size() == 1; }));
  Listener& peer = *server_.streams[0];
  peer.stream->PauseReading();
  ASSERT_EQ(::send(raw, "words", 5, 0), 5);
  for (int i = 0; i < 3; ++i) RunOneTurn({&host_});
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  ::setsockopt(raw, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  ::close(raw);
  ASSERT_TRUE(Run([&] { return peer.closed != IoError::kOk; }));
  EXPECT_EQ(peer.data, "");
}

TEST_F(StreamsTest, PausingInsideOnDataStopsAtOnce) {
  const Address address{.host = folder_.path() + "/socket", .is_unix = true};
  auto acceptor = host_.network().Listen(address, server_).acceptor;
  const int raw = RawConnect(address);
  ASSERT_TRUE(Run([&] { return server_.streams.size() == 1; }));
  Listener& peer = *server_.streams[0];
  peer.on_data = [&] { peer.stream->PauseReading(); };
  const std::string text(150'000, 'x');
  ASSERT_EQ(::send(raw, text.data(), text.size(), 0), 150'000);
  ::shutdown(raw, SHUT_WR);
  for (int expected = 1; expected <= 3; ++expected) {
    ASSERT_TRUE(Run([&] { return peer.pieces == expected; }));
    for (int i = 0; i < 3; ++i) RunOneTurn({&host_});
    EXPECT_EQ(peer.pieces, expected);
    EXPECT_FALSE(peer.read_end);
    peer.stream->ResumeReading();
  }
  ASSERT_TRUE(Run([&] { return peer.read_end; }));
  EXPECT_EQ(peer.data.size(), 150'000u);
  ::close(raw);
}

TEST_F(StreamsTest, StreamDestroyedInsideItsEventIsSilent) {
  auto acceptor = ListenAnywhere();
  const int raw = RawConnect(acceptor->Local());
  ASSERT_TRUE(Run([&] { return server_.streams.size() == 1; }));
  Listener& peer = *server_.streams[0];
  peer.on_data = [&] { peer.stream.reset(); };
  ASSERT_EQ(::send(raw, "a", 1, 0), 1);
  ::shutdown(raw, SHUT_WR);
  ASSERT_TRUE(Run([&] { return peer.pieces == 1; }));
  for (int i = 0; i < 3; ++i) RunOneTurn({&host_});
  EXPECT_FALSE(peer.read_end);
  ::close(raw);
}

// Lowers the limit of descriptors to `count` above the highest in use, until the end.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t count) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int lowest = ::dup(0);
    ::close(lowest);
    rlimit lowered = before_;
    lowered.rlim_cur = static_cast<rlim_t>(lowest) + count;
    ::setrlimit(RLIMIT_NOFILE, &lowered);
  }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_;
};

TEST(DescriptorExhaustionTest, ConnectionsWaitAndTheLogTellsItOnce) {
  TemporaryFolder folder;
  int log[2];
  ASSERT_EQ(::pipe2(log, O_NONBLOCK), 0);
  RealHost host({.data_folder = folder.path(), .log_descriptor = log[1]});
  Server server;
  auto acceptor = host.network().Listen({.host = "127.0.0.1"}, server).acceptor;
  const SocketAddress to = *ToSocketAddress(acceptor->Local());
  std::vector<int> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(clients.back(), to.get(), to.size), 0);
  }
  const auto run = [&](Duration span) {
    for (const Instant end = Loop::Now() + span; Loop::Now() < end;) RunOneTurn({&host});
  };
  {
    DescriptorLimit limit(2);
    run(kAcceptBackOff * 3);
    EXPECT_EQ(server.streams.size(), 2u);
    Listener refused;
    refused.stream = host.network().Connect(acceptor->Local(), refused);
    run(Millis(5));
    EXPECT_EQ(refused.closed, IoError::kTooManyOpen);
  }
  run(kAcceptBackOff * 3);
  EXPECT_EQ(server.streams.size(), 5u);
  char buffer[4'096];
  const ssize_t size = ::read(log[0], buffer, sizeof(buffer));
  ASSERT_GT(size, 0);
  const std::string lines(buffer, static_cast<size_t>(size));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2) << lines;
  EXPECT_THAT(lines, ::testing::HasSubstr("no descriptors left"));
  EXPECT_THAT(lines, ::testing::HasSubstr("accepting connections again"));
  for (int client : clients) ::close(client);
  ::close(log[0]);
  ::close(log[1]);
}

}  // namespace
}  // namespace detcd::realnet
