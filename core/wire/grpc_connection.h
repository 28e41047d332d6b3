// One client's gRPC connection: HTTP/2 streams on one side, calls of the call interface on the other. Used by
// GrpcServer only, which numbers connections and finds them for the services.
//
// Life of a call: kHeaders while its headers come; kOpen once the service heard Open; kEnded when its status is
// submitted or it never was a call (an early answer). The stream closes later, when the last frame has left, and takes
// the call with it. Every way out of kOpen that the service did not choose (reset, deadline, loss of the connection, a
// broken message) tells it Cancel exactly once.
//
// Flow: responses wait in their call (at most kCallSendBacklogMax and one message), leave it as the client's windows
// allow, and wait again as frames for room in the stream (at most kConnectionWriteBacklogMax and one frame). Above that
// nothing is framed and nothing is read.
//
// A client that breaks the rules of Http2Guard is expelled: GOAWAY, nothing more of its bytes is looked at, and the
// connection is cut when that is sent, or after kHttp2ExpelTimeout. One that says nothing at all is cut, too: without
// preface and SETTINGS after kHttp2HandshakeTimeout; later it is pinged after keepalive_interval of silence, and has
// keepalive_timeout to send anything.
#pragma once

#include <google/protobuf/arena.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/btree_set.h"
#include "core/base/limits.h"
#include "core/io/clock.h"
#include "core/io/streams.h"
#include "core/rpc/call.h"
#include "core/wire/grpc_format.h"
#include "core/wire/grpc_options.h"
#include "core/wire/gzip.h"
#include "core/wire/http2_guard.h"
#include "core/wire/http2_session.h"
#include "core/wire/request_head.h"
#include "core/wire/stream_writer.h"

namespace detcd::wire {

class GrpcConnection;

// What the connections of one server share.
struct GrpcShared {
  GrpcShared(Clock& the_clock, rpc::CallService& the_service, rpc::CallTransport& the_transport,
             const GrpcOptions& the_options);

  Clock& clock;
  rpc::CallService& service;
  rpc::CallTransport& transport;
  const GrpcOptions options;             // zeros replaced by what they mean
  std::unique_ptr<char[]> arena_block;   // the first block of `arena`, kept by every Reset
  google::protobuf::Arena arena;         // one request at a time
  std::string frames;                    // one Drain at a time
  Gzip gzip;
  std::string inflated;  // one request at a time
  size_t held = 0;       // the sum of held() of all connections
};

// The server, as its connections see it.
class GrpcConnectionOwner {
 public:
  // `connection` has work for the end of this turn.
  virtual void OnDirty(GrpcConnection& connection) = 0;
  // Calls that were told not to write may do so again, or more waits than one turn could take: have GiveCredit called in
  // an event of its own.
  virtual void OnCreditDue(GrpcConnection& connection) = 0;
  // `connection` is over: destroy it. Its calls are canceled already.
  virtual void OnOver(GrpcConnection& connection) = 0;

 protected:
  ~GrpcConnectionOwner() = default;
};

class GrpcConnection final : private StreamListener, private Http2Listener, private TimerListener {
 public:
  GrpcConnection(GrpcShared& shared, GrpcConnectionOwner& owner, uint32_t number, std::unique_ptr<Stream> stream);
  ~GrpcConnection();

  uint32_t number() const { return number_; }
  // Bytes of memory that this client makes the server keep, as of its latest turn.
  size_t held() const { return held_; }

  // The calls of CallTransport, for stream `id`; ignored when it has no open call.
  void Send(int32_t id, const google::protobuf::Message& response);
  void SendEncoded(int32_t id, std::vector<Bytes> pieces);
  bool Writable(int32_t id);
  void Finish(int32_t id, const rpc::CallStatus& status);

  // Frames and writes what the turn made. False: the connection is over and must be destroyed.
  [[nodiscard]] bool EndTurn();
  void GiveCredit();
  // Takes no more calls; over when those under way are done.
  void Shutdown();
  // Cuts the connection without a word: its calls are canceled, and it is destroyed.
  void Cut();

  // Set by the owner: waits for the end of the turn, for GiveCredit.
  bool dirty = false;
  bool credit_posted = false;

 private:
  enum class Phase : uint8_t { kHeaders, kOpen, kEnded };

