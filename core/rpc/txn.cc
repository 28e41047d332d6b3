#include "core/rpc/txn.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/base/check.h"
#include "core/base/probe.h"
#include "core/proto/rpc.pb.h"
#include "core/rpc/kv_service.h"
#include "core/rpc/messages.h"

namespace detcd::rpc {
namespace {

using etcdserverpb::Compare;
using etcdserverpb::RequestOp;
using etcdserverpb::TxnRequest;
using Ops = google::protobuf::RepeatedPtrField<RequestOp>;

// --- the request alone -----------------------------------------------------------------------------------------------

ApiError CheckOp(const RequestOp& op, size_t ops_max) {
  switch (op.request_case()) {
    case RequestOp::kRequestRange:
      return CheckRange(op.request_range());
    case RequestOp::kRequestPut:
      return CheckPut(op.request_put());
    case RequestOp::kRequestDeleteRange:
      return CheckDeleteRange(op.request_delete_range());
    case RequestOp::kRequestTxn: {
      const TxnRequest& txn = op.request_txn();
      const auto longest = static_cast<size_t>(std::max({txn.compare_size(), txn.success_size(), txn.failure_size()}));
      if (longest > ops_max) return ApiError::kTooManyOps;
      for (const Compare& compare : txn.compare()) {
        if (compare.key().empty()) return ApiError::kEmptyKey;
      }
      for (const Ops* branch : {&txn.success(), &txn.failure()}) {
        for (const RequestOp& nested : *branch) {
          if (ApiError error = CheckOp(nested, ops_max - longest); error != ApiError::kOk) return error;
        }
      }
      return ApiError::kOk;
    }
    case RequestOp::REQUEST_NOT_SET:
      return ApiError::kKeyNotFound;
  }
  return ApiError::kKeyNotFound;
}

// The deleted keys of a branch, as etcd's duplicate check sees them: one key, or [key, end). The end 0x00 is taken as it
// stands here, so an open-ended delete is an empty range and clashes with nothing. Nested transactions bring tens of
// thousands of ranges into one request, so ranges that meet become one, and a key is found without a scan.
class DeletedRanges {
 public:
  void Add(const etcdserverpb::DeleteRangeRequest& request) {
    if (request.range_end().empty()) {
      keys_.insert(request.key());
    } else if (request.key() < request.range_end()) {
      AddRange(request.key(), request.range_end());
    }
  }
  void AddAll(const DeletedRanges& other) {
    keys_.insert(other.keys_.begin(), other.keys_.end());
    for (const auto& [start, end] : other.ends_) AddRange(start, end);
  }
  bool Contains(std::string_view key) const {
    if (keys_.contains(key)) return true;
    const auto after = ends_.upper_bound(key);
    return after != ends_.begin() && key < std::prev(after)->second;
  }

 private:
  void AddRange(std::string_view start, std::string_view end) {
    auto next = ends_.upper_bound(start);
    if (next != ends_.begin() && std::prev(next)->second >= start) start = (--next)->first;
    for (; next != ends_.end() && next->first <= end; next = ends_.erase(next)) end = std::max(end, next->second);
    ends_.emplace_hint(next, start, end);
  }

