// Ways to corrupt a history, for the judges' own tests.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tests/checker/history_generator.h"

namespace detcd::checker {

// The names of all ways, each once.
std::span<const std::string_view> CorruptionNames();

// Corrupts the history in one of the ways; the result may still be legal. Returns the way's name, or nullopt when
// nothing in this history can be corrupted so; then the history is as it was.
std::optional<std::string_view> Corrupt(History& history, Draws& draws);

}  // namespace detcd::checker
