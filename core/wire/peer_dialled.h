// One incoming stream, which we open and keep open: dial, handshake, frames; after any trouble again, with the next
// address or URL of the peer (reference: peer protocol, sections 3, 4 and 9).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/time.h"
#include "core/io/clock.h"
#include "core/io/streams.h"
#include "core/io/trace.h"
#include "core/wire/peer_framing.h"
#include "core/wire/peer_handshake.h"
#include "core/wire/peer_http.h"
#include "core/wire/peer_output.h"
#include "core/wire/peer_target.h"

namespace detcd::wire {

class DialledPeer final : public StreamListener {
 public:
  // Where the stream belongs. Any of these may be called from inside any call of the stream but its constructor.
  class Owner {
   public:
    // `message` is from the peer and for us.
    virtual void OnStreamMessage(raft::Message message) = 0;
    // Asks for the addresses of a name; the answer comes to OnResolved of this stream, with the token returned here.
    virtual uint64_t Resolve(DialledPeer& stream, const std::string& host, uint16_t port) = 0;
    // There is something to write at the end of the turn, or a new deadline.
    virtual void OnDirty(DialledPeer& stream) = 0;

   protected:
    ~Owner() = default;
  };

  // What streams share; all of it outlives them.
  struct Context {
    const PeerIdentity& self;
    PeerInfo& info;
    Network& network;
    Clock& clock;
    Trace& trace;
    Owner& owner;
    Duration dial_timeout;  // for resolving and connecting
  };

  // `urls` is not empty. Nothing happens before Start.
  DialledPeer(const Context& context, MemberId peer, member::PeerChannel channel, std::vector<Url> urls);

  void Start() { Dial(); }

  void OnResolved(uint64_t token, IoError error, std::vector<Address> addresses);
  // The end of a turn: the one write.
  void Flush();
  // When OnDeadline is to be called next: a time-out or the next dial.
  Instant Deadline() const;
  void OnDeadline(Instant now);

  void OnConnected() override;
  void OnData(std::string_view bytes) override;
  void OnReadEnd() override { Fail("ended by the peer"); }
  void OnWritable() override { context_.owner.OnDirty(*this); }
  void OnClosed(IoError error) override { Fail(IoErrorName(error)); }

 private:
  enum class State : uint8_t {
    kWaiting,     // until next_dial_
    kResolving,   // for resolve_token_
    kConnecting,  // until OnConnected
    kAsking,      // request written, answer's head awaited
    kStreaming,   // frames
  };

  void Dial();
  void ConnectTo(const Address& address);
  bool ReadAnswer(std::string_view& input);
  void ReadFrames(std::string_view content);
  void Fail(std::string_view reason);

  const Context context_;
  const MemberId peer_;
  const member::PeerChannel channel_;
  PeerTarget target_;

  State state_ = State::kWaiting;
  Instant next_dial_;
  Instant dialled_at_;
  uint64_t resolve_token_ = 0;
  bool failed_before_ = false;  // since the stream was up last: the same trouble is told once aloud

  std::unique_ptr<Stream> stream_;  // from kConnecting on
  PeerOutput output_;
  Instant last_read_;
  HttpHeadReader head_reader_;
  std::optional<HttpBodyReader> body_reader_;
  std::optional<PeerFrameDecoder> decoder_;
};

}  // namespace detcd::wire
