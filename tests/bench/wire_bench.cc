// What one unary call costs the server's wire layer: frames in, request parsed, answer serialised, frames out. The
// client's bytes are recorded once and fed again to fresh connections, so that its work is not counted.
//
// Envelope: HPACK of some 12 fields at 30 ns, 5 frames at 50 ns, two small messages at 100 ns, bookkeeping of the
// stream: about 1 us.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/proto/rpc.pb.h"
#include "core/wire/grpc_client.h"
#include "core/wire/grpc_server.h"
#include "tests/support/manual_clock.h"

namespace detcd::wire {
namespace {

// Takes what is written, and hands over bytes when told.
class PipeStream final : public Stream {
 public:
  explicit PipeStream(std::string* taken) : taken_(taken) {}
  void SetListener(StreamListener& heard_by) override { listener = &heard_by; }
  size_t Write(std::span<const Bytes> pieces) override {
    size_t size = 0;
    for (const Bytes& piece : pieces) {
      size += piece.size();
      if (taken_ != nullptr) taken_->append(piece.view());
    }
    return size;
  }
  void CloseWrite() override {}
  void PauseReading() override {}
  void ResumeReading() override {}
  Address Remote() const override { return {}; }

  StreamListener* listener = nullptr;

 private:
  std::string* taken_;
};

class PutService final : public rpc::CallService {
 public:
  PutService() { response_.mutable_header()->set_revision(123'456); }
  void Open(rpc::CallTransport&, rpc::CallId, const rpc::CallContext&) override {}
  void Message(rpc::CallTransport& transport, rpc::CallId call, const google::protobuf::Message&) override {
    ++answered;
    transport.Send(call, response_);
    transport.Finish(call, {});
  }
  void HalfClose(rpc::CallTransport&, rpc::CallId) override {}
  void Cancel(rpc::CallTransport&, rpc::CallId) override {}
  void Credit(rpc::CallTransport&, rpc::CallId) override {}
  size_t answered = 0;

 private:
  etcdserverpb::PutResponse response_;
};

class QuietListener final : public GrpcClientListener {
 public:
  void OnResponse(uint64_t, const google::protobuf::Message&) override {}
  void OnCallEnd(uint64_t, const rpc::CallStatus&) override { ++ended; }
  void OnGoAway() override {}
  void OnDisconnected(IoError) override {}
  size_t ended = 0;
};

constexpr size_t kTurns = 200;

// A client and a server in one thread, bytes handed over.
struct Pair {
  Pair() {
    auto near = std::make_unique<PipeStream>(&to_server);
    auto far = std::make_unique<PipeStream>(&to_client);
    near_pipe = near.get();
    far_pipe = far.get();
    near->SetListener(client.stream_listener());
    client.Attach(std::move(near));
    server.Accept(std::move(far));
    near_pipe->listener->OnConnected();
    opening = Turn();
  }

  // Both directions once. Returns what the client wrote.
  std::string Turn() {
    client.EndTurn();
    std::string written = std::exchange(to_server, {});
    if (!written.empty()) far_pipe->listener->OnData(written);
    server.EndTurn();
    if (!to_client.empty()) near_pipe->listener->OnData(std::exchange(to_client, {}));
    return written;
  }

  ManualClock clock;
  ManualEvents events;
  PutService service;
  QuietListener listener;
  std::string opening;     // the client's preface and settings
  std::string to_server;
  std::string to_client;
  GrpcServer server{clock, events, service};
  GrpcClient client{clock, listener};
  PipeStream* near_pipe = nullptr;
  PipeStream* far_pipe = nullptr;
};

// The bytes of `kTurns` turns with `calls` puts each, as a client wrote them that talked to such a server.
std::vector<std::string> RecordTurns(size_t calls, size_t value_size, bool with_timeout) {
  Pair pair;
  etcdserverpb::PutRequest put;
  put.set_key("/registry/pods/default/some-pod-name");
  put.set_value(std::string(value_size, 'v'));
  std::vector<std::string> turns;
  for (size_t turn = 0; turn < kTurns; ++turn) {
    ClientCallOptions options;
    if (with_timeout) options.timeout = Seconds(5);
    for (size_t i = 0; i < calls; ++i) pair.client.Start(rpc::Method::kPut, &put, options);
    turns.push_back(pair.Turn());
  }
  return turns;
}

void ServerUnaryCall(benchmark::State& state) {
  const auto calls = static_cast<size_t>(state.range(0));
  std::vector<std::string> turns = RecordTurns(calls, static_cast<size_t>(state.range(1)), state.range(2) != 0);
  ManualClock clock;
  ManualEvents events;
  PutService service;
  turns[0].insert(0, Pair().opening);
  for (auto _ : state) {
    GrpcServer server(clock, events, service);
    auto stream = std::make_unique<PipeStream>(nullptr);
    PipeStream& pipe = *stream;
    server.Accept(std::move(stream));
    for (const std::string& turn : turns) {
      pipe.listener->OnData(turn);
      server.EndTurn();
    }
  }
  CHECK(service.answered == static_cast<size_t>(state.iterations()) * kTurns * calls);
  state.SetItemsProcessed(static_cast<int64_t>(service.answered));
}
BENCHMARK(ServerUnaryCall)->ArgNames({"calls", "value", "timeout"})->Args({1, 100, 0})->Args({16, 100, 0})
    ->Args({16, 100, 1})->Args({64, 100, 0})->Args({4, 10'000, 0});

// Both sides: what the load generator and a wire-fidelity world pay for a call.
void ClientAndServerUnaryCall(benchmark::State& state) {
  const auto calls = static_cast<size_t>(state.range(0));
  Pair pair;
  etcdserverpb::PutRequest put;
  put.set_key("/registry/pods/default/some-pod-name");
  put.set_value(std::string(100, 'v'));
  for (auto _ : state) {
    for (size_t i = 0; i < calls; ++i) pair.client.Start(rpc::Method::kPut, &put, {});
    pair.Turn();
  }
  CHECK(pair.listener.ended == static_cast<size_t>(state.iterations()) * calls);
  state.SetItemsProcessed(static_cast<int64_t>(pair.listener.ended));
}
BENCHMARK(ClientAndServerUnaryCall)->ArgName("calls")->Arg(1)->Arg(16)->Arg(64);

}  // namespace
}  // namespace detcd::wire

BENCHMARK_MAIN();
