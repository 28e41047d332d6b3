#include "core/wire/grpc_connection.h"

#include <google/protobuf/message.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/check.h"
#include "core/base/probe.h"
#include "core/rpc/messages.h"

namespace detcd::wire {
namespace {

using rpc::CallStatus;
using rpc::StatusCode;

constexpr size_t kArenaBlockBytes = 8'192;
constexpr size_t kKeepBytes = 16'384;         // of a buffer, when its call goes back to the free list
constexpr size_t kFreeCallsMax = 256;         // per connection
constexpr size_t kHeaderFieldOverhead = 32;   // RFC 9113 §6.5.2
constexpr std::string_view kContentType = "application/grpc";

// grpc-status as text.
constexpr std::array<std::string_view, 17> kCodeTexts = {"0", "1", "2",  "3",  "4",  "5",  "6",  "7", "8",
                                                         "9", "10", "11", "12", "13", "14", "15", "16"};
std::string_view CodeText(StatusCode code) { return kCodeTexts[static_cast<size_t>(code)]; }

// A text may quote a whole path; clients do not take header lists of any size.
std::string MessageField(std::string_view text) { return EncodePercent(text.substr(0, kGrpcMessageBytesMax)); }

google::protobuf::ArenaOptions OptionsWith(char* block) {
  google::protobuf::ArenaOptions options;
  options.initial_block = block;
  options.initial_block_size = kArenaBlockBytes;
  return options;
}

// Why no method is at `path`, in grpc-go's words.
std::string UnknownPathText(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (path.empty() || path[0] != '/' || slash == 0) return absl::StrFormat("malformed method name: \"%s\"", path);
  const std::string_view service = path.substr(1, slash - 1);
  for (uint16_t i = 0; i < rpc::kMethodCount; ++i) {
    if (rpc::Info(static_cast<rpc::Method>(i)).service == service) {
      return absl::StrFormat("unknown method %s for service %s", path.substr(slash + 1), service);
    }
  }
  return absl::StrFormat("unknown service %s", service);
}

}  // namespace

GrpcShared::GrpcShared(Clock& the_clock, rpc::CallService& the_service, rpc::CallTransport& the_transport)
    : clock(the_clock),
      service(the_service),
      transport(the_transport),
      arena_block(std::make_unique<char[]>(kArenaBlockBytes)),
      arena(OptionsWith(arena_block.get())) {}

GrpcConnection::GrpcConnection(GrpcShared& shared, GrpcConnectionOwner& owner, uint32_t number,
                               std::unique_ptr<Stream> stream)
    : shared_(shared),
      owner_(owner),
      number_(number),
      session_(Http2Session::Side::kServer, *this),
      stream_(std::move(stream)) {
  stream_->SetListener(*this);
}

GrpcConnection::~GrpcConnection() {
  while (first_ != nullptr) FreeCall(*first_);
}

// --- calls ---

GrpcConnection::Call* GrpcConnection::FindOpen(int32_t id) const {
  auto* call = static_cast<Call*>(session_.Find(id));
  return call != nullptr && call->phase == Phase::kOpen ? call : nullptr;
}

GrpcConnection::Call* GrpcConnection::NewCall() {
  std::unique_ptr<Call> call;
  if (free_.empty()) {
    call = std::make_unique<Call>();
  } else {
    call = std::move(free_.back());
    free_.pop_back();
  }
  call->previous = last_;
  (last_ == nullptr ? first_ : last_->next) = call.get();
  last_ = call.get();
  ++call_count_;
  return call.release();
}

void GrpcConnection::FreeCall(Call& call) {
  (call.previous == nullptr ? first_ : call.previous->next) = call.next;
  (call.next == nullptr ? last_ : call.next->previous) = call.previous;
  --call_count_;
  queued_ -= call.unframed();
  received_ -= call.counted;
  std::unique_ptr<Call> owned(&call);
  if (free_.size() == kFreeCallsMax) return;
  // The buffers' memory is what reuse is for; the rest starts anew.
  std::string outgoing = std::move(call.outgoing);
  MessageReader reader = std::move(call.reader);
  outgoing.clear();
  if (outgoing.capacity() > kKeepBytes) std::string().swap(outgoing);
  reader.Clear(kKeepBytes);
  std::destroy_at(&call);
  std::construct_at(&call);
  call.outgoing = std::move(outgoing);
  call.reader = std::move(reader);
  free_.push_back(std::move(owned));
}

void GrpcConnection::MarkDirty() {
  if (!dirty) owner_.OnDirty(*this);
}

void GrpcConnection::Send(int32_t id, const google::protobuf::Message& response) {
  Call* call = FindOpen(id);
  if (call == nullptr) return;
  if (const size_t size = response.ByteSizeLong(); size > kSendBytesMax) {
    PROBE("wire.response_too_large");
    return Abort(*call, {rpc::StatusCode::kResourceExhausted,
                         absl::StrFormat("grpc: trying to send message larger than max (%d vs. %d)", size, kSendBytesMax)});
  }
  if (queued_ > kConnectionSendBacklogMax) {
    // A client that opens calls and takes no answers: its windows are shut, and memory is not.
    PROBE("wire.answers_not_taken");
    return Abort(*call, {rpc::StatusCode::kResourceExhausted, "too many answers that the client does not take"});
  }
  queued_ += AppendMessage(response, call->outgoing);
  if (!call->headers_sent) {
    call->headers_sent = true;
    const Http2Header headers[] = {{":status", "200", true},
                                   {"content-type", call->content_type.empty() ? kContentType : call->content_type,
                                    call->content_type.empty()}};
    session_.SubmitResponse(*call, headers, false);
  } else {
    session_.BodyGrew(*call);
  }
  MarkDirty();
}

bool GrpcConnection::Starving(const Call& call) const {
  return call.unframed() >= kCallSendBacklogMax || WriteBacklog() >= kConnectionWriteBacklogMax;
}

bool GrpcConnection::Writable(int32_t id) {
  Call* call = FindOpen(id);
  if (call == nullptr) return false;
  if (!Starving(*call)) return true;
  if (!call->starved) {
    call->starved = true;
    starved_.push_back(id);
  }
  return false;
}

void GrpcConnection::Finish(int32_t id, const CallStatus& status) {
  Call* call = FindOpen(id);
  if (call != nullptr) SubmitEnd(*call, "200", status);
}

void GrpcConnection::SubmitEnd(Call& call, std::string_view http_status, CallStatus status) {
  DropDeadline(call);
  call.phase = Phase::kEnded;
  received_ -= std::exchange(call.counted, 0);
  call.reader.Clear(kKeepBytes);
  MarkDirty();
  if (call.headers_sent) {
    call.status = std::move(status);
    call.body_ended = true;
    session_.BodyGrew(call);
    return;
  }
  const std::string message = MessageField(status.message);
  const Http2Header headers[] = {{":status", http_status, true},
                                 {"content-type", call.is_grpc && !call.content_type.empty()
                                                      ? std::string_view(call.content_type)
                                                      : kContentType},
                                 {"grpc-status", CodeText(status.code), true},
                                 {"grpc-message", message}};
  session_.SubmitResponse(call, headers, true);
}

void GrpcConnection::Refuse(Call& call, std::string_view http_status, StatusCode code, std::string message) {
  SubmitEnd(call, http_status, {code, std::move(message)});
}

void GrpcConnection::Abort(Call& call, CallStatus status) {
  SubmitEnd(call, "200", std::move(status));
  shared_.service.Cancel(shared_.transport, IdOf(call));
}

void GrpcConnection::CancelAll() {
  // A service may end other calls from within Cancel, but calls leave the list only with their stream.
  for (Call* call = first_; call != nullptr; call = call->next) {
    if (call->phase == Phase::kHeaders) call->phase = Phase::kEnded;
    if (call->phase != Phase::kOpen) continue;
    DropDeadline(*call);
    call->phase = Phase::kEnded;
    shared_.service.Cancel(shared_.transport, IdOf(*call));
  }
}

// --- requests ---

Http2Stream* GrpcConnection::OnStreamBegin(int32_t) {
  if (call_count_ >= kHttp2StreamsOpenMax || last_goaway_sent_ || expelled_) return nullptr;
  return NewCall();
}

void GrpcConnection::OnHeader(Http2Stream& stream, std::string_view name, std::string_view value) {
  auto& call = static_cast<Call&>(stream);
  if (call.phase != Phase::kHeaders) return;  // trailers: gRPC has none from clients
  call.header_bytes += name.size() + value.size() + kHeaderFieldOverhead;
  if (call.header_bytes > kHttpHeaderBytesMax || name.empty()) return;
  if (name[0] == ':') {
    if (name == ":path") {
      call.method = rpc::FindMethod(value);
      call.path = value;
    } else if (name == ":method") {
      call.is_post = value == "POST";
      if (!call.is_post) call.http_method = value;
    }
  } else if (name == "content-type") {
    call.is_grpc = IsGrpcContentType(value);
    if (value != kContentType) call.content_type = value;
  } else if (name == "grpc-timeout") {
    std::variant<Duration, std::string> timeout = ParseTimeout(value);
    if (const auto* length = std::get_if<Duration>(&timeout)) {
      call.timeout = *length;
    } else {
      call.timeout_error = std::get<std::string>(std::move(timeout));
    }
  } else if (name == "grpc-encoding") {
    if (value != "identity") call.encoding = value;
  } else if (name == "hasleader") {
    call.context.has_leader = value == "true";
  } else if (name == "token") {
    call.has_token = true;
    call.context.token = value;
  } else if (name == "authorization") {
    if (!call.has_token) call.context.token = value;
  } else if (name == "client-api-version") {
    call.context.client_api_version = value;
  } else if (name == "connection") {
    call.malformed = true;  // RFC 9113 §8.2.2
  }
}

void GrpcConnection::OnHeadersEnd(Http2Stream& stream, bool first) {
  auto& call = static_cast<Call&>(stream);
  if (first && call.phase == Phase::kHeaders) OpenCall(call);
}

// The checks and their order are grpc-go's (reference: transport facts of the gRPC port).
void GrpcConnection::OpenCall(Call& call) {
  if (call.malformed || call.path.empty() || (!call.is_post && call.http_method.empty())) {
    call.phase = Phase::kEnded;
    session_.Reset(call.id, Http2Error::kProtocolError);
    MarkDirty();
    return;
  }
  if (call.header_bytes > kHttpHeaderBytesMax) {
    return Refuse(call, "431", StatusCode::kResourceExhausted,
                  absl::StrFormat("header list size %d exceeds %d", call.header_bytes, kHttpHeaderBytesMax));
  }
  if (!call.is_grpc) {
    return Refuse(call, "415", StatusCode::kInvalidArgument,
                  absl::StrFormat("invalid gRPC request content-type \"%s\"", call.content_type));
  }
  if (!call.timeout_error.empty()) {
    return Refuse(call, "400", StatusCode::kInternal, "malformed grpc-timeout: " + call.timeout_error);
  }
  if (!call.is_post) {
    return Refuse(call, "405", StatusCode::kInternal,
                  absl::StrFormat("Received a HEADERS frame with :method \"%s\" which should be POST",
                                  call.http_method));
  }
  if (!call.method.has_value()) return Refuse(call, "200", StatusCode::kUnimplemented, UnknownPathText(call.path));
  if (!call.encoding.empty()) {
    return Refuse(call, "200", StatusCode::kUnimplemented,
                  absl::StrFormat("grpc: Decompressor is not installed for grpc-encoding \"%s\"", call.encoding));
  }
  call.context.method = *call.method;
  if (call.timeout.has_value()) call.context.deadline = shared_.clock.Now() + *call.timeout;
  call.phase = Phase::kOpen;
  AddDeadline(call);
  shared_.service.Open(shared_.transport, IdOf(call), call.context);
}

void GrpcConnection::OnBody(Http2Stream& stream, std::string_view bytes) {
  auto& call = static_cast<Call&>(stream);
  const bool unary = call.phase == Phase::kOpen && !rpc::Info(call.context.method).client_streams;
  if (call.phase != Phase::kOpen || (unary && call.got_message)) return;
  const MessageReader::Result result = call.reader.Feed(
      bytes, kReceiveBytesMax, [&](std::string_view payload) { return OnRequest(call, payload) && !unary; });
  if (call.phase != Phase::kOpen) return;
  received_ = received_ - call.counted + call.reader.buffered();
  call.counted = call.reader.buffered();
  switch (result) {
    case MessageReader::Result::kMore:
      if (received_ > kConnectionReceiveBacklogMax) {
        PROBE("wire.receive_backlog_full");
        Abort(call, {StatusCode::kResourceExhausted,
                     absl::StrFormat("detcd: unfinished messages of one connection exceed %d bytes",
                                     kConnectionReceiveBacklogMax)});
      }
      return;
    case MessageReader::Result::kStopped:
      return;
    case MessageReader::Result::kTooLarge:
      return Abort(call, {StatusCode::kResourceExhausted,
                          absl::StrFormat("grpc: received message larger than max (%d vs. %d)",
                                          call.reader.announced(), kReceiveBytesMax)});
    case MessageReader::Result::kCompressed:
      return Abort(call, {StatusCode::kInternal,
                          call.reader.flag() == 1
                              ? std::string("grpc: compressed flag set with identity or empty encoding")
                              : absl::StrFormat("grpc: received unexpected payload format %d", call.reader.flag())});
  }
}

// One whole request. False: the call is over.
bool GrpcConnection::OnRequest(Call& call, std::string_view payload) {
  call.got_message = true;
  google::protobuf::Message* request = rpc::NewRequest(call.context.method, &shared_.arena);
  const bool parsed = rpc::ParseRequest(payload, *request);
  if (parsed) {
    shared_.service.Message(shared_.transport, IdOf(call), *request);
  } else {
    Abort(call, {StatusCode::kInternal,
                 "grpc: error unmarshalling request: proto: cannot parse invalid wire-format data"});
  }
  shared_.arena.Reset();
  return call.phase == Phase::kOpen;
}

void GrpcConnection::OnRemoteEnd(Http2Stream& stream) {
  auto& call = static_cast<Call&>(stream);
  if (call.phase != Phase::kOpen || call.half_closed) return;
  const bool unary = !rpc::Info(call.context.method).client_streams;
  // As in etcd's gRPC library: without a whole prefix there was no message.
  if (call.reader.partial_prefix()) return Abort(call, {StatusCode::kUnknown, "EOF"});
  if (call.reader.partial()) return Abort(call, {StatusCode::kUnknown, "unexpected EOF"});
  if (unary && !call.got_message) return Abort(call, {StatusCode::kUnknown, "EOF"});
  call.half_closed = true;
  shared_.service.HalfClose(shared_.transport, IdOf(call));
}

void GrpcConnection::OnStreamClosed(Http2Stream& stream, Http2Error) {
  auto& call = static_cast<Call&>(stream);
  const bool open = call.phase == Phase::kOpen;
  const rpc::CallId id = IdOf(call);
  DropDeadline(call);
  FreeCall(call);
  if (open) shared_.service.Cancel(shared_.transport, id);
}

// --- what leaves ---

void GrpcConnection::OnBodyFramed(Http2Stream& stream) {
  auto& call = static_cast<Call&>(stream);
  if (call.status.ok() && call.status.message.empty()) {
    constexpr Http2Header kGood[] = {{"grpc-status", "0", true}, {"grpc-message", "", true}};
    session_.SubmitTrailers(call, kGood);
    return;
  }
  const std::string message = MessageField(call.status.message);
  const Http2Header trailers[] = {{"grpc-status", CodeText(call.status.code), true}, {"grpc-message", message}};
  session_.SubmitTrailers(call, trailers);
}

void GrpcConnection::OnBodySent(Http2Stream&, size_t size) {
  queued_ -= size;
  forgive_pings_ = true;
}

void GrpcConnection::OnHeadersSent(Http2Stream& stream, bool ends) {
  forgive_pings_ = true;
  // An answer before the end of the request: the client need not send the rest (RFC 9113 §8.1).
  if (ends && !stream.remote_ended) session_.Reset(stream.id, Http2Error::kNoError);
}

bool GrpcConnection::EndTurn() {
  if (broken_) return false;
  // Frames gather in a string that all connections share, and leave it as one shared block.
  std::string& frames = shared_.frames;
  frames.clear();
  bool more = writer_.backlog() >= kConnectionWriteBacklogMax;
  if (writer_.backlog() < kConnectionWriteBacklogMax) {
    const size_t limit = kConnectionWriteBacklogMax - writer_.backlog();
    if (!session_.Drain(frames, limit)) broken_ = true;
    more = frames.size() >= limit;
    writer_.Append(Bytes::Copy(frames));
    if (frames.capacity() > kConnectionWriteBacklogMax / 4) std::string().swap(frames);
  }
  writer_.Flush(*stream_);
  const bool full = writer_.backlog() >= kConnectionWriteBacklogMax;
  if (full != reading_paused_ && (full || writer_.backlog() < kConnectionWriteBacklogMax / 2)) {
    PROBE("wire.reading_paused_or_resumed");
    reading_paused_ = full;
    if (full) {
      stream_->PauseReading();
    } else {
      stream_->ResumeReading();
    }
  }
  // The stream took all, yet there is more: no OnWritable will come, so the next turn is asked for.
  if (more && writer_.backlog() == 0 && !credit_posted) owner_.OnCreditDue(*this);
  CheckCredit();
  if (broken_) {
    CancelAll();
    return false;
  }
  const bool done = session_.Finished() || expelled_ || (last_goaway_sent_ && call_count_ == 0);
  if (!done || writer_.backlog() > 0) return true;
  CancelAll();
  stream_->CloseWrite();
  return false;
}

void GrpcConnection::CheckCredit() {
  if (starved_.empty() || credit_posted || WriteBacklog() >= kConnectionWriteBacklogMax / 2) return;
  for (const int32_t id : starved_) {
    const Call* call = FindOpen(id);
    if (call == nullptr || call->unframed() < kCallSendBacklogMax / 2) return owner_.OnCreditDue(*this);
  }
}

void GrpcConnection::GiveCredit() {
  std::vector<int32_t> waiting;
  waiting.swap(starved_);
  for (const int32_t id : waiting) {
    Call* call = FindOpen(id);
    if (call == nullptr) continue;
    // An earlier call of this round may have used up the room.
    if (call->unframed() >= kCallSendBacklogMax / 2 || WriteBacklog() >= kConnectionWriteBacklogMax) {
      starved_.push_back(id);
      continue;
    }
    call->starved = false;
    shared_.service.Credit(shared_.transport, IdOf(*call));
  }
  MarkDirty();
}

// --- the connection ---

void GrpcConnection::OnData(std::string_view bytes) {
  if (!session_.Receive(bytes)) {
    PROBE("wire.http2_connection_broken");
    CancelAll();
    return owner_.OnOver(*this);
  }
  MarkDirty();
}

void GrpcConnection::OnReadEnd() {
  // HTTP/2 has no half-closed connections: nobody is there to read an answer.
  CancelAll();
  owner_.OnOver(*this);
}

void GrpcConnection::OnWritable() {
  writer_.Unblock();
  MarkDirty();
}

void GrpcConnection::OnClosed(IoError) {
  CancelAll();
  owner_.OnOver(*this);
}

void GrpcConnection::OnResetReceived() {
  const Instant now = shared_.clock.Now();
  if (now - reset_second_ >= Seconds(1)) {
    reset_second_ = now;
    resets_ = 0;
  }
  if (++resets_ > kHttp2ResetsPerSecondMax && !expelled_) {
    PROBE("wire.too_many_resets");
    Expel("too_many_resets");
  }
}

// grpc-go's policy with etcd's parameters: a ping that comes too soon is a strike, headers or data of ours forgive all.
void GrpcConnection::OnPing(bool ack) {
  if (ack) {
    if (shutting_down_ && !last_goaway_sent_) {
      last_goaway_sent_ = true;
      session_.SubmitGoAway(Http2Error::kNoError, "");
    }
    return;
  }
  const Instant now = shared_.clock.Now();
  const std::optional<Instant> last = std::exchange(last_ping_, now);
  if (std::exchange(forgive_pings_, false)) {
    ping_strikes_ = 0;
    return;
  }
  const Duration interval = call_count_ == 0 ? kPingIntervalIdleMin : kPingIntervalMin;
  if (last.has_value() && now - *last < interval) ++ping_strikes_;
  if (ping_strikes_ > kPingStrikesMax && !expelled_) {
    PROBE("wire.too_many_pings");
    Expel("too_many_pings");
  }
}

void GrpcConnection::OnGoAway(Http2Error, std::string_view) {}  // calls under way go on; the client closes

void GrpcConnection::Expel(std::string_view debug) {
  expelled_ = true;
  session_.SubmitGoAway(Http2Error::kEnhanceYourCalm, debug);
  MarkDirty();
}

void GrpcConnection::Shutdown() {
  if (shutting_down_) return;
  shutting_down_ = true;
  // The answer to the ping shows that the client knows; what it opened before that is served (RFC 9113 §6.8).
  session_.SubmitShutdownNotice();
  session_.Ping();
  MarkDirty();
}

// --- deadlines ---

void GrpcConnection::AddDeadline(Call& call) {
  if (!call.context.deadline.has_value()) return;
  const Instant deadline = *call.context.deadline;
  deadlines_.insert({deadline.nanos, call.id});
  if (timer_ == nullptr) timer_ = shared_.clock.NewTimer(*this, 0);
  if (armed_.has_value() && *armed_ <= deadline) return;
  armed_ = deadline;
  timer_->Arm(deadline);
}

void GrpcConnection::DropDeadline(Call& call) {
  if (call.phase != Phase::kOpen || !call.context.deadline.has_value()) return;
  deadlines_.erase({call.context.deadline->nanos, call.id});
}

void GrpcConnection::OnTimer(uint64_t) {
  armed_.reset();
  const Instant now = shared_.clock.Now();
  while (!deadlines_.empty() && deadlines_.begin()->first <= now.nanos) {
    const int32_t id = deadlines_.begin()->second;
    Call* call = FindOpen(id);
    CHECK(call != nullptr);
    Abort(*call, {StatusCode::kDeadlineExceeded, "context deadline exceeded"});
  }
  if (deadlines_.empty()) return;
  armed_ = Instant{deadlines_.begin()->first};
  timer_->Arm(*armed_);
}

}  // namespace detcd::wire
