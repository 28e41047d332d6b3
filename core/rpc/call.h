// The call interface: what crosses between transports (gRPC over HTTP/2, the JSON gateway, the simulator's direct
// clients) and the API services. Messages in and out, half-close, credits, cancel and deadline; nothing of bytes or
// connections. It is also the only place where a thread boundary may lie, so calls are named by ids, not by pointers.
//
// A call's life: Open; then any number of Message and at most one HalfClose from the client's side; any number of Send
// and exactly one Finish from the service's side. Cancel ends it from the client's side at any time. After Finish or
// Cancel the id is dead: a late Send, Finish, Message or Cancel for it is ignored by whoever gets it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/time.h"
#include "core/rpc/method.h"

namespace google::protobuf {
class Message;
}

namespace detcd::rpc {

// gRPC status codes (numbers of the gRPC specification).
enum class StatusCode : uint8_t {
  kOk = 0,
  kCanceled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

// How a call ended.
struct CallStatus {
  StatusCode code = StatusCode::kOk;
  std::string message;

  bool ok() const { return code == StatusCode::kOk; }
  friend bool operator==(const CallStatus&, const CallStatus&) = default;
};

// One call of one transport: unique within the transport for its whole life.
using CallId = uint64_t;

// What a call brings besides its messages (reference/api.md 3).
struct CallContext {
  Method method;
  bool has_leader = false;              // metadata `hasleader: true`
  std::optional<std::string> token;     // `token`, else `authorization`
  std::string client_api_version;       // as sent; empty when absent
  std::optional<Instant> deadline;      // the transport ends the call then, with DeadlineExceeded; for information here
};

// The transport's side. Lives as long as the incarnation.
class CallTransport {
 public:
  // Takes one response message; done with `response` when it returns. Above its credit (see Writable) it still takes
  // it, within a bounded overdraft of one message a call: a streaming service asks Writable first.
  virtual void Send(CallId call, const google::protobuf::Message& response) = 0;
  // As Send, for the one message of a unary call that is encoded already: the pieces, one after another, are its bytes.
  virtual void SendEncoded(CallId call, std::vector<Bytes> pieces) = 0;
  // Whether a streaming call may send more now; when not, CallService::Credit follows.
  virtual bool Writable(CallId call) const = 0;
  // Ends the call; a unary call that ends well has sent its one message before.
  virtual void Finish(CallId call, CallStatus status) = 0;

 protected:
  ~CallTransport() = default;
};

// The services' side: one object for all methods. Lives as long as the incarnation.
class CallService {
 public:
  virtual void Open(CallTransport& transport, CallId call, const CallContext& context) = 0;
  // One request message, of the type that the method names. The service may answer before it returns.
  virtual void Message(CallTransport& transport, CallId call, const google::protobuf::Message& request) = 0;
  // The client sends no more messages. A unary call without one has been ended by the transport already.
  virtual void HalfClose(CallTransport& transport, CallId call) = 0;
  // The client is gone, reset the call, or its deadline passed. What was proposed may still take effect.
  virtual void Cancel(CallTransport& transport, CallId call) = 0;
  // The call is writable again after Writable said no.
  virtual void Credit(CallTransport& transport, CallId call) = 0;

 protected:
  ~CallService() = default;
};

}  // namespace detcd::rpc
