#include "scenarios/metrics.h"

#include <string>

#include <google/protobuf/descriptor.h>

#include "core/base/check.h"

namespace detcd::scenario {

const Bounds* BoundsOf(const Expectation& expectation, const MetricRow& row) {
  const google::protobuf::FieldDescriptor* field = Expectation::descriptor()->FindFieldByName(std::string(row.name));
  CHECK(field != nullptr);
  const google::protobuf::Reflection& reflection = *expectation.GetReflection();
  if (!reflection.HasField(expectation, field)) return nullptr;
  return static_cast<const Bounds*>(&reflection.GetMessage(expectation, field));
}

}  // namespace detcd::scenario
