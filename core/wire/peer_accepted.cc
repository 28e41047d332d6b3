#include "core/wire/peer_accepted.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/base/check.h"
#include "core/base/probe.h"
#include "core/wire/chunked.h"

namespace detcd::wire {
namespace {

constexpr std::string_view kPlace = "wire/peer_accepted";
constexpr std::string_view kStreamPrefix = "/raft/stream/";
constexpr std::string_view kPostPath = "/raft";

HttpAnswer NotFound() { return TextAnswer(404, "404 page not found"); }

Bytes Chunk(std::string_view content) {
  const std::string head = ChunkHead(content.size());
  return Bytes::Build(head.size() + content.size() + kChunkTail.size(), [&](char* out) {
    out = std::copy(head.begin(), head.end(), out);
    out = std::copy(content.begin(), content.end(), out);
    std::copy(kChunkTail.begin(), kChunkTail.end(), out);
  });
}

}  // namespace

AcceptedPeer::AcceptedPeer(const Context& context, uint64_t id, std::unique_ptr<Stream> stream)
    : context_(context), id_(id), stream_(std::move(stream)), last_read_(context.clock.Now()) {
  stream_->SetListener(*this);
}

// --- reading requests -----------------------------------------------------------------------------------------------

void AcceptedPeer::OnData(std::string_view bytes) {
  last_read_ = context_.clock.Now();
  while (state_ == State::kHead || state_ == State::kBody) {
    if (!(state_ == State::kHead ? ReadHead(bytes) : ReadBody(bytes))) return;
    if (output_.bytes() > kPeerStreamBufferBytesMax) return Close("answers are not read");
  }
  // A stream's opener has nothing more to say, and after the last answer nobody listens.
}

// False: more bytes are needed, or none are wanted any more.
bool AcceptedPeer::ReadHead(std::string_view& input) {
  if (input.empty()) return false;
  switch (head_reader_.Next(input)) {
    case HttpHeadReader::Step::kNeedMore:
      return false;
    case HttpHeadReader::Step::kTooLarge:
      AnswerAndClose(TextAnswer(431, "431 Request Header Fields Too Large"));
      return false;
    case HttpHeadReader::Step::kHead:
      break;
  }
  const std::optional<HttpHeadError> error = ParseRequestHead(head_reader_.text(), head_);
  head_reader_.Reset();
  if (error == HttpHeadError::kVersion) {
    AnswerAndClose(TextAnswer(505, "505 HTTP Version Not Supported"));
    return false;
  }
  const std::optional<HttpBodyFraming> framing = error ? std::nullopt : RequestBodyFraming(head_);
  if (!framing) {
    AnswerAndClose(TextAnswer(400, "400 Bad Request"));
    return false;
  }
  if (!head_.Find("Host")) {
    AnswerAndClose(TextAnswer(400, "400 Bad Request: missing required Host header"));
    return false;
  }
  body_reader_.emplace(*framing);
  body_.clear();
  state_ = State::kBody;
  if (head_.HasToken("Expect", "100-continue") && input.empty()) {
    Queue(Bytes::Static("HTTP/1.1 100 Continue\r\n\r\n"));
    MarkDirty();
  }
  return true;
}

bool AcceptedPeer::ReadBody(std::string_view& input) {
  std::string_view content;
  switch (body_reader_->Next(input, content)) {
    case HttpBodyReader::Step::kNeedMore:
      return false;
    case HttpBodyReader::Step::kContent:
      if (head_.Path() != kPostPath) return true;
      if (content.size() > kPeerMessageBytesMax - body_.size()) {
        AnswerAndClose(TextAnswer(400, "error reading raft message"));
        return false;
      }
      body_.append(content);
      return true;
    case HttpBodyReader::Step::kMalformed:
      AnswerAndClose(TextAnswer(400, head_.Path() == kPostPath ? "error reading raft message" : "400 Bad Request"));
      return false;
    case HttpBodyReader::Step::kEnd:
      state_ = State::kHead;
      OnRequest();
      return state_ == State::kHead;
  }
  return false;
}

void AcceptedPeer::OnReadEnd() {
  // Go's clients close both directions at once, so for a stream this is its end.
  if (state_ == State::kStreaming || output_.empty()) return Gone("closed by the peer");
  state_ = State::kClosing;
  MarkDirty();
}

void AcceptedPeer::OnClosed(IoError error) { Gone(IoErrorName(error)); }

// --- answering ------------------------------------------------------------------------------------------------------

void AcceptedPeer::OnRequest() {
  const std::string_view path = head_.Path();
  if (path.starts_with(kStreamPrefix)) return OnStreamRequest();
  if (path == kPostPath) return OnPost();
  Answer(AnswerPlain(path));
}

HttpAnswer AcceptedPeer::AnswerPlain(std::string_view path) {
  if (path == "/raft/probing") {
    const std::string now = FormatRfc3339(context_.clock.Wall());
    return {.headers = {{"Content-Type", "text/plain; charset=utf-8"}},
            .body = "{\"OK\":true,\"Now\":\"" + now + "\"}\n"};
  }
  if (path != "/members" && path != "/version") return NotFound();
  if (head_.method != "GET") return MethodNotAllowed("GET");
  HttpAnswer answer{.headers = {{"Content-Type", "application/json"}}};
  if (path == "/version") {
    answer.body = context_.info.VersionJson();
  } else {
    answer.headers.push_back(ClusterHeader(context_.self).front());
    answer.body = context_.info.MembersJson() + "\n";
  }
  return answer;
}

void AcceptedPeer::OnStreamRequest() {
  std::variant<StreamGrant, HttpAnswer> verdict = CheckStreamRequest(
      context_.self, context_.info, head_, [this](MemberId id) { return context_.owner.IsPeer(id); });
  if (const auto* refusal = std::get_if<HttpAnswer>(&verdict)) {
    Emit(context_.trace, LogLevel::kWarn, kPlace, "refused a stream",
         {TraceField::Text("path", head_.target), TraceField::Text("reason", refusal->body)});
    return Answer(*refusal);
  }
  grant_ = std::get<StreamGrant>(verdict);
  encoder_.emplace(grant_->channel);
  state_ = State::kStreaming;
  std::vector<HttpHeader> headers = ClusterHeader(context_.self);
  headers.push_back({"X-Server-Version", context_.self.server_version});
  headers.push_back({"Transfer-Encoding", "chunked"});
  Queue(Bytes::Copy(WriteResponseHead(200, headers, context_.clock.Wall())));
  next_heartbeat_ = context_.clock.Now() + kPeerLinkHeartbeat;
  MarkDirty();
  context_.owner.OnStreamOpened(*this, *grant_);
}

// The pipeline: one message in a request of its own (reference: peer protocol, section 6).
void AcceptedPeer::OnPost() {
  if (head_.method != "POST") return Answer(MethodNotAllowed("POST"));
  if (std::optional<HttpAnswer> refusal = CheckCompatible(context_.self, head_)) return Answer(*refusal);

  const auto with_cluster = [this](HttpAnswer answer) {
    answer.headers.push_back(ClusterHeader(context_.self).front());
    return answer;
  };
  std::variant<raft::Message, raft::DecodeError> decoded = raft::DecodeMessage(Bytes::Copy(body_));
  body_ = {};
  if (const auto* error = std::get_if<raft::DecodeError>(&decoded)) {
    if (*error == raft::DecodeError::kMalformed) {
      return Answer(with_cluster(TextAnswer(400, "error unmarshalling raft message")));
    }
    PROBE("wire.peer_unsupported_post");
    Emit(context_.trace, LogLevel::kWarn, kPlace, "dropped a posted message of a kind that is not supported",
         {TraceField::Text("from", head_.Get("X-Server-From"))});
    return Answer(with_cluster({.status = 204}));
  }
  auto& message = std::get<raft::Message>(decoded);
  const MemberId from = message.from;
  const MemberId to = message.to;
  const bool is_welcome = to == context_.self.id && !context_.info.IsRemoved(from);
  if (!is_welcome || !context_.owner.OnPosted(std::move(message))) {
    Emit(context_.trace, LogLevel::kWarn, kPlace, "refused a posted message",
         {TraceField::Id("from", from.value), TraceField::Id("to", to.value)});
    return CutInsideAnswer("error processing raft message");
  }
  Answer(with_cluster({.status = 204}));
}

// etcd's handler breaks off here, which its clients see as a body that never ends.
void AcceptedPeer::CutInsideAnswer(std::string_view text) {
  HttpAnswer answer = TextAnswer(500, text);
  answer.headers.push_back(ClusterHeader(context_.self).front());
  answer.headers.push_back({"Transfer-Encoding", "chunked"});
  Queue(Bytes::Copy(WriteResponseHead(answer.status, answer.headers, context_.clock.Wall())));
  Queue(Chunk(answer.body));
  state_ = State::kClosing;
  MarkDirty();
}

void AcceptedPeer::Answer(const HttpAnswer& answer) {
  if (!head_.KeepsAlive()) return AnswerAndClose(answer);
  Queue(Bytes::Copy(WriteAnswer(answer, context_.clock.Wall(), head_.method == "HEAD")));
  MarkDirty();
}

void AcceptedPeer::AnswerAndClose(const HttpAnswer& answer) {
  HttpAnswer last = answer;
  last.headers.push_back({"Connection", "close"});
  Queue(Bytes::Copy(WriteAnswer(last, context_.clock.Wall(), head_.method == "HEAD")));
  state_ = State::kClosing;
  MarkDirty();
}

// --- the outgoing stream --------------------------------------------------------------------------------------------

bool AcceptedPeer::Send(const raft::Message& message) {
  CHECK(state_ == State::kStreaming);
  if (!HasRoom()) {
    PROBE("wire.peer_stream_full");
    wants_room_ = true;
    return false;
  }
  encoder_->Encode(message, pending_);
  MarkDirty();
  return true;
}

void AcceptedPeer::MarkDirty() {
  if (is_dirty_ || is_gone()) return;
  is_dirty_ = true;
  context_.owner.OnDirty(*this);
}

void AcceptedPeer::Queue(Bytes piece) {
  if (output_.empty()) last_progress_ = context_.clock.Now();
  output_.Push(std::move(piece));
}

void AcceptedPeer::Flush() {
  is_dirty_ = false;
  if (is_gone()) return;
  if (!pending_.empty()) {
    Queue(Chunk(pending_));
    pending_.clear();
  }
  if (output_.Flush(*stream_) > 0) last_progress_ = context_.clock.Now();
  if (wants_room_ && output_.bytes() <= kPeerStreamBufferBytesMax / 2) {
    wants_room_ = false;
    context_.owner.OnRoom(*this);
  }
  if (state_ == State::kClosing && output_.empty()) {
    stream_->CloseWrite();
    Gone("answered");
  }
}

// --- time -----------------------------------------------------------------------------------------------------------

Instant AcceptedPeer::Deadline() const {
  const Instant write_limit = last_progress_ + kPeerWriteTimeout;
  switch (state_) {
    case State::kHead:
    case State::kBody:
      return output_.empty() ? last_read_ + kPeerReadTimeout : std::min(write_limit, last_read_ + kPeerReadTimeout);
    case State::kStreaming:
      return output_.empty() ? next_heartbeat_ : std::min(write_limit, next_heartbeat_);
    case State::kClosing:
      return output_.empty() ? last_read_ + kPeerReadTimeout : write_limit;
  }
  return write_limit;
}

void AcceptedPeer::OnDeadline(Instant now) {
  if (!output_.empty() && now >= last_progress_ + kPeerWriteTimeout) {
    PROBE("wire.peer_write_timeout");
    return Close("write timeout");
  }
  if (state_ != State::kStreaming) {
    if (now >= last_read_ + kPeerReadTimeout) Close("read timeout");
    return;
  }
  if (now < next_heartbeat_) return;
  next_heartbeat_ = now + kPeerLinkHeartbeat;
  if (!HasRoom()) return;  // what waits is sign of life enough
  encoder_->EncodeLinkHeartbeat(pending_);
  MarkDirty();
}

void AcceptedPeer::Close(std::string_view reason) { Gone(reason); }

void AcceptedPeer::Gone(std::string_view reason) {
  if (is_gone()) return;
  if (grant_) {
    Emit(context_.trace, LogLevel::kInfo, kPlace, "outgoing stream ended",
         {TraceField::Id("peer", grant_->peer.value), TraceField::Text("reason", reason)});
  }
  stream_.reset();
  context_.owner.OnGone(*this);
}

}  // namespace detcd::wire
