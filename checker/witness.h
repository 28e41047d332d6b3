// What an answer claims about the order of operations, and the small kernel that checks an order against these claims.
// The search may be clever; whatever order it finds is believed only because this file accepts it.
//
// An order is a sequence of places. Most operations have one; a read at an old revision has two, since it speaks of two
// states: the old one, whose pairs it shows, and the one whose revision its header carries. Then no place depends on
// more than the current state, which is what lets the search remember states instead of histories.
//
// Real time: where x stands before y, y did not end before x was called. *Floating* places (serializable reads, the old
// state of a read at an old revision) are bound by this only behind operations that change the store: nothing may be
// read before its author was called, and that is all (R2); with kValues they are bound only behind changes of their own
// keys. An operation without an answer never ends.
//
// Compactions are operations that change nothing here: an answer `compacted` claims only that the revision asked for was
// a past one. A range at an old revision inside a transaction is not held against that revision's state. Hashes claim
// nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checker/history.h"
#include "checker/range_rules.h"

namespace detcd::checker {

enum class Part : uint8_t {
  kEffect,   // a put, a delete or a transaction takes effect (one that changes nothing: is idle)
  kCurrent,  // a range shows the present state
  kPast,     // a range at an old revision shows that state
  kHeader,   // a range at an old revision, or a compaction, was answered at the revision in its header
  kError,    // a definite error says something of the state: key not found, future revision, compacted
};

// A place that `operation` (an index into the history) has in every order.
struct Place {
  size_t operation = 0;
  Part part = Part::kEffect;
  uint32_t guess = 0;  // kValues, of a transaction without an answer: the branches it takes (execution.h)

  friend bool operator==(const Place&, const Place&) = default;
};

inline constexpr uint64_t kNever = UINT64_MAX;
// Of a transaction that needs more guesses only some are tried; what is illegal without the others is undetermined.
inline constexpr uint32_t kGuessesMax = 6;

struct Claim {
  Place place;
  bool must = true;      // false: it may have taken effect or not; there is no answer
  bool floating = false;
  uint64_t call = 0;     // events
  uint64_t end = kNever;
};

// What each operation claims, in order of the history. Refused operations that say nothing of the state, and ranges
// without an answer, claim nothing. With kValues what only speaks of revisions claims nothing.
std::vector<Claim> Claims(std::span<const Operation> history, Evidence evidence);

// Whether a definite error speaks of the state at all.
bool SpeaksOfState(const Request& request, const std::string& error);

// Why `order` does not explain the history: empty when it does. Every claim that must be has its place once; each place
// holds on the state that the places before it made; real time is kept.
std::string OrderTrouble(std::span<const Operation> history, Evidence evidence, std::span<const Place> order);

}  // namespace detcd::checker
