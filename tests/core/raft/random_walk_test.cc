// Many short seeded schedules of everything that may happen to a cluster, each step judged by the harness.
#include "tests/support/raft_harness.h"

namespace detcd::raft {
namespace {

void TakeRandomStep(RaftHarness& cluster, KeyedRandom& random, uint64_t& next_name) {
  const uint64_t id = random.Between(1, cluster.size());
  const uint64_t action = random.Below(100);
  auto& network = cluster.network();
  if (action < 40) {
    if (!network.empty()) cluster.Deliver(random.Below(network.size()));
  } else if (action < 44) {
    if (!network.empty()) cluster.Deliver(random.Below(network.size()), true);
  } else if (action < 49) {
    if (!network.empty()) network.erase(network.begin() + static_cast<std::ptrdiff_t>(random.Below(network.size())));
  } else if (action < 60) {
    cluster.Write(id);
  } else if (action < 72) {
    cluster.SyncOne(id);
  } else if (action < 80) {
    // Half of the jumps outlast the memory of a leader.
    cluster.Advance(id, kTick * static_cast<int64_t>(random.Below(20)));
    cluster.FireTimer(id);
  } else if (action < 83) {
    cluster.Timeout(id);
  } else if (action < 84) {
    cluster.Transfer(id, random.Between(1, cluster.size()));
  } else if (action < 91) {
    cluster.Propose(id, "v" + std::to_string(next_name++));
  } else if (action < 94) {
    cluster.Read(id, next_name++);
  } else if (action < 96) {
    cluster.Crash(id, random.Below(3));
  } else if (action < 98) {
    cluster.Restart(id);
  } else if (action < 99) {
    cluster.AnswerFetch(id);
  } else {
    cluster.Unreachable(id, random.Between(1, cluster.size()));
  }
}

void Walk(size_t members, uint64_t seed, size_t steps) {
  KeyedRandom random(seed, "walk");
  RaftOptions options = HarnessOptions();
  options.log_entries_in_memory_max = random.Below(4);
  options.appends_in_flight_max = random.Between(1, 4);
  options.append_bytes_max = random.Between(1, 12);
  options.append_bytes_in_flight_max = random.Between(1, 24);
  options.pre_vote = random.Chance(1, 2);
  options.check_quorum = random.Chance(1, 2);
  RaftHarness cluster(members, options, seed);
  // Schedules that begin with a leader get deeper.
  if (random.Chance(2, 3)) cluster.Elect(random.Between(1, members));
  uint64_t next_name = 1;
  for (size_t step = 0; step < steps && cluster.violation().empty(); ++step) {
    TakeRandomStep(cluster, random, next_name);
  }
  ASSERT_EQ(cluster.violation(), "") << "members " << members << ", seed " << seed;
  // Whatever happened, a healed cluster elects a leader and commits (F20).
  for (uint64_t id = 1; id <= members; ++id) cluster.Restart(id);
  cluster.Settle();
  for (int round = 0; round < 10 && cluster.Applied(1) != std::vector<std::string>{"end"}; ++round) {
    cluster.Run(kElectionTimeout * 3);
    if (cluster.LeaderId() == 0) continue;
    cluster.Propose(cluster.LeaderId(), "end");
    cluster.Run(kElectionTimeout);
    break;
  }
  ASSERT_EQ(cluster.violation(), "") << "members " << members << ", seed " << seed << ", healing";
  for (uint64_t id = 1; id <= members; ++id) {
    ASSERT_FALSE(cluster.Applied(id).empty()) << "members " << members << ", seed " << seed;
    ASSERT_EQ(cluster.Applied(id).back(), "end") << "members " << members << ", seed " << seed;
    ASSERT_EQ(cluster.Applied(id), cluster.Applied(1));
  }
}

TEST(RaftRandomWalkTest, ThreeMembersAreSafeUnderAnySchedule) {
  for (uint64_t seed = 1; seed <= 2000 && !HasFatalFailure(); ++seed) Walk(3, seed, 150);
}

TEST(RaftRandomWalkTest, FiveMembersAreSafeUnderAnySchedule) {
  for (uint64_t seed = 1; seed <= 600 && !HasFatalFailure(); ++seed) Walk(5, seed, 250);
}

TEST(RaftRandomWalkTest, LongSchedulesOfOneAndTwoMembersAreSafe) {
  for (uint64_t seed = 1; seed <= 400 && !HasFatalFailure(); ++seed) {
    Walk(1, seed, 200);
    Walk(2, seed, 200);
  }
}

}  // namespace
}  // namespace detcd::raft
