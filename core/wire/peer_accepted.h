// One connection that somebody opened to our peer port: HTTP/1.1 requests one after another, until one of them turns it
// into an outgoing stream (the receiver of messages opens the connection; reference: peer protocol, section 4).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/base/limits.h"
#include "core/base/time.h"
#include "core/io/clock.h"
#include "core/io/streams.h"
#include "core/io/trace.h"
#include "core/raft/message.h"
#include "core/wire/peer_framing.h"
#include "core/wire/peer_handshake.h"
#include "core/wire/peer_http.h"
#include "core/wire/peer_output.h"

namespace detcd::wire {

class AcceptedPeer final : public StreamListener {
 public:
  // Where the connection belongs. Any of these may be called from inside any call of the connection but its
  // constructor; none of them destroys it at once.
  class Owner {
   public:
    virtual bool IsPeer(MemberId id) const = 0;
    // The connection is from now on the outgoing stream of the grant.
    virtual void OnStreamOpened(AcceptedPeer& connection, StreamGrant grant) = 0;
    // A posted message for us, from a member that was not removed. False: we do not listen yet.
    virtual bool OnPosted(raft::Message message) = 0;
    // There is something to write at the end of the turn, or a new deadline.
    virtual void OnDirty(AcceptedPeer& connection) = 0;
    // A Send was refused, and now there is room.
    virtual void OnRoom(AcceptedPeer& connection) = 0;
    // The connection is gone; it is to be destroyed at the end of the turn.
    virtual void OnGone(AcceptedPeer& connection) = 0;

   protected:
    ~Owner() = default;
  };

  // What connections share; all of it outlives them.
  struct Context {
    const PeerIdentity& self;
    PeerInfo& info;
    Clock& clock;
    Trace& trace;
    Owner& owner;
  };

  AcceptedPeer(const Context& context, uint64_t id, std::unique_ptr<Stream> stream);

  uint64_t id() const { return id_; }
  const std::optional<StreamGrant>& grant() const { return grant_; }
  bool is_gone() const { return stream_ == nullptr; }

  // Encodes for the end of the turn. False: no room, and OnRoom will come. On an outgoing stream only.
  bool Send(const raft::Message& message);
  // Whether Send would take a message.
  bool HasRoom() const { return pending_.size() + output_.bytes() < kPeerStreamBufferBytesMax; }
  // The end of a turn: the one write.
  void Flush();

  // When OnDeadline is to be called next: a time-out or a link heartbeat.
  Instant Deadline() const;
  void OnDeadline(Instant now);
  // Cuts the connection.
  void Close(std::string_view reason);

  void OnConnected() override {}
  void OnData(std::string_view bytes) override;
  void OnReadEnd() override;
  void OnWritable() override { MarkDirty(); }
  void OnClosed(IoError error) override;

 private:
  enum class State : uint8_t {
    kHead,       // waiting for or inside a request's head
    kBody,       // inside its body
    kStreaming,  // an outgoing stream
    kClosing,    // the last answer leaves, then the connection ends
  };

  bool ReadHead(std::string_view& input);
  bool ReadBody(std::string_view& input);
  void OnRequest();
  void OnStreamRequest();
  HttpAnswer AnswerPlain(std::string_view path);
  void OnPost();
  void Answer(const HttpAnswer& answer);
  void AnswerAndClose(const HttpAnswer& answer);
  void CutInsideAnswer(std::string_view text);
  void Queue(Bytes piece);
  void MarkDirty();
  void Gone(std::string_view reason);

  const Context context_;
  const uint64_t id_;
  std::unique_ptr<Stream> stream_;  // null when gone
  State state_ = State::kHead;
  bool is_dirty_ = false;

  HttpHeadReader head_reader_;
  HttpRequestHead head_;
  std::optional<HttpBodyReader> body_reader_;
  std::string body_;  // of a posted message; other bodies are skipped
  Instant last_read_;

  std::optional<StreamGrant> grant_;  // set when streaming
  std::optional<PeerFrameEncoder> encoder_;
  std::string pending_;  // frames of this turn
  PeerOutput output_;
  bool wants_room_ = false;
  Instant last_progress_;    // of a write, or when there was first something to write
  Instant next_heartbeat_;
};

}  // namespace detcd::wire
