// The ways in which the outside fails, with the shape of system calls.
#pragma once

#include <cstdint>
#include <string_view>

namespace detcd {

enum class IoError : uint8_t {
  kOk = 0,
  kNotFound,      // no such file, folder or name
  kExists,        // made already
  kNoSpace,       // the disk is full; nothing is known of the bytes concerned
  kDevice,        // the disk failed (EIO); the member must stop
  kLocked,        // another process holds the file
  kPermission,    // not allowed
  kTooManyOpen,   // out of descriptors; try later
  kInvalid,       // a name or address that cannot be one
  kAddressInUse,  // somebody listens there
  kRefused,       // nobody listens there
  kReset,         // the connection was cut by the other side or by the network
  kTimedOut,      // the network gave up
  kUnreachable,   // no route
};

// `no space`, `not found`, ...: for messages.
std::string_view IoErrorName(IoError error);

}  // namespace detcd
