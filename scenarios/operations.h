// What the operations of a scenario mean to its clients, and the check that they can be run.
#pragma once

#include <string>

#include "scenarios/scenario.pb.h"
#include "sim/client.h"

namespace detcd::scenario {

// Transactions within transactions, the outermost included; and the operations of one branch. Beyond etcd's own limit for
// these, so that its refusal can be asked for.
inline constexpr int kTxnDepthMax = 3;
inline constexpr int kTxnStepsMax = 130;

// `zero`: what the client's clock shows at true time 0.
sim::PlannedOperation MakeOperation(const Operation& operation, Instant zero);

// What is wrong with the call of an operation: the field and why; empty when it can be run.
std::string CallTrouble(const Operation& operation);

}  // namespace detcd::scenario
