// The comparing engine, against runs with planted differences.
#include "scenarios/diverge.h"

#include "absl/strings/str_format.h"
#include "scenarios/surroundings.h"

namespace detcd::scenario {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kEvents = 3'000;  // of leaky_run

RunSide Leaky(const std::string& leak, uint64_t at, bool other_surroundings = false) {
  return {.name = "run with " + leak,
          .command = {LEAKY_RUN, leak, absl::StrFormat("%d", at)},
          .other_surroundings = other_surroundings};
}

Comparison UnderTwoSurroundings(const std::string& leak, uint64_t at = 2'500) {
  return Diverge(Leaky(leak, at), Leaky(leak, at, true), {});
}

TEST(DivergeTest, ARunEqualsItselfUnderOtherSurroundings) {
  const Comparison comparison = UnderTwoSurroundings("none");
  EXPECT_EQ(comparison.likeness, Likeness::kEqual) << comparison.story;
  EXPECT_THAT(comparison.story, HasSubstr("equal: 3000 events"));
}

TEST(DivergeTest, FindsTheFirstDifferentEventWhereverItIs) {
  for (const uint64_t at : {uint64_t{2}, uint64_t{100}, uint64_t{101}, kEvents}) {
    for (const uint64_t interval : {uint64_t{1}, uint64_t{100}, kEvents + 1}) {
      const Comparison comparison = Diverge(Leaky("none", at), Leaky("fixed", at), {.checkpoint_interval = interval});
      EXPECT_EQ(comparison.likeness, Likeness::kDivergent);
      EXPECT_THAT(comparison.story, HasSubstr(absl::StrFormat("divergent: %d events are equal", at - 1))) << interval;
    }
  }
}

TEST(DivergeTest, TellsBothEventsAndWhatTheyFollowFrom) {
  const Comparison comparison = Diverge(Leaky("none", 2'500), Leaky("fixed", 2'500), {.parents_max = 2});
  const size_t second_side = comparison.story.find("run with fixed");
  ASSERT_NE(second_side, std::string::npos);
  const std::string a = comparison.story.substr(0, second_side);
  const std::string b = comparison.story.substr(second_side);
  for (const std::string& side : {a, b}) {
    EXPECT_THAT(side, AllOf(HasSubstr("  #2500<-#2499 2.499000 ms e0 message"), HasSubstr("event 2500 is handled"),
                            HasSubstr("because of #2499<-#2498"), HasSubstr("event 2499 is handled"),
                            HasSubstr("because of #2498<-#2497"), Not(HasSubstr("because of #2497"))));
  }
  EXPECT_THAT(a, HasSubstr("#2500<-#2499 2.499000 ms e0 message subject=9c3 value=0 fingerprint=0000000000000000"));
  EXPECT_THAT(b, HasSubstr("#2500<-#2499 2.499000 ms e0 message subject=9c3 value=0 fingerprint=0000000000000001"));
}

TEST(DivergeTest, ARunThatEndsEarlierIsDivergent) {
  const Comparison comparison = Diverge(Leaky("none", 10), Leaky("ends", 1'500), {});
  EXPECT_EQ(comparison.likeness, Likeness::kDivergent);
  EXPECT_THAT(comparison.story, AllOf(HasSubstr("1500 events are equal"), HasSubstr("no such event: the process ends: fine"),
                                      HasSubstr("after   #1500<-#1499")));
}

TEST(DivergeTest, ARunThatDiesIsDivergent) {
  const Comparison comparison = Diverge(Leaky("dies", 1'500), Leaky("none", 10), {});
  EXPECT_EQ(comparison.likeness, Likeness::kDivergent);
  EXPECT_THAT(comparison.story, AllOf(HasSubstr("1500 events are equal"), HasSubstr("no such event: the process dies of signal 6"),
                                      HasSubstr("as told")));
}

TEST(DivergeTest, TwoRunsThatDieAlikeAreEqual) {
  const Comparison comparison = Diverge(Leaky("dies", 1'500), Leaky("dies", 1'500, true), {});
  EXPECT_EQ(comparison.likeness, Likeness::kEqual);
  EXPECT_THAT(comparison.story, HasSubstr("the same up to event 1500, where the process dies of signal 6"));
}

TEST(DivergeTest, ADifferenceThatDoesNotComeBackIsStillOne) {
  const Comparison comparison = Diverge(Leaky("first_pass", 1'500), Leaky("none", 1'500), {});
  EXPECT_EQ(comparison.likeness, Likeness::kDivergent);
  EXPECT_THAT(comparison.story, HasSubstr("not always at the same place"));
}

TEST(DivergeTest, WhatTellsNoRunIsNamed) {
  for (const auto& [program, want] : std::vector<std::pair<std::string, std::string>>{
           {"/no/such/program", "it: /no/such/program: No such file or directory"},
           {"true", "it: tells no end of its run"},
           {"echo", "it: line 1 is not of an event stream: --every 1024"}}) {
    const Comparison comparison = Diverge(Leaky("none", 1), {.name = "it", .command = {program}}, {});
    EXPECT_EQ(comparison.likeness, Likeness::kUnknown);
    EXPECT_EQ(comparison.story, want);
  }
}

// What a run could read of its surroundings; each must differ between the two sides.
TEST(SurroundingsTest, AHashedStackAddressIsFound) {
  EXPECT_THAT(UnderTwoSurroundings("stack_address").story, HasSubstr("divergent: 2499 events are equal"));
}
TEST(SurroundingsTest, AHashedCodeAddressIsFound) {
  if (!LayoutTrouble().empty()) GTEST_SKIP() << LayoutTrouble();
  EXPECT_THAT(UnderTwoSurroundings("code_address").story, HasSubstr("divergent: 2499 events are equal"));
}
TEST(SurroundingsTest, TheEnvironmentIsFound) {
  EXPECT_THAT(UnderTwoSurroundings("locale").story, HasSubstr("divergent: 2499 events are equal"));
  EXPECT_THAT(UnderTwoSurroundings("home").story, HasSubstr("divergent: 2499 events are equal"));
}

#if !defined(__SANITIZE_ADDRESS__)  // the sanitizer's heap has an order and an address of its own
TEST(SurroundingsTest, AHashedHeapAddressIsFound) {
  EXPECT_THAT(UnderTwoSurroundings("heap_address").story, HasSubstr("divergent: 2499 events are equal"));
}
TEST(SurroundingsTest, AnOrderByHeapAddressIsFound) {
  EXPECT_THAT(UnderTwoSurroundings("heap_order").story, HasSubstr("divergent: 2499 events are equal"));
}
TEST(SurroundingsTest, FreshMemoryIsFound) {
  EXPECT_THAT(UnderTwoSurroundings("fresh_memory").story, HasSubstr("divergent: 2499 events are equal"));
}
#endif

TEST(SurroundingsTest, OtherVariablesStandOnceAndTheRestStays) {
  int homes = 0;
  int paths = 0;
  for (const std::string& variable : OtherEnvironment()) {
    homes += variable.rfind("HOME=", 0) == 0 ? 1 : 0;
    paths += variable.rfind("PATH=", 0) == 0 ? 1 : 0;
  }
  EXPECT_EQ(homes, 1);
  EXPECT_EQ(paths, 1);
}

}  // namespace
}  // namespace detcd::scenario
