#include "core/wire/grpc_client.h"

#include <google/protobuf/message.h>

#include <array>

#include "absl/strings/str_format.h"
#include "core/base/check.h"
#include "core/base/limits.h"
#include "core/rpc/api_error.h"

namespace detcd::wire {
namespace {

using rpc::CallStatus;
using rpc::StatusCode;

constexpr size_t kArenaBlockBytes = 8'192;
constexpr size_t kKeepBytes = 16'384;
// Responses are not limited by servers of etcd, nor by us beyond what a length field and protobuf can hold.
constexpr size_t kResponseBytesMax = 0x7FFFFFFF;

google::protobuf::ArenaOptions OptionsWith(char* block) {
  google::protobuf::ArenaOptions options;
  options.initial_block = block;
  options.initial_block_size = kArenaBlockBytes;
  return options;
}

std::optional<uint32_t> ParseNumber(std::string_view text) {
  if (text.empty() || text.size() > 9) return std::nullopt;
  uint32_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<uint32_t>(c - '0');
  }
  return number;
}

// gRPC's http-grpc-status-mapping.
StatusCode CodeOfHttp(uint32_t status) {
  switch (status) {
    case 400: return StatusCode::kInternal;
    case 401: return StatusCode::kUnauthenticated;
    case 403: return StatusCode::kPermissionDenied;
    case 404: return StatusCode::kUnimplemented;
    case 429: case 502: case 503: case 504: return StatusCode::kUnavailable;
    default: return StatusCode::kUnknown;
  }
}

}  // namespace

GrpcClient::GrpcClient(Clock& clock, GrpcClientListener& listener)
    : clock_(clock),
      listener_(listener),
      session_(Http2Session::Side::kClient, *this),
      arena_block_(std::make_unique<char[]>(kArenaBlockBytes)),
      arena_(OptionsWith(arena_block_.get())) {}

GrpcClient::~GrpcClient() = default;

void GrpcClient::Attach(std::unique_ptr<Stream> stream) {
  CHECK(stream_ == nullptr);
  stream_ = std::move(stream);
}

// --- calls ---

GrpcClient::Call* GrpcClient::Find(ClientCallId id) const {
  const auto slot = static_cast<uint32_t>(id);
  if (slot >= calls_.size()) return nullptr;
  Call* call = calls_[slot].get();
  return call->open && call->generation == id >> 32 ? call : nullptr;
}

GrpcClient::Call& GrpcClient::NewCall() {
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<uint32_t>(calls_.size()));
    calls_.push_back(std::make_unique<Call>());
    calls_.back()->slot = free_slots_.back();
  }
  Call& call = *calls_[free_slots_.back()];
  free_slots_.pop_back();
  call.open = true;
  ++open_calls_;
  return call;
}

void GrpcClient::FreeCall(Call& call) {
  queued_ -= call.unframed();
  std::string outgoing = std::move(call.outgoing);
  MessageReader reader = std::move(call.reader);
  outgoing.clear();
  if (outgoing.capacity() > kKeepBytes) std::string().swap(outgoing);
  reader.Clear(kKeepBytes);
  const uint32_t slot = call.slot;
  const uint32_t generation = call.generation + 1;
  std::destroy_at(&call);
  std::construct_at(&call);
  call.slot = slot;
  call.generation = generation;
  call.outgoing = std::move(outgoing);
  call.reader = std::move(reader);
  free_slots_.push_back(slot);
}

std::optional<ClientCallId> GrpcClient::Start(rpc::Method method, const google::protobuf::Message* request,
                                              const ClientCallOptions& options) {
  const rpc::MethodInfo& info = rpc::Info(method);
  CHECK(info.client_streams || request != nullptr);
  Call* call = Open({":path", info.path, true}, method, options);
  if (call == nullptr) return std::nullopt;
  if (request != nullptr) queued_ += AppendMessage(*request, call->outgoing);
  call->body_ended = !info.client_streams;
  return IdOf(*call);
}

std::optional<ClientCallId> GrpcClient::StartRaw(std::string_view path, rpc::Method method, std::string_view body,
                                                 const ClientCallOptions& options) {
  Call* call = Open({":path", path}, method, options);
  if (call == nullptr) return std::nullopt;
  call->outgoing.append(body);
  queued_ += body.size();
  call->body_ended = true;
  return IdOf(*call);
}

