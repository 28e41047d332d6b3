#include "checker/search_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/checker/history_by_hand.h"

namespace detcd::checker {
namespace {

using testing::ElementsAre;

class SearchFactsTest : public HistoryByHand {
 protected:
  Facts ByValues() { return MakeFacts(history_, Evidence::kValues); }
};

TEST_F(SearchFactsTest, WhatNoAnswerCanNeedIsLeftOut) {
  Add(Put("a", "1"), 1, 0);
  Add(Put("a", "2"), 2, 0);
  Add({.key = "a"}, 3, 4, {.kvs = {{"a", "2"}}, .count = 1});
  EXPECT_EQ(ByValues().facts.size(), 2u);
  EXPECT_EQ(MakeFacts(history_, Evidence::kAll).facts.size(), 3u);
}

TEST_F(SearchFactsTest, WhatATransactionWithoutAnAnswerMayFindStays) {
  Add(Put("a", "1"), 1, 0);
  Add({.kind = OperationKind::kTxn,
       .compares = {{.target = CompareTarget::kValue, .key = "a", .value = "1"}},
       .success = {Put("b", "2")}},
      2, 0);
  Add({.key = "b"}, 3, 4, {.kvs = {{"b", "2"}}, .count = 1});
  EXPECT_EQ(ByValues().facts.size(), 3u);
}

TEST_F(SearchFactsTest, KeysOfOneTransactionAreSearchedTogether) {
  Add(Put("a", "1"), 1, 2);
  Add(Put("c", "1"), 3, 4);
  EXPECT_THAT(Parts(ByValues()), ElementsAre(ElementsAre(0), ElementsAre(1)));
  Add({.kind = OperationKind::kTxn, .success = {Put("a", "2"), Put("c", "2")}}, 5, 6,
      {.succeeded = true, .responses = {{.kind = OperationKind::kPut}, {.kind = OperationKind::kPut}}});
  EXPECT_THAT(Parts(ByValues()), ElementsAre(ElementsAre(0, 1, 2)));
}

TEST_F(SearchFactsTest, EqualRequestsWithoutAnAnswerStandInOrderOfCall) {
  for (uint64_t call : {1u, 2u, 3u}) Add({.kind = OperationKind::kDelete, .key = "a"}, call, 0);
  Add(Put("a", "1"), 4, 5);
  const Facts facts = MakeFacts(history_, Evidence::kAll);
  EXPECT_EQ(facts.facts[0].elder, kNoNumber);
  EXPECT_EQ(facts.facts[1].elder, 0u);
  EXPECT_EQ(facts.facts[2].elder, 1u);
}

// A transaction whose version conditions are open has a fact for each way it may go.
TEST_F(SearchFactsTest, OneFactForEachGuess) {
  const Request open{.kind = OperationKind::kTxn,
                     .compares = {{.target = CompareTarget::kVersion, .key = "a", .number = 1}},
                     .success = {Put("a", "2")}};
  Add(Put("a", "1"), 1, 2);
  Add(open, 3, 0);
  EXPECT_EQ(ByValues().facts.size(), 3u);
  Request deep = open;
  for (uint32_t i = 0; i < kGuessesMax; ++i) deep = {.kind = OperationKind::kTxn, .compares = open.compares, .success = {deep}};
  EXPECT_TRUE(ByValues().complete);
  Add(deep, 4, 0);
  EXPECT_FALSE(ByValues().complete);
  EXPECT_TRUE(MakeFacts(history_, Evidence::kAll).complete);
}

TEST_F(SearchFactsTest, PairsInsideATransactionTellOfAuthors) {
  Add({.kind = OperationKind::kTxn, .success = {{.key = "a"}}}, 1, 2,
      {.header_revision = 5, .succeeded = true, .responses = {{.header_revision = 5, .kvs = {{"a", "1", 4, 4, 1}}, .count = 1}}});
  Add(Put("a", "1"), 0, 0);
  const Facts facts = MakeFacts(history_, Evidence::kAll);
  EXPECT_EQ(facts.revision_max, 5);
  EXPECT_EQ(facts.authors.at(4).key, 0u);
}

}  // namespace
}  // namespace detcd::checker
