// Judges that try every order, one operation after the other: exponential, and obviously right. They share no code with
// the judges under test.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "checker/history.h"
#include "tests/checker/history_generator.h"

namespace detcd::checker {

// What of the log an order must explain: each revision's request, or no more than the state that it left. Two deletes of
// different ranges may leave one state.
enum class LogEvidence : uint8_t { kRequests, kStates };

// Whether some order of the operations explains all answers and the log.
bool LogOracleAccepts(const History& history, LogEvidence evidence);

// Whether some order explains what clients saw, whatever the log says; without revisions: their keys, values and counts.
// nullopt: more than `tries_max` placements were tried.
std::optional<bool> ClientOracleAccepts(std::span<const Operation> operations, bool revisions, uint64_t tries_max);

}  // namespace detcd::checker
