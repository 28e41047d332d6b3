// raftpb by hand. A field of a known number but another wire type counts as unknown and is skipped, and the last of a
// repeated scalar wins: both as protobuf does.
#include <utility>

#include "core/base/codec.h"
#include "core/raft/message.h"

namespace detcd::raft {
namespace {

// raftpb.Entry.
constexpr uint32_t kEntryType = 1;
constexpr uint32_t kEntryTerm = 2;
constexpr uint32_t kEntryIndex = 3;
constexpr uint32_t kEntryData = 4;

// raftpb.HardState.
constexpr uint32_t kHardTerm = 1;
constexpr uint32_t kHardVote = 2;
constexpr uint32_t kHardCommit = 3;

// raftpb.Message.
constexpr uint32_t kType = 1;
constexpr uint32_t kTo = 2;
constexpr uint32_t kFrom = 3;
constexpr uint32_t kTerm = 4;
constexpr uint32_t kLogTerm = 5;
constexpr uint32_t kIndex = 6;
constexpr uint32_t kEntries = 7;
constexpr uint32_t kCommit = 8;
constexpr uint32_t kReject = 10;
constexpr uint32_t kRejectHint = 11;
constexpr uint32_t kContext = 12;

constexpr uint32_t kWireVarint = 0;
constexpr uint32_t kWireBytes = 2;

enum Type : uint64_t {
  kMsgProp = 2,
  kMsgApp = 3,
  kMsgAppResp = 4,
  kMsgVote = 5,
  kMsgVoteResp = 6,
  kMsgSnap = 7,
  kMsgHeartbeat = 8,
  kMsgHeartbeatResp = 9,
  kMsgTransferLeader = 13,
  kMsgTimeoutNow = 14,
  kMsgReadIndex = 15,
  kMsgReadIndexResp = 16,
  kMsgPreVote = 17,
  kMsgPreVoteResp = 18,
};

constexpr std::string_view kTransferContext = "CampaignTransfer";
constexpr size_t kReadContextSize = 8;

// The fields of raftpb.Message that any kind of ours uses.
struct Fields {
  uint64_t type = 0;
  uint64_t to = 0;
  uint64_t from = 0;
  uint64_t term = 0;
  uint64_t log_term = 0;
  uint64_t index = 0;
  uint64_t commit = 0;
  bool reject = false;
  uint64_t reject_hint = 0;
  std::string_view context;
  std::vector<Entry> entries;
};

// The part of `whole` that `part`, a view into it, covers.
Bytes Share(const Bytes& whole, std::string_view part) {
  if (part.empty()) return Bytes();
  return whole.Slice(static_cast<size_t>(part.data() - whole.data()), part.size());
}

// `encoded` is a view into `whole`.
std::optional<Entry> DecodeEntryIn(const Bytes& whole, std::string_view encoded) {
  Entry entry;
  uint64_t type = 0;
  std::string_view data;
  ProtoField field;
  ProtoFields fields(encoded);
  while (fields.Next(field)) {
    if (field.wire_type == kWireVarint) {
      if (field.number == kEntryType) type = field.varint;
      if (field.number == kEntryTerm) entry.term = Term(field.varint);
      if (field.number == kEntryIndex) entry.index = LogIndex(field.varint);
    } else if (field.wire_type == kWireBytes && field.number == kEntryData) {
      data = field.bytes;
    }
  }
  if (!fields.ok() || type > static_cast<uint64_t>(EntryType::kConfChangeV2)) return std::nullopt;
  entry.type = static_cast<EntryType>(type);
  entry.data = Share(whole, data);
  return entry;
}

// False: malformed.
bool ReadFields(const Bytes& encoded, Fields& out) {
  ProtoField field;
  ProtoFields fields(encoded.view());
  while (fields.Next(field)) {
    if (field.wire_type == kWireVarint) {
      switch (field.number) {
        case kType: out.type = field.varint; break;
        case kTo: out.to = field.varint; break;
        case kFrom: out.from = field.varint; break;
        case kTerm: out.term = field.varint; break;
        case kLogTerm: out.log_term = field.varint; break;
        case kIndex: out.index = field.varint; break;
        case kCommit: out.commit = field.varint; break;
        case kReject: out.reject = field.varint != 0; break;
        case kRejectHint: out.reject_hint = field.varint; break;
        default: break;
      }
    } else if (field.wire_type == kWireBytes) {
      if (field.number == kContext) out.context = field.bytes;
      if (field.number != kEntries) continue;
      std::optional<Entry> entry = DecodeEntryIn(encoded, field.bytes);
      if (!entry.has_value()) return false;
      out.entries.push_back(*std::move(entry));
    }
  }
  return fields.ok();
}

// nullopt: there is a context, and it is not a read's.
std::optional<ReadId> ReadIdOf(std::string_view context) {
  if (context.empty()) return ReadId();
  if (context.size() != kReadContextSize) return std::nullopt;
  return ReadId(ByteReader(context).BigEndian64());
}

// The read that an entry of MsgReadIndex and its answer names; nullopt: none does.
std::optional<ReadId> ReadIdOf(const std::vector<Entry>& entries) {
  if (entries.size() != 1 || entries[0].data.empty()) return std::nullopt;
  std::optional<ReadId> read = ReadIdOf(entries[0].data.view());
  return read.has_value() && read->IsZero() ? std::nullopt : read;
}

// Sets `body` from the fields of its kind, or tells why there is none.
std::optional<DecodeError> ReadBody(Fields& fields, Body& body) {
  const LogIndex index(fields.index);
  const Term log_term(fields.log_term);
  switch (fields.type) {
    case kMsgProp:
      body.emplace<Proposal>(Proposal{.entries = std::move(fields.entries)});
      return std::nullopt;
    case kMsgApp:
      body.emplace<Append>(Append{
          .prev_index = index,
          .prev_term = log_term,
          .entries = std::move(fields.entries),
          .commit = LogIndex(fields.commit)});
      return std::nullopt;
    case kMsgAppResp:
      body.emplace<AppendResponse>(AppendResponse{
          .index = index,
          .reject = fields.reject,
          .hint_index = LogIndex(fields.reject_hint),
          .hint_term = log_term});
      return std::nullopt;
    case kMsgVote:
    case kMsgPreVote:
      body.emplace<VoteRequest>(VoteRequest{
          .pre_vote = fields.type == kMsgPreVote,
          .last_index = index,
          .last_term = log_term,
          .transfer = fields.context == kTransferContext});
      return std::nullopt;
    case kMsgVoteResp:
    case kMsgPreVoteResp:
      body.emplace<VoteResponse>(VoteResponse{.pre_vote = fields.type == kMsgPreVoteResp, .reject = fields.reject});
      return std::nullopt;
    case kMsgHeartbeat:
    case kMsgHeartbeatResp: {
      const std::optional<ReadId> read = ReadIdOf(fields.context);
      if (!read.has_value()) return DecodeError::kMalformed;
      if (fields.type == kMsgHeartbeatResp) {
        body.emplace<HeartbeatResponse>(HeartbeatResponse{.read = *read, .round = RoundId(fields.index)});
      } else {
        body.emplace<Heartbeat>(
            Heartbeat{.commit = LogIndex(fields.commit), .read = *read, .round = RoundId(fields.index)});
      }
      return std::nullopt;
    }
    case kMsgReadIndex:
    case kMsgReadIndexResp: {
      const std::optional<ReadId> read = ReadIdOf(fields.entries);
      if (!read.has_value()) return DecodeError::kMalformed;
      if (fields.type == kMsgReadIndex) {
        body.emplace<ReadIndexRequest>(ReadIndexRequest{.read = *read});
      } else {
        body.emplace<ReadIndexResponse>(ReadIndexResponse{.read = *read, .index = index});
      }
      return std::nullopt;
    }
    case kMsgTransferLeader:
      body.emplace<TransferRequest>();
      return std::nullopt;
    case kMsgTimeoutNow:
      body.emplace<TimeoutNow>();
      return std::nullopt;
    case kMsgSnap:
      return DecodeError::kUnsupported;
    default:  // Local kinds, and numbers that no kind has.
      return DecodeError::kMalformed;
  }
}

// Writes the fields after type, to, from and term, in ascending numbers where etcd's reader does not care.
struct BodyWriter {
  ByteWriter& writer;
  std::string& out;

