// Histories as files: what is read is what was written, what contradicts itself is refused, and the judges find what is
// wrong with an answer without any log.
#include "checker/recorded_judge.h"

#include <algorithm>

#include "checker/history_file.h"
#include "tests/checker/history_generator.h"

namespace detcd::checker {
namespace {

using ::testing::HasSubstr;

std::string FileOf(const std::vector<Operation>& operations, const std::vector<RecordedFinal>& finals = {}) {
  std::string file = EncodeHeader({"127.0.0.1:1", "127.0.0.1:2"}, "a test");
  for (const Operation& operation : operations) file += EncodeOperation(operation);
  for (const RecordedFinal& final_state : finals) file += EncodeFinalState(final_state);
  return file + EncodeEnd(operations.size(), finals.size());
}

Operation Made(uint64_t id, uint32_t client, Request request, int64_t call, int64_t end, Answer answer) {
  Operation operation{.id = id, .client = client, .member = MemberId(1), .request = std::move(request)};
  operation.call.true_time = Instant{call};
  operation.end.true_time = Instant{end};
  operation.outcome = Outcome::kAnswered;
  operation.answer = std::move(answer);
  operation.answer.kind = operation.request.kind;
  return operation;
}

Operation PutOf(uint64_t id, std::string key, std::string value, int64_t call, int64_t end, int64_t revision) {
  return Made(id, static_cast<uint32_t>(id), {.kind = OperationKind::kPut, .key = std::move(key), .value = std::move(value)}, call,
              end, {.header_revision = revision});
}

Operation GetOf(uint64_t id, std::string key, int64_t call, int64_t end, int64_t revision, std::vector<ObservedKeyValue> kvs) {
  const auto count = static_cast<int64_t>(kvs.size());
  return Made(id, static_cast<uint32_t>(id), {.kind = OperationKind::kRange, .key = std::move(key)}, call, end,
              {.header_revision = revision, .kvs = std::move(kvs), .count = count});
}

Operation Unanswered(Operation operation) {
  operation.outcome = Outcome::kUnknown;
  operation.answer = {};
  return operation;
}

Operation CompactionOf(uint64_t id, int64_t revision, int64_t call, int64_t end, int64_t at) {
  return Made(id, static_cast<uint32_t>(id), {.kind = OperationKind::kCompact, .revision = revision}, call, end,
              {.header_revision = at});
}

RecordedHistory Read(const std::string& file) {
  auto history = ReadHistory(file);
  EXPECT_TRUE(history.ok()) << history.status();
  return history.ok() ? *std::move(history) : RecordedHistory();
}

RecordedJudgement JudgeFile(const std::string& file) { return JudgeRecorded(Read(file), kRecordedStepsMin); }

// The property; empty: none.
std::string BrokenBy(const std::string& file) {
  const RecordedJudgement judgement = JudgeFile(file);
  return judgement.violation.has_value() ? judgement.violation->property : "";
}

std::string TroubleOf(const std::string& file) { return std::string(ReadHistory(file).status().message()); }

// Two puts and reads of them, one after the other.
std::vector<Operation> Small() {
  return {PutOf(1, "a", "v1", 10, 20, 2), PutOf(2, "b", "v2", 30, 40, 3),
          GetOf(3, "a", 50, 60, 3, {{"a", "v1", 2, 2, 1}}), GetOf(4, "b", 70, 80, 3, {{"b", "v2", 3, 3, 1}})};
}

RecordedFinal FinalOf(uint64_t member, int64_t revision, std::vector<FinalKey> keys) {
  RecordedFinal final_state{.member = MemberId(member), .revision = revision, .keys = std::move(keys)};
  final_state.at.true_time = Instant{100};
  return final_state;
}

const FinalKey kFinalA{"a", "v1", Revision(2), Revision(2), 1};
const FinalKey kFinalB{"b", "v2", Revision(3), Revision(3), 1};

// A generated history with times instead of events, all but compactions and hashes of it in the generator's own form.
std::vector<Operation> Generated(uint64_t seed) {
  std::vector<Operation> operations = GenerateHistory(seed, {.operations = 12}).operations;
  for (Operation& operation : operations) {
    operation.member = MemberId(1);
    operation.call.true_time = Instant{static_cast<int64_t>(operation.call.event)};
    operation.end.true_time = Instant{static_cast<int64_t>(operation.end.event)};
    if (operation.outcome == Outcome::kPending) operation.outcome = Outcome::kUnknown;
    if (operation.outcome == Outcome::kUnknown) {
      // Given up at once; its client may have gone on as another one.
      operation.end = operation.call;
      operation.client = 1'000 + static_cast<uint32_t>(operation.id);
      operation.answer = {};
    }
  }
  return operations;
}

TEST(HistoryFileTest, WhatIsReadIsWhatWasWritten) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const std::vector<Operation> written = Generated(seed);
    const RecordedHistory read = Read(FileOf(written));
    ASSERT_EQ(read.operations.size(), written.size());
    for (const Operation& operation : read.operations) {
      const auto same = std::ranges::find(written, operation.id, &Operation::id);
      ASSERT_NE(same, written.end());
      EXPECT_EQ(operation.request, same->request);
      EXPECT_EQ(operation.outcome, same->outcome);
      Answer answer = operation.answer;
      answer.kind = same->answer.kind;
      EXPECT_EQ(answer, same->answer);
    }
  }
}

