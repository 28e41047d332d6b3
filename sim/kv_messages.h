// How a request of the checker's words is called.
#pragma once

#include "checker/history.h"
#include "core/rpc/method.h"

namespace detcd::sim {

rpc::Method MethodOf(const checker::Request& request);
// Whether etcd's client tries it again after an error that does not tell whether it was served.
bool MayRepeat(const checker::Request& request);

}  // namespace detcd::sim
