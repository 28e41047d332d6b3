// A gRPC server with a scripted service, and clients connected to it through StreamPairs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/proto/rpc.pb.h"
#include "core/wire/grpc_client.h"
#include "core/wire/grpc_server.h"
#include "tests/support/manual_clock.h"
#include "tests/support/stream_pair.h"

namespace detcd::wire {

// Notes what it hears as text, and answers by `on_message`.
class ScriptedService final : public rpc::CallService {
 public:
  using Answer = std::function<void(rpc::CallTransport&, rpc::CallId, const google::protobuf::Message&)>;

  void Open(rpc::CallTransport&, rpc::CallId call, const rpc::CallContext& context) override;
  void Message(rpc::CallTransport& transport, rpc::CallId call, const google::protobuf::Message& request) override;
  void HalfClose(rpc::CallTransport& transport, rpc::CallId call) override;
  void Cancel(rpc::CallTransport& transport, rpc::CallId call) override;
  void Credit(rpc::CallTransport& transport, rpc::CallId call) override;

  Answer on_message;
  std::function<void(rpc::CallTransport&, rpc::CallId)> on_credit;
  std::vector<std::string> heard;         // `open /svc/Method`, `message {key: "a"}`, `half-close`, `cancel`, `credit`
  std::vector<rpc::CallId> calls;         // in the order of opening
  std::vector<rpc::CallContext> contexts;
  std::map<rpc::CallId, int> live;        // opened, not canceled (a test that finishes calls looks at `canceled`)
  int canceled = 0;
};

// Answers Range with its key as the only kv, Put with the length of its value as revision, Watch with one response each.
void AnswerAll(rpc::CallTransport& transport, rpc::CallId call, const google::protobuf::Message& request);

// Notes what one client hears, by token: `response {...}`, `end 0 `.
class NotingListener final : public GrpcClientListener {
 public:
  void OnResponse(uint64_t token, const google::protobuf::Message& response) override;
  void OnCallEnd(uint64_t token, const rpc::CallStatus& status) override;
  void OnGoAway() override { ++goaways; }
  void OnDisconnected(IoError error) override { disconnected = error; }

  std::map<uint64_t, std::vector<std::string>> heard;
  std::map<uint64_t, rpc::CallStatus> ended;
  size_t responses = 0;
  int goaways = 0;
  std::optional<IoError> disconnected;
};

class GrpcWorld {
 public:
  struct Client {
    explicit Client(Clock& clock, size_t room) : pair(room), client(std::make_unique<GrpcClient>(clock, listener)) {}
    StreamPair pair;
    NotingListener listener;
    std::unique_ptr<GrpcClient> client;
  };
  // A connection whose client is the test itself: bytes in, bytes out.
  struct Raw final : StreamListener {
    explicit Raw(size_t room) : pair(room) {}
    void OnConnected() override {}
    void OnData(std::string_view bytes) override { received.append(bytes); }
    void OnReadEnd() override { ended = true; }
    void OnWritable() override {}
    void OnClosed(IoError) override { ended = true; }
    void Write(std::string_view bytes);

    StreamPair pair;
    std::unique_ptr<Stream> stream;
    std::string received;
    bool ended = false;
  };

  explicit GrpcWorld(const GrpcOptions& options = {})
      : server(std::make_unique<GrpcServer>(clock, events, service, options)) {
    service.on_message = AnswerAll;
  }
  ~GrpcWorld();

  Client& AddClient(size_t room = std::numeric_limits<size_t>::max());
  Raw& AddRaw(size_t room = std::numeric_limits<size_t>::max());

  // One turn of everybody; `segment` bytes at most in each delivery. False: nothing happened.
  bool Step(size_t segment = std::numeric_limits<size_t>::max());
  // Until nothing happens any more.
  void Run(size_t segment = std::numeric_limits<size_t>::max());

  ManualClock clock;
  ManualEvents events;
  ScriptedService service;
  std::unique_ptr<GrpcServer> server;
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::unique_ptr<Raw>> raws;
};

etcdserverpb::RangeRequest RangeOf(std::string_view key);
etcdserverpb::PutRequest PutOf(std::string_view key, size_t value_size);

}  // namespace detcd::wire