TEST(HistoryFileTest, EqualTimesAreConcurrent) {
  const RecordedHistory read = Read(FileOf({PutOf(1, "a", "v1", 10, 20, 2), PutOf(2, "b", "v2", 20, 30, 3)}));
  EXPECT_LT(read.operations[1].call.event, read.operations[0].end.event);
  EXPECT_EQ(read.operations[0].call.true_time, Instant{0});
}

TEST(HistoryFileTest, AFileThatWasCutOffIsRefusedWhereverItWasCut) {
  const std::string file = FileOf(Small(), {FinalOf(1, 3, {kFinalA, kFinalB})});
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_THAT(TroubleOf(file.substr(0, size)), HasSubstr("at byte ")) << size;
  }
  EXPECT_THAT(TroubleOf(file + EncodeEnd(0, 0)), HasSubstr("follows the End record"));
}

TEST(HistoryFileTest, AnyFlippedByteIsReadOrRefused) {
  const std::string file = FileOf(Small(), {FinalOf(1, 3, {kFinalA, kFinalB})});
  for (size_t at = 0; at < file.size(); ++at) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string damaged = file;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      const auto history = ReadHistory(damaged);
      if (history.ok()) JudgeRecorded(*history, 10'000);
    }
  }
}

TEST(HistoryFileTest, WhatContradictsItselfIsRefusedByName) {
  std::vector<Operation> twice = Small();
  twice[1].id = 1;
  EXPECT_THAT(TroubleOf(FileOf(twice)), HasSubstr("operation 1: a number that another one has"));
  std::vector<Operation> backwards = Small();
  backwards[1].end.true_time = Instant{29};
  EXPECT_THAT(TroubleOf(FileOf(backwards)), HasSubstr("operation 2: ended at 29 ns, and was called at 30"));
  std::vector<Operation> two_at_once = Small();
  two_at_once[1].client = 1;
  two_at_once[1].call.true_time = Instant{19};
  EXPECT_THAT(TroubleOf(FileOf(two_at_once)), HasSubstr("a client has one under way at a time"));
  std::vector<Operation> nowhere = Small();
  nowhere[2].member = MemberId(3);
  EXPECT_THAT(TroubleOf(FileOf(nowhere)), HasSubstr("operation 3: endpoint 3 is none"));
  std::vector<Operation> late = Small();
  late[1].end.true_time = Instant{200};
  EXPECT_THAT(TroubleOf(FileOf(late, {FinalOf(1, 3, {kFinalA, kFinalB})})), HasSubstr("operation 2 ended at 200"));
  EXPECT_THAT(TroubleOf(FileOf(Small(), {FinalOf(1, 3, {kFinalB, kFinalA})})), HasSubstr("keys out of order"));
  EXPECT_THAT(TroubleOf(EncodeHeader({"x"}, "") + EncodeEnd(1, 0)), HasSubstr("counts 1 operations"));
  EXPECT_THAT(TroubleOf(EncodeEnd(0, 0)), HasSubstr("at byte 0: the first record is no Header"));
  EXPECT_THAT(TroubleOf(EncodeHeader({}, "") + EncodeEnd(0, 0)), HasSubstr("without endpoints"));
}

