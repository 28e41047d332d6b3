#include "core/wire/peer_framing.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "core/base/check.h"
#include "core/base/codec.h"
#include "core/base/limits.h"

namespace detcd::wire {
namespace {

using member::PeerChannel;

constexpr size_t kLengthBytes = 8;
constexpr size_t kKeptBufferBytesMax = 1'048'576;  // a larger gathering buffer is given back after its frame

// etcd's heartbeat of the message stream: a MsgHeartbeat from nobody to nobody.
constexpr std::string_view kMessageLinkHeartbeat("\0\0\0\0\0\0\0\x02\x08\x08", 10);
constexpr size_t kLinkHeartbeatBytesMax = 64;
constexpr uint32_t kFieldType = 1;
constexpr uint32_t kFieldTo = 2;
constexpr uint32_t kFieldFrom = 3;
constexpr uint64_t kTypeHeartbeat = 8;

// Older releases write absent numbers as zeros, so the fields are looked at and not the bytes.
bool IsLinkHeartbeat(std::string_view body) {
  if (body.size() > kLinkHeartbeatBytesMax) return false;
  uint64_t type = 0;
  uint64_t ids = 0;
  ProtoField field;
  ProtoFields fields(body);
  while (fields.Next(field)) {
    if (field.number == kFieldType) type = field.varint;
    if (field.number == kFieldTo || field.number == kFieldFrom) ids |= field.varint;
  }
  return fields.ok() && type == kTypeHeartbeat && ids == 0;
}

uint64_t BigEndianAt(std::string_view frame, uint64_t position) {
  return ByteReader(frame.substr(position, kLengthBytes)).BigEndian64();
}

// The place after an append that was sent in full.
AppendPlace PlaceAfterFull(Term term, const raft::Append& append) {
  return {.term = term, .index = append.entries.empty() ? append.prev_index : append.entries.back().index};
}

}  // namespace

// --- encoder --------------------------------------------------------------------------------------------------------

void PeerFrameEncoder::EncodeLinkHeartbeat(std::string& out) const {
  if (channel_ == PeerChannel::kMessage) {
    out.append(kMessageLinkHeartbeat);
  } else {
    out.push_back('\0');
  }
}

void PeerFrameEncoder::Encode(const raft::Message& message, std::string& out) {
  if (channel_ == PeerChannel::kMessage) return EncodeFull(message, out);

  const auto* append = std::get_if<raft::Append>(&message.body);
  CHECK(append != nullptr);
  const bool is_known = append->prev_index == place_.index && append->prev_term == place_.term &&
                        append->prev_term == message.term;
  if (is_known) {
    out.push_back('\1');
    EncodeEntries(*append, out);
    place_.index = place_.index + append->entries.size();
  } else {
    out.push_back('\2');
    EncodeFull(message, out);
    place_ = PlaceAfterFull(message.term, *append);
  }
}

void PeerFrameEncoder::EncodeFull(const raft::Message& message, std::string& out) const {
  const size_t start = out.size();
  out.append(kLengthBytes, '\0');
  raft::EncodeMessage(message, out);
  std::string length;
  ByteWriter(length).BigEndian64(out.size() - start - kLengthBytes);
  out.replace(start, kLengthBytes, length);
}

void PeerFrameEncoder::EncodeEntries(const raft::Append& append, std::string& out) const {
  ByteWriter writer(out);
  writer.BigEndian64(append.entries.size());
  for (const raft::Entry& entry : append.entries) {
    writer.BigEndian64(raft::EncodedEntrySize(entry));
    raft::EncodeEntry(entry, out);
  }
  writer.BigEndian64(append.commit.value);
}

// --- decoder --------------------------------------------------------------------------------------------------------

PeerFrameDecoder::Step PeerFrameDecoder::Malformed(std::string_view reason) {
  error_ = reason;
  gathered_ = {};
  return Step::kMalformed;
}

void PeerFrameDecoder::Reset() {
  if (gathered_.capacity() > kKeptBufferBytesMax) gathered_ = {};
  gathered_.clear();
  phase_ = FirstPhase();
  position_ = 0;
  needed_ = 0;
}

// The phase of what has a length before it: [position_, needed_) becomes the body behind the length at position_.
bool PeerFrameDecoder::StartBody(std::string_view frame, Phase body) {
  const uint64_t length = BigEndianAt(frame, position_);
  position_ += kLengthBytes;
  // position_ stays below the limit plus one length, so the difference cannot wrap.
  if (position_ > kPeerMessageBytesMax || length > kPeerMessageBytesMax - position_) {
    error_ = "frame is over the limit";
    return false;
  }
  phase_ = body;
  needed_ = position_ + length;
  return true;
}

// Goes one phase on, whose bytes are all there. False: malformed.
bool PeerFrameDecoder::Advance(std::string_view frame) {
  const auto next = [this](Phase phase, uint64_t size) {
    phase_ = phase;
    needed_ = position_ + size;
    return true;
  };
  const auto next_entry = [&] {
    return entries_left_ > 0 ? next(Phase::kEntryLength, kLengthBytes) : next(Phase::kCommit, kLengthBytes);
  };
  switch (phase_) {
    case Phase::kType: {
      const auto type = static_cast<uint8_t>(frame[0]);
      if (type > static_cast<uint8_t>(FrameType::kFull)) {
        error_ = "unknown frame type";
        return false;
      }
      type_ = static_cast<FrameType>(type);
      position_ = 1;
      if (type_ == FrameType::kHeartbeat) return next(Phase::kComplete, 0);
      return next(type_ == FrameType::kEntries ? Phase::kCount : Phase::kLength, kLengthBytes);
    }
    case Phase::kCount:
      entries_left_ = BigEndianAt(frame, position_);
      position_ += kLengthBytes;
      // Each entry takes its length at least.
      if (entries_left_ > kPeerMessageBytesMax / kLengthBytes) {
        error_ = "entry count is over the limit";
        return false;
      }
      return next_entry();
    case Phase::kEntryLength:
      --entries_left_;
      return StartBody(frame, Phase::kEntryBody);
    case Phase::kEntryBody:
      position_ = needed_;
      return next_entry();
    case Phase::kLength:
      return StartBody(frame, Phase::kBody);
    case Phase::kCommit:
    case Phase::kBody:
      return next(Phase::kComplete, needed_ - position_);
    case Phase::kComplete:
      break;
  }
  return true;
}

// Goes on as far as the bytes of `frame` reach. False: malformed.
bool PeerFrameDecoder::Scan(std::string_view frame) {
  if (needed_ == 0) needed_ = channel_ == PeerChannel::kAppend ? 1 : kLengthBytes;
  while (phase_ != Phase::kComplete && frame.size() >= needed_) {
    if (!Advance(frame)) return false;
  }
  return true;
}

PeerFrameDecoder::Step PeerFrameDecoder::Next(std::string_view& input, raft::Message& message) {
  if (!error_.empty()) return Step::kMalformed;
  while (true) {
    if (input.empty()) return Step::kNeedMore;
    // A frame that lies whole in the input is decoded from there: its bytes are copied once.
    if (gathered_.empty()) {
      if (!Scan(input)) return Malformed(error_);
      if (phase_ == Phase::kComplete) {
        const std::string_view frame = input.substr(0, needed_);
        input.remove_prefix(needed_);
        return Finish(frame, message);
      }
      gathered_.append(input);
      input = {};
      return Step::kNeedMore;
    }
    const size_t taken = std::min<uint64_t>(needed_ - gathered_.size(), input.size());
    gathered_.append(input.substr(0, taken));
    input.remove_prefix(taken);
    if (!Scan(gathered_)) return Malformed(error_);
    if (phase_ == Phase::kComplete) return Finish(gathered_, message);
  }
}

PeerFrameDecoder::Step PeerFrameDecoder::Finish(std::string_view frame, raft::Message& message) {
  const bool is_append_stream = channel_ == PeerChannel::kAppend;
  Step step = Step::kLinkHeartbeat;
  if (is_append_stream && type_ == FrameType::kEntries) {
    step = FinishEntries(Bytes::Copy(frame), message);
  } else if (!is_append_stream || type_ == FrameType::kFull) {
    const std::string_view body = frame.substr(kLengthBytes + (is_append_stream ? 1 : 0));
    if (is_append_stream || !IsLinkHeartbeat(body)) step = FinishFull(Bytes::Copy(body), message);
  }
  if (step != Step::kMalformed) Reset();
  return step;
}

PeerFrameDecoder::Step PeerFrameDecoder::FinishFull(const Bytes& body, raft::Message& message) {
  std::variant<raft::Message, raft::DecodeError> decoded = raft::DecodeMessage(body);
  if (const auto* error = std::get_if<raft::DecodeError>(&decoded)) {
    if (*error == raft::DecodeError::kMalformed) return Malformed("not a raft message");
    // The kept place would be unknown after it, and only appends belong here.
    if (channel_ == PeerChannel::kAppend) return Malformed("another kind than MsgApp on the append stream");
    return Step::kUnsupported;
  }
  message = std::get<raft::Message>(std::move(decoded));
  if (channel_ == PeerChannel::kAppend) {
    const auto* append = std::get_if<raft::Append>(&message.body);
    if (append == nullptr) return Malformed("another kind than MsgApp on the append stream");
    place_ = PlaceAfterFull(message.term, *append);
  }
  return Step::kMessage;
}

PeerFrameDecoder::Step PeerFrameDecoder::FinishEntries(const Bytes& frame, raft::Message& message) {
  if (place_.term.IsZero()) return Malformed("append without a place as the first frame");
  raft::Append append{.prev_index = place_.index, .prev_term = place_.term};
  ByteReader reader(frame.view());
  reader.Byte();
  const uint64_t count = reader.BigEndian64();
  append.entries.reserve(count);  // bounded by the bytes that arrived: each entry took eight at least
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t length = reader.BigEndian64();
    const size_t position = reader.position();
    reader.Raw(length);
    std::optional<raft::Entry> entry = raft::DecodeEntry(frame.Slice(position, length));
    if (!entry) return Malformed("not a raft entry");
    // With both ends of the append in the kept term, every entry between is of that term (Raft §5.3).
    if (entry->index != place_.index + 1 + i || entry->term != place_.term) {
      return Malformed("entry is not at its place");
    }
    append.entries.push_back(*std::move(entry));
  }
  append.commit = LogIndex(reader.BigEndian64());
  CHECK(reader.ok() && reader.AtEnd());  // Scan walked the same lengths
  place_.index = place_.index + count;
  message = {.from = remote_, .to = local_, .term = place_.term, .body = std::move(append)};
  return Step::kMessage;
}

}  // namespace detcd::wire
