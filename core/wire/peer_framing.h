// The frames of etcd's two peer streams (reference: peer protocol, section 5), without I/O.
//
//   message stream   8 bytes big-endian length, raftpb.Message
//   append stream    msgappv2: a type byte, then by type
//                      0  nothing: the link's heartbeat
//                      1  count, count x (length, raftpb.Entry), commit: an append whose place both ends know
//                      2  length, raftpb.Message: an append in full
//
// Both ends of an append stream keep a term and an index, from 0. An append is sent as type 1 when its term and its
// previous term are the kept term and its previous index is the kept index; after it the kept index has moved past its
// entries. After type 2 both are set from the message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/types.h"
#include "core/member/peer_carrier.h"
#include "core/raft/message.h"

namespace detcd::wire {

// What both ends of an append stream know without saying it.
struct AppendPlace {
  Term term;
  LogIndex index;
};

// Writes the frames of one stream; one encoder lives as long as its stream.
class PeerFrameEncoder {
 public:
  explicit PeerFrameEncoder(member::PeerChannel channel) : channel_(channel) {}

  // Appends one frame. The append stream takes Append messages only.
  void Encode(const raft::Message& message, std::string& out);
  // Appends the heartbeat of the link, which keeps the reader from giving the connection up.
  void EncodeLinkHeartbeat(std::string& out) const;

 private:
  void EncodeFull(const raft::Message& message, std::string& out) const;
  void EncodeEntries(const raft::Append& append, std::string& out) const;

  member::PeerChannel channel_;
  AppendPlace place_;
};

// Reads the frames of one stream, however its bytes are cut. It holds the bytes of one incomplete frame at most, and
// grows only as bytes arrive: a length or count that lies costs its sender as many bytes as us.
class PeerFrameDecoder {
 public:
  enum class Step : uint8_t {
    kNeedMore,       // all input was taken
    kMessage,        // `message` is set; the data of its entries shares one block
    kLinkHeartbeat,  // nothing but a sign of life
    kUnsupported,    // a well-formed message of a kind that we take no part in
    kMalformed,      // error() says why. Repeats for good: what follows cannot be trusted.
  };

  // `remote` sends, `local` receives: type 1 frames name neither.
  PeerFrameDecoder(member::PeerChannel channel, MemberId remote, MemberId local)
      : channel_(channel), remote_(remote), local_(local), phase_(FirstPhase()) {}

  // Takes bytes off the front of `input` up to the end of the next frame.
  Step Next(std::string_view& input, raft::Message& message);
  std::string_view error() const { return error_; }

 private:
  enum class Phase : uint8_t { kType, kCount, kEntryLength, kEntryBody, kCommit, kLength, kBody, kComplete };
  enum class FrameType : uint8_t { kHeartbeat = 0, kEntries = 1, kFull = 2 };

  Phase FirstPhase() const { return channel_ == member::PeerChannel::kAppend ? Phase::kType : Phase::kLength; }
  bool Scan(std::string_view frame);
  bool Advance(std::string_view frame);
  bool StartBody(std::string_view frame, Phase body);
  Step Finish(std::string_view frame, raft::Message& message);
  Step FinishFull(const Bytes& body, raft::Message& message);
  Step FinishEntries(const Bytes& frame, raft::Message& message);
  Step Malformed(std::string_view reason);
  void Reset();

  const member::PeerChannel channel_;
  const MemberId remote_;
  const MemberId local_;
  AppendPlace place_;
  std::string_view error_;  // a literal

  // The frame being gathered. `phase_` is about the bytes [position_, needed_) of it.
  std::string gathered_;
  Phase phase_;
  FrameType type_ = FrameType::kFull;
  uint64_t position_ = 0;
  uint64_t needed_ = 0;
  uint64_t entries_left_ = 0;
};

}  // namespace detcd::wire