TEST(RecordedJudgeTest, AnEmptyHistoryIsFine) {
  EXPECT_EQ(JudgeFile(FileOf({})).verdict, RecordedVerdict::kFine);
}

TEST(RecordedJudgeTest, GeneratedHistoriesAreFine) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const RecordedJudgement judgement = JudgeFile(FileOf(Generated(seed)));
    EXPECT_EQ(judgement.verdict, RecordedVerdict::kFine)
        << seed << ": " << judgement.sentence << (judgement.violation ? judgement.violation->sentence : "");
  }
}

TEST(RecordedJudgeTest, SwappedAnswersAreAViolation) {
  std::vector<Operation> operations = Small();
  std::swap(operations[0].answer, operations[1].answer);
  EXPECT_EQ(JudgeFile(FileOf(Small())).verdict, RecordedVerdict::kFine);
  const RecordedJudgement judgement = JudgeFile(FileOf(operations));
  ASSERT_EQ(judgement.verdict, RecordedVerdict::kViolation);
  EXPECT_EQ(judgement.violation->property, "K14");
  EXPECT_THAT(judgement.violation->sentence, HasSubstr("was answered at revision 3; no answered operation made 2"));
  EXPECT_EQ(judgement.violation->operations, std::vector<uint64_t>{1});
}

TEST(RecordedJudgeTest, AnAcknowledgedPutThatIsMissingIsAViolation) {
  for (const size_t missing : {0u, 1u}) {
    std::vector<Operation> operations = Small();
    operations.erase(operations.begin() + static_cast<ptrdiff_t>(missing));
    const RecordedJudgement judgement = JudgeFile(FileOf(operations));
    ASSERT_EQ(judgement.verdict, RecordedVerdict::kViolation) << missing;
    EXPECT_FALSE(judgement.violation->sentence.empty());
  }
}

TEST(RecordedJudgeTest, APutWithoutAnswerMayHaveTakenEffectOrNot) {
  std::vector<Operation> operations = Small();
  operations[0] = Unanswered(operations[0]);
  EXPECT_EQ(JudgeFile(FileOf(operations)).verdict, RecordedVerdict::kFine);
  operations.push_back(Unanswered(PutOf(9, "a", "v9", 5, 6, 0)));
  EXPECT_EQ(JudgeFile(FileOf(operations)).verdict, RecordedVerdict::kFine);
}

TEST(RecordedJudgeTest, AStaleReadNamesWhatReturnedBefore) {
  std::vector<Operation> operations = Small();
  operations[3].answer = {.header_revision = 2, .kind = OperationKind::kRange};
  const RecordedJudgement judgement = JudgeFile(FileOf(operations));
  ASSERT_EQ(judgement.verdict, RecordedVerdict::kViolation);
  EXPECT_EQ(judgement.violation->property, "K4");
  EXPECT_EQ(judgement.violation->operations.front(), 4u);
  EXPECT_EQ(judgement.opinion.triage, Triage::kDataAnomaly);
}

TEST(RecordedJudgeTest, AFinalStateThatLostAPutIsAViolation) {
  const RecordedFinal whole = FinalOf(1, 3, {kFinalA, kFinalB});
  EXPECT_EQ(JudgeFile(FileOf(Small(), {whole, FinalOf(2, 3, {kFinalA, kFinalB})})).verdict, RecordedVerdict::kFine);
  const RecordedJudgement lost = JudgeFile(FileOf(Small(), {whole, FinalOf(2, 3, {kFinalA})}));
  ASSERT_EQ(lost.verdict, RecordedVerdict::kViolation);
  EXPECT_EQ(lost.violation->property, "K17");
  EXPECT_THAT(lost.violation->sentence, HasSubstr("member 2"));
  // The same keys at another revision, and a member that shows nothing.
  EXPECT_EQ(BrokenBy(FileOf(Small(), {whole, FinalOf(2, 4, {kFinalA, kFinalB})})), "K17");
  EXPECT_EQ(BrokenBy(FileOf(Small(), {whole})), "K17");
}

