#include "core/wire/peer_client.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/limits.h"
#include "core/base/probe.h"
#include "core/member/cluster_version.h"

namespace detcd::wire {
namespace {

constexpr std::string_view kPlace = "wire/peer_client";
constexpr int kNoContent = 204;

bool IsSuccess(int status) { return status >= 200 && status < 300; }

}  // namespace

PeerClient::PeerClient(const Context& context, MemberId peer, std::vector<Url> urls)
    : context_(context), peer_(peer), target_(std::move(urls)) {}

void PeerClient::Start() {
  next_probe_ = context_.clock.Now() + kPeerProbeInterval;
  context_.owner.OnDirty(*this);
}

// --- asking ---------------------------------------------------------------------------------------------------------

bool PeerClient::Waits(Kind kind) const {
  return std::any_of(waiting_.begin(), waiting_.end(), [&](const Request& request) { return request.kind == kind; });
}

void PeerClient::AskVersion() {
  if (!Waits(Kind::kVersion)) Enqueue({.kind = Kind::kVersion, .message = {}});
}

bool PeerClient::Post(const raft::Message& message) {
  if (posts_ >= kPeerPostsMax || post_bytes_ >= kPeerPostBytesMax) {
    PROBE("wire.peer_posts_full");
    return false;
  }
  Request request{.kind = Kind::kPost, .message = {}};
  raft::EncodeMessage(message, request.message);
  ++posts_;
  post_bytes_ += request.message.size();
  Enqueue(std::move(request));
  return true;
}

void PeerClient::Enqueue(Request request) {
  waiting_.push_back(std::move(request));
  Go();
}

// Moves on where nothing is under way.
void PeerClient::Go() {
  if (waiting_.empty()) return;
  if (state_ == State::kIdle) return Ask();
  if (state_ == State::kApart && context_.clock.Now() >= next_dial_) return Dial();
  context_.owner.OnDirty(*this);
}

void PeerClient::Ask() {
  const Request& request = waiting_.front();
  state_ = State::kAsking;
  since_ = context_.clock.Now();
  const std::string host = target_.HostHeader();
  switch (request.kind) {
    case Kind::kProbe:
      output_.Push(Bytes::Copy(WriteGetRequest(context_.self, "/raft/probing", host)));
      break;
    case Kind::kVersion:
      output_.Push(Bytes::Copy(WriteGetRequest(context_.self, "/version", host)));
      break;
    case Kind::kPost:
      output_.Push(Bytes::Copy(WritePostRequest(context_.self, request.message.size(), host)));
      output_.Push(Bytes::Copy(request.message));
      break;
  }
  context_.owner.OnDirty(*this);
}

// --- dialling -------------------------------------------------------------------------------------------------------

void PeerClient::Dial() {
  since_ = context_.clock.Now();
  next_dial_ = since_ + kPeerRedialInterval;
  const Url& url = target_.url();
  if (url.IsUnix()) {
    state_ = State::kConnecting;
    stream_ = context_.network.Connect(target_.Pick({{.host = url.host, .port = 0, .is_unix = true}}), *this);
  } else {
    state_ = State::kResolving;
    resolve_token_ = context_.owner.Resolve(*this, url.host, url.port);
  }
  context_.owner.OnDirty(*this);
}

void PeerClient::OnResolved(uint64_t token, IoError error, std::vector<Address> addresses) {
  if (state_ != State::kResolving || token != resolve_token_) return;  // of an attempt that was given up
  if (error != IoError::kOk || addresses.empty()) return Fail("name not resolved");
  state_ = State::kConnecting;
  stream_ = context_.network.Connect(target_.Pick(addresses), *this);
}

void PeerClient::OnConnected() {
  state_ = State::kIdle;
  Go();
}

void PeerClient::Flush() {
  if (stream_ != nullptr) output_.Flush(*stream_);
}

// --- answers --------------------------------------------------------------------------------------------------------

void PeerClient::OnData(std::string_view bytes) {
  while (state_ == State::kAsking) {
    if (!body_reader_) {
      if (!ReadHead(bytes)) return;
      if (head_.status == kNoContent) {
        Finish();
        continue;
      }
    }
    std::string_view content;
    switch (body_reader_->Next(bytes, content)) {
      case HttpBodyReader::Step::kNeedMore:
        return;
      case HttpBodyReader::Step::kContent:
        if (body_.size() + content.size() > kPeerAnswerBytesMax) return Fail("answer is too large");
        body_.append(content);
        break;
      case HttpBodyReader::Step::kEnd:
        Finish();
        break;
      case HttpBodyReader::Step::kMalformed:
        return Fail("malformed chunk");
    }
  }
  if (!bytes.empty() && state_ == State::kIdle) Fail("an answer that nobody asked for");
}

// False: more bytes are needed, or the connection is given up.
bool PeerClient::ReadHead(std::string_view& input) {
  switch (head_reader_.Next(input)) {
    case HttpHeadReader::Step::kNeedMore:
      return false;
    case HttpHeadReader::Step::kTooLarge:
      Fail("answer's head is too large");
      return false;
    case HttpHeadReader::Step::kHead:
      break;
  }
  const auto error = ParseResponseHead(head_reader_.text(), head_);
  head_reader_.Reset();
  const std::optional<HttpBodyFraming> framing = error ? std::nullopt : ResponseBodyFraming(head_);
  // A body that ends with the connection would leave nothing to go on with; etcd's handlers write none.
  if (!framing || (framing->until_close && head_.status != kNoContent)) {
    Fail("malformed answer");
    return false;
  }
  body_reader_.emplace(*framing);
  return true;
}

// The answer to the first request is whole.
void PeerClient::Finish() {
  const Request request = std::move(waiting_.front());
  waiting_.pop_front();
  const bool closes = head_.HasToken("Connection", "close");
  const bool success = IsSuccess(head_.status);
  const std::string body = std::exchange(body_, {});
  body_reader_.reset();
  state_ = State::kIdle;
  if (closes) Disconnect();
  switch (request.kind) {
    case Kind::kProbe:
      if (!healthy_) {
        Emit(context_.trace, LogLevel::kInfo, kPlace, "a peer answers probes again",
             {TraceField::Id("peer", peer_.value)});
      }
      healthy_ = true;
      break;
    case Kind::kVersion:
      context_.owner.OnVersion(peer_, success ? member::DecodeServerVersion(body).value_or("") : "");
      break;
    case Kind::kPost:
      --posts_;
      post_bytes_ -= request.message.size();
      if (success) break;
      PROBE("wire.peer_post_refused");
      Emit(context_.trace, LogLevel::kWarn, kPlace, "a peer refused a message",
           {TraceField::Id("peer", peer_.value), TraceField::Number("status", static_cast<uint64_t>(head_.status)),
            TraceField::Text("answer", body)});
      context_.owner.OnPostFailed(peer_);
      break;
  }
  Go();
}

// --- trouble and time -----------------------------------------------------------------------------------------------

// An idle connection may end at any time: servers close it after a while.
void PeerClient::Lost(std::string_view reason) {
  if (state_ != State::kIdle) return Fail(reason);
  Disconnect();
  context_.owner.OnDirty(*this);
}

void PeerClient::Disconnect() {
  stream_.reset();
  output_ = {};
  head_reader_.Reset();
  body_reader_.reset();
  body_.clear();
  state_ = State::kApart;
}

void PeerClient::Fail(std::string_view reason) {
  target_.OnFailed();
  Disconnect();
  const std::deque<Request> failed = std::exchange(waiting_, {});
  const bool posts_failed = posts_ > 0;
  posts_ = 0;
  post_bytes_ = 0;
  bool asked_version = false;
  for (const Request& request : failed) {
    asked_version |= request.kind == Kind::kVersion;
    if (request.kind != Kind::kProbe) continue;
    Emit(context_.trace, healthy_ ? LogLevel::kWarn : LogLevel::kDebug, kPlace, "a probe of a peer failed",
         {TraceField::Id("peer", peer_.value), TraceField::Text("reason", reason)});
    healthy_ = false;
  }
  context_.owner.OnDirty(*this);
  if (asked_version) context_.owner.OnVersion(peer_, "");
  if (posts_failed) context_.owner.OnPostFailed(peer_);
}

Instant PeerClient::Deadline() const {
  switch (state_) {
    case State::kApart:
      return waiting_.empty() ? next_probe_ : std::min(next_dial_, next_probe_);
    case State::kResolving:
    case State::kConnecting:
      return std::min(since_ + context_.dial_timeout, next_probe_);
    case State::kIdle:
      return next_probe_;
    case State::kAsking:
      return std::min(since_ + kPeerAnswerTimeout, next_probe_);
  }
  return next_probe_;
}

void PeerClient::OnDeadline(Instant now) {
  if (now < Deadline()) return;
  if (now >= next_probe_) {
    next_probe_ = now + kPeerProbeInterval;
    if (!Waits(Kind::kProbe)) Enqueue({.kind = Kind::kProbe, .message = {}});
  }
  const bool dials = state_ == State::kResolving || state_ == State::kConnecting;
  if (dials && now >= since_ + context_.dial_timeout) return Fail("dial timeout");
  if (state_ == State::kAsking && now >= since_ + kPeerAnswerTimeout) return Fail("no answer in time");
  Go();
}

}  // namespace detcd::wire
