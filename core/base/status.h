// absl::Status for storage and set-up, with the few codes of style.md: kInvalidArgument (caller), kNotFound,
// kFailedPrecondition (not now), kResourceExhausted (a limit, no space), kDataLoss (corrupt), kUnavailable (stopped).
// A message names the thing and both values: `want index 41 in [7, 40)`. Not for leaf headers: Abseil's cost seconds.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"

#define RETURN_IF_ERROR(expression)                    \
  do {                                                 \
    ::absl::Status detcd_status = (expression);        \
    if (!detcd_status.ok()) return detcd_status;       \
  } while (false)

#define DETCD_CONCAT_INNER(a, b) a##b
#define DETCD_CONCAT(a, b) DETCD_CONCAT_INNER(a, b)
// ASSIGN_OR_RETURN(auto segment, OpenSegment(name));
#define ASSIGN_OR_RETURN(declaration, expression) \
  ASSIGN_OR_RETURN_IMPL(DETCD_CONCAT(detcd_statusor_, __LINE__), declaration, expression)
#define ASSIGN_OR_RETURN_IMPL(holder, declaration, expression) \
  auto holder = (expression);                                  \
  if (!holder.ok()) return holder.status();                    \
  declaration = *std::move(holder)

namespace detcd {

template <class... Args>
absl::Status DataLoss(const absl::FormatSpec<Args...>& format, const Args&... args) {
  return absl::DataLossError(absl::StrFormat(format, args...));
}
template <class... Args>
absl::Status InvalidArgument(const absl::FormatSpec<Args...>& format, const Args&... args) {
  return absl::InvalidArgumentError(absl::StrFormat(format, args...));
}
template <class... Args>
absl::Status FailedPrecondition(const absl::FormatSpec<Args...>& format, const Args&... args) {
  return absl::FailedPreconditionError(absl::StrFormat(format, args...));
}

}  // namespace detcd
