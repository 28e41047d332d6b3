// What a range must answer over given pairs, by all that was seen and by values alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checker/history.h"

namespace detcd::checker {

// Which part of the answers counts.
enum class Evidence : uint8_t {
  kAll,     // header revisions and the create, mod and version of pairs too
  kValues,  // keys, values and counts alone
};

// Whether `candidate` lies in the range of a request: `range_end` empty: the key alone; one byte 0x00: all keys from it on.
bool InRange(std::string_view candidate, std::string_view key, std::string_view range_end);

// What is wrong with a successful answer to the range `request` where `pairs` are the live pairs of its range, in key
// order: empty when it is right. Where etcd leaves the order open (equal sort values) every order is right.
std::string RangeTrouble(const Request& request, const Answer& answer, std::vector<ObservedKeyValue> pairs);

// The operation as kValues sees it: metadata of pairs zeroed, no header revision.
Operation WithoutRevisions(Operation operation);

// Whether a range's selection or order rests on create, mod or version: without these its pairs are some of the live
// ones, and nothing more is known.
bool RestsOnRevisions(const Request& request);

// With kValues: what is wrong with a range (already WithoutRevisions) over the live `pairs`. Empty: nothing.
std::string ValuesTrouble(const Request& request, const Answer& answer, std::vector<ObservedKeyValue> pairs);

}  // namespace detcd::checker
