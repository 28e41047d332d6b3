// The cut between a member and its peers. Above it: which channel a message takes, and the bounded queue before that
// channel (peers.h). Below it: etcd's streams over sockets (core/wire/peer_port.h), or the simulator's direct delivery.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/types.h"
#include "core/raft/message.h"

namespace detcd::member {

// etcd keeps two streams in each direction of a pair (reference/peer.md 4). While neither is up, a message can be posted as
// a request of its own (6).
enum class PeerChannel : uint8_t {
  kAppend,   // Append messages only, so that heartbeats and votes never wait behind entries
  kMessage,  // everything else, and appends while the append stream is down
};
inline constexpr size_t kPeerChannelCount = 2;

// Whom to talk to, and where.
struct PeerRow {
  MemberId id;
  std::vector<std::string> urls;  // peer URLs; the first is tried first, the next after an error
};

// Hears a carrier. Each call is (part of) an event of its own.
class PeerCarrierListener {
 public:
  // A message that a peer sent us: `from` is who its stream belongs to and `to` is us.
  virtual void OnPeerMessage(raft::Message message) = 0;
  // A channel to `peer` came up, has room again after Send refused, or went down (what it had taken may be lost).
  virtual void OnChannelUp(MemberId peer, PeerChannel channel) = 0;
  virtual void OnChannelRoom(MemberId peer, PeerChannel channel) = 0;
  virtual void OnChannelDown(MemberId peer, PeerChannel channel) = 0;
  // Posted messages were lost.
  virtual void OnPostFailed(MemberId peer) = 0;
  // The answer to AskVersion: the version of the peer's server, `3.7.3`; empty where it could not be had.
  virtual void OnPeerVersion(MemberId peer, std::string version) = 0;

 protected:
  ~PeerCarrierListener() = default;
};

class PeerCarrier {
 public:
  virtual ~PeerCarrier() = default;

  // Begins: from now on `listener` hears messages, and channels to `peers` are brought up and kept up.
  virtual void Start(PeerCarrierListener& listener, const std::vector<PeerRow>& peers) = 0;
  virtual bool IsUp(MemberId peer, PeerChannel channel) const = 0;
  // Takes the message for the channel, or not: false when it is down or has no room. What is taken leaves at the end of
  // the turn, in order within the channel; it may still be lost, never altered.
  virtual bool Send(MemberId peer, PeerChannel channel, const raft::Message& message) = 0;
  // Sends a message on its own, for a peer to which no stream is up. False: too many wait already, it was not taken. What
  // is taken may be lost, and OnPostFailed may tell.
  virtual bool Post(MemberId peer, const raft::Message& message) = 0;
  // Asks for the version of the peer's server. At most one answer follows for all that ask until it comes; none where it
  // is lost on the way, so that the asker has a time limit of its own.
  virtual void AskVersion(MemberId peer) = 0;
  // The end of a turn: one write per connection.
  virtual void EndTurn() = 0;
};

}  // namespace detcd::member
