#include "sim/direct_calls.h"

#include <utility>

#include "core/base/check.h"

namespace detcd::sim {

// --- The member's side ---

void DirectCallServer::OnFrame(EndpointId from, CallFrame& frame) {
  if (frame.kind == CallFrame::Kind::kCancel) {
    const bool known = calls_.erase(frame.call) > 0;
    if (known) service_->Cancel(*this, frame.call);
    return;
  }
  if (frame.kind == CallFrame::Kind::kCredit) {
    const auto found = calls_.find(frame.call);
    if (found == calls_.end()) return;
    const bool was_full = !Writable(frame.call);
    ++found->second.taken;
    if (was_full) service_->Credit(*this, frame.call);
    return;
  }
  CHECK(frame.kind == CallFrame::Kind::kRequest);
  if (service_ == nullptr) {
    payloads_.Send(self_, from, CallFrame{.kind = CallFrame::Kind::kRefused, .call = frame.call});
    return;
  }
  const rpc::MethodInfo& info = rpc::Info(frame.method);
  CHECK_MSG(!info.client_streams, "the direct cut carries one request a call");
  calls_[frame.call] = {.client = from, .method = frame.method};
  service_->Open(*this, frame.call, {.method = frame.method});
  if (calls_.contains(frame.call)) service_->Message(*this, frame.call, *frame.message);
  if (calls_.contains(frame.call)) service_->HalfClose(*this, frame.call);
}

size_t DirectCallServer::HangUp() {
  const size_t count = calls_.size();
  for (const auto& [id, call] : calls_) {
    payloads_.Send(self_, call.client, CallFrame{.kind = CallFrame::Kind::kReset, .call = id, .method = call.method});
  }
  calls_.clear();
  return count;
}

bool DirectCallServer::Writable(rpc::CallId id) const {
  const auto found = calls_.find(id);
  return found == calls_.end() || found->second.sent - found->second.taken < kStreamCredit;
}

void DirectCallServer::Send(rpc::CallId id, const google::protobuf::Message& response) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  Call& call = found->second;
  call.response.reset(rpc::NewResponse(call.method, nullptr));
  call.response->CopyFrom(response);
  if (!rpc::Info(call.method).server_streams) return;
  payloads_.Send(self_, call.client,
                 CallFrame{.kind = CallFrame::Kind::kMessage,
                           .call = id,
                           .method = call.method,
                           .message = std::move(call.response),
                           .sequence = call.sent++});
}

void DirectCallServer::SendEncoded(rpc::CallId id, std::vector<Bytes> pieces) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  std::string whole;
  for (const Bytes& piece : pieces) whole += piece.view();
  found->second.response.reset(rpc::NewResponse(found->second.method, nullptr));
  CHECK(found->second.response->ParseFromString(whole));
}

void DirectCallServer::Finish(rpc::CallId id, rpc::CallStatus status) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  Call call = std::move(found->second);
  calls_.erase(found);
  payloads_.Send(self_, call.client,
                 CallFrame{.kind = CallFrame::Kind::kEnd,
                           .call = id,
                           .method = call.method,
                           .message = std::move(call.response),
                           .sequence = call.sent,
                           .status = std::move(status)});
}

// --- The client's side ---

bool DirectClientCalls::Start(EndpointId member, rpc::Method method, std::unique_ptr<google::protobuf::Message> request,
                              uint64_t token, Duration /*timeout*/) {
  CHECK(token_ == 0);
  token_ = token;
  received_ = 0;
  member_ = member;
  payloads_.Send(self_, member,
                 CallFrame{.kind = CallFrame::Kind::kRequest, .call = IdOf(token), .method = method, .message = std::move(request)});
  return true;
}

void DirectClientCalls::Cancel() {
  if (token_ == 0) return;
  payloads_.Send(self_, member_, CallFrame{.kind = CallFrame::Kind::kCancel, .call = IdOf(token_)});
  token_ = 0;
}

void DirectClientCalls::OnMessage(EndpointId from, uint64_t handle) {
  const auto& frame = std::get<CallFrame>(payloads_.At(handle));
  if (token_ == 0 || frame.call != IdOf(token_)) return;  // given up before
  const bool is_piece = frame.kind == CallFrame::Kind::kMessage || frame.kind == CallFrame::Kind::kEnd;
  if (is_piece && frame.sequence != received_) {  // the bytes of a stream that lost some are never delivered
    const uint64_t broken = token_;
    Cancel();
    return listener_.OnCallEnd(broken, nullptr, {.code = rpc::StatusCode::kUnavailable, .message = "connection reset"}, true);
  }
  if (frame.kind == CallFrame::Kind::kMessage) {
    ++received_;
    payloads_.Send(self_, from, CallFrame{.kind = CallFrame::Kind::kCredit, .call = frame.call});
    return listener_.OnCallMessage(token_, *frame.message);
  }
  const uint64_t token = std::exchange(token_, 0);
  if (frame.kind == CallFrame::Kind::kRefused || frame.kind == CallFrame::Kind::kReset) {
    const bool reset = frame.kind == CallFrame::Kind::kReset;
    up_at_[from] = clock_.Now() + kRedialAfter;
    listener_.OnCallEnd(token, nullptr,
                        {.code = rpc::StatusCode::kUnavailable, .message = reset ? "connection reset" : "connection refused"},
                        /*sent=*/reset);
    return;
  }
  listener_.OnCallEnd(token, frame.message.get(), frame.status, true);
}

}  // namespace detcd::sim