GrpcClient::Call* GrpcClient::Open(Http2Header path, rpc::Method method, const ClientCallOptions& options) {
  if (over_ || closing_ || going_away_) return nullptr;
  std::array<Http2Header, 12> headers = {{{":method", "POST", true},
                                          {":scheme", "http", true},
                                          path,
                                          {":authority", "detcd", true},
                                          {"content-type", "application/grpc", true},
                                          {"te", "trailers", true}}};
  size_t count = 6;
  std::string timeout;
  if (options.timeout.has_value()) {
    timeout = FormatTimeout(*options.timeout);
    headers[count++] = {"grpc-timeout", timeout};
  }
  if (options.has_leader) headers[count++] = {"hasleader", "true", true};
  if (!options.auth_token.empty()) headers[count++] = {"token", options.auth_token};
  if (!options.client_api_version.empty()) headers[count++] = {"client-api-version", options.client_api_version};

  Call& call = NewCall();
  if (!session_.SubmitRequest({headers.data(), count}, call)) {
    going_away_ = true;
    --open_calls_;
    FreeCall(call);
    return nullptr;
  }
  call.method = method;
  call.token = options.token;
  if (options.timeout.has_value()) {
    call.deadline = clock_.Now() + *options.timeout;
    deadlines_.insert({call.deadline->nanos, IdOf(call)});
    if (timer_ == nullptr) timer_ = clock_.NewTimer(*this, 0);
    if (!armed_.has_value() || *call.deadline < *armed_) {
      armed_ = call.deadline;
      timer_->Arm(*armed_);
    }
  }
  return &call;
}

void GrpcClient::Send(ClientCallId id, const google::protobuf::Message& request) {
  Call* call = Find(id);
  if (call == nullptr || call->body_ended) return;
  queued_ += AppendMessage(request, call->outgoing);
  session_.BodyGrew(*call);
}

void GrpcClient::HalfClose(ClientCallId id) {
  Call* call = Find(id);
  if (call == nullptr || call->body_ended) return;
  call->body_ended = true;
  session_.BodyGrew(*call);
}

void GrpcClient::Cancel(ClientCallId id) {
  Call* call = Find(id);
  if (call == nullptr) return;
  DropDeadline(*call);
  call->open = false;
  --open_calls_;
  session_.Reset(call->id, Http2Error::kCancel);
}

void GrpcClient::DropDeadline(Call& call) {
  if (call.deadline.has_value()) deadlines_.erase({call.deadline->nanos, IdOf(call)});
}

void GrpcClient::End(Call& call, CallStatus status) {
  if (!call.open) return;
  DropDeadline(call);
  call.open = false;
  --open_calls_;
  listener_.OnCallEnd(call.token, status);
}

void GrpcClient::EndAndReset(Call& call, CallStatus status) {
  session_.Reset(call.id, Http2Error::kCancel);
  End(call, std::move(status));
}

void GrpcClient::OnTimer(uint64_t) {
  armed_.reset();
  const Instant now = clock_.Now();
  while (!deadlines_.empty() && deadlines_.begin()->first <= now.nanos) {
    Call* call = Find(deadlines_.begin()->second);
    CHECK(call != nullptr);
    EndAndReset(*call, rpc::ToCallStatus(rpc::ApiError::kContextDeadlineExceeded));
  }
  if (deadlines_.empty()) return;
  armed_ = Instant{deadlines_.begin()->first};
  timer_->Arm(*armed_);
}

// --- responses ---

Http2Stream* GrpcClient::OnStreamBegin(int32_t) { return nullptr; }  // a server opens none

void GrpcClient::OnHeader(Http2Stream& stream, std::string_view name, std::string_view value) {
  auto& call = static_cast<Call&>(stream);
  if (name == ":status") {
    call.http_status = ParseNumber(value).value_or(0);
  } else if (name == "grpc-status") {
    call.grpc_status = ParseNumber(value);
  } else if (name == "grpc-message") {
    call.grpc_message = DecodePercent(value);
  }
}

void GrpcClient::OnHeadersEnd(Http2Stream&, bool) {}

void GrpcClient::OnBody(Http2Stream& stream, std::string_view bytes) {
  auto& call = static_cast<Call&>(stream);
  if (!call.open || call.http_status != 200) return;
  const auto result = call.reader.Feed(bytes, kResponseBytesMax, false, [&](std::string_view payload) {
    google::protobuf::Message* response = rpc::NewResponse(call.method, &arena_);
    if (response->ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
      call.got_response = true;
      listener_.OnResponse(call.token, *response);
    } else {
      EndAndReset(call, {StatusCode::kInternal, "response does not parse"});
    }
    arena_.Reset();
    return call.open;
  });
  if (result == MessageReader::Result::kTooLarge || result == MessageReader::Result::kWrongFlag) {
    EndAndReset(call, {StatusCode::kInternal, "response is too large or compressed"});
  }
}

