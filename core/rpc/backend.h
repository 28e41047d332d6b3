// What the API services ask of the member they belong to. Implemented by core/member; the services know nothing of raft,
// logs or peers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/types.h"
#include "core/mvcc/store.h"
#include "core/rpc/api_error.h"
#include "core/rpc/call.h"

namespace etcdserverpb {
class InternalRaftRequest;
}

namespace detcd::rpc {

// One call that waits. Kept by value wherever a call waits; dead ids are harmless (call.h).
struct Waiter {
  CallTransport* transport = nullptr;
  CallId call = 0;
  Method method = Method::kRange;
};

// An alarm that is raised; the type is etcd's number, also one that this release does not know.
struct Alarm {
  int type = 0;
  MemberId member;

  friend auto operator<=>(const Alarm&, const Alarm&) = default;
};

// A downgrade of the cluster under way (reference/semantics.md 19).
struct Downgrade {
  bool enabled = false;
  std::string target_version;  // `3.6.0`

  friend bool operator==(const Downgrade&, const Downgrade&) = default;
};

// What the services say about the member (reference/semantics.md 1 and 16).
struct MemberStatus {
  ClusterId cluster;
  MemberId member;
  MemberId leader;          // 0: none known
  Term term;                // live raft term
  Term applied_term;        // of the last applied entry: what headers show
  LogIndex commit_index;
  LogIndex applied_index;
  uint64_t backend_bytes = 0;         // allocated
  uint64_t backend_bytes_in_use = 0;
  std::string storage_version;        // `3.7.0`, or empty before it is known
  Downgrade downgrade;
  std::vector<Alarm> alarms;          // ascending
};

// One row of the member list.
struct MemberRow {
  MemberId id;
  std::string name;                        // empty until it has published itself
  std::vector<std::string> peer_urls;
  std::vector<std::string> client_urls;
  bool is_learner = false;

  friend bool operator==(const MemberRow&, const MemberRow&) = default;
};

// Hears when a linearizable read may go on.
class ReadListener {
 public:
  // The applied state is at or above the read index; `error` other than kOk: kTimeout, kLeaderChanged, kStopped.
  virtual void OnReadReady(const Waiter& waiter, uint64_t token, ApiError error) = 0;

 protected:
  ~ReadListener() = default;
};

// Hears of a HashKV.
class HashListener {
 public:
  // `error` other than kOk: kCompacted, kFutureRev, kTooManyRequests, kStopped; `result` means nothing then.
  virtual void OnHashReady(const Waiter& waiter, ApiError error, const mvcc::HashResult& result) = 0;

 protected:
  ~HashListener() = default;
};

// Hears that it is its turn to work.
class WorkListener {
 public:
  virtual void OnWork() = 0;

 protected:
  ~WorkListener() = default;
};

class Backend {
 public:
  virtual ~Backend() = default;

  // Proposes `request` for `waiter`: fills in its header, encodes it before it returns, and keeps nothing of it. When it
  // is applied on this member the apply loop answers the call itself. Errors of the proposal path (errors.md 4, P1, P3,
  // P4) end the call too. A call that dies meanwhile is answered into the void.
  virtual void Propose(const Waiter& waiter, etcdserverpb::InternalRaftRequest& request) = 0;

  // Calls listener.OnReadReady(waiter, token, ...) in a later event, once.
  virtual void LinearizableRead(const Waiter& waiter, ReadListener& listener, uint64_t token) = 0;

  // Calls listener.OnHashReady(waiter, ...) once, at once or in a later event: the HashKV at `revision` (0: the current
  // one), of this member's own state.
  virtual void HashKv(const Waiter& waiter, HashListener& listener, Revision revision) = 0;

  // Makes `target` the leader and then ends the call, with an answer of its kind. kNotLeader, kBadLeaderTransferee (no
  // voter of this cluster), kLeaderTransferTimeout. A call that dies meanwhile is answered into the void.
  virtual void MoveLeader(const Waiter& waiter, MemberId target) = 0;

  // Calls listener.OnWork() once, in a later event, for one slice of work; asked twice before that, still once. There is
  // one listener.
  virtual void RequestWork(WorkListener& listener) = 0;

  virtual const mvcc::Store& store() const = 0;
  virtual MemberStatus Status() const = 0;
  virtual std::vector<MemberRow> Members() const = 0;  // sorted by id
  virtual bool HasLeader() const = 0;
  virtual std::string ClusterVersion() const = 0;  // `3.7.0`; empty: not decided yet
};

}  // namespace detcd::rpc
