#include "realnet/os_error.h"

#include <cerrno>

namespace detcd::realnet {
namespace {

IoError Map(int error_number, IoError unlisted) {
  switch (error_number) {
    case 0: return IoError::kOk;
    case ENOENT: return IoError::kNotFound;
    case EEXIST:
    case ENOTEMPTY: return IoError::kExists;
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return IoError::kNoSpace;
    case EIO: return IoError::kDevice;
    case EACCES:
    case EPERM:
    case EROFS: return IoError::kPermission;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS: return IoError::kTooManyOpen;
    case EINVAL:
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case EAFNOSUPPORT: return IoError::kInvalid;
    case EADDRINUSE: return IoError::kAddressInUse;
    case ECONNREFUSED: return IoError::kRefused;
    case ECONNRESET:
    case ECONNABORTED:
    case ENOTCONN:
    case EPIPE: return IoError::kReset;
    case ETIMEDOUT: return IoError::kTimedOut;
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN: return IoError::kUnreachable;
    default: return unlisted;
  }
}

}  // namespace

IoError FileError(int error_number) { return Map(error_number, IoError::kDevice); }

IoError SocketError(int error_number) { return Map(error_number, IoError::kReset); }

}  // namespace detcd::realnet
