// From errno to the seam's errors. Files and sockets differ in what an unlisted value means, so the caller names that.
#pragma once

#include "core/io/io_error.h"

namespace detcd::realnet {

// A failed call on a file or folder; an errno that is not listed counts as a broken device, which stops the member.
IoError FileError(int error_number);

// A failed call on a socket; an errno that is not listed counts as a cut connection, which is tried again.
IoError SocketError(int error_number);

}  // namespace detcd::realnet
