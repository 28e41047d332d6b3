// A world: real members and simulated clients over one universe, watched by the judges. The only loop is Step; faults are
// functions called between steps; what happens when is the caller's plan (scenarios/runner.cc).
//
//   World world(knobs);
//   world.StartMember(0);  ...
//   world.client(0).Plan(...);
//   while (world.Step().running) { ... }
//
// Endpoints: members from 0, then clients, then one prober for each member.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checker/panel.h"
#include "sim/client.h"
#include "sim/member_node.h"
#include "sim/member_watcher.h"
#include "sim/sim_universe.h"

namespace detcd::sim {

struct WorldKnobs {
  Fidelity fidelity = Fidelity::kDirect;
  uint32_t members = 3;
  uint32_t clients = 1;
  UniverseKnobs universe;                // `endpoints` is set here
  member::MemberOptions member;          // what all members share: intervals and limits
  Duration client_try_timeout = Seconds(5);
  Duration client_total_timeout = Seconds(15);
  std::vector<uint32_t> no_lease_reads;  // members, from 0, without `member.lease_reads`
  int64_t clock_drift_ppm_max = 0;       // of any member at any time, for the judges
  bool harmed_may_stop = false;          // a member may stop by itself for what became of its disk
  std::set<uint32_t> no_pre_vote;        // members without, whatever `member` says
};

// Hears what passes among the members.
class WorldListener {
 public:
  virtual void OnPeerMessage(const raft::Message& message) = 0;

 protected:
  ~WorldListener() = default;
};

struct WorldStep {
  bool running = true;       // false: idle for ever, or a violation
  uint64_t control = 0;      // the token of a control event
  bool is_control = false;
  EndpointId endpoint = 0;   // when `ran`: whose code ran
  bool ran = false;
  // The member stopped by itself, as it must when its disk fails it. It stays down until it is started again.
  bool stopped = false;
};

struct WorldCounts {
  uint64_t operations = 0;   // begun, probes included
  uint64_t answered = 0;
  uint64_t unknown = 0;
  uint64_t refused = 0;
  uint64_t leader_changes = 0;
};

// The ends of a client's turns, for its connections.
class ClientTurns final : public TurnListener {
 public:
  explicit ClientTurns(ClientCalls& calls) : calls_(calls) {}
  void OnEndTurn() override { calls_.EndTurn(); }

 private:
  ClientCalls& calls_;
};

class World final : private ClientListener, private PeerCutObserver, private checker::MemberClocks {
 public:
  explicit World(const WorldKnobs& knobs);
  ~World();
  World(const World&) = delete;

  // Runs one event and shows the judges what it did.
  WorldStep Step();

  // --- members, numbered from 0 ---
  uint32_t members() const { return knobs_.members; }
  bool IsUp(uint32_t member) const { return universe_.IsUp(member); }
  void StartMember(uint32_t member);
  // Power loss. Also of a member that is down.
  void CrashMember(uint32_t member, Survival survival);
  // The process ends, the machine stays.
  void EndMember(uint32_t member);

  // From its next start on.
  void SetPreVote(uint32_t member, bool pre_vote);

  // Whoever leads is asked to hand its leadership to `target`, as by an operator.
  void MoveLeader(uint32_t target);

  // Power loss of a member that never comes back: nothing is asked of it at the end of the run.
  void LoseMember(uint32_t member);

  // --- clients, numbered from 0 ---
  uint32_t clients() const { return knobs_.clients; }
  EndpointId ClientEndpoint(uint32_t client) const { return knobs_.members + client; }
  Client& client(uint32_t client) { return *clients_[client].client; }

  // --- the end of a run ---
  // All faults are over: probers start to ask each member that is not lost for a put and a linearizable read until both
  // succeeded.
  // Operation ids from `first_id` on are theirs.
  void BeginProbing(uint64_t first_id, Duration longest_delay, Duration longest_sync);
  // Every member has served, no client waits, all members have applied all that is committed, and no leader still has
  // reads to confirm.
  bool Settled() const;
  // Shows final states and ends the judging.
  void Finish();
  // Ends the judging of a world that owes no service any more.
  void FinishWithoutService() { panel_->Finish(Now()); }
  // What a disk had lost, of what its member counted on, when the member went on from it all the same; empty: nothing.
  // Found on the disk itself. The first such loss.
  const std::string& loss() const { return loss_; }
  // Whether the member, when it last ran, knew no leader or had not recovered.
  bool InStartUp(uint32_t member) const {
    return !seats_[member]->watcher.recovered() || seats_[member]->watcher.seen().leader.IsZero();
  }
  const std::optional<checker::Violation>& violation() const;
  // In words: who waits for whom.
  std::string Describe() const;

  // Hears each message as its sender sends it, until another is set; nullptr: nobody.
  void SetListener(WorldListener* listener) { listener_ = listener; }

  SimUniverse& universe() { return universe_; }
  const WorldKnobs& knobs() const { return knobs_; }
  const WorldCounts& counts() const { return counts_; }
  const std::vector<checker::Operation>& history() const { return history_; }
  checker::Moment Now() const;
  // A member as it was last shown to the judges.
  const checker::MemberObservation& Seen(uint32_t member) const { return seats_[member]->watcher.seen(); }
  // `m2` of the member with this id; `nobody` of an id that no member has.
  std::string NameOf(MemberId id) const;
  // Operations that have begun and not ended.
  std::vector<checker::Operation> UnderWay() const;

 private:
  struct Seat {
    MemberPlace place;
    MemberWatcher watcher;
    uint32_t incarnation = 0;
    bool lost = false;                  // for good
    std::string lacks;                  // at the start of this incarnation: what its disk lacks of what was durable
    std::unique_ptr<MemberNode> node;   // null while down
  };
  struct ClientSeat {
    std::unique_ptr<Client> client;
    std::unique_ptr<ClientCalls> calls;
    std::unique_ptr<ClientTurns> turns;
  };
  struct Probe {
    checker::ProbeKind kind = checker::ProbeKind::kPut;
    bool done = false;
  };

  // ClientListener
  void OnOperationCall(checker::Operation& operation) override;
  void OnOperationEnd(checker::Operation& operation) override;
  MemberId MemberAt(EndpointId endpoint) const override { return ids_[endpoint]; }
  // PeerCutObserver
  void OnPeerSent(const raft::Message& message) override;
  void OnPeerDelivered(const raft::Message& message) override;
  // checker::MemberClocks
  Instant Local(MemberId member) const override;

  void MakeSeats();
  void MakeClient(uint32_t number, EndpointId endpoint, std::vector<EndpointId> members);
  void Watch(uint32_t member);
  // Whether its disk made it stop.
  bool MemberStopped(uint32_t member);
  std::string LackingOnDisk(uint32_t member);
  void PlanProbe(uint32_t member, Duration pause);
  void ProbeEnded(uint32_t member, const checker::Operation& operation);

  WorldKnobs knobs_;
  std::vector<MemberId> ids_;            // by endpoint
  SimUniverse universe_;
  DirectPayloads payloads_;
  CommittedLog committed_;
  std::unique_ptr<checker::Panel> panel_;
  std::vector<std::unique_ptr<Seat>> seats_;
  std::vector<ClientSeat> clients_;      // probers after the clients
  std::vector<Probe> probes_;            // by member
  uint64_t next_probe_id_ = 0;
  std::vector<checker::Operation> history_;
  std::optional<checker::Violation> stopped_;
  std::string loss_;
  Term last_leader_term_;
  WorldCounts counts_;
  WorldListener* listener_ = nullptr;
};

}  // namespace detcd::sim
