#include "core/wire/grpc_connection.h"

#include <google/protobuf/message.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/check.h"
#include "core/base/probe.h"
#include "core/rpc/api_error.h"
#include "core/rpc/messages.h"
#include "core/rpc/utf8.h"

namespace detcd::wire {
namespace {

using rpc::CallStatus;
using rpc::StatusCode;

constexpr size_t kArenaBlockBytes = 8'192;
constexpr size_t kKeepBytes = 16'384;         // of a buffer, when its call goes back to the free list
constexpr size_t kReceiveSliceBytes = 4'096;  // no more than 455 frames
constexpr size_t kFreeCallsMax = 256;         // per connection
constexpr std::string_view kContentType = "application/grpc";

// grpc-status as text.
constexpr std::array<std::string_view, 17> kCodeTexts = {"0", "1", "2",  "3",  "4",  "5",  "6",  "7", "8",
                                                         "9", "10", "11", "12", "13", "14", "15", "16"};
std::string_view CodeText(StatusCode code) { return kCodeTexts[static_cast<size_t>(code)]; }

// A text may quote a whole path, in any bytes; clients do not take header lists of any size, nor texts that are not
// UTF-8.
std::string MessageField(std::string_view text) {
  text = text.substr(0, kGrpcMessageBytesMax);
  return rpc::IsUtf8(text) ? EncodePercent(text) : EncodePercent(RepairUtf8(text));
}

google::protobuf::ArenaOptions OptionsWith(char* block) {
  google::protobuf::ArenaOptions options;
  options.initial_block = block;
  options.initial_block_size = kArenaBlockBytes;
  return options;
}

// What waits for a connection's timers.
constexpr uint64_t kDeadlineToken = 0;
constexpr uint64_t kWatchToken = 1;

// etcd hands a zero to its gRPC library as `not set`. Lengths are capped so that adding one to an instant never overflows.
GrpcOptions WithDefaults(GrpcOptions options) {
  if (options.streams_max == 0) options.streams_max = std::numeric_limits<uint32_t>::max();
  if (options.ping_interval_min <= Duration{}) options.ping_interval_min = kPingIntervalDefault;
  if (options.keepalive_interval <= Duration{} || options.keepalive_timeout <= Duration{}) {
    options.keepalive_interval = kKeepaliveInterval;
    options.keepalive_timeout = kKeepaliveTimeout;
  }
  options.keepalive_interval = std::clamp(options.keepalive_interval, kKeepaliveIntervalMin, kTimeoutMax);
  options.keepalive_timeout = std::min(options.keepalive_timeout, kTimeoutMax);
  return options;
}

}  // namespace

GrpcShared::GrpcShared(Clock& the_clock, rpc::CallService& the_service, rpc::CallTransport& the_transport,
                       const GrpcOptions& the_options)
    : clock(the_clock),
      service(the_service),
      transport(the_transport),
      options(WithDefaults(the_options)),
      arena_block(std::make_unique<char[]>(kArenaBlockBytes)),
      arena(OptionsWith(arena_block.get())) {}

GrpcConnection::GrpcConnection(GrpcShared& shared, GrpcConnectionOwner& owner, uint32_t number,
                               std::unique_ptr<Stream> stream)
    : shared_(shared),
      owner_(owner),
      number_(number),
      session_(Http2Session::Side::kServer, *this, shared.options.streams_max),
      stream_(std::move(stream)),
      guard_(shared.options.ping_interval_min),
      watch_(shared.clock.NewTimer(*this, kWatchToken)),
      last_read_(shared.clock.Now()) {
  watch_->Arm(last_read_ + kHttp2HandshakeTimeout);
  stream_->SetListener(*this);
}

GrpcConnection::~GrpcConnection() {
  shared_.held -= held_;
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
  heads_ -= call.head_counted;
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
  if (call == nullptr || !MaySend(*call, response.ByteSizeLong())) return;
  CHECK(call->pieces.empty());  // an encoded answer is the only one of its call
  queued_ += call->head.gzip() ? AppendGzipMessage(response, shared_.gzip, call->outgoing)
                               : AppendMessage(response, call->outgoing);
  OnQueued(*call);
}

void GrpcConnection::SendEncoded(int32_t id, std::vector<Bytes> pieces) {
  Call* call = FindOpen(id);
  if (call == nullptr) return;
  size_t size = 0;
  for (const Bytes& piece : pieces) size += piece.size();
  if (!MaySend(*call, size)) return;
  if (call->head.gzip()) {
    std::string plain;
    plain.reserve(size);
    for (const Bytes& piece : pieces) plain += piece.view();
    queued_ += AppendGzipMessage(plain, shared_.gzip, call->outgoing);
  } else {
    queued_ += AppendPrefix(size, call->outgoing) + size;
    call->SetPieces(std::move(pieces));
  }
  OnQueued(*call);
}

// Whether an answer of `size` bytes may be queued; if not, the call has been ended.
bool GrpcConnection::MaySend(Call& call, size_t size) {
  if (size > kSendBytesMax) {
    PROBE("wire.response_too_large");
    Abort(call, {rpc::StatusCode::kResourceExhausted,
                 absl::StrFormat("grpc: trying to send message larger than max (%d vs. %d)", size, kSendBytesMax)});
    return false;
  }
  if (queued_ > kConnectionSendBacklogMax) {
    // A client that opens calls and takes no answers: its windows are shut, and memory is not.
    PROBE("wire.answers_not_taken");
    Abort(call, {rpc::StatusCode::kResourceExhausted, "too many answers that the client does not take"});
    return false;
  }
  return true;
}

// A message has been added to what the call sends.
void GrpcConnection::OnQueued(Call& call) {
  if (!call.headers_sent) {
    call.headers_sent = true;
    const std::string_view type = call.head.content_type();
    const std::array<Http2Header, 3> headers = {{{":status", "200", true},
                                                 {"content-type", type.empty() ? kContentType : type, type.empty()},
                                                 {"grpc-encoding", "gzip", true}}};
    session_.SubmitResponse(call, std::span(headers).first(call.head.gzip() ? 3 : 2), false);
  } else {
    session_.BodyGrew(call);
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
  const std::string_view type = call.head.content_type();
  const Http2Header headers[] = {{":status", http_status, true},
                                 {"content-type", type.empty() ? kContentType : type, type.empty()},
                                 {"grpc-status", CodeText(status.code), true},
                                 {"grpc-message", message}};
  session_.SubmitResponse(call, headers, true);
}

void GrpcConnection::Refuse(Call& call, HeadRefusal refusal) {
  SubmitEnd(call, refusal.http_status, {refusal.code, std::move(refusal.message)});
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
  if (call_count_ >= std::min(shared_.options.streams_max, kHttp2StreamsOpenMax)) {
    PROBE("wire.stream_refused");
    return nullptr;
  }
  if (last_goaway_sent_ || expelled_) return nullptr;
  return NewCall();
}

void GrpcConnection::OnHeader(Http2Stream& stream, std::string_view name, std::string_view value) {
  auto& call = static_cast<Call&>(stream);
  if (call.phase == Phase::kHeaders) {
    call.head.Add(name, value);
  } else if (!IsTrailerField(name, value)) {
    call.bad_trailers = true;  // gRPC has no trailers from clients: what they say is not looked at
  }
}

void GrpcConnection::OnHeadersEnd(Http2Stream& stream, bool first) {
  auto& call = static_cast<Call&>(stream);
  if (first && call.phase == Phase::kHeaders) {
    call.head_counted = std::min(call.head.bytes(), kHttpHeaderBytesMax);
    heads_ += call.head_counted;
    OpenCall(call);
  } else if (call.bad_trailers) {
    session_.Reset(call.id, Http2Error::kProtocolError);
    MarkDirty();
  }
}

void GrpcConnection::OpenCall(Call& call) {
  auto verdict = call.head.Judge();
  if (std::holds_alternative<MalformedHead>(verdict)) {
    call.phase = Phase::kEnded;
    session_.Reset(call.id, Http2Error::kProtocolError);
    return MarkDirty();
  }
  if (auto* refusal = std::get_if<HeadRefusal>(&verdict)) return Refuse(call, std::move(*refusal));
  rpc::CallContext& context = call.head.context();
  if (call.head.timeout().has_value()) context.deadline = shared_.clock.Now() + *call.head.timeout();
  call.phase = Phase::kOpen;
  AddDeadline(call);
  shared_.service.Open(shared_.transport, IdOf(call), context);
}

void GrpcConnection::OnBody(Http2Stream& stream, std::string_view bytes) {
  auto& call = static_cast<Call&>(stream);
  const bool unary = call.phase == Phase::kOpen && !rpc::Info(call.head.context().method).client_streams;
  if (call.phase != Phase::kOpen || (unary && call.got_message)) return;
  const MessageReader::Result result =
      call.reader.Feed(bytes, kReceiveBytesMax, call.head.gzip(),
                       [&](std::string_view payload) { return OnRequest(call, payload) && !unary; });
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
    case MessageReader::Result::kWrongFlag:
      return Abort(call, {StatusCode::kInternal,
                          call.reader.flag() == 1
                              ? std::string("grpc: compressed flag set with identity or empty encoding")
                              : absl::StrFormat("grpc: received unexpected payload format %d", call.reader.flag())});
  }
}

bool GrpcConnection::Inflate(Call& call, std::string_view& payload) {
  std::string& inflated = shared_.inflated;
  inflated.clear();
  std::string_view why;
  switch (shared_.gzip.Decompress(payload, kReceiveBytesMax, inflated)) {
    case Gzip::Result::kOk:
      payload = inflated;
      return true;
    case Gzip::Result::kTooLarge:
      PROBE("wire.gzip_bomb");
      Abort(call, {StatusCode::kResourceExhausted,
                   absl::StrFormat("grpc: received message after decompression larger than max %d", kReceiveBytesMax)});
      return false;
    case Gzip::Result::kNoHeader:
      why = payload.empty() ? "decompress the message: EOF" : "decompress the message: unexpected EOF";
      break;
    case Gzip::Result::kBadHeader:
      why = "decompress the message: gzip: invalid header";
      break;
    case Gzip::Result::kCutOff:
      why = "read decompressed data: unexpected EOF";
      break;
    case Gzip::Result::kCorrupt:
      why = "read decompressed data: gzip: invalid checksum";
      break;
  }
  Abort(call, {StatusCode::kInternal, absl::StrFormat("grpc: failed to %s", why)});
  return false;
}

// One whole request. False: the call is over.
bool GrpcConnection::OnRequest(Call& call, std::string_view payload) {
  call.got_message = true;
  if (call.reader.flag() == 1 && !Inflate(call, payload)) return false;
  google::protobuf::Message* request = rpc::NewRequest(call.head.context().method, &shared_.arena);
  const bool parsed = rpc::ParseRequest(payload, *request);
  if (parsed) {
    shared_.service.Message(shared_.transport, IdOf(call), *request);
  } else {
    Abort(call, {StatusCode::kInternal,
                 "grpc: error unmarshalling request: proto: cannot parse invalid wire-format data"});
  }
  shared_.arena.Reset();
  if (shared_.inflated.capacity() > kKeepBytes) std::string().swap(shared_.inflated);
  return call.phase == Phase::kOpen;
}

void GrpcConnection::OnRemoteEnd(Http2Stream& stream) {
  auto& call = static_cast<Call&>(stream);
  if (call.phase != Phase::kOpen || call.half_closed) return;
  const bool unary = !rpc::Info(call.head.context().method).client_streams;
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
  guard_.OnAnswerFrame();
}

void GrpcConnection::OnHeadersSent(Http2Stream& stream, bool ends) {
  guard_.OnAnswerFrame();
  // An answer before the end of the request: the client need not send the rest (RFC 9113 §8.1).
  if (ends && !stream.remote_ended) session_.Reset(stream.id, Http2Error::kNoError);
}

bool GrpcConnection::EndTurn() {
  if (broken_) return false;
  PlaceDeadlines();
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
  CountHeld();
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
  if (session_.Finished() && !std::exchange(expelled_, true)) {
    // The library has said GOAWAY, which a client that reads nothing would never take.
    watch_->Arm(shared_.clock.Now() + kHttp2ExpelTimeout);
  }
  const bool done = expelled_ || (last_goaway_sent_ && call_count_ == 0);
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
  if (expelled_) return;
  last_read_ = shared_.clock.Now();
  pinged_at_.reset();
  // In slices: who is expelled by what is in one is heard no further, and the library, which gives up without a word at
  // 1,000 acknowledgements owed, owes fewer than that (those of a slice, and what the guard let pass before it).
  while (!bytes.empty() && !expelled_) {
    const std::string_view slice = bytes.substr(0, kReceiveSliceBytes);
    bytes.remove_prefix(slice.size());
    if (session_.Receive(slice)) continue;
    PROBE("wire.http2_connection_broken");
    return Cut();
  }
  MarkDirty();
}

void GrpcConnection::Cut() {
  CancelAll();
  owner_.OnOver(*this);
}

void GrpcConnection::CountHeld() {
  const size_t held = received_ + queued_ + writer_.backlog() + heads_ + call_count_ * kOpenCallBytes;
  shared_.held += held - held_;  // modulo 2^64, as sums of unsigned differences are
  held_ = held;
}

void GrpcConnection::OnReadEnd() {
  // HTTP/2 has no half-closed connections: nobody is there to read an answer.
  Cut();
}

void GrpcConnection::OnWritable() {
  writer_.Unblock();
  MarkDirty();
}

void GrpcConnection::OnClosed(IoError) { Cut(); }

void GrpcConnection::OnResetForced() { Expel(guard_.OnReset(shared_.clock.Now())); }

void GrpcConnection::OnOverhead(Http2Overhead kind) {
  if (kind == Http2Overhead::kSettings && !std::exchange(greeted_, true)) {
    watch_->Arm(shared_.clock.Now() + shared_.options.keepalive_interval);
  }
  Expel(guard_.OnOverhead(shared_.clock.Now(), kind));
}

void GrpcConnection::OnPing(bool ack) {
  if (!ack) return Expel(guard_.OnPing(shared_.clock.Now(), call_count_ > 0));
  if (shutting_down_ && !last_goaway_sent_) {
    last_goaway_sent_ = true;
    session_.SubmitGoAway(Http2Error::kNoError, "");
  }
}

void GrpcConnection::OnGoAway(Http2Error, std::string_view) {}  // calls under way go on; the client closes

void GrpcConnection::Expel(std::string_view debug) {
  if (debug.empty() || std::exchange(expelled_, true)) return;
  session_.SubmitGoAway(Http2Error::kEnhanceYourCalm, debug);
  watch_->Arm(shared_.clock.Now() + kHttp2ExpelTimeout);
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
  if (!call.head.context().deadline.has_value()) return;
  const Instant deadline = *call.head.context().deadline;
  deadlines_new_.push_back(call.id);
  if (timer_ == nullptr) timer_ = shared_.clock.NewTimer(*this, kDeadlineToken);
  if (armed_.has_value() && *armed_ <= deadline) return;
  armed_ = deadline;
  timer_->Arm(deadline);
}

void GrpcConnection::PlaceDeadlines() {
  for (const int32_t id : deadlines_new_) {
    Call* call = FindOpen(id);
    if (call == nullptr) continue;
    deadlines_.insert({call->head.context().deadline->nanos, id});
    call->deadline_placed = true;
  }
  deadlines_new_.clear();
}

void GrpcConnection::DropDeadline(Call& call) {
  if (!std::exchange(call.deadline_placed, false)) return;
  deadlines_.erase({call.head.context().deadline->nanos, call.id});
}

void GrpcConnection::OnTimer(uint64_t token) {
  if (token == kDeadlineToken) {
    OnDeadline();
  } else {
    OnWatch();
  }
}

void GrpcConnection::OnWatch() {
  const Instant now = shared_.clock.Now();
  if (expelled_ || !greeted_) {
    PROBE("wire.handshake_or_farewell_timed_out");
    return Cut();
  }
  const Duration interval = shared_.options.keepalive_interval;
  if (pinged_at_.has_value()) {
    const Instant cut_at = *pinged_at_ + shared_.options.keepalive_timeout;
    if (now < cut_at) return watch_->Arm(std::min(cut_at, now + interval));
    PROBE("wire.silent_client_cut");
    return Cut();
  }
  if (now < last_read_ + interval) return watch_->Arm(last_read_ + interval);
  pinged_at_ = now;
  session_.Ping();
  watch_->Arm(now + std::min(interval, shared_.options.keepalive_timeout));
  MarkDirty();
}

void GrpcConnection::OnDeadline() {
  armed_.reset();
  PlaceDeadlines();
  const Instant now = shared_.clock.Now();
  while (!deadlines_.empty() && deadlines_.begin()->first <= now.nanos) {
    const int32_t id = deadlines_.begin()->second;
    Call* call = FindOpen(id);
    CHECK(call != nullptr);
    Abort(*call, rpc::ToCallStatus(rpc::ApiError::kContextDeadlineExceeded));
  }
  if (deadlines_.empty()) return;
  armed_ = Instant{deadlines_.begin()->first};
  timer_->Arm(*armed_);
}

}  // namespace detcd::wire