TEST(RecordedJudgeTest, ACompactionWithoutAnswerExplainsWhatRestsOnIt) {
  std::vector<Operation> operations = Small();
  Operation refused = GetOf(6, "a", 110, 120, 0, {});
  refused.request.revision = 2;
  refused.answer = {.error = "etcdserver: mvcc: required revision has been compacted"};
  operations.push_back(refused);
  const RecordedJudgement without = JudgeFile(FileOf(operations));
  ASSERT_EQ(without.verdict, RecordedVerdict::kViolation);
  EXPECT_EQ(without.violation->property, "K13");
  operations.push_back(Unanswered(CompactionOf(5, 3, 90, 100, 0)));
  EXPECT_EQ(JudgeFile(FileOf(operations)).verdict, RecordedVerdict::kFine);
  operations.back() = CompactionOf(5, 3, 90, 115, 3);
  EXPECT_EQ(JudgeFile(FileOf(operations)).verdict, RecordedVerdict::kFine);
  // Asked for after the answer that rests on it.
  operations.back() = CompactionOf(5, 3, 130, 140, 3);
  EXPECT_EQ(JudgeFile(FileOf(operations)).verdict, RecordedVerdict::kViolation);
}

TEST(RecordedJudgeTest, ReadsOfWhatWasCompactedAreAViolation) {
  std::vector<Operation> operations = Small();
  operations.push_back(CompactionOf(5, 3, 90, 100, 3));
  operations.push_back(GetOf(6, "a", 110, 120, 3, {{"a", "v1", 2, 2, 1}}));
  operations.back().request.revision = 2;
  const RecordedJudgement judgement = JudgeFile(FileOf(operations));
  ASSERT_EQ(judgement.verdict, RecordedVerdict::kViolation);
  EXPECT_EQ(judgement.violation->property, "K13");
}

TEST(RecordedJudgeTest, AHashThatIsNotTheModelsIsAViolation) {
  std::vector<Operation> operations = Small();
  operations.push_back(Made(5, 5, {.kind = OperationKind::kHashKv, .revision = 3}, 90, 100,
                            {.header_revision = 3, .hash = 1, .compact_revision = -1, .hash_revision = 3}));
  const RecordedJudgement judgement = JudgeFile(FileOf(operations));
  ASSERT_EQ(judgement.verdict, RecordedVerdict::kViolation);
  EXPECT_EQ(judgement.violation->property, "H2");
}

// Two puts without an answer, one of which made revision 3 and was overwritten before anybody looked.
TEST(RecordedJudgeTest, AHashOverARevisionOfUnknownAuthorIsOnlyComparedWithOthers) {
  std::vector<Operation> operations = {
      PutOf(1, "a", "v1", 10, 20, 2), Unanswered(PutOf(2, "a", "v2", 30, 40, 0)), Unanswered(PutOf(3, "a", "v3", 30, 40, 0)),
      PutOf(4, "a", "v4", 50, 60, 4)};
  auto hash = [](uint64_t id, uint32_t value) {
    const auto at = static_cast<int64_t>(id) * 10;
    return Made(id, static_cast<uint32_t>(id), {.kind = OperationKind::kHashKv, .revision = 4}, at, at + 5,
                {.header_revision = 4, .hash = value, .compact_revision = -1, .hash_revision = 4});
  };
  operations.push_back(hash(7, 77));
  operations.push_back(hash(8, 77));
  EXPECT_EQ(JudgeFile(FileOf(operations)).verdict, RecordedVerdict::kFine);
  operations.push_back(hash(9, 99));
  EXPECT_EQ(BrokenBy(FileOf(operations)), "H1");
  operations.pop_back();
  // A past read says who it was, and what the hash must be.
  Operation past = GetOf(10, "a", 100, 110, 4, {{"a", "v3", 2, 3, 2}});
  past.request.revision = 3;
  operations.push_back(past);
  EXPECT_EQ(BrokenBy(FileOf(operations)), "H2");
}

TEST(RecordedJudgeTest, ASearchThatGivesUpSaysSo) {
  EXPECT_EQ(JudgeRecorded(Read(FileOf(Small())), 1).verdict, RecordedVerdict::kUndetermined);
}

}  // namespace
}  // namespace detcd::checker
