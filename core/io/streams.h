// Byte streams with the shape of sockets: listen, connect, partial writes, half-close, reset, back-pressure.
//
// A crash of either host ends a stream without a word or with a reset at the other side. Bytes arrive in order and
// unaltered or not at all; how they are cut into pieces means nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/io/io_error.h"

namespace detcd {

// Where somebody listens. `host` is a numeric IPv4 or IPv6 address (see Resolve); with port 0 in Listen the system picks.
// A Unix socket has its path in `host` and `is_unix` set.
struct Address {
  std::string host;
  uint16_t port = 0;
  bool is_unix = false;

  friend bool operator==(const Address&, const Address&) = default;
};

class Stream;

// Hears what happens on one Stream. Each call is an event of its own. After OnClosed nothing follows.
// Inside a call the listener may destroy the Stream.
class StreamListener {
 public:
  // An outgoing connection is up; from now on Write takes bytes.
  virtual void OnConnected() = 0;
  // The next bytes; the view is good until this call returns.
  virtual void OnData(std::string_view bytes) = 0;
  // The peer closed its direction, after all its bytes. We may still write.
  virtual void OnReadEnd() = 0;
  // There is room again after a Write that took less than all.
  virtual void OnWritable() = 0;
  // The connection is dead (kRefused, kReset, kTimedOut, kUnreachable, kTooManyOpen); what was not delivered is lost.
  virtual void OnClosed(IoError error) = 0;

 protected:
  ~StreamListener() = default;
};

// One end of a connection. Destroying it closes: bytes taken by Write are still sent if CloseWrite was called, otherwise
// the peer sees a reset. No event follows destruction.
class Stream {
 public:
  virtual ~Stream() = default;

  // Names who hears the events; called once: at Connect by its argument, for an accepted stream inside OnAccept.
  virtual void SetListener(StreamListener& listener) = 0;

  // Takes the first 0..n bytes of `pieces`, in order, and returns how many. Fewer than all means no room: OnWritable
  // comes when there is some again. Before OnConnected and after CloseWrite or OnClosed it takes none.
  virtual size_t Write(std::span<const Bytes> pieces) = 0;

  // No more bytes from us; the peer hears OnReadEnd after those already taken.
  virtual void CloseWrite() = 0;

  // Stops and resumes OnData and OnReadEnd; a paused reader's peer runs out of room in time. Starts resumed.
  virtual void PauseReading() = 0;
  virtual void ResumeReading() = 0;

  // The other side's address, for log lines and checks.
  virtual Address Remote() const = 0;
};

// Hears incoming connections of one Acceptor.
class AcceptListener {
 public:
  // The listener must call SetListener on `stream` before it returns, or drop it (the peer sees a reset).
  virtual void OnAccept(std::unique_ptr<Stream> stream) = 0;

 protected:
  ~AcceptListener() = default;
};

// A listening socket; destroying it stops listening and resets what nobody accepted.
class Acceptor {
 public:
  virtual ~Acceptor() = default;
  // With the port that was picked.
  virtual Address Local() const = 0;
  // Leaves connections in the accept queue, and resumes. Starts resumed.
  virtual void PauseAccepting() = 0;
  virtual void ResumeAccepting() = 0;
};

struct ListenResult {
  IoError error = IoError::kOk;
  std::unique_ptr<Acceptor> acceptor;  // set when error is kOk
};

// Hears the answer to Resolve.
class ResolveListener {
 public:
  // `addresses` have the port that was asked for; empty with error kNotFound.
  virtual void OnResolved(uint64_t token, IoError error, std::vector<Address> addresses) = 0;

 protected:
  ~ResolveListener() = default;
};

class Network {
 public:
  virtual ~Network() = default;

  // Starts listening at once: bytes of a connection wait in its queue until it is accepted.
  // kAddressInUse, kPermission, kInvalid, kTooManyOpen.
  virtual ListenResult Listen(const Address& address, AcceptListener& listener) = 0;

  // Starts to connect; `listener` hears OnConnected or OnClosed. Never fails inside the call.
  virtual std::unique_ptr<Stream> Connect(const Address& address, StreamListener& listener) = 0;

  // Names to numeric addresses (a numeric name gives itself). `listener` lives as long as the incarnation.
  virtual void Resolve(const std::string& host, uint16_t port, ResolveListener& listener, uint64_t token) = 0;
};

}  // namespace detcd
