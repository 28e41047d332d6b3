// Operations as clients saw them: the only evidence about answers. Requests and answers are plain values, filled at the
// client's boundary; the order of events is the world's event number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checker/observation.h"

namespace detcd::checker {

enum class OperationKind : uint8_t { kPut, kDelete, kRange, kTxn, kCompact, kHashKv };

enum class SortOrder : uint8_t { kNone, kAscend, kDescend };
enum class SortTarget : uint8_t { kKey, kVersion, kCreate, kMod, kValue };

enum class CompareResult : uint8_t { kEqual, kGreater, kLess, kNotEqual };
enum class CompareTarget : uint8_t { kVersion, kCreate, kMod, kValue, kLease };

// One condition of a transaction.
struct Condition {
  CompareResult result = CompareResult::kEqual;
  CompareTarget target = CompareTarget::kVersion;
  std::string key;
  std::string range_end;       // not empty: must hold for every key of the range
  int64_t number = 0;          // every target but kValue
  std::string value;           // kValue

  friend bool operator==(const Condition&, const Condition&) = default;
};

// A request in the checker's own words (reference/semantics.md 3-8, 17).
struct Request {
  OperationKind kind = OperationKind::kRange;
  std::string key;
  std::string range_end;       // put: not used
  std::string value;           // put
  bool prev_kv = false;        // put, delete
  bool ignore_value = false;   // put
  bool ignore_lease = false;   // put
  int64_t revision = 0;        // range, compact, hash
  int64_t limit = 0;           // range, as the following
  SortOrder sort_order = SortOrder::kNone;
  SortTarget sort_target = SortTarget::kKey;
  bool serializable = false;
  bool keys_only = false;
  bool count_only = false;
  int64_t min_mod_revision = 0;
  int64_t max_mod_revision = 0;
  int64_t min_create_revision = 0;
  int64_t max_create_revision = 0;
  bool streamed = false;       // range: by RangeStream, its pieces put together
  bool physical = false;       // compact
  std::vector<Condition> compares;  // txn, as the following
  std::vector<Request> success;
  std::vector<Request> failure;

  friend bool operator==(const Request&, const Request&) = default;
};

struct ObservedKeyValue {
  std::string key;
  std::string value;
  int64_t create_revision = 0;
  int64_t mod_revision = 0;
  int64_t version = 0;

  friend bool operator==(const ObservedKeyValue&, const ObservedKeyValue&) = default;
};

// An answer. `error` empty: success. Definite errors only; what leaves the fate open is Outcome::kUnknown.
struct Answer {
  std::string error;                    // the text of the status, e.g. `etcdserver: mvcc: required revision has been compacted`
  int64_t header_revision = 0;
  uint64_t header_member = 0;
  std::vector<ObservedKeyValue> kvs;    // range: kvs; put: prev_kv (0 or 1); delete: prev_kvs
  int64_t count = 0;                    // range: count; delete: deleted
  bool more = false;
  bool succeeded = false;               // txn
  std::vector<Answer> responses;        // txn: one for each operation of the chosen branch
  OperationKind kind = OperationKind::kRange;  // inside a txn: which kind of response it was
  uint32_t hash = 0;                    // hash, as the following
  int64_t compact_revision = 0;
  int64_t hash_revision = 0;

  friend bool operator==(const Answer&, const Answer&) = default;
};

enum class Outcome : uint8_t {
  kPending,   // not answered yet
  kAnswered,  // `answer` is what the client got
  kUnknown,   // it may have taken effect, at any time from its call on, or never
  kRefused,   // a definite error before it could take effect: it never did
};

struct Operation {
  uint64_t id = 0;
  uint32_t client = 0;
  MemberId member;     // whom the last try asked
  Request request;
  Moment call;
  Moment end;          // meaningless while pending
  Outcome outcome = Outcome::kPending;
  Answer answer;
};

}  // namespace detcd::checker
