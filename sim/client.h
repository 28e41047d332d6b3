// A simulated client with the rules of etcd's own (clientv3: retry.go, retry_interceptor.go): one operation at a time;
// tries go round-robin over the members that are up, with a pause after as many as a quorum. What its policy calls
// repeatable, ranges and hashes, is tried again after Unavailable; puts, deletes, transactions (of ranges alone too),
// compactions and streams only when nothing of them was sent. Each try and the whole operation have a time limit on the
// client's clock, and an operation may be planned to be cancelled. An answer that never came leaves a write unknown.
// What an error tells of the outcome is in core/rpc/errors.def, one row for each, and nowhere else.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
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
  Duration retry_pause = Millis(25);    // after a quorum of tries, or when nobody is up
};

struct PlannedOperation {
  uint64_t id = 0;
  Instant at;                     // on the client's clock; later when the one before is still under way
  checker::Request request;
  std::optional<int64_t> revisions_back;  // range, compact, hash: the newest revision this client has seen minus this
  std::vector<size_t> as_seen;    // conditions of a transaction that take the number or value this client saw last
  Duration cancel_after;          // the client gives it up then; zero: never
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
  // Adds an operation before the first of those planned that is due after it. Like Plan, from any event.
  void PlanAhead(PlannedOperation operation);
  // Forgets operations that have not begun.
  void DropPlanned() { planned_.clear(); }
  bool idle() const { return !busy_ && planned_.empty(); }
  bool busy() const { return busy_; }
  // The operation under way; meaningless when not busy.
  const checker::Operation& current() const { return operation_; }

  // ClientCallsListener
  void OnCallMessage(uint64_t token, const google::protobuf::Message& message) override;
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
  void FillIn(PlannedOperation& planned) const;
  void Remember(const checker::Operation& operation);

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
  size_t tried_in_a_row_ = 0;      // tries since the last pause
  int64_t revision_seen_ = 0;
  std::map<std::string, checker::ObservedKeyValue> seen_;  // the pair of each key that some answer showed last
};

}  // namespace detcd::sim
