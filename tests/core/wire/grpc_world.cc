#include "tests/core/wire/grpc_world.h"

#include "absl/strings/str_format.h"

namespace detcd::wire {
namespace {

std::string Text(const google::protobuf::Message& message) {
  std::string text = message.ShortDebugString();
  return text.size() > 200 ? absl::StrFormat("(%d bytes)", message.ByteSizeLong()) : text;
}

}  // namespace

void ScriptedService::Open(rpc::CallTransport&, rpc::CallId call, const rpc::CallContext& context) {
  heard.push_back(absl::StrFormat("open %s", rpc::Info(context.method).path));
  calls.push_back(call);
  contexts.push_back(context);
  EXPECT_TRUE(live.emplace(call, 1).second) << "opened twice";
}

void ScriptedService::Message(rpc::CallTransport& transport, rpc::CallId call,
                              const google::protobuf::Message& request) {
  EXPECT_EQ(live.count(call), 1u) << "a message after the end";
  heard.push_back(absl::StrFormat("message {%s}", Text(request)));
  if (on_message) on_message(transport, call, request);
}

void ScriptedService::HalfClose(rpc::CallTransport&, rpc::CallId) { heard.push_back("half-close"); }

void ScriptedService::Cancel(rpc::CallTransport& transport, rpc::CallId call) {
  EXPECT_EQ(live.erase(call), 1u) << "canceled twice";
  heard.push_back("cancel");
  ++canceled;
  // The id is dead: late answers are ignored.
  transport.Send(call, etcdserverpb::PutResponse());
  transport.Finish(call, {});
  EXPECT_FALSE(transport.Writable(call));
}

void ScriptedService::Credit(rpc::CallTransport& transport, rpc::CallId call) {
  heard.push_back("credit");
  if (on_credit) on_credit(transport, call);
}

void AnswerAll(rpc::CallTransport& transport, rpc::CallId call, const google::protobuf::Message& request) {
  if (const auto* range = dynamic_cast<const etcdserverpb::RangeRequest*>(&request)) {
    etcdserverpb::RangeResponse response;
    response.add_kvs()->set_key(range->key());
    transport.Send(call, response);
    transport.Finish(call, {});
  } else if (const auto* put = dynamic_cast<const etcdserverpb::PutRequest*>(&request)) {
    etcdserverpb::PutResponse response;
    response.mutable_header()->set_revision(static_cast<int64_t>(put->value().size()));
    transport.Send(call, response);
    transport.Finish(call, {});
  } else if (dynamic_cast<const etcdserverpb::WatchRequest*>(&request) != nullptr) {
    etcdserverpb::WatchResponse response;
    response.set_created(true);
    transport.Send(call, response);
  }
}

void NotingListener::OnResponse(uint64_t token, const google::protobuf::Message& response) {
  ++responses;
  EXPECT_EQ(ended.count(token), 0u) << "a response after the end";
  heard[token].push_back(absl::StrFormat("response {%s}", Text(response)));
}

void NotingListener::OnCallEnd(uint64_t token, const rpc::CallStatus& status) {
  EXPECT_TRUE(ended.emplace(token, status).second) << "ended twice";
  heard[token].push_back(absl::StrFormat("end %d %s", static_cast<int>(status.code), status.message));
}

void GrpcWorld::Raw::Write(std::string_view bytes) {
  const Bytes piece = Bytes::Copy(bytes);
  EXPECT_EQ(stream->Write({&piece, 1}), bytes.size());
}

GrpcWorld::~GrpcWorld() {
  server.reset();
  for (auto& client : clients) client->client.reset();
  for (auto& raw : raws) raw->stream.reset();
}

GrpcWorld::Client& GrpcWorld::AddClient(size_t room) {
  clients.push_back(std::make_unique<Client>(clock, room));
  Client& added = *clients.back();
  std::unique_ptr<Stream> stream = added.pair.TakeEnd(0);
  stream->SetListener(added.client->stream_listener());
  added.client->Attach(std::move(stream));
  server->Accept(added.pair.TakeEnd(1));
  added.pair.Connect();
  return added;
}

GrpcWorld::Raw& GrpcWorld::AddRaw(size_t room) {
  raws.push_back(std::make_unique<Raw>(room));
  Raw& added = *raws.back();
  added.stream = added.pair.TakeEnd(0);
  added.stream->SetListener(added);
  server->Accept(added.pair.TakeEnd(1));
  added.pair.Connect();
  return added;
}

bool GrpcWorld::Step(size_t segment) {
  bool any = events.RunOne();
  for (auto& client : clients) {
    if (client->client != nullptr) client->client->EndTurn();
  }
  server->EndTurn();
  for (auto& client : clients) {
    any |= client->pair.Deliver(1, segment);
    any |= client->pair.Deliver(0, segment);
  }
  for (auto& raw : raws) {
    any |= raw->pair.Deliver(1, segment);
    any |= raw->pair.Deliver(0, segment);
  }
  return any;
}

void GrpcWorld::Run(size_t segment) {
  while (Step(segment)) {
  }
}

etcdserverpb::RangeRequest RangeOf(std::string_view key) {
  etcdserverpb::RangeRequest request;
  request.set_key(std::string(key));
  return request;
}

etcdserverpb::PutRequest PutOf(std::string_view key, size_t value_size) {
  etcdserverpb::PutRequest request;
  request.set_key(std::string(key));
  request.set_value(std::string(value_size, 'v'));
  return request;
}

}  // namespace detcd::wire
