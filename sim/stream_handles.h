// What the files of SimStreams share: its handles, and how addresses meet.
#pragma once

#include <string_view>
#include <utility>

#include "sim/sim_streams.h"

namespace detcd::sim {

inline constexpr uint16_t kFirstPort = 32'768;  // of those that the system gives

inline bool IsLoopback(std::string_view host) { return host == "127.0.0.1" || host == "::1"; }
inline bool IsWildcard(std::string_view host) { return host == "0.0.0.0" || host == "::"; }

// Whether a connection to `to` reaches who listens on `on`; both of one endpoint.
inline bool Reaches(const Address& to, const Address& on) {
  if (to.is_unix != on.is_unix || to.port != on.port) return false;
  return to.host == on.host || (!on.is_unix && IsWildcard(on.host));
}

inline bool Overlap(const Address& a, const Address& b) { return Reaches(a, b) || Reaches(b, a); }

class SimStream final : public Stream {
 public:
  SimStream(SimStreams* streams, uint64_t end_id, Address remote)
      : streams_(streams), end_id_(end_id), remote_(std::move(remote)) {}
  ~SimStream() override {
    if (streams_ != nullptr) streams_->Destroy(end_id_);
  }
  void SetListener(StreamListener& listener) override {
    if (streams_ != nullptr) streams_->SetListener(end_id_, listener);
  }
  size_t Write(std::span<const Bytes> pieces) override {
    return streams_ == nullptr ? 0 : streams_->Write(end_id_, pieces);
  }
  void CloseWrite() override {
    if (streams_ != nullptr) streams_->CloseWrite(end_id_);
  }
  void PauseReading() override {
    if (streams_ != nullptr) streams_->SetPaused(end_id_, true);
  }
  void ResumeReading() override {
    if (streams_ != nullptr) streams_->SetPaused(end_id_, false);
  }
  Address Remote() const override { return remote_; }

  // After this the handle does nothing: its incarnation has ended.
  void Detach() { streams_ = nullptr; }

 private:
  SimStreams* streams_;
  uint64_t end_id_;
  Address remote_;
};

class SimAcceptor final : public detcd::Acceptor {
 public:
  SimAcceptor(SimStreams* streams, uint64_t id, Address local)
      : streams_(streams), id_(id), local_(std::move(local)) {}
  ~SimAcceptor() override {
    if (streams_ != nullptr) streams_->CloseAcceptor(id_);
  }
  Address Local() const override { return local_; }
  void PauseAccepting() override {
    if (streams_ != nullptr) streams_->SetAcceptPaused(id_, true);
  }
  void ResumeAccepting() override {
    if (streams_ != nullptr) streams_->SetAcceptPaused(id_, false);
  }
  void Detach() { streams_ = nullptr; }

 private:
  SimStreams* streams_;
  uint64_t id_;
  Address local_;
};

}  // namespace detcd::sim
