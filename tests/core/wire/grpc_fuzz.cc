// libFuzzer: bytes of one client into a client port with small bounds. The first byte says how they are cut, and with
// its highest bit that the server says goodbye half-way. Nothing may crash, leak, be kept beyond its bound, or stay
// open.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/check.h"
#include "core/base/limits.h"
#include "core/proto/rpc.pb.h"
#include "core/wire/client_port.h"
#include "tests/support/manual_clock.h"
#include "tests/support/stream_pair.h"

namespace detcd::wire {
namespace {

class EchoService final : public rpc::CallService {
 public:
  void Open(rpc::CallTransport&, rpc::CallId, const rpc::CallContext&) override { ++open; }
  void Message(rpc::CallTransport& transport, rpc::CallId call, const google::protobuf::Message& request) override {
    transport.Send(call, request);  // of another type than the response's, which the bytes do not show
    if (request.ByteSizeLong() % 3 != 0) return;
    --open;
    transport.Finish(call, {rpc::StatusCode::kUnknown, request.ShortDebugString()});
  }
  void HalfClose(rpc::CallTransport&, rpc::CallId) override {}
  void Cancel(rpc::CallTransport&, rpc::CallId) override { --open; }
  void Credit(rpc::CallTransport&, rpc::CallId) override {}
  int open = 0;
};

class EchoPages final : public rpc::HttpHandler {
 public:
  void Handle(rpc::HttpResponder& responder, rpc::HttpRequestId id, const rpc::HttpRequest& request) override {
    responder.Respond(id, {.body = request.target});
  }
  void Abandon(rpc::HttpRequestId) override {}
};

class Sink final : public StreamListener {
 public:
  void OnConnected() override {}
  void OnData(std::string_view) override {}
  void OnReadEnd() override {}
  void OnWritable() override {}
  void OnClosed(IoError) override {}
};

constexpr GrpcOptions kOptions = {.streams_max = 20,
                                  .ping_interval_min = Millis(1),
                                  .keepalive_interval = Seconds(2),
                                  .keepalive_timeout = Seconds(1),
                                  .client_bytes_max = 100'000};

void Run(std::string_view bytes, size_t segment, bool goodbye) {
  ManualClock clock;
  ManualEvents events;
  EchoService service;
  EchoPages pages;
  StreamPair pair;
  Sink sink;
  GrpcServer grpc(clock, events, service, kOptions);
  Http1Server http1(clock, pages);
  ClientPort port(clock, &grpc, &http1);
  auto client = pair.TakeEnd(0);
  client->SetListener(sink);
  port.OnAccept(pair.TakeEnd(1));
  pair.Connect();
  const Bytes piece = Bytes::Copy(bytes);
  const size_t half = goodbye ? piece.size() / 2 : piece.size();
  const auto write = [&](const Bytes& part) {
    if (!part.empty()) client->Write({&part, 1});
  };
  write(piece.Slice(0, half));
  const auto run = [&] {
    for (bool any = true; any;) {
      any = events.RunOne();
      http1.EndTurn();
      grpc.EndTurn();
      any |= pair.Deliver(1, segment);
      any |= pair.Deliver(0);
      // One turn's input may lie above the bound until the turn is over.
      CHECK(grpc.held() <= kOptions.client_bytes_max);
    }
  };
  run();
  if (goodbye) {
    grpc.Shutdown();
    write(piece.Slice(half, piece.size() - half));
    run();
  }
  for (int second = 0; second < 3; ++second) {
    clock.Advance(Seconds(1));
    run();
  }
  client->CloseWrite();
  run();
  CHECK(service.open == 0);
  CHECK(grpc.held() == 0);
  CHECK(port.connection_count() == 0);
  CHECK(pair.gone(1));
}

}  // namespace
}  // namespace detcd::wire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  detcd::wire::Run({reinterpret_cast<const char*>(data + 1), size - 1}, size_t{data[0]} % 128 + 1, data[0] >= 128);
  return 0;
}
