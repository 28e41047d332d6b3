#include "scenarios/scenario_text.h"

#include <vector>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "absl/strings/str_format.h"

namespace detcd::scenario {
namespace {

using google::protobuf::FieldDescriptor;

// The first fault of a text, with its place.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (text_.empty()) text_ = absl::StrFormat("line %d, column %d: %s", line + 1, column + 1, message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string Line(const google::protobuf::TextFormat::Printer& printer, const Scenario& scenario, const FieldDescriptor* field,
                 int index) {
  std::string value;
  printer.PrintFieldValueToString(scenario, field, index, &value);
  while (!value.empty() && value.back() == ' ') value.pop_back();
  if (field->type() != FieldDescriptor::TYPE_MESSAGE) return field->name() + ": " + value + "\n";
  return field->name() + (value.empty() ? " {}\n" : " { " + value + " }\n");
}

}  // namespace

std::string ScenarioText(const Scenario& scenario) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  printer.SetUseShortRepeatedPrimitives(true);
  std::vector<const FieldDescriptor*> fields;
  scenario.GetReflection()->ListFields(scenario, &fields);
  std::string text = "# proto-file: scenarios/scenario.proto\n# proto-message: detcd.scenario.Scenario\n";
  for (const FieldDescriptor* field : fields) {
    if (!field->is_repeated()) {
      text += Line(printer, scenario, field, -1);
      continue;
    }
    for (int i = 0; i < scenario.GetReflection()->FieldSize(scenario, field); ++i) text += Line(printer, scenario, field, i);
  }
  return text;
}

ScenarioSize SizeOf(const Scenario& scenario) {
  ScenarioSize size;
  size.fault_lines = static_cast<uint64_t>(scenario.episodes_size() + scenario.clocks_size()) + (scenario.has_links() ? 1 : 0) +
                     (scenario.has_disks() ? 1 : 0) + (scenario.lost_members_size() > 0 ? 1 : 0);
  size.operations = static_cast<uint64_t>(scenario.operations_size());
  return size;
}

std::string ParseScenarioText(const std::string& text, google::protobuf::Message& message) {
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  return parser.ParseFromString(text, &message) ? std::string() : error.text();
}

}  // namespace detcd::scenario
