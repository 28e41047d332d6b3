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
// Compactions are no operations: an answer `compacted` claims only that the revision asked for was a past one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checker/history.h"

namespace detcd::checker {

// Which part of the answers counts.
enum class Evidence : uint8_t {
  kAll,     // header revisions and the create, mod and version of pairs too
  kValues,  // keys, values and counts alone
};

enum class Part : uint8_t {
  kEffect,   // a put or a delete takes effect (a delete that finds nothing: is idle)
  kCurrent,  // a range shows the present state
  kPast,     // a range at an old revision shows that state
  kHeader,   // a range at an old revision was answered at the revision in its header
  kError,    // a definite error says something of the state: key not found, future revision, compacted
};

// A place that `operation` (an index into the history) has in every order.
struct Place {
  size_t operation = 0;
  Part part = Part::kEffect;

  friend bool operator==(const Place&, const Place&) = default;
};

inline constexpr uint64_t kNever = UINT64_MAX;

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

// The operation as kValues sees it: metadata of pairs zeroed, no header revision.
Operation WithoutRevisions(Operation operation);

// Whether a range's selection or order rests on create, mod or version: without these its pairs are some of the live
// ones, and nothing more is known.
bool RestsOnRevisions(const Request& request);

// With kValues: what is wrong with a range (already WithoutRevisions) over the live `pairs`. Empty: nothing.
std::string ValuesTrouble(const Request& request, const Answer& answer, std::vector<ObservedKeyValue> pairs);

// Whether a definite error speaks of the state at all.
bool SpeaksOfState(const Request& request, const std::string& error);

// Why `order` does not explain the history: empty when it does. Every claim that must be has its place once; each place
// holds on the state that the places before it made; real time is kept.
std::string OrderTrouble(std::span<const Operation> history, Evidence evidence, std::span<const Place> order);

}  // namespace detcd::checker
