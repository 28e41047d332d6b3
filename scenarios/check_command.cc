#include "scenarios/check_command.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/str_format.h"
#include "checker/history_file.h"
#include "checker/recorded_judge.h"
#include "checker/report.h"
#include "scenarios/commands.h"
#include "scenarios/runner.h"

namespace detcd::scenario {
namespace {

using checker::Outcome;
using checker::RecordedVerdict;

checker::RecordedHistory ReadHistoryFile(const std::string& path) {
  std::error_code trouble;
  const uint64_t size = std::filesystem::file_size(path, trouble);
  if (trouble) throw UsageError{path + ": " + trouble.message()};
  if (size > checker::kHistoryBytesMax) {
    throw UsageError{absl::StrFormat("%s: %d bytes, want at most %d", path, size, checker::kHistoryBytesMax)};
  }
  std::string bytes(size, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(bytes.data(), static_cast<std::streamsize>(size))) throw UsageError{path + ": " + std::strerror(errno != 0 ? errno : EIO)};
  absl::StatusOr<checker::RecordedHistory> history = checker::ReadHistory(bytes);
  if (!history.ok()) throw UsageError{path + ": " + std::string(history.status().message())};
  return *std::move(history);
}

std::string Counts(const checker::RecordedHistory& history, const checker::RecordedJudgement& judgement) {
  uint64_t answered = 0;
  uint64_t refused = 0;
  std::set<uint32_t> clients;
  for (const checker::Operation& operation : history.operations) {
    clients.insert(operation.client);
    answered += operation.outcome == Outcome::kAnswered ? 1 : 0;
    refused += operation.outcome == Outcome::kRefused ? 1 : 0;
  }
  return absl::StrFormat(
      "%d operations of %d clients on %d members: %d answered, %d refused, %d unknown; revision %d, %d final states; %d steps",
      history.operations.size(), clients.size(), history.endpoints.size(), answered, refused,
      history.operations.size() - answered - refused, judgement.revision, history.finals.size(), judgement.steps);
}

Verdict CheckOne(const std::string& path) {
  const checker::RecordedHistory history = ReadHistoryFile(path);
  const uint64_t steps_max =
      std::max(checker::kRecordedStepsMin, checker::kRecordedStepsPerOperation * history.operations.size());
  const checker::RecordedJudgement judgement = checker::JudgeRecorded(history, steps_max);
  static constexpr const char* kWords[] = {"fine", "VIOLATION", "undetermined"};
  std::printf("%s: %s: %s\n", path.c_str(), kWords[static_cast<size_t>(judgement.verdict)],
              Counts(history, judgement).c_str());
  if (!history.note.empty()) std::printf("recorded: %s\n", history.note.c_str());
  if (!judgement.sentence.empty()) std::printf("%s\n", judgement.sentence.c_str());
  if (judgement.violation.has_value()) {
    std::fputs(checker::Tell(*judgement.violation, history.operations).c_str(), stdout);
    if (!judgement.opinion.sentence.empty()) std::printf("%s\n", judgement.opinion.sentence.c_str());
  }
  switch (judgement.verdict) {
    case RecordedVerdict::kFine: return Verdict::kFine;
    case RecordedVerdict::kViolation: return Verdict::kViolation;
    case RecordedVerdict::kUndetermined: break;
  }
  return Verdict::kUndetermined;
}

}  // namespace

int RunCheck(const CheckCommand& command) {
  Verdict gravest = Verdict::kFine;
  for (const std::string& file : command.files) {
    const Verdict verdict = CheckOne(file);
    if (verdict != Verdict::kFine && (gravest == Verdict::kFine || verdict < gravest)) gravest = verdict;
  }
  return static_cast<int>(gravest);
}

}  // namespace detcd::scenario
