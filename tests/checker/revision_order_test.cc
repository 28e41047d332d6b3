#include "checker/revision_order.h"

#include <gtest/gtest.h>

#include "checker/report.h"
#include "tests/checker/referee.h"
#include "tests/checker/revision_order_story.h"

namespace detcd::checker {
namespace {

TEST(RevisionOrderTest, AcceptsWhatTheSpecificationDid) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    History history = GenerateHistory(seed, {.operations = 60, .clients = 6});
    auto violation = JudgeHistory(history);
    ASSERT_FALSE(violation.has_value()) << seed << ": " << violation->sentence << "\n" << Story(history);
  }
}

Answer At(int64_t revision) { return {.header_revision = revision}; }

TEST_F(RevisionOrderStory, ReadAfterAcknowledgedWriteMustShowIt) {
  uint64_t put = Call(Put("a", "v1"));
  Commit(Put("a", "v1"));
  End(put, At(2));
  uint64_t read = Call(Get("a"));
  End(read, At(1));
  ASSERT_EQ(Broken(), "K4");
  EXPECT_EQ(verdict_.violation()->operations, (std::vector<uint64_t>{read, put}));
  std::vector<Operation> history{operations_[put], operations_[read]};
  EXPECT_EQ(Tell(*verdict_.violation(), history),
            "K4: an answer older than one returned before the call\n"
            "operation 2 (client 1: range a) stands at revision 1, but operation 1 (client 1: put a=v1) had returned "
            "before it was called and stands at revision 2\n"
            "at event 5, 0.000 ms\n"
            "  |------|                operation 1 (client 1: put a=v1): revision 2\n"
            "                |------|  operation 2 (client 1: range a): revision 1\n");
}

TEST_F(RevisionOrderStory, SerializableReadMayBeOldButNotWrong) {
  uint64_t put = Call(Put("a", "v1"));
  Commit(Put("a", "v1"));
  End(put, At(2));
  uint64_t read = Call({.key = "a", .serializable = true});
  End(read, At(1));
  EXPECT_EQ(Broken(), "");
  read = Call({.key = "a", .serializable = true});
  End(read, At(2));
  EXPECT_EQ(Broken(), "R2");
}

TEST_F(RevisionOrderStory, AnswerBeforeCommitIsAGhost) {
  uint64_t put = Call(Put("a", "v1"));
  End(put, At(2));
  EXPECT_EQ(Broken(), "K17");
}

TEST_F(RevisionOrderStory, ValueThatNobodySentIsAGhost) {
  Commit(Put("a", "v1"));
  EXPECT_EQ(Broken(), "K14");
}

TEST_F(RevisionOrderStory, RefusedWriteMustNotAppear) {
  uint64_t put = Call(Put("a", "v1"));
  End(put, {.error = "etcdserver: too many requests"}, Outcome::kRefused);
  EXPECT_EQ(Broken(), "");
  Commit(Put("a", "v1"));
  EXPECT_EQ(Broken(), "K16");
}

TEST_F(RevisionOrderStory, RefusalAfterTheEffectIsSeenAtOnce) {
  uint64_t put = Call(Put("a", "v1"));
  Commit(Put("a", "v1"));
  End(put, {.error = "etcdserver: too many requests"}, Outcome::kRefused);
  EXPECT_EQ(Broken(), "K16");
}

TEST_F(RevisionOrderStory, UnknownWriteTakesEffectLateButOnce) {
  uint64_t put = Call(Put("a", "v1"));
  End(put, {}, Outcome::kUnknown);
  Commit(Put("a", "v1"));
  EXPECT_EQ(Broken(), "");
  Commit(Put("a", "v1"));
  EXPECT_EQ(Broken(), "K15");
}

TEST_F(RevisionOrderStory, EqualDeletesAreMatchedInOrderOfTime) {
  uint64_t put = Call(Put("a", "v1"));
  Commit(Put("a", "v1"));
  End(put, At(2));
  Call(Delete("a"));
  Commit(Delete("a"));  // revision 3: only the first delete was called by now
  put = Call(Put("a", "v2"));
  Commit(Put("a", "v2"));
  End(put, At(4));
  uint64_t late = Call(Delete("a"));
  Commit(Delete("a"));  // revision 5
  EXPECT_EQ(Broken(), "");
  End(late, {.header_revision = 3, .count = 1});
  EXPECT_EQ(Broken(), "K4");
}

TEST_F(RevisionOrderStory, FalseFutureRevision) {
  uint64_t put = Call(Put("a", "v1"));
  Commit(Put("a", "v1"));
  End(put, At(2));
  uint64_t read = Call({.key = "a", .revision = 3});
  End(read, {.error = std::string(kErrorFutureRevision)}, Outcome::kRefused);
  EXPECT_EQ(Broken(), "");
  read = Call({.key = "a", .revision = 2});
  End(read, {.error = std::string(kErrorFutureRevision)}, Outcome::kRefused);
  EXPECT_EQ(Broken(), "K13");
}

TEST_F(RevisionOrderStory, CompactedWithoutCompaction) {
  uint64_t read = Call({.key = "a", .revision = 1});
  End(read, {.error = std::string(kErrorCompacted)}, Outcome::kRefused);
  EXPECT_EQ(Broken(), "K13");
}

TEST_F(RevisionOrderStory, MemberMustNotAnswerBackwards) {
  judge_.OnStarted(MemberId(7), Next());
  uint64_t put = Call(Put("a", "v1"));
  Commit(Put("a", "v1"));
  End(put, {.header_revision = 2, .header_member = 7});
  uint64_t read = Call({.key = "a", .serializable = true});
  End(read, {.header_revision = 1, .header_member = 8});
  EXPECT_EQ(Broken(), "");
  read = Call({.key = "a", .serializable = true});
  End(read, {.header_revision = 1, .header_member = 7});
  EXPECT_EQ(Broken(), "R3");
}

TEST_F(RevisionOrderStory, RestartForgetsWhatAMemberAnswered) {
  judge_.OnStarted(MemberId(7), Next());
  uint64_t put = Call(Put("a", "v1"));
  Commit(Put("a", "v1"));
  End(put, {.header_revision = 2, .header_member = 7});
  judge_.OnStarted(MemberId(7), Next());
  uint64_t read = Call({.key = "a", .serializable = true});
  End(read, {.header_revision = 1, .header_member = 7});
  EXPECT_EQ(Broken(), "");
}

}  // namespace
}  // namespace detcd::checker
