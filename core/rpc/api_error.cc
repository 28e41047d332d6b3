#include "core/rpc/api_error.h"

#include <array>
#include <string>

namespace detcd::rpc {
namespace {

struct Row {
  StatusCode code;
  std::string_view text;
  Outcome outcome;
};

constexpr Row kRows[] = {
    {StatusCode::kOk, "", Outcome::kDefinite},
#define X(name, code, text, outcome) {StatusCode::code, text, Outcome::outcome},
#include "core/rpc/errors.def"
#undef X
};

const Row& RowOf(ApiError error) { return kRows[static_cast<size_t>(error)]; }

}  // namespace

StatusCode CodeOf(ApiError error) { return RowOf(error).code; }
std::string_view TextOf(ApiError error) { return RowOf(error).text; }
Outcome OutcomeOf(ApiError error) { return RowOf(error).outcome; }

CallStatus ToCallStatus(ApiError error) { return {CodeOf(error), std::string(TextOf(error))}; }

}  // namespace detcd::rpc
