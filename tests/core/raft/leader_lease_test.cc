#include "core/raft/leader_lease.h"

#include <cstdint>
#include <limits>

namespace detcd::raft {
namespace {

constexpr int64_t kNanosMax = std::numeric_limits<int64_t>::max();

static_assert(LeaseBound(Millis(1000), 0).nanos == 999'999'998, "usable in constants");

// The definition, with 128 bits: the greatest L with (L + g)(1 + d) <= (T - g)(1 - d).
bool IsSafe(__int128 lease, int64_t timeout, int64_t drift_ppm) {
  return (lease + 1) * (kPartsPerMillion + drift_ppm) <= (__int128{timeout} - 1) * (kPartsPerMillion - drift_ppm);
}

TEST(LeaseBoundTest, WithoutDriftItIsTheElectionTimeoutLessTwoGranules) {
  EXPECT_EQ(LeaseBound(Millis(1000), 0), Millis(1000) - Nanos(2));
}

TEST(LeaseBoundTest, KnownValues) {
  EXPECT_EQ(LeaseBound(Millis(1000), 500).nanos, 999'000'497);      // 999999999 * 999500 / 1000500 = 999000498.7
  EXPECT_EQ(LeaseBound(Millis(1000), 300'000).nanos, 538'461'536);  // 999999999 * 7 / 13 = 538461537.9
}

TEST(LeaseBoundTest, ATimeoutOfAFewGranulesHasNoLease) {
  for (int64_t timeout = 0; timeout <= 2; ++timeout) EXPECT_EQ(LeaseBound(Nanos(timeout), 0), Duration{}) << timeout;
  EXPECT_EQ(LeaseBound(Nanos(3), 0), Nanos(1));
  EXPECT_EQ(LeaseBound(Nanos(3), 1), Duration{});
}

TEST(LeaseBoundTest, ClocksThatMayAlmostStopHaveNoLease) {
  EXPECT_EQ(LeaseBound(Millis(1), kPartsPerMillion - 1), Duration{});
  EXPECT_EQ(LeaseBound(Seconds(10), kPartsPerMillion - 1).nanos, 4'999);  // 9999999999 / 1999999, less one
}

TEST(LeaseBoundTest, TheLongestTimeoutDoesNotOverflow) {
  const Duration lease = LeaseBound(Nanos(kNanosMax), 999);
  EXPECT_TRUE(IsSafe(lease.nanos, kNanosMax, 999));
  EXPECT_FALSE(IsSafe(__int128{lease.nanos} + 1, kNanosMax, 999));
}

RC_GTEST_PROP(LeaseBoundTest, IsTheLongestSafeLease, ()) {
  const auto timeout = *rc::gen::inRange<int64_t>(0, 100'000'000'000);
  const auto drift_ppm = *rc::gen::inRange<int64_t>(0, kPartsPerMillion);
  const Duration lease = LeaseBound(Nanos(timeout), drift_ppm);
  RC_ASSERT(lease.nanos == 0 || IsSafe(lease.nanos, timeout, drift_ppm));
  RC_ASSERT(!IsSafe(__int128{lease.nanos} + 1, timeout, drift_ppm));
}

TEST(LeaseBoundDeathTest, NamesWhatItCannotTake) {
  EXPECT_DEATH(LeaseBound(Millis(1), -1), "drift_ppm");
  EXPECT_DEATH(LeaseBound(Millis(1), kPartsPerMillion), "drift_ppm");
  EXPECT_DEATH(LeaseBound(Nanos(-1), 0), "election_timeout");
}

}  // namespace
}  // namespace detcd::raft
