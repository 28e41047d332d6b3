#include "core/wire/peer_framing.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/base/codec.h"
#include "core/base/limits.h"

namespace detcd::wire {
namespace {

using member::PeerChannel;
using Step = PeerFrameDecoder::Step;

constexpr MemberId kLeader(0x11);
constexpr MemberId kFollower(0x22);

raft::Entry EntryAt(uint64_t term, uint64_t index, std::string_view data) {
  return {.term = Term(term), .index = LogIndex(index), .data = Bytes::Copy(data)};
}

raft::Message AppendOf(uint64_t term, uint64_t prev_term, uint64_t prev_index, std::vector<raft::Entry> entries,
                       uint64_t commit = 0) {
  return {.from = kLeader,
          .to = kFollower,
          .term = Term(term),
          .body = raft::Append{.prev_index = LogIndex(prev_index),
                               .prev_term = Term(prev_term),
                               .entries = std::move(entries),
                               .commit = LogIndex(commit)}};
}

raft::Message HeartbeatOf(uint64_t term) {
  return {.from = kLeader, .to = kFollower, .term = Term(term), .body = raft::Heartbeat{.commit = LogIndex(7)}};
}

std::string BigEndian(uint64_t v) {
  std::string out;
  ByteWriter(out).BigEndian64(v);
  return out;
}

// What a decoder makes of bytes that arrive in the given pieces; stops at the first malformed frame.
struct Decoded {
  std::vector<raft::Message> messages;
  size_t heartbeats = 0;
  std::string error;
};
Decoded DecodeIn(PeerChannel channel, std::string_view bytes, const std::vector<size_t>& cuts = {}) {
  PeerFrameDecoder decoder(channel, kLeader, kFollower);
  Decoded result;
  size_t cut = 0;
  while (!bytes.empty()) {
    const size_t size = cut < cuts.size() ? std::min(cuts[cut++] + 1, bytes.size()) : bytes.size();
    std::string_view piece = bytes.substr(0, size);
    bytes.remove_prefix(size);
    for (bool more = true; more;) {
      raft::Message message;
      switch (decoder.Next(piece, message)) {
        case Step::kNeedMore: more = false; break;
        case Step::kMessage: result.messages.push_back(message); break;
        case Step::kLinkHeartbeat: ++result.heartbeats; break;
        case Step::kUnsupported: break;
        case Step::kMalformed: result.error = decoder.error(); return result;
      }
    }
  }
  return result;
}

TEST(PeerFramingTest, LinkHeartbeatOfTheMessageStreamIsTenBytes) {
  std::string out;
  PeerFrameEncoder(PeerChannel::kMessage).EncodeLinkHeartbeat(out);
  EXPECT_EQ(out, std::string("\0\0\0\0\0\0\0\x02\x08\x08", 10));
  EXPECT_EQ(DecodeIn(PeerChannel::kMessage, out).heartbeats, 1u);
}

TEST(PeerFramingTest, LinkHeartbeatOfAnOlderReleaseWritesItsZeros) {
  const std::string body("\x08\x08\x10\0\x18\0\x20\0", 8);
  EXPECT_EQ(DecodeIn(PeerChannel::kMessage, BigEndian(body.size()) + body).heartbeats, 1u);
}

TEST(PeerFramingTest, LinkHeartbeatOfTheAppendStreamIsAZero) {
  std::string out;
  PeerFrameEncoder(PeerChannel::kAppend).EncodeLinkHeartbeat(out);
  EXPECT_EQ(out, std::string(1, '\0'));
  EXPECT_EQ(DecodeIn(PeerChannel::kAppend, out + out).heartbeats, 2u);
}

TEST(PeerFramingTest, RaftHeartbeatIsNoLinkHeartbeat) {
  std::string out;
  PeerFrameEncoder(PeerChannel::kMessage).Encode(HeartbeatOf(3), out);
  const Decoded decoded = DecodeIn(PeerChannel::kMessage, out);
  EXPECT_EQ(decoded.heartbeats, 0u);
  EXPECT_EQ(decoded.messages, std::vector{HeartbeatOf(3)});
}

TEST(PeerFramingTest, FirstAppendIsSentInFullAndTheNextByPlace) {
  PeerFrameEncoder encoder(PeerChannel::kAppend);
  std::string first;
  encoder.Encode(AppendOf(2, 1, 4, {EntryAt(2, 5, "a")}), first);
  EXPECT_EQ(first[0], '\2');
  const raft::Entry entry = EntryAt(2, 6, "b");
  std::string second;
  encoder.Encode(AppendOf(2, 2, 5, {entry}, 5), second);
  std::string encoded;
  raft::EncodeEntry(entry, encoded);
  EXPECT_EQ(second, "\1" + BigEndian(1) + BigEndian(encoded.size()) + encoded + BigEndian(5));
  std::string third;  // brings a new commit only
  encoder.Encode(AppendOf(2, 2, 6, {}, 6), third);
  EXPECT_EQ(third, "\1" + BigEndian(0) + BigEndian(6));
  EXPECT_EQ(DecodeIn(PeerChannel::kAppend, first + second + third).messages,
            (std::vector{AppendOf(2, 1, 4, {EntryAt(2, 5, "a")}), AppendOf(2, 2, 5, {entry}, 5), AppendOf(2, 2, 6, {}, 6)}));
}

TEST(PeerFramingTest, AppendFromElsewhereIsSentInFull) {
  PeerFrameEncoder encoder(PeerChannel::kAppend);
  std::string out;
  encoder.Encode(AppendOf(2, 2, 4, {}), out);
  for (const auto& message : {AppendOf(2, 2, 3, {}), AppendOf(2, 1, 3, {}), AppendOf(3, 2, 3, {}), AppendOf(3, 3, 9, {})}) {
    std::string frame;
    encoder.Encode(message, frame);
    EXPECT_EQ(frame[0], '\2');
  }
}

TEST(PeerFramingTest, EntriesOfAMessageShareOneBlock) {
  PeerFrameEncoder encoder(PeerChannel::kAppend);
  std::string out;
  encoder.Encode(AppendOf(2, 2, 4, {}), out);
  encoder.Encode(AppendOf(2, 2, 4, {EntryAt(2, 5, "first"), EntryAt(2, 6, "second")}), out);
  const Decoded decoded = DecodeIn(PeerChannel::kAppend, out);
  const auto& entries = std::get<raft::Append>(decoded.messages.at(1).body).entries;
  EXPECT_GT(entries[1].data.data(), entries[0].data.data());
  EXPECT_LT(entries[1].data.data() - entries[0].data.data(), 64);
}

TEST(PeerFramingTest, DamagedFramesAreNamed) {
  std::string full;
  PeerFrameEncoder encoder(PeerChannel::kAppend);
  encoder.Encode(AppendOf(2, 2, 4, {}), full);
  std::string wrong_index;
  raft::EncodeEntry(EntryAt(2, 6, "x"), wrong_index);
  std::string heartbeat;
  PeerFrameEncoder(PeerChannel::kMessage).Encode(HeartbeatOf(1), heartbeat);
  struct Row {
    PeerChannel channel;
    std::string bytes;
    std::string error;
  };
  const std::vector<Row> rows = {
      {PeerChannel::kAppend, "\3", "unknown frame type"},
      {PeerChannel::kAppend, "\1" + BigEndian(0) + BigEndian(0), "append without a place as the first frame"},
      {PeerChannel::kAppend, "\1" + BigEndian(~uint64_t{0}), "entry count is over the limit"},
      {PeerChannel::kAppend, "\1" + BigEndian(1) + BigEndian(~uint64_t{0}), "frame is over the limit"},
      {PeerChannel::kAppend, "\2" + BigEndian(kPeerMessageBytesMax), "frame is over the limit"},
      {PeerChannel::kAppend, "\2" + BigEndian(3) + "abc", "not a raft message"},
      {PeerChannel::kAppend, "\2" + heartbeat, "another kind than MsgApp on the append stream"},
      {PeerChannel::kAppend, full + "\1" + BigEndian(1) + BigEndian(wrong_index.size()) + wrong_index + BigEndian(0),
       "entry is not at its place"},
      {PeerChannel::kAppend, full + "\1" + BigEndian(1) + BigEndian(1) + "\xff" + BigEndian(0), "not a raft entry"},
      {PeerChannel::kMessage, BigEndian(kPeerMessageBytesMax + 1), "frame is over the limit"},
      {PeerChannel::kMessage, BigEndian(0), "not a raft message"},
  };
  for (const Row& row : rows) EXPECT_EQ(DecodeIn(row.channel, row.bytes).error, row.error) << row.error;
}

RC_GTEST_PROP(PeerFramingProperty, AnySegmentationGivesTheSameFrames, (const std::vector<uint8_t>& plan)) {
  const auto channel = *rc::gen::element(PeerChannel::kAppend, PeerChannel::kMessage);
  PeerFrameEncoder encoder(channel);
  std::string bytes;
  std::vector<raft::Message> messages;
  size_t heartbeats = 0;
  uint64_t term = 1;
  uint64_t last = 0;
  for (const uint8_t choice : plan) {
    if (choice % 8 == 0) {
      encoder.EncodeLinkHeartbeat(bytes);
      ++heartbeats;
      continue;
    }
    const uint64_t prev_term = term;
    if (choice % 8 == 1) ++term;
    std::vector<raft::Entry> entries;
    for (uint64_t i = 0; i < choice / 64; ++i) entries.push_back(EntryAt(term, last + 1 + i, std::string(choice, 'v')));
    messages.push_back(AppendOf(term, prev_term, last, entries, last));
    last += entries.size();
    encoder.Encode(messages.back(), bytes);
  }
  const Decoded decoded = DecodeIn(channel, bytes, *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, 40)));
  RC_ASSERT(decoded.error.empty());
  RC_ASSERT(decoded.heartbeats == heartbeats);
  RC_ASSERT(decoded.messages == messages);
}

RC_GTEST_PROP(PeerFramingProperty, AnyBytesDoNoHarm, (const std::string& noise)) {
  std::string bytes;
  const auto channel = *rc::gen::element(PeerChannel::kAppend, PeerChannel::kMessage);
  PeerFrameEncoder encoder(channel);
  encoder.Encode(AppendOf(2, 2, 4, {EntryAt(2, 5, "a")}), bytes);
  encoder.Encode(AppendOf(2, 2, 5, {EntryAt(2, 6, "bc")}), bytes);
  if (!noise.empty()) bytes[*rc::gen::inRange<size_t>(0, bytes.size())] = noise[0];
  bytes += noise;
  const Decoded whole = DecodeIn(channel, bytes);
  const Decoded pieces = DecodeIn(channel, bytes, std::vector<size_t>(bytes.size(), 0));
  RC_ASSERT(whole.messages == pieces.messages);
  RC_ASSERT(whole.error == pieces.error);
}

}  // namespace
}  // namespace detcd::wire
