#include "core/wire/peer_dialled.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/limits.h"
#include "core/base/probe.h"

namespace detcd::wire {
namespace {

constexpr std::string_view kPlace = "wire/peer_dialled";

std::string_view ChannelName(member::PeerChannel channel) {
  return channel == member::PeerChannel::kAppend ? "append" : "message";
}

}  // namespace

DialledPeer::DialledPeer(const Context& context, MemberId peer, member::PeerChannel channel, std::vector<Url> urls)
    : context_(context), peer_(peer), channel_(channel), target_(std::move(urls)) {}

// --- dialling -------------------------------------------------------------------------------------------------------

void DialledPeer::Dial() {
  const Url& url = target_.url();
  dialled_at_ = context_.clock.Now();
  if (url.IsUnix()) {
    ConnectTo(target_.Pick({{.host = url.host, .port = 0, .is_unix = true}}));
  } else {
    state_ = State::kResolving;
    resolve_token_ = context_.owner.Resolve(*this, url.host, url.port);
  }
  context_.owner.OnDirty(*this);
}

void DialledPeer::OnResolved(uint64_t token, IoError error, std::vector<Address> addresses) {
  if (state_ != State::kResolving || token != resolve_token_) return;  // of an attempt that was given up
  if (error != IoError::kOk || addresses.empty()) return Fail("name not resolved");
  ConnectTo(target_.Pick(addresses));
}

void DialledPeer::ConnectTo(const Address& address) {
  state_ = State::kConnecting;
  stream_ = context_.network.Connect(address, *this);
}

void DialledPeer::OnConnected() {
  state_ = State::kAsking;
  last_read_ = context_.clock.Now();
  output_.Push(Bytes::Copy(WriteStreamRequest(context_.self, peer_, channel_, target_.HostHeader())));
  context_.owner.OnDirty(*this);
}

void DialledPeer::Flush() {
  if (stream_ != nullptr) output_.Flush(*stream_);
}

// --- reading --------------------------------------------------------------------------------------------------------

void DialledPeer::OnData(std::string_view bytes) {
  last_read_ = context_.clock.Now();
  if (state_ == State::kAsking && !ReadAnswer(bytes)) return;
  while (state_ == State::kStreaming) {
    std::string_view content;
    switch (body_reader_->Next(bytes, content)) {
      case HttpBodyReader::Step::kNeedMore:
        return;
      case HttpBodyReader::Step::kContent:
        ReadFrames(content);
        break;
      case HttpBodyReader::Step::kEnd:
        return Fail("ended by the peer");
      case HttpBodyReader::Step::kMalformed:
        return Fail("malformed chunk");
    }
  }
}

// True: the stream is open, and frames follow.
bool DialledPeer::ReadAnswer(std::string_view& input) {
  switch (head_reader_.Next(input)) {
    case HttpHeadReader::Step::kNeedMore:
      return false;
    case HttpHeadReader::Step::kTooLarge:
      Fail("answer's head is too large");
      return false;
    case HttpHeadReader::Step::kHead:
      break;
  }
  HttpResponseHead head;
  const auto error = ParseResponseHead(head_reader_.text(), head);
  const std::optional<HttpBodyFraming> framing = error ? std::nullopt : ResponseBodyFraming(head);
  if (!framing) {
    Fail("malformed answer");
    return false;
  }
  const StreamAnswerVerdict verdict = JudgeStreamAnswer(head);
  if (verdict.is_removed) context_.info.OnSelfRemoved();
  if (!verdict.refusal.empty()) {
    Fail(verdict.refusal);
    return false;
  }
  state_ = State::kStreaming;
  failed_before_ = false;
  body_reader_.emplace(*framing);
  decoder_.emplace(channel_, peer_, context_.self.id);
  Emit(context_.trace, LogLevel::kInfo, kPlace, "incoming stream is up",
       {TraceField::Id("peer", peer_.value), TraceField::Text("channel", ChannelName(channel_))});
  return true;
}

void DialledPeer::ReadFrames(std::string_view content) {
  while (state_ == State::kStreaming) {
    raft::Message message;
    switch (decoder_->Next(content, message)) {
      case PeerFrameDecoder::Step::kNeedMore:
        return;
      case PeerFrameDecoder::Step::kLinkHeartbeat:
        break;
      case PeerFrameDecoder::Step::kUnsupported:
        PROBE("wire.peer_unsupported_message");
        Emit(context_.trace, LogLevel::kWarn, kPlace, "dropped a message of a kind that is not supported",
             {TraceField::Id("peer", peer_.value)});
        break;
      case PeerFrameDecoder::Step::kMalformed:
        PROBE("wire.peer_malformed_frame");
        return Fail(decoder_->error());
      case PeerFrameDecoder::Step::kMessage:
        // A request for a transfer names its target as the sender (raft/message.h).
        if ((message.from != peer_ && !std::holds_alternative<raft::TransferRequest>(message.body)) ||
            message.to != context_.self.id) {
          PROBE("wire.peer_stray_message");
          Emit(context_.trace, LogLevel::kWarn, kPlace, "dropped a message that is not from this peer to us",
               {TraceField::Id("peer", peer_.value), TraceField::Id("from", message.from.value),
                TraceField::Id("to", message.to.value), TraceField::Text("kind", raft::KindName(message))});
          break;
        }
        context_.owner.OnStreamMessage(std::move(message));
        break;
    }
  }
}

// --- trouble and time -----------------------------------------------------------------------------------------------

void DialledPeer::Fail(std::string_view reason) {
  Emit(context_.trace, failed_before_ ? LogLevel::kDebug : LogLevel::kWarn, kPlace, "incoming stream failed",
       {TraceField::Id("peer", peer_.value), TraceField::Text("channel", ChannelName(channel_)),
        TraceField::Text("url", HostAndPort(target_.url())), TraceField::Text("reason", reason)});
  // A stream that was up comes back to where it was; an attempt goes on to the next address, then the next URL.
  if (state_ != State::kStreaming) target_.OnFailed();
  failed_before_ = true;
  stream_.reset();
  output_ = {};
  head_reader_.Reset();
  state_ = State::kWaiting;
  next_dial_ = std::max(context_.clock.Now(), dialled_at_ + kPeerRedialInterval);
  context_.owner.OnDirty(*this);
}

Instant DialledPeer::Deadline() const {
  switch (state_) {
    case State::kWaiting:
      return next_dial_;
    case State::kResolving:
    case State::kConnecting:
      return dialled_at_ + context_.dial_timeout;
    case State::kAsking:
    case State::kStreaming:
      return last_read_ + kPeerReadTimeout;
  }
  return next_dial_;
}

void DialledPeer::OnDeadline(Instant now) {
  if (now < Deadline()) return;
  if (state_ == State::kWaiting) return Dial();
  PROBE("wire.peer_read_timeout");
  Fail(state_ == State::kStreaming || state_ == State::kAsking ? "read timeout" : "dial timeout");
}

}  // namespace detcd::wire
