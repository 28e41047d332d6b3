// What is seen of a run from outside, as numbers over windows of true time: terms, elections, time without service.
// Scenarios bound them (expectations.h), studies tabulate them. Nothing of it changes a run: a measured run has the
// digest of the run that is not measured.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "scenarios/metrics.h"
#include "scenarios/scenario.pb.h"
#include "sim/world.h"

namespace detcd::scenario {

class Measures final : private sim::WorldListener {
 public:
  Measures(sim::World& world, std::vector<Window> windows);
  ~Measures() { world_.SetListener(nullptr); }
  Measures(const Measures&) = delete;

  // After each step of the world, and after what was done to the world because of it.
  void AfterStep(const sim::WorldStep& step);
  void OnEpisode(const Episode& episode, bool begins);
  // The run is over: who still waits has waited until now.
  void Finish();

  // So far. Milliseconds are rounded down.
  uint64_t Value(size_t window, Metric metric) const;
  // Whether any count rose since the last call.
  bool TakeChanged() { return std::exchange(changed_, false); }

 private:
  struct Tally {
    Window window;
    std::array<uint64_t, kMetricCount> counts{};  // times in nanoseconds, messages as such
  };
  // A member as it was seen last.
  struct Seat {
    uint32_t incarnation = 0;
    Term term;
    Term term_highest;
    checker::Role role = checker::Role::kFollower;
    uint32_t hampered = 0;                 // episodes in which it does not run as it should
    std::optional<int64_t> connected_since;  // true time; none: not connected to a quorum
  };
  // Calls of one kind. What waits began at `waits_since`, if any of those that ended unserved did.
  struct Service {
    Metric gap;
    Metric outage;
    int64_t served_at = 0;
    std::optional<int64_t> waits_since;
  };

  // WorldListener
  void OnPeerMessage(const raft::Message& message) override;

  void OnMember(uint32_t member);
  void OnLeader(uint32_t member, Term term);
  void LeadershipEnds();
  void OnEnd(const checker::Operation& operation);
  void OnServed(Service& service, int64_t since);
  void AddWait(const Service& service, int64_t since);
  std::optional<int64_t> EarliestWaiting(bool reads) const;
  bool IsStale(const checker::Operation& read) const;
  void RefreshConnections();

  // Adds to the windows that hold the present moment: of all members together, of `member`.
  void AddOfAll(Metric metric, uint64_t amount);
  void AddOfMember(Metric metric, uint32_t member, uint64_t amount);
  void Count(Metric metric, uint32_t member);
  std::optional<uint32_t> NumberOf(MemberId id) const;

  sim::World& world_;
  std::vector<Tally> tallies_;
  std::vector<Seat> seats_;
  size_t history_seen_ = 0;
  Term term_highest_;
  // Who led last, until that leadership has ended; the term in which it was asked to end.
  std::optional<uint32_t> leader_;
  Term leader_term_;
  Term transfer_term_;
  Service writes_ = {Metric::kWriteGap, Metric::kWriteOutage, 0, {}};
  Service reads_ = {Metric::kReadGap, Metric::kReadOutage, 0, {}};
  std::vector<std::pair<uint64_t, int64_t>> answered_;  // event, and the newest revision that was answered until then
  bool changed_ = false;
};

}  // namespace detcd::scenario