  void WriteEntry(const Entry& entry) const {
    writer.BytesFieldHead(kEntries, EncodedEntrySize(entry));
    EncodeEntry(entry, out);
  }
  // Type and data only.
  void WriteProposal(const Entry& entry) const {
    size_t size = entry.data.empty() ? 0 : BytesFieldSize(kEntryData, entry.data.size());
    const auto type = static_cast<uint64_t>(entry.type);
    if (type != 0) size += VarintFieldSize(kEntryType, type);
    writer.BytesFieldHead(kEntries, size);
    if (type != 0) writer.VarintField(kEntryType, type);
    if (!entry.data.empty()) writer.BytesField(kEntryData, entry.data.view());
  }
  void WriteReadEntry(ReadId read) const {
    writer.BytesFieldHead(kEntries, BytesFieldSize(kEntryData, kReadContextSize));
    writer.BytesFieldHead(kEntryData, kReadContextSize);
    writer.BigEndian64(read.value);
  }
  void WriteReadContext(ReadId read) const {
    if (read.IsZero()) return;
    writer.BytesFieldHead(kContext, kReadContextSize);
    writer.BigEndian64(read.value);
  }

  void operator()(const Proposal& m) const {
    for (const Entry& entry : m.entries) WriteProposal(entry);
  }
  void operator()(const Append& m) const {
    writer.VarintField(kLogTerm, m.prev_term.value);
    writer.VarintField(kIndex, m.prev_index.value);
    for (const Entry& entry : m.entries) WriteEntry(entry);
    writer.VarintField(kCommit, m.commit.value);
  }
  void operator()(const AppendResponse& m) const {
    if (m.reject) writer.VarintField(kLogTerm, m.hint_term.value);
    if (m.reject || !m.index.IsZero()) writer.VarintField(kIndex, m.index.value);
    if (!m.reject) return;
    writer.VarintField(kReject, 1);
    writer.VarintField(kRejectHint, m.hint_index.value);
  }
  void operator()(const VoteRequest& m) const {
    writer.VarintField(kLogTerm, m.last_term.value);
    writer.VarintField(kIndex, m.last_index.value);
    if (m.transfer) writer.BytesField(kContext, kTransferContext);
  }
  void operator()(const VoteResponse& m) const {
    if (m.reject) writer.VarintField(kReject, 1);
  }
  void WriteRound(RoundId round) const {
    if (!round.IsZero()) writer.VarintField(kIndex, round.value);
  }
  void operator()(const Heartbeat& m) const {
    WriteRound(m.round);
    writer.VarintField(kCommit, m.commit.value);
    WriteReadContext(m.read);
  }
  void operator()(const HeartbeatResponse& m) const {
    WriteRound(m.round);
    WriteReadContext(m.read);
  }
  void operator()(const ReadIndexRequest& m) const { WriteReadEntry(m.read); }
  void operator()(const ReadIndexResponse& m) const {
    writer.VarintField(kIndex, m.index.value);
    WriteReadEntry(m.read);
  }
  void operator()(const TransferRequest&) const {}
  void operator()(const TimeoutNow&) const {}
};

struct TypeOf {
  Type operator()(const Proposal&) const { return kMsgProp; }
  Type operator()(const Append&) const { return kMsgApp; }
  Type operator()(const AppendResponse&) const { return kMsgAppResp; }
  Type operator()(const VoteRequest& m) const { return m.pre_vote ? kMsgPreVote : kMsgVote; }
  Type operator()(const VoteResponse& m) const { return m.pre_vote ? kMsgPreVoteResp : kMsgVoteResp; }
  Type operator()(const Heartbeat&) const { return kMsgHeartbeat; }
  Type operator()(const HeartbeatResponse&) const { return kMsgHeartbeatResp; }
  Type operator()(const ReadIndexRequest&) const { return kMsgReadIndex; }
  Type operator()(const ReadIndexResponse&) const { return kMsgReadIndexResp; }
  Type operator()(const TransferRequest&) const { return kMsgTransferLeader; }
  Type operator()(const TimeoutNow&) const { return kMsgTimeoutNow; }
};

bool CarriesNoTerm(uint64_t type) { return type == kMsgProp || type == kMsgReadIndex; }

}  // namespace

size_t EncodedEntrySize(const Entry& entry) {
  const auto type = static_cast<uint64_t>(entry.type);
  size_t size = VarintFieldSize(kEntryTerm, entry.term.value) + VarintFieldSize(kEntryIndex, entry.index.value);
  if (type != 0) size += VarintFieldSize(kEntryType, type);
  if (!entry.data.empty()) size += BytesFieldSize(kEntryData, entry.data.size());
  return size;
}

void EncodeEntry(const Entry& entry, std::string& out) {
  ByteWriter writer(out);
  if (entry.type != EntryType::kNormal) writer.VarintField(kEntryType, static_cast<uint64_t>(entry.type));
  writer.VarintField(kEntryTerm, entry.term.value);
  writer.VarintField(kEntryIndex, entry.index.value);
  if (!entry.data.empty()) writer.BytesField(kEntryData, entry.data.view());
}

std::optional<Entry> DecodeEntry(const Bytes& encoded) { return DecodeEntryIn(encoded, encoded.view()); }

void EncodeHardState(const HardState& state, std::string& out) {
  ByteWriter writer(out);
  writer.VarintField(kHardTerm, state.term.value);
  writer.VarintField(kHardVote, state.vote.value);
  writer.VarintField(kHardCommit, state.commit.value);
}

std::optional<HardState> DecodeHardState(std::string_view encoded) {
  HardState state;
  ProtoField field;
  ProtoFields fields(encoded);
  while (fields.Next(field)) {
    if (field.wire_type != kWireVarint) continue;
    if (field.number == kHardTerm) state.term = Term(field.varint);
    if (field.number == kHardVote) state.vote = MemberId(field.varint);
    if (field.number == kHardCommit) state.commit = LogIndex(field.varint);
  }
  if (!fields.ok()) return std::nullopt;
  return state;
}

void EncodeMessage(const Message& message, std::string& out) {
  ByteWriter writer(out);
  const Type type = std::visit(TypeOf{}, message.body);
  writer.VarintField(kType, type);
  writer.VarintField(kTo, message.to.value);
  writer.VarintField(kFrom, message.from.value);
  if (!CarriesNoTerm(type)) writer.VarintField(kTerm, message.term.value);
  std::visit(BodyWriter{writer, out}, message.body);
}

std::variant<Message, DecodeError> DecodeMessage(const Bytes& encoded) {
  Fields fields;
  if (!ReadFields(encoded, fields)) return DecodeError::kMalformed;
  std::variant<Message, DecodeError> result;
  Message& message = std::get<Message>(result);
  if (std::optional<DecodeError> error = ReadBody(fields, message.body); error.has_value()) return *error;
  const bool no_term = CarriesNoTerm(fields.type);
  if (fields.to == 0 || fields.from == 0 || (!no_term && fields.term == 0)) return DecodeError::kMalformed;
  message.from = MemberId(fields.from);
  message.to = MemberId(fields.to);
  if (!no_term) message.term = Term(fields.term);
  return result;
}

}  // namespace detcd::raft
