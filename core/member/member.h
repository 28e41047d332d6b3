// One member of a cluster: wires raft, log, store, peers and the API services' needs together, one handler per event,
// and does what a turn asked for at its end. The life of a put (design: bytes -> services -> Propose -> raft -> log and
// peers -> commit -> apply -> answer) is EndTurn read from top to bottom.
//
// A member rebuilds everything from its log at Start; it serves calls after its own attributes have been published
// through the log, which also proves that the cluster has a leader (reference/semantics.md 23).
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/io/host.h"
#include "core/member/apply.h"
#include "core/member/cluster_version.h"
#include "core/member/leader_moves.h"
#include "core/member/peer_carrier.h"
#include "core/member/peers.h"
#include "core/member/persister.h"
#include "core/member/proposals.h"
#include "core/member/reads.h"
#include "core/mvcc/store.h"
#include "core/raft/leader_lease.h"
#include "core/raft/raft.h"
#include "core/rpc/backend.h"
#include "core/wal/wal.h"

namespace etcdserverpb {
class InternalRaftRequest;
}
namespace google::protobuf {
class Arena;
}

namespace detcd::member {

struct MemberOptions {
  // Who we are if the log is fresh; a log that exists says so itself (peer.md 16).
  MemberId id;
  ClusterId cluster;
  std::vector<rpc::MemberRow> initial_members;  // ascending by id, ourselves included: name and peer URLs

  std::string name;
  std::vector<std::string> client_urls;         // published to the others
  Duration heartbeat_interval = Millis(100);
  Duration election_timeout = Millis(1000);
  bool pre_vote = true;
  bool check_quorum = true;                     // etcd has it always; without it only where its worth is measured
  bool lease_reads = false;                     // of all members alike (core/raft/lease_reads.h)
  int64_t clock_drift_ppm_max = raft::kClockDriftPpmMax;  // what leases assume of every member's clock
  uint64_t wal_segment_bytes = 0;               // zero in any of these: the production value of limits.h
  uint64_t append_bytes_max = 0;
  uint64_t appends_in_flight_max = 0;
  uint64_t uncommitted_bytes_max = 0;
  uint64_t log_entries_in_memory_max = 0;
  uint64_t log_bytes_in_memory_max = 0;
};

class MemberListener {
 public:
  // The log has been read, so that the member knows who it is: the way to its peers from now on. It must live as long
  // as the member.
  virtual PeerCarrier& OnMemberRecovered(MemberId self, ClusterId cluster) = 0;
  // The member can serve clients.
  virtual void OnMemberReady() = 0;

