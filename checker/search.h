// The general judge of linearizability: is there an order of the operations that explains what clients saw? It knows
// nothing of the servers' log, so it is the referee for revision_order, and with kValues it tells wrong revisions from
// wrong data.
//
// Depth first, one operation after the other (Wing & Gong 1993), remembering what was tried (Lowe 2017): a set of
// placed claims with a state is entered once. Remembered is a 128-bit fingerprint (Zobrist 1970) of both. A legal
// verdict carries an order that witness.h has accepted, so equal fingerprints can only make a false *illegal*, and that
// is said only after a second search with other fingerprints.
//
// What keeps it short, and why it loses no order:
// - What only reads *in every state in which its answer is legal*, and is legal now, is placed at once: from any legal
//   order it can be moved here. It is not enough that it leaves the present state as it is: a put of the present value,
//   or an unknown delete that finds nothing now, may be needed later.
// - An unknown operation is considered only if some answer can need its effect; with revisions, only for a revision
//   below the highest one seen that no answered operation owns; without, just before an operation that may show it. Of
//   several with one effect only the oldest.
// - With revisions, a state is left only when nothing that is to be placed at its revision remains.
// - Without revisions, keys that no operation links are searched apart; legal orders can be merged (Herlihy & Wing 1990,
//   locality). Budgets grow by turns, so that one hard part does not hide a cheap illegal one.
// - Where no operation is under way and every order leads to one state, what lies before is settled and forgotten.
//
// Deterministic: the budget is in steps (one claim held against one state), never in time. In general the problem is
// NP-hard (Gibbons & Korach 1997), so the verdict may be that it is open.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checker/history.h"
#include "checker/witness.h"

namespace detcd::checker {

struct SearchOptions {
  Evidence evidence = Evidence::kAll;
  uint64_t steps_max = 10'000'000;         // over all parts and both searches; passed by a few reads at most
  uint32_t fingerprint_bits = 128;         // of the first search, in [1, 128]; fewer let a test see what collisions do
  bool confirm = true;                     // search again before saying illegal; off only in tests of collisions
};

enum class SearchVerdict : uint8_t { kLegal, kIllegal, kUndetermined };

struct SearchResult {
  SearchVerdict verdict = SearchVerdict::kUndetermined;
  uint64_t steps = 0;
  std::vector<Place> order;  // legal: the witness
  std::string trouble;       // a defect of the search itself: its order was refused by the kernel; then undetermined
};

// `history`: in any order; event numbers of calls and ends are distinct. Operations without an answer may have taken
// effect at any time from their call on, or never.
SearchResult Search(std::span<const Operation> history, const SearchOptions& options);

}  // namespace detcd::checker
