// Reports as files, in protobuf's JSON mapping.
#pragma once

#include <string>

#include <google/protobuf/message.h>

namespace detcd::scenario {

// Whether `path` can be read and holds a message of this kind.
bool ReadJson(const std::string& path, google::protobuf::Message& message);

// Puts it in the place of what is there at once: never half a report. Throws UsageError.
void WriteJson(const std::string& path, const google::protobuf::Message& message);

}  // namespace detcd::scenario
