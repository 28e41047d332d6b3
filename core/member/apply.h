// One committed entry -> changes and response, the same on every member: what an entry does depends on the entry and
// on the state that earlier entries left, on nothing else. Whether a local caller waits decides only whether a response
// is built. An entry of a kind that this release does not execute is an error, never skipped: a member that passed over
// one would differ from the others without anybody knowing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/types.h"
#include "core/mvcc/store.h"
#include "core/raft/message.h"
#include "core/rpc/api_error.h"
#include "core/rpc/backend.h"

namespace etcdserverpb {
class ResponseHeader;
}
namespace google::protobuf {
class Arena;
class Message;
}  // namespace google::protobuf

namespace detcd::member {

// All that entries change.
struct ApplyState {
  mvcc::Store& store;
  std::map<MemberId, rpc::MemberRow> members;  // row ids equal their keys
  std::string cluster_version;                 // `3.7.0`; empty before the cluster has decided
  rpc::Downgrade downgrade;                     // as the cluster last decided
  std::set<rpc::Alarm> alarms;                 // raised and not cleared
  LogIndex applied_index;                      // rises by one with each entry
  Term applied_term;                           // term of that entry; never falls
};

// Tells which requests have a caller on this member.
class LocalWaiters {
 public:
  virtual bool Waits(uint64_t request_id) const = 0;

 protected:
  ~LocalWaiters() = default;
};

struct ApplyResult {
  LogIndex index;
  uint64_t request_id = 0;  // 0: an entry without one (a new leader's, a bootstrap change)
  rpc::ApiError error = rpc::ApiError::kOk;
  // The answer for the local caller, on the arena given; null when nobody waits or `error` is set. Its header carries a
  // revision where the operation defines one; the rest is for whoever answers (rpc/messages.h, FillHeader).
  google::protobuf::Message* response = nullptr;
  etcdserverpb::ResponseHeader* header = nullptr;  // of `response`, where its kind has one
  // A compaction that asked for it: the answer waits until the store's removals are done up to here.
  std::optional<Revision> answer_after_removal;
  // A member that has become a voter. Not set for a refused change, which raft must treat as none.
  std::optional<MemberId> added_voter;
  // Digest of the entry's index, its error and the state it left (history, members, version): equal on all members.
  uint64_t effect_digest = 0;
};

// Whether this release can execute an entry that somebody else proposes: what it says no to must not get into the log.
// Says yes to what does not decode as well, which only a broken member proposes; ApplyEntry names it.
bool CanApply(const raft::Entry& entry);

// Executes `entry`, the one after state.applied_index (CHECKed). `waiters` may be null: nobody waits.
// kDataLoss: the entry does not decode. kFailedPrecondition: a kind, or a member, that this release does not know; the
// message names it. After an error the state is as before and the member must stop.
absl::StatusOr<ApplyResult> ApplyEntry(ApplyState& state, const raft::Entry& entry, const LocalWaiters* waiters,
                                       google::protobuf::Arena& arena);

}  // namespace detcd::member
