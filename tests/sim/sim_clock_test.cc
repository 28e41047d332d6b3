#include "sim/sim_clock.h"

#include <gtest/gtest.h>

#include "core/io/random.h"

namespace detcd::sim {
namespace {

TEST(SimClockTest, DriftLeapAndFreezeMoveLocalTime) {
  SimClock clock;
  const Instant start = clock.Local(0);
  EXPECT_EQ((clock.Local(1'000'000) - start).nanos, 1'000'000);
  clock.SetDrift(1'000'000, 1'000);
  EXPECT_EQ((clock.Local(2'000'000) - start).nanos, 2'001'000);
  clock.Leap(2'000'000, Millis(5));
  EXPECT_EQ((clock.Local(2'000'000) - start).nanos, 7'001'000);
  clock.SetDrift(2'000'000, kFrozenPpm);
  EXPECT_EQ((clock.Local(9'000'000) - start).nanos, 7'001'000);
  EXPECT_FALSE(clock.TrueTimeOf(clock.Local(9'000'000) + Nanos(1)).has_value());
}

TEST(SimClockTest, WallJumpsBackWhileMonotonicStays) {
  SimClock clock;
  const Instant local = clock.Local(5);
  const int64_t wall = clock.Wall(5).nanos;
  clock.JumpWall(Seconds(-100));
  EXPECT_EQ(clock.Local(5), local);
  EXPECT_EQ(clock.Wall(5).nanos, wall - Seconds(100).nanos);
}

TEST(SimClockTest, TrueTimeOfIsTheFirstInstantNotBeforeTheDeadline) {
  KeyedRandom random(1, "clock");
  for (int round = 0; round < 2'000; ++round) {
    SimClock clock;
    const int64_t now = static_cast<int64_t>(random.Below(1'000'000));
    clock.SetDrift(now, static_cast<int64_t>(random.Below(1'900'000)) - 900'000);
    const Instant deadline = clock.Local(now) + Nanos(1 + static_cast<int64_t>(random.Below(1'000'000)));
    const std::optional<int64_t> at = clock.TrueTimeOf(deadline);
    ASSERT_TRUE(at.has_value());
    ASSERT_GE(clock.Local(*at), deadline);
    ASSERT_LT(clock.Local(*at - 1), deadline);
  }
}

}  // namespace
}  // namespace detcd::sim