 protected:
  ~MemberListener() = default;
};

class Member final : public rpc::Backend,
                     private wal::WalListener,
                     private PeerCarrierListener,
                     private LocalWaiters,
                     private TimerListener,
                     private PostListener {
 public:
  Member(Host& host, const MemberOptions& options, MemberListener& listener);
  ~Member() override;
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  // The first entries of a fresh log: one conf change for each initial member (peer.md 15).
  static std::vector<raft::Entry> BootstrapEntries(const MemberOptions& options);

  // Opens the log, or makes a fresh one.
  void Start();
  // Carries out what the events of a turn asked for: log batch, messages, applies, answers.
  void EndTurn();
  // Before a stop: if we lead, begins to hand our leadership to the voter that has been connected longest, and returns
  // it; 0 where there is nothing to hand over, or nobody to hand it to.
  MemberId HandOverLeadership();

  // --- rpc::Backend ------------------------------------------------------------------------------------------------
  void Propose(const rpc::Waiter& waiter, etcdserverpb::InternalRaftRequest& request) override;
  void LinearizableRead(const rpc::Waiter& waiter, rpc::ReadListener& listener, uint64_t token) override;
  void HashKv(const rpc::Waiter& waiter, rpc::HashListener& listener, Revision revision) override;
  void MoveLeader(const rpc::Waiter& waiter, MemberId target) override;
  void RequestWork(rpc::WorkListener& listener) override;
  const mvcc::Store& store() const override { return store_; }
  rpc::MemberStatus Status() const override;
  std::vector<rpc::MemberRow> Members() const override;
  bool HasLeader() const override;
  std::string ClusterVersion() const override { return apply_state_.cluster_version; }

  // --- for who looks from outside ----------------------------------------------------------------------------------
  // Null until the log has been read.
  const raft::RaftState* raft() const { return raft_ ? &*raft_ : nullptr; }
  bool ready() const { return ready_; }
  // Proposals that no log has, because no leader is known.
  size_t unproposed_count() const { return unproposed_.size(); }

 private:
  // wal::WalListener
  void OnWalMetadata(const wal::WalMetadata& metadata) override;
  void OnWalCommitted(std::vector<raft::Entry> entries) override;
  void OnWalOpened(raft::HardState hard_state, std::vector<raft::Entry> tail) override;
  void OnWalAppended(uint64_t sequence) override;
  void OnWalRead(uint64_t token, std::vector<raft::Entry> entries) override;
  void OnWalFailed(std::string reason) override;
  // PeerCarrierListener
  void OnPeerMessage(raft::Message message) override;
  void OnChannelUp(MemberId peer, PeerChannel channel) override;
  void OnChannelRoom(MemberId peer, PeerChannel channel) override;
  void OnChannelDown(MemberId peer, PeerChannel channel) override;
  void OnPostFailed(MemberId peer) override;
  void OnPeerVersion(MemberId peer, std::string version) override;

  bool Waits(uint64_t request_id) const override { return proposals_.Contains(request_id); }
  void OnTimer(uint64_t token) override;
  void OnPost(uint64_t token) override;

  raft::RaftOptions MakeRaftOptions() const;
  wal::WalBootstrap MakeBootstrap() const;
  Duration RequestTimeout() const;

  void ProposeInternal(etcdserverpb::InternalRaftRequest& request, uint64_t& id);
  void Publish();
  void Enqueue(uint64_t id, const rpc::Waiter& waiter, Bytes data);

  void NoteLeader(Instant now);
  // Whether a proposal would get into a log, as far as we know. While we hand over our leadership it would not.
  bool MayPropose() const;
  void PassProposals(Instant now);
  void Refuse(const std::vector<uint64_t>& ids);
  void FollowVersions(Instant now);
  void FinishLeaderMoves();
  void TakeReadAnswers();
  void StartReadRounds(Instant now);
  void SendAll(std::vector<raft::Message> messages);
  void ApplyCommitted();
  bool ApplyOne(const raft::Entry& entry);
  void Answer(const rpc::Waiter& waiter, const ApplyResult& result);
  void ServeReads();
  void WorkOnStore();
  void LendTurn();
  void FetchOlderEntries();
  void Expire(Instant now);
  void FinishTimedOut(const Proposals::Pending& pending);
  void RequestTurn();
  void ArmTimer();
  void Fail(std::string reason);

  Host& host_;
  MemberOptions options_;
  MemberListener& listener_;
  wal::Wal wal_;
  std::optional<Peers> peers_;              // as raft_, from the end of recovery on
  mvcc::Store store_;
  ApplyState apply_state_;
  std::unique_ptr<char[]> arena_block_;     // the first block of arena_, kept by every Reset
  std::unique_ptr<google::protobuf::Arena> arena_;  // one entry's request and answer at a time
  std::unique_ptr<Timer> timer_;
  std::optional<Instant> timer_due_;  // what timer_ is armed for

  raft::RaftLog recovered_;                 // until OnWalOpened moves it into raft_
  std::optional<raft::RaftState> raft_;
  std::optional<Persister> persister_;
  raft::Output output_;                     // of the current turn
  std::optional<RequestIds> ids_;
  Proposals proposals_;
  struct Unproposed {
    uint64_t id;
    raft::Entry entry;
  };
  size_t unproposed_bytes_ = 0;             // of unproposed_
  std::deque<Unproposed> unproposed_;       // for the end of the turn, or until MayPropose
  Reads reads_;
  struct WaitingHash {
    rpc::Waiter waiter;
    rpc::HashListener* listener;
  };
  rpc::WorkListener* worker_ = nullptr;     // asked for work
  std::map<uint64_t, WaitingHash> hashes_;  // by ticket of the store; at most kHashesWaitingMax
  struct WaitingCompaction {
    rpc::Waiter waiter;
    Revision compacted;                     // answered once the store's removals are done up to here
    Revision revision;                      // of its answer
  };
  std::deque<WaitingCompaction> compactions_;  // ascending; each holds a client's call, so those bound it

  MemberId leader_seen_;                    // as of the last turn
  Instant became_leader_;                   // when this member last did; the beginning of time if never
  VersionRounds versions_;
  LeaderMoves leader_moves_;
  uint64_t publish_id_ = 0;                 // our attributes' proposal under way
  bool ready_ = false;
  bool stopped_ = false;
  bool posted_ = false;                     // another turn has been asked for
};

}  // namespace detcd::member
