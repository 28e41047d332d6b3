// Requests of our own to one peer's port, one after another on a connection that is kept: probes, questions for its
// version, and messages while no stream carries them (the pipeline; reference: peer protocol, sections 1, 6 and 9).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/time.h"
#include "core/io/clock.h"
#include "core/io/streams.h"
#include "core/io/trace.h"
#include "core/raft/message.h"
#include "core/wire/peer_handshake.h"
#include "core/wire/peer_http.h"
#include "core/wire/peer_output.h"
#include "core/wire/peer_target.h"

namespace detcd::wire {

// A failed attempt fails all that waits: every request here is asked again by whoever needs it, sooner than a queue that
// outlives the trouble would help.
class PeerClient final : public StreamListener {
 public:
  // Where the client belongs. Any of these may be called from inside any call of the client but its constructor.
  class Owner {
   public:
    // The version of the peer's server; empty: it could not be had.
    virtual void OnVersion(MemberId peer, std::string version) = 0;
    // Messages that were posted are lost.
    virtual void OnPostFailed(MemberId peer) = 0;
    // Asks for the addresses of a name; the answer comes to OnResolved of this client, with the token returned here.
    virtual uint64_t Resolve(PeerClient& client, const std::string& host, uint16_t port) = 0;
    // There is something to write at the end of the turn, or a new deadline.
    virtual void OnDirty(PeerClient& client) = 0;

   protected:
    ~Owner() = default;
  };

  // What clients share; all of it outlives them.
  struct Context {
    const PeerIdentity& self;
    Network& network;
    Clock& clock;
    Trace& trace;
    Owner& owner;
    Duration dial_timeout;  // for resolving and connecting
  };

  PeerClient(const Context& context, MemberId peer, std::vector<Url> urls);

  // Begins to probe.
  void Start();
  // One answer for all that ask until it comes.
  void AskVersion();
  // False: too much waits already.
  bool Post(const raft::Message& message);

  void OnResolved(uint64_t token, IoError error, std::vector<Address> addresses);
  // The end of a turn: the one write.
  void Flush();
  // When OnDeadline is to be called next: a time-out, the next dial or the next probe.
  Instant Deadline() const;
  void OnDeadline(Instant now);

  void OnConnected() override;
  void OnData(std::string_view bytes) override;
  void OnReadEnd() override { Lost("ended by the peer"); }
  void OnWritable() override { context_.owner.OnDirty(*this); }
  void OnClosed(IoError error) override { Lost(IoErrorName(error)); }

 private:
  enum class Kind : uint8_t { kProbe, kVersion, kPost };
  struct Request {
    Kind kind;
    std::string message;  // of a post
  };
  enum class State : uint8_t {
    kApart,       // no connection; dials again at next_dial_ when something waits
    kResolving,   // for resolve_token_
    kConnecting,  // until OnConnected
    kIdle,        // connected, nothing asked
    kAsking,      // the first request of waiting_ is written, its answer awaited
  };

  bool Waits(Kind kind) const;
  void Enqueue(Request request);
  void Go();
  void Dial();
  void Ask();
  bool ReadHead(std::string_view& input);
  void Finish();
  void Lost(std::string_view reason);
  void Fail(std::string_view reason);
  void Disconnect();

  const Context context_;
  const MemberId peer_;
  PeerTarget target_;

  std::deque<Request> waiting_;  // at most one probe and one question for the version
  size_t posts_ = 0;             // of waiting_, and their bytes
  size_t post_bytes_ = 0;
  Instant next_probe_;
  bool healthy_ = true;          // as of the last probe: the same trouble is told once

  State state_ = State::kApart;
  Instant next_dial_;
  Instant since_;                // of the dial, or of the request
  uint64_t resolve_token_ = 0;
  std::unique_ptr<Stream> stream_;  // from kConnecting on
  PeerOutput output_;
  HttpHeadReader head_reader_;
  HttpResponseHead head_;
  std::optional<HttpBodyReader> body_reader_;  // set once the head is read
  std::string body_;
};

}  // namespace detcd::wire
