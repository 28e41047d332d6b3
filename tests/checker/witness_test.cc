// The kernel: it must refuse every order that does not explain the history, whoever made it.
#include "checker/witness.h"

#include <gtest/gtest.h>

#include "tests/checker/history_by_hand.h"

namespace detcd::checker {
namespace {

class WitnessTest : public HistoryByHand {
 protected:
  std::string Trouble(std::vector<Place> order, Evidence evidence = Evidence::kAll) {
    return OrderTrouble(history_, evidence, order);
  }
};

TEST_F(WitnessTest, EveryAnswerNeedsItsPlaceOnce) {
  Add(Put("a", "1"), 1, 2, {.header_revision = 2});
  EXPECT_EQ(Trouble({{0, Part::kEffect}}), "");
  EXPECT_NE(Trouble({}), "");
  EXPECT_NE(Trouble({{0, Part::kEffect}, {0, Part::kEffect}}), "");
  EXPECT_NE(Trouble({{0, Part::kCurrent}}), "");
}

TEST_F(WitnessTest, RealTimeIsKept) {
  Add(Put("a", "1"), 1, 2, {.header_revision = 2});
  Add({.key = "a"}, 3, 4, {.header_revision = 1});
  EXPECT_NE(Trouble({{1, Part::kCurrent}, {0, Part::kEffect}}), "");
  history_[1].call.event = 0;  // concurrent now
  history_[0].call.event = 1;
  EXPECT_EQ(Trouble({{1, Part::kCurrent}, {0, Part::kEffect}}), "");
}

TEST_F(WitnessTest, ATransactionIsHeldAgainstTheStateItMeets) {
  const Request take{.kind = OperationKind::kTxn,
                     .compares = {{.target = CompareTarget::kCreate, .key = "lock"}},
                     .success = {Put("lock", "me")},
                     .failure = {{.key = "lock"}}};
  Add(take, 1, 9, {.header_revision = 2, .succeeded = true, .responses = {{.header_revision = 2, .kind = OperationKind::kPut}}});
  Add(take, 2, 8, {.header_revision = 2, .responses = {{.header_revision = 2, .kvs = {{"lock", "me", 2, 2, 1}}, .count = 1}}});
  EXPECT_EQ(Trouble({{0, Part::kEffect}, {1, Part::kEffect}}), "");
  EXPECT_NE(Trouble({{1, Part::kEffect}, {0, Part::kEffect}}), "");
  EXPECT_EQ(Trouble({{0, Part::kEffect}, {1, Part::kEffect}}, Evidence::kValues), "");
  EXPECT_NE(Trouble({{1, Part::kEffect}, {0, Part::kEffect}}, Evidence::kValues), "");
}

// By values nothing is known of versions: a transaction without an answer may take either branch, but one only.
TEST_F(WitnessTest, AGuessIsMadeOnce) {
  Add(Put("a", "0"), 1, 2, {.header_revision = 2});
  Add({.kind = OperationKind::kTxn,
       .compares = {{.target = CompareTarget::kVersion, .key = "a", .number = 1}},
       .success = {Put("a", "1")},
       .failure = {Put("a", "2")}},
      3, 0);
  const Place put{0, Part::kEffect};
  const Place no{1, Part::kEffect, 0};
  const Place yes{1, Part::kEffect, 1};
  EXPECT_EQ(Trouble({put, no}, Evidence::kValues), "");
  EXPECT_EQ(Trouble({put, yes}, Evidence::kValues), "");
  EXPECT_NE(Trouble({put, yes, no}, Evidence::kValues), "");
  EXPECT_NE(Trouble({put, yes}), "");  // with revisions there is nothing to guess
}

TEST_F(WitnessTest, ACompactionStandsAtTheRevisionOfItsHeader) {
  Add(Put("a", "1"), 1, 2, {.header_revision = 2});
  Add({.kind = OperationKind::kCompact, .revision = 2}, 3, 4, {.header_revision = 2});
  EXPECT_EQ(Trouble({{0, Part::kEffect}, {1, Part::kHeader}}), "");
  EXPECT_NE(Trouble({{1, Part::kHeader}, {0, Part::kEffect}}), "");
  EXPECT_EQ(Trouble({{0, Part::kEffect}}, Evidence::kValues), "");
}

}  // namespace
}  // namespace detcd::checker
