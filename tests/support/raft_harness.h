// A cluster of RaftStates in five lines: messages, disks and clocks under the test's control.
//
//   RaftHarness cluster(3);
//   cluster.Elect(1);
//   cluster.Propose(1, "x");
//   cluster.Settle();
//   EXPECT_EQ(cluster.Applied(2), (std::vector<std::string>{"x"}));
//
// Members are 1..n and share no clock. After each action the safety properties F1, F2, F4-F10 and F15 of the whole
// cluster are judged against the members' states and disks; violation() tells the first that broke.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/raft/raft.h"

namespace detcd::raft {

class NullTrace : public Trace {
 public:
  bool Wants(LogLevel) const override { return false; }
  void Emit(const TraceEvent&) override {}
};

inline constexpr Duration kTick = Millis(100);
inline constexpr Duration kElectionTimeout = Seconds(1);

RaftOptions HarnessOptions();

class RaftHarness {
 public:
  // What one member wrote and had not synced yet.
  struct Batch {
    std::optional<HardState> hard_state;
    std::vector<Entry> entries;
  };
  struct Held {
    Message message;
    uint64_t batch;  // leaves when this many batches are durable
    bool log;        // dropped when the term has changed by then
  };
  struct Member {
    RaftState raft{.random = KeyedRandom(0, "none")};
    bool up = true;
    bool slow_disk = false;  // writes wait for Sync
    Instant now;
    HardState disk_state;
    std::vector<Entry> disk;
    std::deque<Batch> writes;
    uint64_t collected = 0;
    uint64_t durable = 0;
    uint64_t term_vote_batch = 0;
    std::vector<Held> held;
    std::deque<LogFetch> fetches;
    std::vector<Entry> applied;
    std::vector<ReadReady> reads;
    std::vector<ReadId> reads_dropped;
    uint64_t incarnation = 0;
    LogIndex commit_seen;           // F10
    Term led_term;                  // F4: the log when it was seen leading last
    LogIndex led_last;
  };

  explicit RaftHarness(size_t members, RaftOptions options = HarnessOptions(), uint64_t seed = 1);

  Member& member(uint64_t id) { return members_.at(id - 1); }
  RaftState& raft(uint64_t id) { return member(id).raft; }
  size_t size() const { return members_.size(); }
  // The member that leads the highest term; 0: none.
  uint64_t LeaderId() const;
  std::vector<std::string> Applied(uint64_t id);  // data of applied entries that have any

  // --- acting on one member ---
  void Timeout(uint64_t id);                  // its clock moves to its deadline, and its timer fires
  void Advance(uint64_t id, Duration time);   // its clock moves, without its timer
  void FireTimer(uint64_t id);
  ProposeResult Propose(uint64_t id, std::string data);
  void Read(uint64_t id, uint64_t read);
  void Transfer(uint64_t id, uint64_t target);
  void Step(Message message);                 // as if it had arrived
  void Write(uint64_t id);                    // collects one batch, if there is any
  void SyncOne(uint64_t id);                  // the oldest batch is durable
  void Sync(uint64_t id);                     // collects, and all is durable
  void AnswerFetch(uint64_t id);
  void Unreachable(uint64_t id, uint64_t peer);
  // Loses what is not durable; of the batches on their way, the first `batches_kept` reached the disk.
  void Crash(uint64_t id, size_t batches_kept = 0);
  void Restart(uint64_t id);

  // --- the network ---
  std::vector<Message>& network() { return network_; }
  void Deliver(size_t position, bool duplicate = false);
  void Cut(uint64_t a, uint64_t b) { cut_.insert({a, b}), cut_.insert({b, a}); }
  void Isolate(uint64_t id);
  void Heal() { cut_.clear(); }
  // Takes out and returns the messages on their way that satisfy `wanted`.
  std::vector<Message> Take(const std::function<bool(const Message&)>& wanted);

  // --- the whole ---
  void Settle();                  // syncs and delivers until nothing moves; slow disks stay as they are
  void Elect(uint64_t id);        // all have forgotten their leader; `id` times out; settles
  void Run(Duration time);        // all clocks together, timers firing, settling each tick

  const std::string& violation() const { return violation_; }
  const std::vector<Entry>& committed() const { return canon_; }

 private:
  void After(uint64_t id, Output& output);
  void Release(Member& member);
  void Judge();
  void JudgeLeader(Member& member);
  void JudgeCommit(Member& member);
  void Fail(std::string what);
  size_t DurableHolders(const Entry& entry) const;

  NullTrace trace_;
  RaftOptions options_;
  uint64_t seed_;
  std::vector<Member> members_;
  std::vector<Message> network_;
  std::set<std::pair<uint64_t, uint64_t>> cut_;
  std::string violation_;
  std::vector<Entry> canon_;                                    // committed entries, from index 1
  std::map<Term, MemberId> leaders_;                            // F1
  std::map<std::pair<MemberId, Term>, MemberId> votes_;         // F2, durable ones
  std::map<std::pair<LogIndex, Term>, std::pair<Term, Bytes>> entries_;  // F5: term before it, and data
  std::map<ReadId, LogIndex> reads_asked_;                      // F15: committed when it was asked
};

}  // namespace detcd::raft
