#include "scenarios/prove_command.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_format.h"
#include "checker/proofs/proof.h"
#include "scenarios/command_files.h"
#include "scenarios/commands.h"
#include "scenarios/counterexample.h"
#include "scenarios/prove.pb.h"
#include "scenarios/scenario_text.h"

namespace detcd::scenario {
namespace {

using proofs::Answer;
using proofs::AnswerName;
using proofs::Outcome;
using proofs::Proof;

constexpr uint32_t kSchemaVersion = 1;

// `name` itself, or the rule it names with its twins.
bool IsNamed(const Proof& proof, const std::string& name) {
  return name.empty() || proof.name == name || proof.name.rfind(name + "/", 0) == 0;
}

std::vector<Proof> Chosen(const std::string& name) {
  std::vector<Proof> chosen;
  std::string names;
  for (Proof& proof : proofs::AllProofs()) {
    if (names.find("\n  " + proof.name + "\n") == std::string::npos) names += (names.empty() ? "\n  " : "  ") + proof.name + "\n";
    if (IsNamed(proof, name)) chosen.push_back(std::move(proof));
  }
  if (chosen.empty()) throw UsageError{absl::StrFormat("prove: there is no proof `%s`; there are:%s", name, names)};
  return chosen;
}

std::string VotersText(unsigned voters) { return voters == 0 ? "any" : std::to_string(voters); }

void Tell(const Proof& proof, const Outcome& outcome, size_t width, bool with_story) {
  const bool as_expected = outcome.answer == proof.expected;
  std::printf("%-*s %6s  %-14s %10llu  %s%s\n", static_cast<int>(width), proof.name.c_str(), VotersText(proof.voters).c_str(),
              std::string(AnswerName(outcome.answer)).c_str(), static_cast<unsigned long long>(outcome.rlimit_used),
              proof.what.c_str(), as_expected ? "" : "   <-- NOT AS EXPECTED");
  if (with_story || !as_expected) {
    for (const std::string& line : outcome.story) std::printf("    %s\n", line.c_str());
  }
  std::fflush(stdout);
}

ProofReport ReportOf(const Proof& proof, const Outcome& outcome) {
  ProofReport report;
  report.set_name(proof.name);
  report.set_what(proof.what);
  report.set_voters(proof.voters);
  report.set_answer(std::string(AnswerName(outcome.answer)));
  report.set_as_expected(outcome.answer == proof.expected);
  report.set_rlimit_used(outcome.rlimit_used);
  for (const std::string& line : outcome.story) report.add_story(line);
  report.set_has_scenario(outcome.timeline.has_value());
  return report;
}

void WriteScenario(const ProveCommand& command, const Outcome& outcome) {
  if (!outcome.timeline.has_value()) {
    throw UsageError{absl::StrFormat("prove: `%s` has no counterexample that a simulated cluster can be put through", command.name)};
  }
  OutputFile file(command.scenario_file);
  file.Write(ScenarioText(ScenarioOf(*outcome.timeline, {.seed = command.seed})));
  file.Close();
  std::printf("scenario: %s\n", command.scenario_file.c_str());
}

void WriteJson(const std::string& path, const ProveReport& report) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(report, &json, options).ok()) throw UsageError{"prove: no JSON of the report"};
  OutputFile file(path);
  file.Write(json);
  file.Close();
}

// Of several the smallest, which is the gravest; 0 for none.
int ExitCode(bool wrong, bool undetermined) {
  if (wrong) return static_cast<int>(Verdict::kViolation);
  return undetermined ? static_cast<int>(Verdict::kUndetermined) : 0;
}

}  // namespace

int RunProve(const ProveCommand& command) {
  const std::vector<Proof> chosen = Chosen(command.name);
  if (!command.scenario_file.empty() && chosen.size() != 1) {
    throw UsageError{"prove: --scenario wants the name of one weakened twin, as RULE/WEAKNESS"};
  }
  size_t width = 0;
  for (const Proof& proof : chosen) width = std::max(width, proof.name.size());
  std::printf("%-*s %6s  %-14s %10s  what\n", static_cast<int>(width), "name", "voters", "answer", "rlimit");
  ProveReport report;
  report.set_schema_version(kSchemaVersion);
  bool wrong = false;
  bool undetermined = false;
  for (const Proof& proof : chosen) {
    const Outcome outcome = proofs::Run(proof, command.rlimit != 0 ? command.rlimit : proofs::kRlimitDefault);
    Tell(proof, outcome, width, !command.name.empty());
    *report.add_proofs() = ReportOf(proof, outcome);
    undetermined |= outcome.answer == Answer::kUndetermined;
    wrong |= outcome.answer != proof.expected && outcome.answer != Answer::kUndetermined;
    if (!command.scenario_file.empty()) WriteScenario(command, outcome);
  }
  const int code = ExitCode(wrong, undetermined);
  report.set_exit_code(code);
  std::printf("%d proofs and weakened twins: %s\n", report.proofs_size(),
              code == 0 ? "each proved, each refuted" : "NOT all as expected");
  if (!command.json_file.empty()) WriteJson(command.json_file, report);
  return code;
}

}  // namespace detcd::scenario
