// The hand-written codec against the generated one.
#include "core/proto/raft.pb.h"
#include "core/raft/message.h"

namespace detcd::raft {
namespace {

uint64_t AnyNumber() { return *rc::gen::weightedOneOf<uint64_t>({{1, rc::gen::just(uint64_t{0})},
                                                                {3, rc::gen::inRange<uint64_t>(1, 300)},
                                                                {2, rc::gen::arbitrary<uint64_t>()}}); }

uint64_t NotZero() { return std::max<uint64_t>(1, AnyNumber()); }

bool AnyBool() { return *rc::gen::arbitrary<bool>(); }

Entry AnyEntry(bool proposal) {
  Entry entry;
  if (!proposal) entry.term = Term(AnyNumber());
  if (!proposal) entry.index = LogIndex(AnyNumber());
  entry.type = static_cast<EntryType>(*rc::gen::inRange(0, 3));
  entry.data = Bytes::Copy(*rc::gen::arbitrary<std::string>());
  return entry;
}

std::vector<Entry> AnyEntries(bool proposal) {
  std::vector<Entry> entries(*rc::gen::inRange<size_t>(0, 4));
  for (Entry& entry : entries) entry = AnyEntry(proposal);
  return entries;
}

Message AnyMessage() {
  Message m{.from = MemberId(NotZero()), .to = MemberId(NotZero()), .term = Term(NotZero())};
  switch (*rc::gen::inRange(0, 11)) {
    case 0: m.body = Proposal{.entries = AnyEntries(true)}; break;
    case 1: m.body = Append{LogIndex(AnyNumber()), Term(AnyNumber()), AnyEntries(false), LogIndex(AnyNumber())}; break;
    case 2:
      m.body = AppendResponse{.index = LogIndex(AnyNumber())};
      if (AnyBool()) m.body = AppendResponse{LogIndex(AnyNumber()), true, LogIndex(AnyNumber()), Term(AnyNumber())};
      break;
    case 3: m.body = VoteRequest{AnyBool(), LogIndex(AnyNumber()), Term(AnyNumber()), AnyBool()}; break;
    case 4: m.body = VoteResponse{AnyBool(), AnyBool()}; break;
    case 5: m.body = Heartbeat{LogIndex(AnyNumber()), ReadId(AnyNumber()), RoundId(AnyNumber())}; break;
    case 6: m.body = HeartbeatResponse{ReadId(AnyNumber()), RoundId(AnyNumber())}; break;
    case 7: m.body = ReadIndexRequest{ReadId(NotZero())}; break;
    case 8: m.body = TransferRequest{}; break;
    case 9: m.body = TimeoutNow{}; break;
    default: m.body = ReadIndexResponse{ReadId(NotZero()), LogIndex(AnyNumber())}; break;
  }
  if (std::holds_alternative<Proposal>(m.body) || std::holds_alternative<ReadIndexRequest>(m.body)) m.term = Term();
  return m;
}

std::string Encode(const Message& message) {
  std::string out;
  EncodeMessage(message, out);
  return out;
}

raftpb::Message Parse(const std::string& bytes) {
  raftpb::Message parsed;
  EXPECT_TRUE(parsed.ParseFromString(bytes));
  return parsed;
}

RC_GTEST_PROP(MessageCodecTest, MessagesRoundTrip, ()) {
  const Message message = AnyMessage();
  const auto decoded = DecodeMessage(Bytes::Copy(Encode(message)));
  RC_ASSERT(std::holds_alternative<Message>(decoded));
  RC_ASSERT(std::get<Message>(decoded) == message);
}

// Bytes that protobuf wrote from what it read of ours mean the same to us, and nothing of ours is unknown to it.
RC_GTEST_PROP(MessageCodecTest, ProtobufReadsAndWritesTheSameMessage, ()) {
  const Message message = AnyMessage();
  const raftpb::Message parsed = Parse(Encode(message));
  RC_ASSERT(parsed.unknown_fields().empty());
  RC_ASSERT(raftpb::MessageType_Name(parsed.type()) == KindName(message));
  RC_ASSERT(parsed.to() == message.to.value && parsed.from() == message.from.value);
  RC_ASSERT(parsed.has_term() != message.term.IsZero());
  const auto decoded = DecodeMessage(Bytes::Copy(parsed.SerializeAsString()));
  RC_ASSERT(std::holds_alternative<Message>(decoded));
  RC_ASSERT(std::get<Message>(decoded) == message);
}

RC_GTEST_PROP(MessageCodecTest, EntriesAreWrittenAsProtobufWouldAndRoundTrip, ()) {
  const Entry entry = AnyEntry(false);
  std::string out;
  EncodeEntry(entry, out);
  RC_ASSERT(out.size() == EncodedEntrySize(entry));
  raftpb::Entry twin;
  twin.set_term(entry.term.value);
  twin.set_index(entry.index.value);
  if (entry.type != EntryType::kNormal) twin.set_type(static_cast<raftpb::EntryType>(entry.type));
  if (!entry.data.empty()) twin.set_data(std::string(entry.data.view()));
  RC_ASSERT(out == twin.SerializeAsString());
  RC_ASSERT(DecodeEntry(Bytes::Copy(out)) == entry);
}

RC_GTEST_PROP(MessageCodecTest, HardStatesHaveAllFieldsAndRoundTrip, ()) {
  const HardState state{Term(AnyNumber()), MemberId(AnyNumber()), LogIndex(AnyNumber())};
  std::string out;
  EncodeHardState(state, out);
  raftpb::HardState twin;
  RC_ASSERT(twin.ParseFromString(out) && twin.has_term() && twin.has_vote() && twin.has_commit());
  RC_ASSERT(out == twin.SerializeAsString());
  RC_ASSERT(DecodeHardState(out) == state);
}

RC_GTEST_PROP(MessageCodecTest, AnyBytesDecodeWithoutHarm, (std::string bytes)) {
  DecodeMessage(Bytes::Copy(bytes));
  DecodeEntry(Bytes::Copy(bytes));
  DecodeHardState(bytes);
}

// Damage is either noticed, or is some message; never more than what protobuf makes of it.
RC_GTEST_PROP(MessageCodecTest, ADamagedMessageDecodesWithoutHarm, ()) {
  std::string bytes = Encode(AnyMessage());
  bytes[*rc::gen::inRange<size_t>(0, bytes.size())] ^= static_cast<char>(*rc::gen::inRange(1, 256));
  if (AnyBool()) bytes.resize(*rc::gen::inRange<size_t>(0, bytes.size()));
  const auto decoded = DecodeMessage(Bytes::Copy(bytes));
  raftpb::Message parsed;
  if (std::holds_alternative<Message>(decoded)) RC_ASSERT(parsed.ParseFromString(bytes));
}

TEST(MessageCodecTest, AppendHasItsNumbersAlsoWhenZero) {
  const raftpb::Message m = Parse(Encode({.from = MemberId(1), .to = MemberId(2), .term = Term(3), .body = Append{}}));
  EXPECT_TRUE(m.has_logterm() && m.has_index() && m.has_commit());
  EXPECT_FALSE(m.has_reject() || m.has_rejecthint() || m.has_context() || m.has_vote() || m.has_snapshot());
}

TEST(MessageCodecTest, ARefusedAppendNamesItsHintAlsoWhenZero) {
  const Message refusal{MemberId(1), MemberId(2), Term(3), AppendResponse{.reject = true}};
  const raftpb::Message m = Parse(Encode(refusal));
  EXPECT_TRUE(m.reject() && m.has_rejecthint() && m.has_logterm() && m.has_index());
}

TEST(MessageCodecTest, AHeartbeatHasItsCommitAlsoWhenZeroAndAContextOnlyForReads) {
  const Message plain{.from = MemberId(1), .to = MemberId(2), .term = Term(3), .body = Heartbeat{}};
  EXPECT_TRUE(Parse(Encode(plain)).has_commit());
  EXPECT_FALSE(Parse(Encode(plain)).has_context());
  const Message read{.from = MemberId(1), .to = MemberId(2), .term = Term(3), .body = Heartbeat{.read = ReadId(258)}};
  EXPECT_EQ(Parse(Encode(read)).context(), std::string("\0\0\0\0\0\0\1\2", 8));
}

TEST(MessageCodecTest, ARoundIsAnIndexAndAbsentWhenThereIsNone) {
  for (const Body& without : {Body(Heartbeat{}), Body(HeartbeatResponse{})}) {
    EXPECT_FALSE(Parse(Encode({.from = MemberId(1), .to = MemberId(2), .term = Term(3), .body = without})).has_index());
  }
  for (const Body& with : {Body(Heartbeat{.round = RoundId(7)}), Body(HeartbeatResponse{.round = RoundId(7)})}) {
    EXPECT_EQ(Parse(Encode({.from = MemberId(1), .to = MemberId(2), .term = Term(3), .body = with})).index(), 7u);
  }
}

TEST(MessageCodecTest, ProposalsAndReadsCarryDataOnly) {
  const Message read{.from = MemberId(1), .to = MemberId(2), .body = ReadIndexRequest{.read = ReadId(7)}};
  const raftpb::Message m = Parse(Encode(read));
  EXPECT_FALSE(m.has_term());
  ASSERT_EQ(m.entries_size(), 1);
  EXPECT_FALSE(m.entries(0).has_term() || m.entries(0).has_index() || m.entries(0).has_type());
  EXPECT_EQ(m.entries(0).data().size(), 8u);
}

TEST(MessageCodecTest, TheVoteOfATransferCarriesEtcdsText) {
  const Message vote{.from = MemberId(1), .to = MemberId(2), .term = Term(3), .body = VoteRequest{.transfer = true}};
  EXPECT_EQ(Parse(Encode(vote)).context(), "CampaignTransfer");
}

DecodeError ErrorOf(const raftpb::Message& message) {
  const auto decoded = DecodeMessage(Bytes::Copy(message.SerializeAsString()));
  return std::holds_alternative<DecodeError>(decoded) ? std::get<DecodeError>(decoded) : static_cast<DecodeError>(99);
}

TEST(MessageCodecTest, KindsOutsideThisReleaseAreUnsupportedAndLocalOnesMalformed) {
  for (int type = 0; type <= 23; ++type) {
    raftpb::Message m;
    m.set_type(static_cast<raftpb::MessageType>(type));
    m.set_to(1), m.set_from(2), m.set_term(3);
    const bool unsupported = type == raftpb::MsgSnap;
    const bool known = type >= 2 && type <= 18 && !unsupported && type != raftpb::MsgUnreachable &&
                       type != raftpb::MsgSnapStatus && type != raftpb::MsgCheckQuorum;
    // A read without its id means nothing.
    const bool read = type == raftpb::MsgReadIndex || type == raftpb::MsgReadIndexResp;
    const auto want = unsupported ? DecodeError::kUnsupported : DecodeError::kMalformed;
    const auto decoded = static_cast<DecodeError>(99);
    EXPECT_EQ(ErrorOf(m), known && !read ? decoded : want) << type;
  }
}

TEST(MessageCodecTest, AMessageWithoutSenderReceiverOrTermIsMalformed) {
  raftpb::Message whole;
  whole.set_type(raftpb::MsgHeartbeat);
  whole.set_to(1), whole.set_from(2), whole.set_term(3);
  raftpb::Message m = whole;
  m.clear_to();
  EXPECT_EQ(ErrorOf(m), DecodeError::kMalformed);
  m = whole;
  m.clear_from();
  EXPECT_EQ(ErrorOf(m), DecodeError::kMalformed);
  m = whole;
  m.clear_term();
  EXPECT_EQ(ErrorOf(m), DecodeError::kMalformed);
  m = whole;
  m.set_context("1234567");
  EXPECT_EQ(ErrorOf(m), DecodeError::kMalformed);
}

TEST(MessageCodecTest, UnknownFieldsAreSkipped) {
  const Message message{.from = MemberId(1), .to = MemberId(2), .term = Term(3), .body = HeartbeatResponse{}};
  // Field 99 as bytes, field 13 (vote) as etcd knows it, and field 5 with another wire type.
  const std::string bytes = Encode(message) + "\x9a\x06\x02hi" + "\x68\x05" + "\x2a\x01z";
  const auto decoded = DecodeMessage(Bytes::Copy(bytes));
  ASSERT_TRUE(std::holds_alternative<Message>(decoded));
  EXPECT_EQ(std::get<Message>(decoded), message);
}

TEST(MessageCodecTest, EntryDataSharesTheBytesOfTheMessage) {
  std::vector<Entry> entries(1);
  entries[0].data = Bytes::Copy("payload");
  const Bytes bytes = Bytes::Copy(
      Encode({.from = MemberId(1), .to = MemberId(2), .body = Proposal{.entries = std::move(entries)}}));
  const Message decoded = std::get<Message>(DecodeMessage(bytes));
  const Bytes& data = std::get<Proposal>(decoded.body).entries[0].data;
  EXPECT_TRUE(data.data() > bytes.data() && data.data() < bytes.data() + bytes.size());
}

}  // namespace
}  // namespace detcd::raft