  std::set<std::string_view> keys_;
  std::map<std::string_view, std::string_view> ends_;  // by start; no two meet
};

struct Touched {
  std::set<std::string_view> puts;
  DeletedRanges deletes;
};

// Whether the ops of one branch keep etcd's rule against changing a key twice; then `touched` has what they and the
// transactions inside them touch. The order of the steps is etcd's, and with it what they miss: a nested transaction's
// puts are not held against the deletes of a later one.
bool CheckDuplicates(const Ops& ops, Touched& touched) {
  for (const RequestOp& op : ops) {
    if (op.has_request_delete_range()) touched.deletes.Add(op.request_delete_range());
  }
  for (const RequestOp& op : ops) {
    if (!op.has_request_txn()) continue;
    Touched success, failure;
    if (!CheckDuplicates(op.request_txn().success(), success)) return false;
    if (!CheckDuplicates(op.request_txn().failure(), failure)) return false;
    for (std::string_view key : success.puts) {
      if (touched.deletes.Contains(key) || !touched.puts.insert(key).second) return false;
    }
    for (std::string_view key : failure.puts) {
      // Only one of the two branches will run.
      if (!touched.puts.insert(key).second && !success.puts.contains(key)) return false;
      if (touched.deletes.Contains(key)) return false;
    }
    touched.deletes.AddAll(success.deletes);
    touched.deletes.AddAll(failure.deletes);
  }
  for (const RequestOp& op : ops) {
    if (!op.has_request_put()) continue;
    const std::string_view key = op.request_put().key();
    if (touched.deletes.Contains(key) || !touched.puts.insert(key).second) return false;
  }
  return true;
}

// Whether some path through `ops` puts a key with ignore_value or ignore_lease after it has deleted that key through an
// open end, which CheckDuplicates does not see. There is nothing left to keep then: every etcd 3.7.3 that applies such a
// transaction ends, so none is proposed. `open_from`: the least key of the open-ended deletes before `ops`, and then of
// those in them.
bool KeepsWhatItDeleted(const Ops& ops, std::optional<std::string_view>& open_from) {
  const auto lower = [&](std::string_view key) { open_from = std::min(open_from.value_or(key), key); };
  for (const RequestOp& op : ops) {
    if (op.has_request_delete_range() && op.request_delete_range().range_end() == std::string_view("\0", 1)) {
      lower(op.request_delete_range().key());
    } else if (op.has_request_put()) {
      const etcdserverpb::PutRequest& put = op.request_put();
      if ((put.ignore_value() || put.ignore_lease()) && open_from.has_value() && put.key() >= *open_from) return true;
    } else if (op.has_request_txn()) {
      std::optional<std::string_view> success = open_from;
      std::optional<std::string_view> failure = open_from;
      if (KeepsWhatItDeleted(op.request_txn().success(), success)) return true;
      if (KeepsWhatItDeleted(op.request_txn().failure(), failure)) return true;
      if (success.has_value()) lower(*success);
      if (failure.has_value()) lower(*failure);
    }
  }
  return false;
}

bool AllRanges(const Ops& ops) {
  return std::all_of(ops.begin(), ops.end(), [](const RequestOp& op) { return op.has_request_range(); });
}

bool AllSerializable(const Ops& ops) {
  return std::all_of(ops.begin(), ops.end(), [](const RequestOp& op) {
    return op.has_request_range() && op.request_range().serializable();
  });
}

// --- compares --------------------------------------------------------------------------------------------------------

int ThreeWay(int64_t a, int64_t b) { return a < b ? -1 : a > b ? 1 : 0; }

// A missing union value, or one of another target, reads as 0 or empty. A target that is not known compares as equal.
int CompareTo(const Compare& compare, const mvcc::KeyValue& pair) {
  switch (compare.target()) {
    case Compare::VERSION:
      return ThreeWay(pair.version, compare.version());
    case Compare::CREATE:
      return ThreeWay(pair.create_revision.value, compare.create_revision());
    case Compare::MOD:
      return ThreeWay(pair.mod_revision.value, compare.mod_revision());
    case Compare::VALUE:
      return pair.value.view().compare(compare.value());
    case Compare::LEASE:
      return ThreeWay(pair.lease.value, compare.lease());
    default:
      return 0;
  }
}

bool Holds(const Compare& compare, const mvcc::KeyValue& pair) {
  const int order = CompareTo(compare, pair);
  switch (compare.result()) {
    case Compare::EQUAL:
      return order == 0;
    case Compare::GREATER:
      return order > 0;
    case Compare::LESS:
      return order < 0;
    case Compare::NOT_EQUAL:
      return order != 0;
    default:
      return true;  // as etcd: an operator that is not known holds
  }
}

// For every key of the range; for an absent one as for a pair of zeros, but no statement about a value holds then.
bool Holds(const mvcc::Store& store, const Compare& compare) {
  bool any = false;
  bool all = true;
  store.Visit({.key = compare.key(), .end = compare.range_end()}, [&](const mvcc::KeyValue& pair) {
    any = true;
    all = Holds(compare, pair);
    return all;
  });
  if (any) return all;
  return compare.target() != Compare::VALUE && Holds(compare, mvcc::KeyValue());
}

// --- the chosen branches ---------------------------------------------------------------------------------------------

void AppendPath(const mvcc::Store& store, const TxnRequest& request, TxnPath& path) {
  const auto& compares = request.compare();
  const bool success = std::all_of(compares.begin(), compares.end(), [&](const Compare& c) { return Holds(store, c); });
  path.push_back(success);
  for (const RequestOp& op : success ? request.success() : request.failure()) {
    if (op.has_request_txn()) AppendPath(store, op.request_txn(), path);
  }
}

// A negative number is below the compaction revision, which is -1 at the least, or stands for the newest.
ApiError CheckChosenRange(const mvcc::Store& store, const etcdserverpb::RangeRequest& request) {
  if (request.revision() == 0) return ApiError::kOk;
  if (Revision(request.revision()) > store.revision()) return ApiError::kFutureRev;
  if (Revision(request.revision()) < store.compact_revision()) return ApiError::kCompacted;
  return ApiError::kOk;
}

ApiError CheckChosenPut(const mvcc::Store& store, const etcdserverpb::PutRequest& request) {
  if (request.lease() != 0) return ApiError::kLeaseNotFound;
  if ((request.ignore_value() || request.ignore_lease()) && !store.Get(request.key())) return ApiError::kKeyNotFound;
  return ApiError::kOk;
}

// `at` walks along the path.
ApiError CheckChosenOps(const mvcc::Store& store, const TxnRequest& request, const TxnPath& path, size_t& at) {
  CHECK(at < path.size());
  for (const RequestOp& op : path[at++] ? request.success() : request.failure()) {
    ApiError error = ApiError::kOk;
    if (op.has_request_range()) error = CheckChosenRange(store, op.request_range());
    if (op.has_request_put()) error = CheckChosenPut(store, op.request_put());
    if (op.has_request_txn()) error = CheckChosenOps(store, op.request_txn(), path, at);
    if (error != ApiError::kOk) return error;
  }
  return ApiError::kOk;
}

}  // namespace

ApiError CheckTxn(const TxnRequest& request, size_t ops_max) {
  RequestOp whole;
  whole.unsafe_arena_set_allocated_request_txn(const_cast<TxnRequest*>(&request));
  const ApiError error = CheckOp(whole, ops_max);
  whole.unsafe_arena_release_request_txn();
  if (error != ApiError::kOk) return error;
  for (const Ops* branch : {&request.success(), &request.failure()}) {
    Touched touched;
    std::optional<std::string_view> open_from;
    if (!CheckDuplicates(*branch, touched) || KeepsWhatItDeleted(*branch, open_from)) return ApiError::kDuplicateKey;
  }
  return ApiError::kOk;
}

bool IsReadOnly(const TxnRequest& request) { return AllRanges(request.success()) && AllRanges(request.failure()); }

bool IsSerializable(const TxnRequest& request) {
  return AllSerializable(request.success()) && AllSerializable(request.failure());
}

TxnPath ChoosePath(const mvcc::Store& store, const TxnRequest& request) {
  TxnPath path;
  AppendPath(store, request, path);
  return path;
}

ApiError CheckChosen(const mvcc::Store& store, const TxnRequest& request, const TxnPath& path) {
  size_t at = 0;
  return CheckChosenOps(store, request, path, at);
}

ApiError ReadTxn(const mvcc::Store& store, const TxnRequest& request, etcdserverpb::TxnResponse& response) {
  const TxnPath path = ChoosePath(store, request);
  if (ApiError error = CheckChosen(store, request, path); error != ApiError::kOk) return error;
  response.set_succeeded(path.front());
  for (const RequestOp& op : path.front() ? request.success() : request.failure()) {
    etcdserverpb::RangeResponse& range = *response.add_responses()->mutable_response_range();
    const ApiError error = ReadRange(store, op.request_range(), range);
    CHECK(error == ApiError::kOk);
    range.mutable_header()->set_revision(store.revision().value);
  }
  return ApiError::kOk;
}

}  // namespace detcd::rpc
