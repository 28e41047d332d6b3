// HTTP/2 (RFC 9113) without I/O: bytes in, bytes out, events to one listener. The only file pair that knows nghttp2;
// its C callbacks end here.
//
// nghttp2's own check of header fields is off, because it refuses what gRPC clients of etcd send (an :authority such as
// `#initially=[x]`); who listens checks what it needs. Frames, streams, flow control and HPACK are checked as ever.
//
// The SETTINGS that we send are MAX_FRAME_SIZE, as etcd's, and INITIAL_WINDOW_SIZE, which etcd does not send: with the
// default of 64 KiB a large put waits for window updates. A larger window only permits; no client depends on a small
// one. MAX_CONCURRENT_STREAMS only when it is asked for: clients queue silently behind one.
//
//   Http2Session session(Http2Session::Side::kServer, listener);
//   if (!session.Receive(bytes)) close;
//   session.Drain(out, limit);  // once a turn
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/wire/http2_guard.h"

struct nghttp2_session;

namespace detcd::wire {

// Error codes of RFC 9113 §7 that we send or tell apart.
enum class Http2Error : uint32_t {
  kNoError = 0,
  kProtocolError = 1,
  kInternalError = 2,
  kRefusedStream = 7,
  kCancel = 8,
  kEnhanceYourCalm = 11,
};

// A header field to send.
struct Http2Header {
  std::string_view name;   // lasts as long as the program
  std::string_view value;
  bool lasting = false;    // the value does too: it is not copied
};

// One stream: the base of what a listener keeps for it. Lives until OnStreamClosed or the end of the session.
struct Http2Stream {
  int32_t id = 0;
  std::string outgoing;       // body bytes; [framed, size) are not yet in a frame
  size_t framed = 0;
  std::vector<Bytes> pieces;  // what follows `outgoing`, which does not grow any more; those before `piece` are gone
  size_t piece = 0;
  size_t piece_framed = 0;    // bytes of that one which are in a frame
  size_t pieces_bytes = 0;    // not yet in a frame, of all
  bool body_ended = false;    // nothing more is appended
  bool body_waits = false;    // the session found nothing to frame and waits for BodyGrew
  bool remote_ended = false;  // the peer sent END_STREAM

  size_t unframed() const { return outgoing.size() - framed + pieces_bytes; }
  // The rest of a long body, which is not copied.
  void SetPieces(std::vector<Bytes> rest);
  // Moves the next `size` bytes of the body to `out`.
  void TakeBody(size_t size, std::string& out);

 protected:
  ~Http2Stream() = default;
};

// Hears a session, from inside Receive (what the peer did) and Drain (what left). It may call the session's other
// methods from within, but not these two, and must not destroy the session.
class Http2Listener {
 public:
  // Server: the peer opens stream `id`. The answer is kept for it; null refuses the stream.
  virtual Http2Stream* OnStreamBegin(int32_t id) = 0;
  // One field of the header block that is being received; views are good until the call returns.
  virtual void OnHeader(Http2Stream& stream, std::string_view name, std::string_view value) = 0;
  // A header block is complete; `first` tells request or response headers from trailers (and interim responses).
  virtual void OnHeadersEnd(Http2Stream& stream, bool first) = 0;
  virtual void OnBody(Http2Stream& stream, std::string_view bytes) = 0;
  // END_STREAM, after the headers or the body that had it.
  virtual void OnRemoteEnd(Http2Stream& stream) = 0;
  // The stream is gone, by itself or by a reset of either side; `stream` is not touched again.
  virtual void OnStreamClosed(Http2Stream& stream, Http2Error error) = 0;
  // Server: the last of the body is being framed; the time for SubmitTrailers.
  virtual void OnBodyFramed(Http2Stream& stream) = 0;
  // `size` bytes of a body left for the buffer of Drain.
  virtual void OnBodySent(Http2Stream& stream, size_t size) = 0;
  // A HEADERS frame left; `ends` when it has END_STREAM.
  virtual void OnHeadersSent(Http2Stream& stream, bool ends) = 0;
  // A stream was reset: by the peer, or by us because the peer broke the protocol on it.
  virtual void OnResetForced() = 0;
  // A frame begins that carries nothing of a call.
  virtual void OnOverhead(Http2Overhead kind) = 0;
  virtual void OnPing(bool ack) = 0;
  virtual void OnGoAway(Http2Error error, std::string_view debug) = 0;

 protected:
  ~Http2Listener() = default;
};

class Http2Session {
 public:
  enum class Side : uint8_t { kServer, kClient };

  // Queues our SETTINGS (and the client's preface). Server: a client that has read them and opens more than
  // `streams_max` streams at once has broken the protocol.
  Http2Session(Side side, Http2Listener& listener, uint32_t streams_max = std::numeric_limits<uint32_t>::max());
  ~Http2Session();
  Http2Session(const Http2Session&) = delete;
  Http2Session& operator=(const Http2Session&) = delete;

  // Takes what came from the peer. False: not HTTP/2, or a flood; the connection must be cut. An error that the
  // protocol can express leaves a GOAWAY for Drain, after which Finished says so.
  [[nodiscard]] bool Receive(std::string_view bytes);

  // Appends frames to `out` until nothing may be sent or `out` has `limit` bytes (one frame more at most).
  // False: the session is broken; the connection must be cut.
  [[nodiscard]] bool Drain(std::string& out, size_t limit);

  // A GOAWAY ended it, and all is sent.
  bool Finished() const;

  // The listener's stream `id`; null when there is none (never was, closed, refused).
  Http2Stream* Find(int32_t id) const;

  // Client: opens a stream with a body, which comes from `stream.outgoing`. False: no more stream ids, or the peer said
  // GOAWAY: a new connection is needed.
  bool SubmitRequest(std::span<const Http2Header> headers, Http2Stream& stream);

  // Server: the response's headers; with `ends` no body and no trailers follow.
  void SubmitResponse(Http2Stream& stream, std::span<const Http2Header> headers, bool ends);
  void SubmitTrailers(Http2Stream& stream, std::span<const Http2Header> headers);

  // After `outgoing` grew or `body_ended` was set.
  void BodyGrew(Http2Stream& stream);

  // RST_STREAM. The stream closes when the frame leaves.
  void Reset(int32_t id, Http2Error error);

  void Ping();
  // First part of a graceful end (RFC 9113 §6.8): the peer is asked to open no more streams; those under way count.
  void SubmitShutdownNotice();
  // GOAWAY with the last stream that we took. With an error the caller cuts the connection once all is sent.
  void SubmitGoAway(Http2Error error, std::string_view debug);

 private:
  struct Callbacks;  // nghttp2's, in the .cc

  Http2Listener& listener_;
  nghttp2_session* session_ = nullptr;
  std::string* drain_out_ = nullptr;       // the buffer of the Drain that is running
  size_t drain_limit_ = 0;
  Http2Stream* header_stream_ = nullptr;   // whose header block is being received
  bool header_first_ = false;              // and whether it is the first of its stream
  bool data_empty_ = true;                 // of the DATA frame that is being received
  Side side_;
};

}  // namespace detcd::wire
