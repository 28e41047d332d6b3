#include "core/member/peers.h"

#include "core/base/limits.h"
#include "tests/support/fake_carrier.h"

namespace detcd::member {
namespace {

constexpr MemberId kPeer(2);

struct DeafListener final : PeerCarrierListener {
  void OnPeerMessage(raft::Message) override {}
  void OnChannelUp(MemberId, PeerChannel) override {}
  void OnChannelRoom(MemberId, PeerChannel) override {}
  void OnChannelDown(MemberId, PeerChannel) override {}
  void OnPostFailed(MemberId) override {}
  void OnPeerVersion(MemberId, std::string) override {}
};

raft::Message Heartbeat(MemberId to = kPeer) { return {.from = MemberId(1), .to = to, .term = Term(1), .body = raft::Heartbeat{}}; }
raft::Message AppendOf(size_t bytes) {
  raft::Append append;
  append.entries.push_back({.term = Term(1), .index = LogIndex(1), .data = Bytes::Copy(std::string(bytes, 'x'))});
  return {.from = MemberId(1), .to = kPeer, .term = Term(1), .body = std::move(append)};
}

class PeersTest : public ::testing::Test {
 protected:
  PeersTest() {
    peers.Start(listener, {{.id = kPeer, .urls = {"http://two"}}});
    Up(PeerChannel::kMessage);
    Up(PeerChannel::kAppend);
  }
  void Up(PeerChannel channel) {
    carrier.SetUp(kPeer, channel);
    peers.OnUp(kPeer, channel, Instant{7});
  }
  void Down(PeerChannel channel) {
    carrier.SetDown(kPeer, channel);
    peers.OnDown(kPeer, channel);
  }

  DeafListener listener;
  testing::FakeCarrier carrier;
  Peers peers{carrier};
};

TEST_F(PeersTest, AppendsTakeTheirOwnChannelWhileItIsUp) {
  EXPECT_TRUE(peers.Send(AppendOf(1)));
  EXPECT_TRUE(peers.Send(Heartbeat()));
  Down(PeerChannel::kAppend);
  EXPECT_TRUE(peers.Send(AppendOf(2)));
  ASSERT_EQ(carrier.sent.size(), 3u);
  EXPECT_EQ(carrier.sent[0].channel, PeerChannel::kAppend);
  EXPECT_EQ(carrier.sent[1].channel, PeerChannel::kMessage);
  EXPECT_EQ(carrier.sent[2].channel, PeerChannel::kMessage);
}

TEST_F(PeersTest, WithoutAStreamMessagesArePosted) {
  carrier.takes_posts = true;
  Down(PeerChannel::kAppend);
  Down(PeerChannel::kMessage);
  EXPECT_TRUE(peers.Send(AppendOf(1)));
  EXPECT_TRUE(peers.Send(Heartbeat()));
  EXPECT_EQ(carrier.posted.size(), 2u);
  Up(PeerChannel::kMessage);
  EXPECT_TRUE(peers.Send(Heartbeat()));
  EXPECT_EQ(carrier.posted.size(), 2u);
}

TEST_F(PeersTest, DropsForStrangersAndWithoutAChannel) {
  EXPECT_FALSE(peers.Send(Heartbeat(MemberId(9))));
  Down(PeerChannel::kMessage);
  EXPECT_FALSE(peers.Send(Heartbeat()));
  EXPECT_TRUE(carrier.sent.empty());
}

TEST_F(PeersTest, QueuedMessagesLeaveInOrderBeforeNewOnes) {
  carrier.room = 0;
  EXPECT_TRUE(peers.Send(AppendOf(1)));
  carrier.room = 2;
  EXPECT_TRUE(peers.Send(AppendOf(2)));  // behind the first, though there is room
  EXPECT_TRUE(carrier.sent.empty());
  peers.OnRoom(kPeer, PeerChannel::kAppend);
  ASSERT_EQ(carrier.sent.size(), 2u);
  EXPECT_EQ(carrier.sent[0].message, AppendOf(1));
  EXPECT_EQ(carrier.sent[1].message, AppendOf(2));
}

TEST_F(PeersTest, TheQueueIsBoundedInMessages) {
  carrier.room = 0;
  for (size_t i = 0; i < kPeerQueueMessagesMax; ++i) ASSERT_TRUE(peers.Send(Heartbeat()));
  EXPECT_FALSE(peers.Send(Heartbeat()));
  EXPECT_TRUE(peers.Send(AppendOf(1)));  // another channel, another queue
}

TEST_F(PeersTest, TheQueueIsBoundedInBytes) {
  carrier.room = 0;
  constexpr size_t kPart = kPeerQueueBytesMax / 4;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(peers.Send(AppendOf(kPart)));
  EXPECT_FALSE(peers.Send(AppendOf(1)));
  carrier.room = 1;
  peers.OnRoom(kPeer, PeerChannel::kAppend);
  EXPECT_TRUE(peers.Send(AppendOf(kPart)));
}

TEST_F(PeersTest, WhatWaitsDiesWithItsChannel) {
  carrier.room = 0;
  EXPECT_TRUE(peers.Send(Heartbeat()));
  Down(PeerChannel::kMessage);
  Up(PeerChannel::kMessage);
  carrier.room = 1;
  peers.OnRoom(kPeer, PeerChannel::kMessage);
  EXPECT_TRUE(carrier.sent.empty());
}

TEST_F(PeersTest, ActiveWhileTheMessageChannelIsUp) {
  EXPECT_EQ(peers.ActiveSince(kPeer), Instant{7});
  Down(PeerChannel::kAppend);
  EXPECT_EQ(peers.ActiveSince(kPeer), Instant{7});
  Down(PeerChannel::kMessage);
  EXPECT_EQ(peers.ActiveSince(kPeer), std::nullopt);
  EXPECT_EQ(peers.ActiveSince(MemberId(9)), std::nullopt);
}

}  // namespace
}  // namespace detcd::member
