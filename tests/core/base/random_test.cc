#include "core/io/random.h"

namespace detcd {
namespace {

using Draws = std::vector<uint64_t>;

Draws FirstDraws(KeyedRandom random) {
  Draws draws;
  for (int i = 0; i < 3; ++i) draws.push_back(random.Next());
  return draws;
}

// Fixed values: a seed must mean the same run on every machine.
TEST(KeyedRandomTest, FirstDrawsAreThese) {
  EXPECT_EQ(FirstDraws(KeyedRandom(0, "raft")), (Draws{2657062743229146662u, 12175200881205446609u, 17448034205431607951u}));
  EXPECT_EQ(FirstDraws(KeyedRandom(1, "raft")), (Draws{6060013311406773280u, 11127721399953195655u, 11895939699753577103u}));
  EXPECT_EQ(FirstDraws(KeyedRandom(1, "raft").Sub(2)), (Draws{3190421049967314831u, 15454484894130527067u, 10663424960535335586u}));
}

TEST(KeyedRandomTest, LabelsSeedsAndSubstreamsDiffer) {
  const KeyedRandom random(1, "a");
  EXPECT_NE(FirstDraws(random), FirstDraws(KeyedRandom(1, "b")));
  EXPECT_NE(FirstDraws(random), FirstDraws(KeyedRandom(2, "a")));
  EXPECT_NE(FirstDraws(random), FirstDraws(random.Sub(0)));
  EXPECT_NE(FirstDraws(random.Sub(0)), FirstDraws(random.Sub(1)));
}

TEST(KeyedRandomTest, ASubstreamDoesNotDependOnDrawsBefore) {
  KeyedRandom random(1, "a");
  const Draws before = FirstDraws(random.Sub(3));
  random.Next();
  EXPECT_EQ(FirstDraws(random.Sub(3)), before);
}

TEST(KeyedRandomTest, BelowStaysBelowAndReachesAll) {
  KeyedRandom random(1, "below");
  std::map<uint64_t, int> counts;
  for (int i = 0; i < 6'000; ++i) ++counts[random.Below(6)];
  EXPECT_EQ(counts.size(), 6u);
  EXPECT_EQ(counts.rbegin()->first, 5u);
  for (const auto& [value, count] : counts) EXPECT_NEAR(count, 1'000, 150) << value;
}

TEST(KeyedRandomTest, BelowOfExtremeBounds) {
  KeyedRandom random(1, "extreme");
  EXPECT_EQ(random.Below(1), 0u);
  for (int i = 0; i < 100; ++i) EXPECT_LT(random.Below(~uint64_t{0}), ~uint64_t{0});
}

TEST(KeyedRandomTest, BetweenIncludesBothEnds) {
  KeyedRandom random(1, "between");
  EXPECT_EQ(random.Between(7, 7), 7u);
  std::map<uint64_t, int> counts;
  for (int i = 0; i < 100; ++i) ++counts[random.Between(7, 8)];
  EXPECT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts.begin()->first, 7u);
  EXPECT_EQ(random.Between(Millis(5), Millis(5)), Millis(5));
  for (int i = 0; i < 100; ++i) {
    const Duration drawn = random.Between(Nanos(-1), Nanos(1));
    EXPECT_GE(drawn, Nanos(-1));
    EXPECT_LE(drawn, Nanos(1));
  }
}

TEST(KeyedRandomTest, ChanceKnowsNeverAndAlways) {
  KeyedRandom random(1, "chance");
  for (int i = 0; i < 1'000; ++i) {
    EXPECT_FALSE(random.Chance(0, 10));
    EXPECT_TRUE(random.Chance(10, 10));
  }
}

}  // namespace
}  // namespace detcd
