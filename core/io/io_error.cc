#include "core/io/io_error.h"

namespace detcd {

std::string_view IoErrorName(IoError error) {
  switch (error) {
    case IoError::kOk: return "ok";
    case IoError::kNotFound: return "not found";
    case IoError::kExists: return "exists already";
    case IoError::kNoSpace: return "no space left on device";
    case IoError::kDevice: return "input/output error";
    case IoError::kLocked: return "locked by another process";
    case IoError::kPermission: return "permission denied";
    case IoError::kTooManyOpen: return "too many open files";
    case IoError::kInvalid: return "invalid name or address";
    case IoError::kAddressInUse: return "address already in use";
    case IoError::kRefused: return "connection refused";
    case IoError::kReset: return "connection reset";
    case IoError::kTimedOut: return "timed out";
    case IoError::kUnreachable: return "unreachable";
  }
  return "unknown";
}

}  // namespace detcd
