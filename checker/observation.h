// What a judge may see of a world. The simulator fills it by reading the members' state after each event, never from
// the members' own trace, so that a bug of the core cannot hide in its judge. Judges include this, core/base and
// core/proto, nothing else of the core.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/time.h"
#include "core/base/types.h"

namespace detcd::checker {

// When something was seen: the number of the world's event (a total order) and the true time, which no member knows.
struct Moment {
  uint64_t event = 0;
  Instant true_time;
};

// The members' monotonic clocks at this moment of true time, of running, paused and crashed ones alike.
class MemberClocks {
 public:
  virtual Instant Local(MemberId member) const = 0;

 protected:
  ~MemberClocks() = default;
};

// What does not change during a run.
struct WorldObservation {
  std::vector<MemberId> members;    // all voters
  Duration election_timeout;        // T, as configured
  Duration heartbeat_interval;
  bool check_quorum = true;
  int64_t clock_drift_ppm_max = 0;  // of any member against true time, either way
  LogIndex bootstrap_index;         // every member's log begins with the same entries up to here, from its first start on
  // A member may take so many events before what it makes of them leaves, all at once and by the next one, and below
  // the member nothing holds or drops that before it is seen to leave. 0: not known, so that F20 is not judged.
  uint64_t turn_events_max = 0;
  const MemberClocks* clocks = nullptr;  // outlives the judges; null: leader leases are not judged
};

enum class Role : uint8_t { kFollower, kPreCandidate, kCandidate, kLeader };

// One entry of a log: enough to tell it from any other.
struct EntryMark {
  Term term;
  uint64_t digest = 0;  // of type and data

  friend bool operator==(const EntryMark&, const EntryMark&) = default;
};

// A member after an event that touched it.
struct MemberObservation {
  MemberId member;
  uint32_t incarnation = 0;  // rises at each start
  Instant local_time;        // on its own monotonic clock of this incarnation
  bool pre_vote = true;      // it was started with pre-vote

  Term term;
  MemberId voted_for;        // 0: nobody in `term`
  Role role = Role::kFollower;
  MemberId leader;           // 0: none known
  // As leader: it answers reads by its lease while its clock shows less than this. None: not by a lease.
  std::optional<Instant> lease_end;
  // As leader that hands its leadership over: to whom, and when it gives that up on its clock.
  MemberId transfer_target;
  Instant transfer_give_up;
  LogIndex last_index;
  LogIndex durable_index;    // what it believes to be on its disk
  LogIndex commit_index;
  LogIndex applied_index;
  Revision revision;         // of its store, at applied_index
  uint64_t history_digest = 0;  // of all effects up to applied_index: equal histories have equal digests

  bool behind = false;       // events wait for its processor: it may not have heard yet what is due

  // Entries that are new or changed since the member was last seen: [changed_from, last_index], in order. Empty when
  // the log did not change. After a start: the whole log, changed_from 1.
  LogIndex changed_from;
  std::span<const EntryMark> changed;
  bool started = false;      // the first observation of this incarnation: after recovery, before any message
};

// An entry that some member holds to be committed, shown once, in order of index.
struct CommittedEntry {
  LogIndex index;
  Term term;
  bool is_conf_change = false;
  Bytes data;  // an encoded InternalRaftRequest, a ConfChange, or empty
};

enum class MessageKind : uint8_t {
  kPropose, kAppend, kAppendResponse, kVote, kVoteResponse, kPreVote, kPreVoteResponse,
  kHeartbeat, kHeartbeatResponse, kReadIndex, kReadIndexResponse,
  kTransferRequest, kTimeoutNow,
};

// A message at the moment it left its sender (below the sender's queues) or reached its receiver.
struct MessageObservation {
  MessageKind kind = MessageKind::kPropose;
  MemberId from;
  MemberId to;
  Term term;
  LogIndex index;          // append: prev_index; responses: index; votes: last_index
  Term log_term;           // append: prev_term; votes: last_term
  uint64_t entry_count = 0;
  LogIndex commit;
  bool reject = false;
  bool transfer = false;   // votes: asked for by the target of a leadership transfer
  uint64_t read = 0;
  uint64_t round = 0;      // heartbeats: the lease's round asked for or promised for; 0: none
};

// One key at the end of a run, as a member's store has it.
struct FinalKey {
  std::string key;
  std::string value;
  Revision create_revision;
  Revision mod_revision;
  int64_t version = 0;
};

// What a judge says when a property is broken. The first one ends the run.
struct Violation {
  std::string property;   // `F1`, `K4`, ...: the name in checking.md 2, or `convergence`
  std::string signature;  // property and kind of trouble, without numbers: equal for the same bug
  std::string sentence;   // one sentence with operations or members, revisions or terms
  Moment moment;
  std::vector<uint64_t> operations;  // ids of the operations concerned, for the report; may be empty
};

}  // namespace detcd::checker
