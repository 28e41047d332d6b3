// A simulated client with the rules of etcd's own: one operation at a time; tries go round-robin over the members that
// are up; reads are tried again after Unavailable, writes only when nothing of them was sent; each try and the whole
// operation have a time limit on the client's clock. An answer that never came leaves a write unknown.
#pragma once

#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "checker/history.h"
#include "core/io/host.h"
#include "sim/client_calls.h"

namespace detcd::sim {

struct ClientKnobs {
  uint32_t number = 1;                  // in the history
  std::vector<EndpointId> members;      // whom it may ask
  Duration try_timeout = Seconds(5);
  Duration total_timeout = Seconds(15);
  Duration retry_pause = Millis(50);    // after each member was tried
};

struct PlannedOperation {
  uint64_t id = 0;
  Instant at;                     // on the client's clock; later when the one before is still under way
  checker::Request request;
  int64_t revisions_back = 0;     // range: instead of a revision, the newest this client has seen minus this
};

class ClientListener {
 public:
  // `operation` begins, or has ended. The listener fills in when: `call`, `end`.
  virtual void OnOperationCall(checker::Operation& operation) = 0;
  virtual void OnOperationEnd(checker::Operation& operation) = 0;
  // The member at `endpoint`, for the history.
  virtual MemberId MemberAt(EndpointId endpoint) const = 0;

 protected:
  ~ClientListener() = default;
};

class Client final : public ClientCallsListener, private TimerListener {
 public:
  Client(Host& host, const ClientKnobs& knobs, ClientListener& listener);

  // Before the first Plan.
  void SetCalls(ClientCalls& calls) { calls_ = &calls; }
  // Adds an operation behind those planned before. From any event, also outside the client's own.
  void Plan(PlannedOperation operation);
  // Forgets operations that have not begun.
  void DropPlanned() { planned_.clear(); }
  bool idle() const { return !busy_ && planned_.empty(); }
  bool busy() const { return busy_; }
  // The operation under way; meaningless when not busy.
  const checker::Operation& current() const { return operation_; }

  // ClientCallsListener
  void OnCallEnd(uint64_t token, const google::protobuf::Message* response, const rpc::CallStatus& status,
                 bool sent) override;

 private:
  void OnTimer(uint64_t token) override;
  void Pump();
  void Begin(Instant now);
  void Try(Instant now);
  void Failed(const rpc::CallStatus& status);
  void End(checker::Outcome outcome);
  void Arm();
  bool IsRead() const { return operation_.request.kind == checker::OperationKind::kRange; }

  Host& host_;
  ClientKnobs knobs_;
  ClientListener& listener_;
  ClientCalls* calls_ = nullptr;
  std::unique_ptr<Timer> timer_;
  std::deque<PlannedOperation> planned_;

  bool busy_ = false;
  bool trying_ = false;            // a call is under way
  checker::Operation operation_;
  Instant total_due_;
  Instant try_due_;                // while trying
  Instant retry_at_;               // while not
  uint64_t last_token_ = 0;
  size_t next_member_ = 0;         // index into knobs_.members
  size_t tried_in_a_row_ = 0;      // members tried since the last pause
  int64_t revision_seen_ = 0;
};

}  // namespace detcd::sim
