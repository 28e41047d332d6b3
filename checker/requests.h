// What a request says by itself, whatever the state: what etcd refuses before it looks, what is only read, which keys it
// is about, and how it reads in a sentence.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checker/history.h"

namespace detcd::checker {

inline constexpr std::string_view kErrorEmptyKey = "etcdserver: key is not provided";
inline constexpr std::string_view kErrorKeyNotFound = "etcdserver: key not found";
inline constexpr std::string_view kErrorValueProvided = "etcdserver: value is provided";
inline constexpr std::string_view kErrorTooManyOps = "etcdserver: too many operations in txn request";
inline constexpr std::string_view kErrorDuplicateKey = "etcdserver: duplicate key given in txn request";
inline constexpr std::string_view kErrorSortOption = "etcdserver: invalid sort option";
inline constexpr std::string_view kErrorStreamSort = "RangeStream does not support custom sort orders";
inline constexpr std::string_view kErrorStreamFilter = "RangeStream does not support revision filters";
inline constexpr std::string_view kErrorCompacted = "etcdserver: mvcc: required revision has been compacted";
inline constexpr std::string_view kErrorFutureRevision = "etcdserver: mvcc: required revision is a future revision";

inline constexpr size_t kTxnOpsMax = 128;  // etcd's --max-txn-ops; nested ones get what the parent left

// The error that the request earns by itself, in etcd's order of checks (errors.md 5); empty: none.
std::string_view StaticError(const Request& request);
// Whether `error` is one of those that StaticError gives: then the request alone tells whether it is right. A put that
// is refused for an absent key needs the state; an operation of a transaction with nothing in it has no word here.
bool IsStaticError(std::string_view error);

// A range, a hash, or a transaction whose operations are ranges, all of them in both branches: never proposed.
bool ReadsOnly(const Request& request);
// Of such: answered from the local state of the member, as of some past moment.
bool ReadsLocally(const Request& request);

// The highest revision that the request asks for, in any branch; 0: none.
int64_t HighestAsked(const Request& request);

// Requests of one text have the same effect on every state, and others do not: what they answer is left out.
std::string EffectText(const Request& request);

// Key ranges that may be changed, or that the answer may rest on; of a transaction those of both branches.
struct KeyRange {
  std::string key;
  std::string range_end;
};
std::vector<KeyRange> WrittenRanges(const Request& request);
std::vector<KeyRange> ReadRanges(const Request& request);
bool Overlap(const KeyRange& a, const KeyRange& b);
// Whether `writer` may change what `reader` shows.
bool MayTouch(const Request& writer, const Request& reader);

// In a few words: `put a=v7`; `txn if mod a = 3: put a=v7 else range a`.
std::string Describe(const Request& request);
std::string Describe(const ObservedKeyValue& kv);
// With its number and client: `operation 7 (client 2: put a=v7)`.
std::string Describe(const Operation& operation);

}  // namespace detcd::checker
