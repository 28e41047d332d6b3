#include "scenarios/knob_sheet.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include <google/protobuf/descriptor.h>

#include "absl/strings/str_format.h"
#include "scenarios/runner.h"

namespace detcd::scenario {
namespace {

using google::protobuf::FieldDescriptor;

constexpr std::string_view kDrift = "drift";
constexpr uint32_t kHeartbeatsOfElection = 10;

template <class Number>
std::optional<Number> ParseNumber(const std::string& text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<bool> ParseFlag(const std::string& text) {
  if (text == "on" || text == "true") return true;
  if (text == "off" || text == "false") return false;
  return std::nullopt;
}

// The field of Knobs that `key` names, and whether it says the opposite.
struct Knob {
  const FieldDescriptor* field = nullptr;
  bool negated = false;
};

Knob FindKnob(const std::string& key) {
  for (const std::string& name : {key, key + "_ms", "no_" + key}) {
    const FieldDescriptor* field = Knobs::descriptor()->FindFieldByName(name);
    if (field != nullptr && !field->is_repeated()) return {.field = field, .negated = name == "no_" + key};
  }
  return {};
}

std::string Keys() {
  std::string keys(kDrift);
  for (int i = 0; i < Knobs::descriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *Knobs::descriptor()->field(i);
    if (field.is_repeated()) continue;
    const bool negated = field.name().starts_with("no_");
    keys += ", " + (negated ? field.name().substr(3) : field.name());
  }
  return keys;
}

// Empty when `text` was written to the field.
std::string Write(Knobs& knobs, const Knob& knob, const std::string& text) {
  const google::protobuf::Reflection& reflection = *knobs.GetReflection();
  switch (knob.field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      if (const auto flag = ParseFlag(text)) return reflection.SetBool(&knobs, knob.field, *flag != knob.negated), "";
      return "want on or off";
    case FieldDescriptor::CPPTYPE_UINT32:
      if (const auto number = ParseNumber<uint32_t>(text)) return reflection.SetUInt32(&knobs, knob.field, *number), "";
      return "want a number below 2^32";
    case FieldDescriptor::CPPTYPE_UINT64:
      if (const auto number = ParseNumber<uint64_t>(text)) return reflection.SetUInt64(&knobs, knob.field, *number), "";
      return "want a number";
    default: return "cannot be set";
  }
}

void SetDrift(Scenario& scenario, int32_t ppm) {
  scenario.clear_clocks();
  const uint32_t members = scenario.members() != 0 ? scenario.members() : 3;
  for (uint32_t member = 1; member <= members && ppm != 0; ++member) {
    ClockSetting& clock = *scenario.add_clocks();
    clock.set_member(member);
    clock.set_drift_ppm(member % 2 != 0 ? ppm : -ppm);
  }
}

}  // namespace

std::string KnobSheet::Add(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return text + ": want KEY=VALUE";
  const std::string key = text.substr(0, equals);
  const std::string value = text.substr(equals + 1);
  const Knob knob = FindKnob(key);
  std::string trouble;
  if (key == kDrift) {
    if (!ParseNumber<int32_t>(value).has_value()) trouble = "want parts per million";
  } else if (knob.field == nullptr) {
    return absl::StrFormat("%s: no such key; there are %s", text, Keys());
  } else {
    Knobs scratch;
    trouble = Write(scratch, knob, value);
  }
  if (!trouble.empty()) return text + ": " + trouble;
  entries_.emplace_back(key, value);
  // What no scenario could be run with is said here, not by each run.
  Scenario calm;
  calm.set_format_version(1);
  Apply(calm);
  trouble = CheckScenario(calm);
  if (trouble.empty()) return "";
  entries_.pop_back();
  return text + ": " + trouble;
}

void KnobSheet::Apply(Scenario& scenario) const {
  bool heartbeat = false;
  bool election = false;
  Knobs& knobs = *scenario.mutable_knobs();
  for (const auto& [key, value] : entries_) {
    if (key == kDrift) {
      SetDrift(scenario, *ParseNumber<int32_t>(value));
      continue;
    }
    const Knob knob = FindKnob(key);
    Write(knobs, knob, value);
    heartbeat |= knob.field->number() == Knobs::kHeartbeatMsFieldNumber;
    election |= knob.field->number() == Knobs::kElectionTimeoutMsFieldNumber;
  }
  if (election && !heartbeat) knobs.set_heartbeat_ms(knobs.election_timeout_ms() / kHeartbeatsOfElection);
  if (heartbeat && !election) knobs.set_election_timeout_ms(knobs.heartbeat_ms() * kHeartbeatsOfElection);
}

std::vector<std::string> KnobSheet::Arguments() const {
  std::vector<std::string> arguments;
  for (const auto& [key, value] : entries_) {
    arguments.emplace_back("--set");
    arguments.push_back(key + "=" + value);
  }
  return arguments;
}

std::string KnobSheet::Options() const {
  std::string text;
  for (const std::string& argument : Arguments()) text += " " + argument;
  return text;
}

}  // namespace detcd::scenario
