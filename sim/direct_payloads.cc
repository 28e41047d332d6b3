#include "sim/direct_payloads.h"

#include "core/base/check.h"
#include "core/base/digest.h"

namespace detcd::sim {
namespace {

// Cheap on purpose: content that this does not tell apart shows in the terms, indexes and digests that follow from it.
struct BodyFingerprint {
  uint64_t operator()(const raft::Proposal& m) const { return m.entries.size(); }
  uint64_t operator()(const raft::Append& m) const {
    return m.prev_index.value ^ m.prev_term.value << 40 ^ MixWord(m.commit.value << 16 ^ m.entries.size());
  }
  uint64_t operator()(const raft::AppendResponse& m) const {
    return m.index.value ^ MixWord(m.hint_index.value << 1 ^ (m.reject ? 1u : 0u)) ^ m.hint_term.value << 40;
  }
  uint64_t operator()(const raft::VoteRequest& m) const {
    return m.last_index.value ^ m.last_term.value << 32 ^ (m.pre_vote ? uint64_t{1} << 63 : 0) ^ (m.transfer ? uint64_t{1} << 62 : 0);
  }
  uint64_t operator()(const raft::VoteResponse& m) const { return (m.pre_vote ? 2u : 0u) | (m.reject ? 1u : 0u); }
  uint64_t operator()(const raft::Heartbeat& m) const { return m.commit.value ^ MixWord(m.read.value); }
  uint64_t operator()(const raft::HeartbeatResponse& m) const { return m.read.value; }
  uint64_t operator()(const raft::ReadIndexRequest& m) const { return m.read.value; }
  uint64_t operator()(const raft::ReadIndexResponse& m) const { return m.index.value ^ MixWord(m.read.value); }
  uint64_t operator()(const raft::TransferRequest&) const { return 1; }
  uint64_t operator()(const raft::TimeoutNow&) const { return 2; }
};

uint64_t Fingerprint(const raft::Message& message) {
  return MixWord(message.term.value << 8 ^ message.body.index()) ^ std::visit(BodyFingerprint(), message.body);
}

uint64_t Fingerprint(const CallFrame& frame) {
  const uint64_t size = frame.message == nullptr ? 0 : frame.message->ByteSizeLong();
  return MixWord(frame.call ^ static_cast<uint64_t>(frame.kind) << 60) ^ size << 8 ^ static_cast<uint64_t>(frame.status.code);
}

}  // namespace

uint64_t DirectPayloads::Put(DirectPayload payload) {
  uint64_t handle = slots_.size();
  if (free_.empty()) {
    slots_.emplace_back();
  } else {
    handle = free_.back();
    free_.pop_back();
  }
  slots_[handle].payload = std::move(payload);
  slots_[handle].references = 1;
  return handle;
}

void DirectPayloads::Send(EndpointId from, EndpointId to, const raft::Message& message) {
  const uint64_t fingerprint = Fingerprint(message);
  messages_.Send(from, to, Put(message), fingerprint);
}

void DirectPayloads::Send(EndpointId from, EndpointId to, CallFrame frame) {
  const uint64_t fingerprint = Fingerprint(frame);
  messages_.Send(from, to, Put(std::move(frame)), fingerprint);
}

void DirectPayloads::Send(EndpointId from, EndpointId to, VersionFrame frame) {
  const uint64_t fingerprint = DigestBytes(frame.version, 3);
  messages_.Send(from, to, Put(std::move(frame)), fingerprint);
}

void DirectPayloads::Release(uint64_t handle) {
  Slot& slot = slots_[handle];
  CHECK(slot.references > 0);
  if (--slot.references > 0) return;
  slot.payload = std::monostate();
  free_.push_back(handle);
}

bool DirectPayloads::MayDuplicate(uint64_t handle) const {
  const auto* message = std::get_if<raft::Message>(&slots_[handle].payload);
  return message != nullptr && !std::holds_alternative<raft::Proposal>(message->body);
}

void DirectPayloads::OnUndelivered(EndpointId from, EndpointId to, MachineState state, uint64_t handle) {
  const auto* frame = std::get_if<CallFrame>(&slots_[handle].payload);
  if (frame == nullptr || frame->kind != CallFrame::Kind::kRequest || state != MachineState::kProcessDown) return;
  Send(to, from, CallFrame{.kind = CallFrame::Kind::kRefused, .call = frame->call});
}

}  // namespace detcd::sim
