// Raft's entries and messages as plain structs that share payload bytes: one struct per kind, in a common envelope.
// The form on the wire and on disk is etcd's raftpb (reference/peer.md, sections 13 and 20; reference/disk.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/types.h"

namespace detcd::raft {

enum class EntryType : uint8_t { kNormal = 0, kConfChange = 1, kConfChangeV2 = 2 };

// One entry of the replicated log. `data` is an encoded InternalRaftRequest, an encoded ConfChange, or empty (a new
// leader's first entry).
struct Entry {
  Term term;
  LogIndex index;
  EntryType type = EntryType::kNormal;
  Bytes data;

  friend bool operator==(const Entry&, const Entry&) = default;
};

// What a member must not forget (Raft, figure 2). `commit` is kept as a hint only: it may be older than the truth.
struct HardState {
  Term term;
  MemberId vote;  // 0: none in `term`
  LogIndex commit;

  friend bool operator==(const HardState&, const HardState&) = default;
};

// Names one round of reads; unique among the members (its top bits come from the member's id). 0 is no read.
using ReadId = Strong<struct ReadIdTag>;

// Names a round of heartbeats: the reading of its leader's clock, in nanoseconds, from before it was sent. Nothing but a
// number to whoever acknowledges it. 0 is no round.
using RoundId = Strong<struct RoundIdTag>;

// A follower's proposals, forwarded to the leader. Carries no term.
struct Proposal {
  std::vector<Entry> entries;  // type and data only
  friend bool operator==(const Proposal&, const Proposal&) = default;
};
struct Append {
  LogIndex prev_index;
  Term prev_term;
  std::vector<Entry> entries;  // prev_index + 1 and on
  LogIndex commit;             // the leader's; at most its last index
  friend bool operator==(const Append&, const Append&) = default;
};
// Accepted: `index` is the last entry known to match. Rejected: `index` is the prev_index refused, `hint_index` and
// `hint_term` the follower's newest entry at or below it whose term is not above the one asked for.
struct AppendResponse {
  LogIndex index;
  bool reject = false;
  LogIndex hint_index;
  Term hint_term;
  friend bool operator==(const AppendResponse&, const AppendResponse&) = default;
};
// The envelope's term is the term asked for: with pre_vote the sender's own plus one.
struct VoteRequest {
  bool pre_vote = false;
  LogIndex last_index;
  Term last_term;
  bool transfer = false;  // a leadership transfer: leader stickiness does not apply
  friend bool operator==(const VoteRequest&, const VoteRequest&) = default;
};
// Granted: the envelope's term is the term asked for. Refused: the refuser's own.
struct VoteResponse {
  bool pre_vote = false;
  bool reject = false;
  friend bool operator==(const VoteResponse&, const VoteResponse&) = default;
};
// In both, `round` is carried as raftpb's Index, which etcd neither sets nor reads in these messages: its members neither
// see a round nor seem to acknowledge one.
struct Heartbeat {
  LogIndex commit;  // min(match index of the receiver, commit index)
  ReadId read;      // the newest read round waiting for this confirmation; 0: none
  RoundId round;    // the leader asks for the promise of leader_lease.h; 0: it does not
  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};
struct HeartbeatResponse {
  ReadId read;
  RoundId round;    // as asked: we made the promise; 0: we made none
  friend bool operator==(const HeartbeatResponse&, const HeartbeatResponse&) = default;
};
// A follower asks the leader for a read index. Carries no term.
struct ReadIndexRequest {
  ReadId read;
  friend bool operator==(const ReadIndexRequest&, const ReadIndexRequest&) = default;
};
struct ReadIndexResponse {
  ReadId read;
  LogIndex index;
  friend bool operator==(const ReadIndexResponse&, const ReadIndexResponse&) = default;
};

// Asks the leader to hand its leadership to `from` of the envelope, which is the target and not who sent it: etcd's form.
// Ours never sends one (only the leader itself takes such a request from a client), but obeys it.
struct TransferRequest {
  friend bool operator==(const TransferRequest&, const TransferRequest&) = default;
};
// The leader tells the target of a transfer, whose log is as its own, to campaign at once.
struct TimeoutNow {
  friend bool operator==(const TimeoutNow&, const TimeoutNow&) = default;
};

using Body = std::variant<Proposal, Append, AppendResponse, VoteRequest, VoteResponse, Heartbeat, HeartbeatResponse,
                          ReadIndexRequest, ReadIndexResponse, TransferRequest, TimeoutNow>;

struct Message {
  MemberId from;
  MemberId to;
  Term term;  // 0 for Proposal and ReadIndexRequest
  Body body;

  friend bool operator==(const Message&, const Message&) = default;
};

// The kind in etcd's words (`MsgApp`), for log lines and traces.
std::string_view KindName(const Message& message);

// --- wire and disk forms (raftpb, hand-written: hot path) -----------------------------------------------------------

// Appends the raftpb.Entry of `entry`: Term and Index always, Type and Data only when not zero (reference/disk.md 4).
void EncodeEntry(const Entry& entry, std::string& out);
size_t EncodedEntrySize(const Entry& entry);
// Reads a raftpb.Entry; `data` of the result shares `encoded`. nullopt: malformed, or a type that does not exist.
std::optional<Entry> DecodeEntry(const Bytes& encoded);

void EncodeHardState(const HardState& state, std::string& out);
std::optional<HardState> DecodeHardState(std::string_view encoded);

// Appends the raftpb.Message of `message`, with the fields that etcd sets (reference/peer.md 13).
void EncodeMessage(const Message& message, std::string& out);

enum class DecodeError : uint8_t {
  kMalformed,     // not a raftpb.Message, or a field without which the kind means nothing is missing or wrong
  kUnsupported,   // a well-formed message of a kind this release does not take part in: to be dropped and named
};
// Entry data of the result shares `encoded`. Messages that never cross the network (MsgHup, ...) are kMalformed.
std::variant<Message, DecodeError> DecodeMessage(const Bytes& encoded);

}  // namespace detcd::raft
