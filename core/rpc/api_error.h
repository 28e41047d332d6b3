// What a client can be told went wrong: one enum, made from one table (errors.def), with code, text and outcome.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/rpc/call.h"

namespace detcd::rpc {

enum class ApiError : uint8_t {
  kOk,
#define X(name, code, text, outcome) name,
#include "core/rpc/errors.def"
#undef X
};

// What the caller of a Put or DeleteRange knows about its effect once it has been told an error.
enum class Outcome : uint8_t {
  kDefinite,  // it has not happened and never will
  kUnknown,   // it may have happened, or may still happen
};

// kOk has code kOk, an empty text, and a definite outcome (it happened).
StatusCode CodeOf(ApiError error);
std::string_view TextOf(ApiError error);
Outcome OutcomeOf(ApiError error);

CallStatus ToCallStatus(ApiError error);

}  // namespace detcd::rpc