  struct Call final : Http2Stream {
    Phase phase = Phase::kHeaders;
    bool headers_sent = false;
    bool starved = false;        // in starved_: told that it may not write
    bool half_closed = false;    // the service knows
    bool got_message = false;
    bool bad_trailers = false;   // reset, no answer
    bool deadline_placed = false;  // in deadlines_
    size_t counted = 0;          // of the reader's bytes, in received_
    size_t head_counted = 0;     // in heads_
    RequestHead head;
    rpc::CallStatus status;      // for the trailers
    MessageReader reader;
    Call* previous = nullptr;    // the list of the connection's calls, by stream id
    Call* next = nullptr;
  };

  // StreamListener
  void OnConnected() override {}
  void OnData(std::string_view bytes) override;
  void OnReadEnd() override;
  void OnWritable() override;
  void OnClosed(IoError error) override;
  // TimerListener
  void OnTimer(uint64_t token) override;
  // Http2Listener
  Http2Stream* OnStreamBegin(int32_t id) override;
  void OnHeader(Http2Stream& stream, std::string_view name, std::string_view value) override;
  void OnHeadersEnd(Http2Stream& stream, bool first) override;
  void OnBody(Http2Stream& stream, std::string_view bytes) override;
  void OnRemoteEnd(Http2Stream& stream) override;
  void OnStreamClosed(Http2Stream& stream, Http2Error error) override;
  void OnBodyFramed(Http2Stream& stream) override;
  void OnBodySent(Http2Stream& stream, size_t size) override;
  void OnHeadersSent(Http2Stream& stream, bool ends) override;
  void OnResetForced() override;
  void OnOverhead(Http2Overhead kind) override;
  void OnPing(bool ack) override;
  void OnGoAway(Http2Error error, std::string_view debug) override;

  rpc::CallId IdOf(const Call& call) const { return uint64_t{number_} << 32 | static_cast<uint32_t>(call.id); }
  Call* FindOpen(int32_t id) const;
  Call* NewCall();
  void FreeCall(Call& call);
  void MarkDirty();

  void OpenCall(Call& call);
  bool OnRequest(Call& call, std::string_view payload);
  // Turns a gzip payload into plain bytes in `shared_.inflated`. False: it could not, and the call is aborted.
  bool Inflate(Call& call, std::string_view& payload);
  // Answers without ever having been a call.
  void Refuse(Call& call, HeadRefusal refusal);
  // Ends an open call for a reason of ours: the service hears Cancel, the client `status`.
  void Abort(Call& call, rpc::CallStatus status);
  void SubmitEnd(Call& call, std::string_view http_status, rpc::CallStatus status);
  void CancelAll();

  void AddDeadline(Call& call);
  void PlaceDeadlines();
  void DropDeadline(Call& call);
  bool MaySend(Call& call, size_t size);
  void OnQueued(Call& call);
  bool Starving(const Call& call) const;
  void CheckCredit();
  // GOAWAY with ENHANCE_YOUR_CALM and `debug`, when there is any, after which the connection hears nothing.
  void Expel(std::string_view debug);
  void OnDeadline();
  void OnWatch();
  void CountHeld();
  size_t WriteBacklog() const { return writer_.backlog() + queued_; }

  GrpcShared& shared_;
  GrpcConnectionOwner& owner_;
  const uint32_t number_;
  Http2Session session_;
  std::unique_ptr<Stream> stream_;
  StreamWriter writer_;
  std::unique_ptr<Timer> timer_;                          // made with the first deadline
  std::optional<Instant> armed_;                          // what timer_ waits for
  std::vector<int32_t> deadlines_new_;                    // calls of this turn; most end before they need a place
  absl::btree_set<std::pair<int64_t, int32_t>> deadlines_;  // of all other open calls: instant, stream
  Call* first_ = nullptr;                                 // all calls, by stream id
  Call* last_ = nullptr;
  std::vector<std::unique_ptr<Call>> free_;               // calls for reuse
  std::vector<int32_t> starved_;                          // calls to be told Credit
  size_t call_count_ = 0;
  size_t queued_ = 0;                                     // response bytes that wait in calls
  size_t received_ = 0;                                   // bytes of unfinished requests
  size_t heads_ = 0;                                      // bytes of the heads of all calls
  size_t held_ = 0;                                       // in shared_.held
  Http2Guard guard_;
  std::unique_ptr<Timer> watch_;      // of the handshake, silence, the end of one who is expelled
  Instant last_read_;                 // or the start
  bool greeted_ = false;              // the client's SETTINGS came
  std::optional<Instant> pinged_at_;  // our keep-alive, and nothing was read since
  bool reading_paused_ = false;
  bool shutting_down_ = false;
  bool last_goaway_sent_ = false;
  bool expelled_ = false;                                 // cut when all is sent
  bool broken_ = false;                                   // cut now
};

}  // namespace detcd::wire
