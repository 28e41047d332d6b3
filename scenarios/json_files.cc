#include "scenarios/json_files.h"

#include <cstdio>
#include <fstream>
#include <sstream>

#include <google/protobuf/util/json_util.h>

#include "scenarios/commands.h"

namespace detcd::scenario {

bool ReadJson(const std::string& path, google::protobuf::Message& message) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return file && google::protobuf::util::JsonStringToMessage(text.str(), &message).ok();
}

void WriteJson(const std::string& path, const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  const std::string fresh = path + ".new";
  std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!status.ok() || !file || std::rename(fresh.c_str(), path.c_str()) != 0) throw UsageError{path + ": cannot be written"};
}

}  // namespace detcd::scenario