void GrpcClient::OnRemoteEnd(Http2Stream& stream) {
  auto& call = static_cast<Call&>(stream);
  if (!call.open) return;
  CallStatus status = StatusOf(call, Http2Error::kNoError);
  // The server answered without wanting the rest of the request.
  if (!call.body_ended || call.unframed() > 0) session_.Reset(call.id, Http2Error::kNoError);
  End(call, std::move(status));
}

void GrpcClient::OnStreamClosed(Http2Stream& stream, Http2Error error) {
  auto& call = static_cast<Call&>(stream);
  End(call, StatusOf(call, error));
  FreeCall(call);
}

CallStatus GrpcClient::StatusOf(const Call& call, Http2Error error) const {
  if (call.grpc_status.has_value()) {
    const uint32_t code = *call.grpc_status;
    if (code > static_cast<uint32_t>(StatusCode::kUnauthenticated)) return {StatusCode::kUnknown, call.grpc_message};
    if (code == 0 && !call.got_response && !rpc::Info(call.method).server_streams) {
      return {StatusCode::kInternal, "a good end without a response"};
    }
    return {static_cast<StatusCode>(code), call.grpc_message};
  }
  if (call.http_status != 0 && call.http_status != 200) {
    return {CodeOfHttp(call.http_status), absl::StrFormat("unexpected HTTP status %d", call.http_status)};
  }
  std::string text = absl::StrFormat("stream ended by HTTP/2 error %d", static_cast<uint32_t>(error));
  switch (error) {
    case Http2Error::kRefusedStream: return {StatusCode::kUnavailable, std::move(text)};
    case Http2Error::kCancel: return {StatusCode::kCanceled, std::move(text)};
    case Http2Error::kEnhanceYourCalm: return {StatusCode::kResourceExhausted, std::move(text)};
    case Http2Error::kNoError:
    case Http2Error::kProtocolError:
    case Http2Error::kInternalError: break;
  }
  return {StatusCode::kInternal, std::move(text)};
}

void GrpcClient::OnBodyFramed(Http2Stream&) {}
void GrpcClient::OnBodySent(Http2Stream&, size_t size) { queued_ -= size; }
void GrpcClient::OnHeadersSent(Http2Stream&, bool) {}
void GrpcClient::OnPing(bool) {}

void GrpcClient::OnGoAway(Http2Error, std::string_view) {
  if (std::exchange(going_away_, true)) return;
  listener_.OnGoAway();
}

// --- the connection ---

void GrpcClient::Ping() {
  if (!over_) session_.Ping();
}

void GrpcClient::Close() { closing_ = true; }

void GrpcClient::EndTurn() {
  if (!connected_ || over_) return;
  frames_.clear();
  if (writer_.backlog() < kConnectionWriteBacklogMax) {
    if (!session_.Drain(frames_, kConnectionWriteBacklogMax - writer_.backlog())) {
      return Disconnect(IoError::kReset);
    }
    writer_.Append(Bytes::Copy(frames_));
  }
  writer_.Flush(*stream_);
  if (session_.Finished() && writer_.backlog() == 0) return Disconnect(IoError::kReset);
  if (closing_ && open_calls_ == 0 && writer_.backlog() == 0) {
    stream_->CloseWrite();
    Disconnect(IoError::kOk);
  }
}

void GrpcClient::OnConnected() { connected_ = true; }

void GrpcClient::OnData(std::string_view bytes) {
  if (!session_.Receive(bytes)) Disconnect(IoError::kReset);
}

void GrpcClient::OnReadEnd() { Disconnect(IoError::kReset); }

void GrpcClient::OnWritable() { writer_.Unblock(); }

void GrpcClient::OnClosed(IoError error) { Disconnect(error); }

void GrpcClient::Disconnect(IoError error) {
  if (std::exchange(over_, true)) return;
  connected_ = false;
  // Slots, not starting order: the listener sorts by its own tokens if it cares. The order is a function of the run.
  for (size_t slot = 0; slot < calls_.size(); ++slot) {
    End(*calls_[slot], {StatusCode::kUnavailable,
                        absl::StrFormat("connection closed: %s", IoErrorName(error))});
  }
  stream_.reset();
  listener_.OnDisconnected(error);
}

}  // namespace detcd::wire
