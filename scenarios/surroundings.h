// What surrounds a process and must not matter to a run: addresses, what fresh memory holds, the environment. The
// second run of a seed gets other ones in every respect: whatever of it leaks into a run shows as another digest.
//
//   addresses    a fresh process under address randomisation (text, stack, heap, mappings), another threshold between
//                heap and mappings, a longer environment under the stack, and a heap whose free blocks lie in another
//                order: without the last, addresses differ from process to process but not their order.
//   memory       fresh memory holds a byte that no sane value consists of, freed memory its complement.
//   environment  another home, user, time zone, locale and directory for temporary files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace detcd::scenario {

// NAME=VALUE lines: ours, with the above changed. Set before the program starts, so that also what runs before main and
// the first allocation see it.
std::vector<std::string> OtherEnvironment();

// In a child before exec: has the next program's addresses randomised, whatever was inherited (a debugger and
// `setarch -R` turn it off).
void AllowOtherLayout();

// Why a fresh program gets the same addresses as this one on this machine, for people; empty: it gets others.
std::string LayoutTrouble();

// Call before each run: from now on fresh memory holds other bytes, and new blocks lie in another order than they were
// asked for. Does nothing to sanitizers' allocators. Keeps some 200 KiB until the next call.
void DisturbHeap(uint64_t seed);

}  // namespace detcd::scenario
