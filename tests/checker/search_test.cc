#include "checker/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checker/triage.h"
#include "tests/checker/history_by_hand.h"
#include "tests/checker/history_generator.h"
#include "tests/checker/referee.h"

namespace detcd::checker {
namespace {

using enum SearchVerdict;

class SearchTest : public HistoryByHand {
 protected:
  void Put(std::string key, std::string value, uint64_t call, uint64_t end, int64_t revision = 0) {
    Add(checker::Put(std::move(key), std::move(value)), call, end, {.header_revision = revision});
  }
  void UnknownDelete(std::string key, uint64_t call) { Add({.kind = OperationKind::kDelete, .key = std::move(key)}, call, 0); }
  void Read(std::string key, std::string value, uint64_t call, uint64_t end, int64_t revision = 0, int64_t mod = 0) {
    Answer answer{.header_revision = revision, .kvs = {{key, value, mod, mod, mod == 0 ? 0 : 1}}, .count = 1};
    Add({.key = key}, call, end, answer);
  }
  void ReadNothing(std::string key, uint64_t call, uint64_t end, int64_t revision = 0) {
    Add({.key = std::move(key)}, call, end, {.header_revision = revision});
  }
  SearchResult ByValues(uint64_t steps_max = 1'000'000) {
    return Search(history_, {.evidence = Evidence::kValues, .steps_max = steps_max});
  }
  SearchResult ByAll() { return Search(history_, {}); }
};

TEST_F(SearchTest, NothingIsLegal) {
  EXPECT_EQ(ByAll().verdict, kLegal);
  EXPECT_EQ(ByValues().verdict, kLegal);
}

TEST_F(SearchTest, ReadMayStandOnEitherSideOfAConcurrentPut) {
  Put("a", "1", 1, 6, 2);
  ReadNothing("a", 2, 3, 1);
  Read("a", "1", 4, 5, 2, 2);
  SearchResult result = ByAll();
  ASSERT_EQ(result.verdict, kLegal);
  EXPECT_EQ(result.order, (std::vector<Place>{{1, Part::kCurrent}, {0, Part::kEffect}, {2, Part::kCurrent}}));
  ReadNothing("a", 7, 8, 1);
  EXPECT_EQ(ByAll().verdict, kIllegal);
  EXPECT_EQ(ByValues().verdict, kIllegal);
}

// The loose read-first rule (place at once what leaves the present state as it is) places operation 2 before operation
// 3, and then nobody is left to write the 1 that operation 5 read.
TEST_F(SearchTest, PutOfThePresentValueIsNoRead) {
  Put("a", "1", 1, 2);
  Put("a", "1", 3, 20);
  Put("a", "2", 4, 19);
  Read("a", "2", 5, 6);
  Read("a", "1", 7, 8);
  EXPECT_EQ(ByValues().verdict, kLegal);
}

// As above: an unknown delete that finds nothing now is needed later.
TEST_F(SearchTest, UnknownDeleteOfNothingIsNoRead) {
  UnknownDelete("a", 1);
  ReadNothing("a", 2, 3, 1);
  Put("a", "1", 4, 5, 2);
  Read("a", "1", 6, 7, 2, 2);
  ReadNothing("a", 8, 9, 3);
  EXPECT_EQ(ByValues().verdict, kLegal);
  EXPECT_EQ(ByAll().verdict, kLegal);
}

TEST_F(SearchTest, UnknownOperationTakesEffectOnce) {
  Put("a", "1", 1, 0);
  Put("a", "2", 2, 3, 3);
  Read("a", "2", 4, 5);
  Read("a", "1", 6, 7);
  EXPECT_EQ(ByValues().verdict, kLegal);
  Put("a", "3", 8, 9);
  Read("a", "1", 10, 11);
  EXPECT_EQ(ByValues().verdict, kIllegal);
}

TEST_F(SearchTest, OperationCalledLaterIsNoAuthor) {
  Read("a", "1", 1, 2, 2, 2);
  Put("a", "1", 3, 0);
  EXPECT_EQ(ByAll().verdict, kIllegal);
  EXPECT_EQ(ByValues().verdict, kIllegal);
}

TEST_F(SearchTest, RefusedOperationIsNoAuthor) {
  Put("a", "1", 1, 2);
  history_.back().outcome = Outcome::kRefused;
  history_.back().answer.error = "etcdserver: too many requests";
  Read("a", "1", 3, 4, 2, 2);
  EXPECT_EQ(ByAll().verdict, kIllegal);
  EXPECT_EQ(ByValues().verdict, kIllegal);
}

TEST_F(SearchTest, SerializableReadMayBeOldButKnowsNoFuture) {
  Put("a", "1", 1, 2, 2);
  Add({.key = "a", .serializable = true}, 3, 4, {.header_revision = 1});
  EXPECT_EQ(ByAll().verdict, kLegal);
  EXPECT_EQ(ByValues().verdict, kLegal);
  Read("a", "2", 5, 6, 3, 3);
  history_.back().request.serializable = true;
  Put("a", "2", 7, 8, 3);
  EXPECT_EQ(ByAll().verdict, kIllegal);
  EXPECT_EQ(ByValues().verdict, kIllegal);
}

// Without revisions the keys are searched apart; a serializable read is bound behind the authors of its own keys only,
// else these orders could not be merged.
TEST_F(SearchTest, SerializableReadsOfPartsMerge) {
  Put("b", "1", 3, 4);
  ReadNothing("a", 5, 9);
  Put("a", "1", 1, 10);
  Read("a", "1", 1, 2);
  history_.back().request.serializable = true;
  history_[3].call.event = 0;
  SearchResult result = ByValues();
  EXPECT_EQ(result.trouble, "");
  EXPECT_EQ(result.verdict, kLegal);
}

TEST_F(SearchTest, RevisionsOutsideAnyStoreAreIllegal) {
  for (int64_t revision : {INT64_MIN, int64_t{-1}, int64_t{0}, INT64_MAX}) {
    history_.clear();
    ReadNothing("a", 1, 2, revision);
    EXPECT_EQ(ByAll().verdict, kIllegal) << revision;
    history_.clear();
    Put("a", "1", 1, 2, revision);
    EXPECT_EQ(ByAll().verdict, kIllegal) << revision;
    EXPECT_EQ(ByValues().verdict, kLegal) << revision;
  }
}

TEST_F(SearchTest, BudgetEndsUndeterminedAndCountsSteps) {
  Put("a", "1", 1, 2, 2);
  Read("a", "1", 3, 4, 2, 2);
  SearchResult none = Search(history_, {.steps_max = 0});
  EXPECT_EQ(none.verdict, kUndetermined);
  EXPECT_EQ(none.steps, 0u);
  SearchResult all = ByAll();
  EXPECT_EQ(all.verdict, kLegal);
  EXPECT_EQ(Search(history_, {.steps_max = all.steps}).verdict, kLegal);
  Put("a", "2", 5, 6, 3);
  EXPECT_EQ(Search(history_, {.steps_max = 1}).verdict, kUndetermined);
}

constexpr uint64_t kWide = 16;  // concurrent puts: 2^16 sets of them

TEST_F(SearchTest, HardPartDoesNotHideACheapIllegalOne) {
  for (uint64_t i = 0; i < kWide; ++i) Put("a", std::to_string(i), 1 + i, 100 + i);
  Read("a", "nobody's", 200, 201);
  Put("b", "1", 300, 301);
  ReadNothing("b", 302, 303);
  SearchResult result = ByValues();
  EXPECT_EQ(result.verdict, kIllegal);
  EXPECT_LT(result.steps, 5'000u);
}

TEST_F(SearchTest, WhatIsBeforeACutIsNotSearchedAgain) {
  for (uint64_t i = 0; i < kWide; ++i) Put("a", std::to_string(i), 1 + i, 100 + i);
  Put("a", "last", 200, 201);
  ReadNothing("a", 300, 301);
  SearchResult result = ByValues();
  EXPECT_EQ(result.verdict, kIllegal);
  EXPECT_LT(result.steps, 5'000u);
}

// At a cut an unknown operation called later may already be placed; that choice is not settled.
TEST_F(SearchTest, UnknownOperationPlacedAtACutIsTakenBack) {
  Put("a", "1", 1, 2);
  UnknownDelete("a", 3);
  Put("b", "1", 4, 0);
  Add({.kind = OperationKind::kDelete, .key = "a", .range_end = "c"}, 5, 6, {.count = 2});
  EXPECT_EQ(ByValues().verdict, kLegal);
}

// Among fingerprints of one bit nearly all collide: states never tried are taken for tried. The second search, with
// whole fingerprints, finds the order.
TEST(SearchCollisionsTest, AreCaughtByTheSecondSearch) {
  int false_alarms = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    History history = GenerateHistory(seed, {.operations = 20, .clients = 6, .values = 2});
    SearchOptions options{.evidence = Evidence::kValues, .fingerprint_bits = 1, .confirm = false};
    if (Search(history.operations, options).verdict == kIllegal) ++false_alarms;
    options.confirm = true;
    ASSERT_EQ(Search(history.operations, options).verdict, kLegal) << seed << "\n" << Story(history);
  }
  EXPECT_GT(false_alarms, 0);
}

TEST(SearchHistoriesTest, LongOnesAreExplainedInFewSteps) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    History history = GenerateHistory(seed, {.operations = 200, .clients = 4, .keys = 4, .unknown_percent = 10});
    for (Evidence evidence : {Evidence::kAll, Evidence::kValues}) {
      SearchResult result = Search(history.operations, {.evidence = evidence});
      ASSERT_EQ(result.verdict, kLegal) << seed << " " << static_cast<int>(evidence) << " " << result.trouble;
      EXPECT_EQ(OrderTrouble(history.operations, evidence, result.order), "");
      EXPECT_EQ(Search(history.operations, {.evidence = evidence}).steps, result.steps);
    }
  }
}

// checker_referee does the same on many more.
TEST(RefereeTest, JudgesAgreeOnCorruptedHistories) {
  for (uint64_t seed = 0; seed < 2'000; ++seed) {
    Comparison comparison = CompareJudges(seed, 8);
    ASSERT_EQ(comparison.mismatch, "") << "seed " << seed << ", " << comparison.corruption << "\n"
                                       << Story(comparison.history);
  }
}

// The kernel: it must refuse every order that is not one.
class OrderTroubleTest : public SearchTest {
 protected:
  std::string Trouble(const std::vector<Place>& order, Evidence evidence = Evidence::kAll) {
    return OrderTrouble(history_, evidence, order);
  }
  void SetUp() override {
    Put("a", "1", 1, 2, 2);
    Read("a", "1", 3, 6, 2, 2);
    Put("a", "2", 4, 5, 3);
  }
};

TEST_F(OrderTroubleTest, AcceptsTheOrder) {
  EXPECT_EQ(Trouble({{0, Part::kEffect}, {1, Part::kCurrent}, {2, Part::kEffect}}), "");
}

TEST_F(OrderTroubleTest, RefusesAMissingPlace) {
  EXPECT_EQ(Trouble({{0, Part::kEffect}, {1, Part::kCurrent}}), "operation 3 (client 1: put a=2) has no place");
}

TEST_F(OrderTroubleTest, RefusesAPlaceTooMany) {
  EXPECT_EQ(Trouble({{0, Part::kEffect}, {0, Part::kEffect}}), "operation at 0 has a place too many");
  EXPECT_EQ(Trouble({{0, Part::kCurrent}}), "operation at 0 has a place too many");
  EXPECT_EQ(Trouble({{7, Part::kEffect}}), "operation at 7 has a place too many");
}

TEST_F(OrderTroubleTest, RefusesWhatRealTimeForbids) {
  history_[0].answer.header_revision = 3;
  history_[2].answer.header_revision = 2;
  EXPECT_EQ(Trouble({{2, Part::kEffect}, {0, Part::kEffect}, {1, Part::kCurrent}}),
            "operation 1 (client 1: put a=1) stands behind one called after its end");
}

TEST_F(OrderTroubleTest, RefusesAWrongState) {
  EXPECT_EQ(Trouble({{0, Part::kEffect}, {2, Part::kEffect}, {1, Part::kCurrent}}),
            "operation 2 (client 1: range a) stands at revision 3 instead of 2");
  EXPECT_THAT(Trouble({{0, Part::kEffect}, {2, Part::kEffect}, {1, Part::kCurrent}}, Evidence::kValues),
              testing::HasSubstr("a=1"));
  history_[1].answer.kvs[0].version = 2;
  EXPECT_NE(Trouble({{0, Part::kEffect}, {1, Part::kCurrent}, {2, Part::kEffect}}), "");
  EXPECT_EQ(Trouble({{0, Part::kEffect}, {1, Part::kCurrent}, {2, Part::kEffect}}, Evidence::kValues), "");
}

class TriageTest : public SearchTest {
 protected:
  Triage Of(std::string property, std::vector<uint64_t> operations = {}, uint64_t steps_max = kTriageStepsMax) {
    return Classify({.property = std::move(property), .operations = std::move(operations)}, history_, steps_max).triage;
  }
};

TEST_F(TriageTest, OtherPropertiesAreNotAsked) {
  for (const char* property : {"F1", "R3", "H3", "convergence", "model"}) EXPECT_EQ(Of(property), Triage::kNotAsked);
}

TEST_F(TriageTest, WrongRevisionOfRightValuesIsMetadataOnly) {
  Put("a", "1", 1, 2, 2);
  Read("a", "1", 3, 4, 2, 3);
  EXPECT_EQ(Of("K5"), Triage::kMetadataOnly);
}

TEST_F(TriageTest, StaleReadIsADataAnomaly) {
  Put("a", "1", 1, 2, 2);
  ReadNothing("a", 3, 4, 1);
  EXPECT_EQ(Of("K4", {2, 1}), Triage::kDataAnomaly);
}

TEST_F(TriageTest, GhostInTheLogIsOfTheLogOnly) {
  Put("a", "1", 1, 2, 2);
  EXPECT_EQ(Of("K14"), Triage::kLogOnly);
}

TEST_F(TriageTest, RefusalOfExplainedAnswersIsADisagreement) {
  Put("a", "1", 1, 2, 2);
  Read("a", "1", 3, 4, 2, 2);
  EXPECT_EQ(Of("K1", {1, 2}), Triage::kDisagreement);
  EXPECT_EQ(Of("K4", {1, 2}), Triage::kDisagreement);
  history_[1].outcome = Outcome::kRefused;  // its place would come from the log
  history_[1].answer.error = "etcdserver: mvcc: required revision has been compacted";
  history_[1].request.revision = 1;
  EXPECT_EQ(Of("K4", {1, 2}), Triage::kLogOnly);
}

TEST_F(TriageTest, BudgetTooSmallIsSaid) {
  Put("a", "1", 1, 2, 2);
  Read("a", "1", 3, 4, 2, 3);
  Opinion opinion = Classify({.property = "K5"}, history_, 1);
  EXPECT_EQ(opinion.triage, Triage::kUndetermined);
  EXPECT_EQ(opinion.sentence, "undetermined after 4 steps: the values are linearizable; are they with their revisions?");
}

}  // namespace
}  // namespace detcd::checker
