// Claims of a history in the form the search works on: keys and values as small numbers, ranges as intervals of keys.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "checker/history.h"
#include "checker/witness.h"

namespace detcd::checker {

inline constexpr uint32_t kNoNumber = UINT32_MAX;

// A pair of an answer. With kValues all but key and value are 0.
struct FactPair {
  uint32_t key = kNoNumber;    // kNoNumber: a key that nobody ever put
  uint32_t value = kNoNumber;  // kNoNumber: a value that nobody ever put
  int64_t create = 0;
  int64_t mod = 0;
  int64_t version = 0;

  friend bool operator==(const FactPair&, const FactPair&) = default;
};

enum class FactKind : uint8_t {
  kPut, kDelete,
  kTxn,         // as its answer says, or without one: as it comes
  kTxnError,    // a transaction refused for what the state was
  kRange,       // shows pairs
  kRevision,    // only stands at a revision
  kAbsent,      // key not found
  kBelow,       // the revision is below `revision`
  kAbove,       // the revision is above `revision`
  kImpossible,  // no state explains it
};

struct Fact {
  Claim claim;
  FactKind kind = FactKind::kRange;
  bool reads_only = true;       // in every state in which it is legal
  bool answered = true;         // false: without an answer, fits wherever it changes something
  bool pinned = false;          // kAll: stands at `revision` (put, deletion of something: makes it)
  int64_t revision = 0;
  uint32_t first = 0;           // keys [first, last); of a transaction: from the first to the last that it names
  uint32_t last = 0;
  uint32_t value = kNoNumber;   // put
  bool ignore_value = false;    // put
  bool shows_pairs = false;     // put, delete: `pairs` are the previous ones
  bool plain = true;            // range: `pairs` are exactly the live ones, in key order
  int64_t count = 0;            // range, delete
  std::vector<FactPair> pairs;
  uint32_t elder = kNoNumber;   // without an answer: the fact of equal effect called last before it
};

// What observed pairs tell of the author of a revision.
struct Author {
  uint32_t owner = kNoNumber;  // the answered fact that made it
  uint32_t key = kNoNumber;    // it put this key ...
  uint32_t value = kNoNumber;  // ... to this value (kNoNumber: values of this pair were not shown)
};

struct Facts {
  Evidence evidence = Evidence::kAll;
  std::vector<Operation> history;         // as the evidence sees it
  std::vector<std::string> keys;          // ascending: all that were ever put
  std::vector<std::string> values;        // by number, in order of first use
  std::map<std::string, uint32_t> value_numbers;
  std::vector<Fact> facts;                // in order of call; only such without an answer that can be needed
  std::map<int64_t, Author> authors;      // kAll, by revision
  int64_t revision_max = 1;               // kAll: no answer can need a higher one
  bool complete = true;                   // false: some ways in which a transaction may have taken effect are left out
};

Facts MakeFacts(std::span<const Operation> history, Evidence evidence);

// kValues: whether `put`, a fact without an answer, may be what `fact` shows.
bool ShowsPresence(const Fact& fact, const Fact& put);

// kValues: facts (by number, ascending) that share keys, directly or through others. kAll: one part.
std::vector<std::vector<uint32_t>> Parts(const Facts& facts);

}  // namespace detcd::checker
