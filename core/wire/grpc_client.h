// A gRPC client on one connection, without I/O: simulated clients of wire fidelity and the load generator use it. It
// never redials: its owner makes a new one.
//
//   GrpcClient client(clock, listener);
//   client.Attach(network.Connect(address, client.stream_listener()));
//   client.Start(rpc::Method::kPut, &request, {.token = 7});   // at once, even before the connection is up
//   client.EndTurn();                                           // at the end of each turn: one write
//
// Calls under way when the connection ends are ended with Unavailable; whether they took effect is not known.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <google/protobuf/arena.h>

#include "absl/container/btree_set.h"
#include "core/io/clock.h"
#include "core/io/streams.h"
#include "core/rpc/call.h"
#include "core/wire/grpc_format.h"
#include "core/wire/http2_session.h"
#include "core/wire/stream_writer.h"

namespace detcd::wire {

// Names a call of one client; never used again within it.
using ClientCallId = uint64_t;

// Hears one client. It may start, feed and cancel calls from within, but not destroy the client.
class GrpcClientListener {
 public:
  // One response of the call that was started with `token`; `response` is good until this returns.
  virtual void OnResponse(uint64_t token, const google::protobuf::Message& response) = 0;
  // The call is over. Comes once for each call, but not for one that Cancel ended.
  virtual void OnCallEnd(uint64_t token, const rpc::CallStatus& status) = 0;
  // The server takes no new calls here (GOAWAY); those under way go on.
  virtual void OnGoAway() = 0;
  // The connection is gone; OnCallEnd came for every call. The last that is heard; destroy the client in a later event.
  virtual void OnDisconnected(IoError error) = 0;

 protected:
  ~GrpcClientListener() = default;
};

struct ClientCallOptions {
  uint64_t token = 0;                     // handed back with each event
  std::optional<Duration> timeout;        // sent as grpc-timeout, and kept here, too
  bool has_leader = false;
  std::string auth_token;                 // `token` metadata; empty: none
  std::string client_api_version;         // empty: none
};

class GrpcClient final : private StreamListener, private Http2Listener, private TimerListener {
 public:
  // Both live longer than the client.
  GrpcClient(Clock& clock, GrpcClientListener& listener);
  ~GrpcClient();

  StreamListener& stream_listener() { return *this; }
  // The stream that Network::Connect gave for stream_listener(). Once, before the first event.
  void Attach(std::unique_ptr<Stream> stream);

  // Starts a call, with its first request when there is one; methods without client streaming need one and are
  // half-closed at once. nullopt: the connection takes no more calls.
  std::optional<ClientCallId> Start(rpc::Method method, const google::protobuf::Message* request,
                                    const ClientCallOptions& options);
  // As Start, at any `path` and with `body` as it stands, half-closed at once: what a broken client sends. Responses are
  // taken for those of `method`.
  std::optional<ClientCallId> StartRaw(std::string_view path, rpc::Method method, std::string_view body,
                                       const ClientCallOptions& options);
  // For methods with client streaming. Ignored for calls that are over.
  void Send(ClientCallId call, const google::protobuf::Message& request);
  void HalfClose(ClientCallId call);
  // Resets the call; nothing more is heard of it.
  void Cancel(ClientCallId call);

  // Asks for a sign of life. Servers count these: see kPingIntervalMin.
  void Ping();
  // No more calls; closes the connection when the last one is over.
  void Close();

  void EndTurn();

  bool connected() const { return connected_; }
  size_t open_calls() const { return open_calls_; }
  // Bytes of requests that no stream took yet: a caller that sends much stops above a bound of its own.
  size_t backlog() const { return writer_.backlog() + queued_; }

 private:
  struct Call final : Http2Stream {
    uint32_t slot = 0;
    uint32_t generation = 0;      // with the slot: the call's id
    bool open = false;            // not yet ended for the listener
    bool got_response = false;
    rpc::Method method = rpc::Method::kRange;
    uint64_t token = 0;
    std::optional<Instant> deadline;
    std::optional<uint32_t> grpc_status;
    std::string grpc_message;
    uint32_t http_status = 0;
    MessageReader reader;
  };

  // StreamListener
  void OnConnected() override;
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
  void OnResetForced() override {}
  void OnOverhead(Http2Overhead) override {}
  void OnPing(bool ack) override;
  void OnGoAway(Http2Error error, std::string_view debug) override;

  ClientCallId IdOf(const Call& call) const { return uint64_t{call.generation} << 32 | call.slot; }
  Call* Find(ClientCallId id) const;
  // A call whose headers are on their way; its body is empty and open. Null: the connection takes no more calls.
  Call* Open(Http2Header path, rpc::Method method, const ClientCallOptions& options);
  Call& NewCall();
  void FreeCall(Call& call);
  void End(Call& call, rpc::CallStatus status);
  void EndAndReset(Call& call, rpc::CallStatus status);
  void DropDeadline(Call& call);
  rpc::CallStatus StatusOf(const Call& call, Http2Error error) const;
  void Disconnect(IoError error);

  Clock& clock_;
  GrpcClientListener& listener_;
  Http2Session session_;
  std::unique_ptr<Stream> stream_;
  StreamWriter writer_;
  std::unique_ptr<Timer> timer_;
  std::optional<Instant> armed_;
  absl::btree_set<std::pair<int64_t, ClientCallId>> deadlines_;
  std::vector<std::unique_ptr<Call>> calls_;   // by slot; unused ones are in free_slots_
  std::vector<uint32_t> free_slots_;
  std::unique_ptr<char[]> arena_block_;
  google::protobuf::Arena arena_;
  std::string frames_;
  size_t open_calls_ = 0;
  size_t queued_ = 0;
  bool connected_ = false;
  bool going_away_ = false;    // the server said GOAWAY
  bool closing_ = false;       // Close was called
  bool over_ = false;          // OnDisconnected was called
};

}  // namespace detcd::wire
