#include "tests/support/api_requests.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/limits.h"
#include "tests/support/api_sequence.h"

namespace detcd::testing {

using etcdserverpb::Compare;
using etcdserverpb::DeleteRangeRequest;
using etcdserverpb::PutRequest;
using etcdserverpb::RangeRequest;
using etcdserverpb::RequestOp;
using etcdserverpb::TxnRequest;

namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
const std::string kNul(1, '\0');

void ClearIgnores(TxnRequest& txn) {
  for (auto* branch : {txn.mutable_success(), txn.mutable_failure()}) {
    for (RequestOp& op : *branch) {
      if (op.has_request_txn()) ClearIgnores(*op.mutable_request_txn());
      if (!op.has_request_put()) continue;
      op.mutable_request_put()->clear_ignore_value();
      op.mutable_request_put()->clear_ignore_lease();
    }
  }
}

}  // namespace

bool HasOpenDelete(const TxnRequest& txn) {
  for (const auto* branch : {&txn.success(), &txn.failure()}) {
    for (const RequestOp& op : *branch) {
      if (op.has_request_delete_range() && op.request_delete_range().range_end() == kNul) return true;
      if (op.has_request_txn() && HasOpenDelete(op.request_txn())) return true;
    }
  }
  return false;
}

std::string RequestWriter::Key() {
  if (!draws_.Chance(5)) return absl::StrFormat("k%02d", draws_.Below(key_count_));
  const std::string odd[] = {"",           kNul, kNul + kNul, kNul + "a",       "a",        "a" + kNul,
                             "aa",         "b",  "\xff",      "\xff\xff",       "\xc3\xa9", "k",
                             "k00" + kNul, "k0", "l",         "registry/pods/x"};
  return odd[draws_.Below(std::size(odd))];
}

std::string RequestWriter::Value() {
  if (draws_.Chance(30)) return std::string(draws_.Between(10'000, 300'000), 'v');
  const std::string values[] = {"", "x", "y", kNul, "\xff", "v1", "v2", std::string(100, 'z')};
  return values[draws_.Below(std::size(values))];
}

int64_t RequestWriter::Revision() {
  switch (draws_.Below(16)) {
    case 0:
      return draws_.One<int64_t>({-1, 1, 2, 3});
    case 1:
      return draws_.One<int64_t>({kMin, kMax, -2, 1'000'000});
    case 2:
    case 3:
      return kFromCompacted + static_cast<int64_t>(draws_.Below(3)) - 1;
    case 4:
    case 5:
      return kFromHead + 1 - static_cast<int64_t>(draws_.Below(3));
    case 6:
    case 7:
    case 8:
      return kFromHead - static_cast<int64_t>(draws_.Below(25));
    default:
      return 0;
  }
}

void RequestWriter::Put(PutRequest& put) {
  put.set_key(Key());
  if (!draws_.Chance(8)) put.set_value(Value());
  put.set_prev_kv(draws_.Chance(3));
  if (draws_.Chance(6)) put.set_ignore_value(true);
  if (put.ignore_value() && !draws_.Chance(5)) put.clear_value();
  if (draws_.Chance(8)) put.set_ignore_lease(true);
  if (draws_.Chance(15)) put.set_lease(draws_.One<int64_t>({1, -1, kMax, kMin, 7}));
}

void RequestWriter::Delete(DeleteRangeRequest& del) {
  if (draws_.Chance(2)) {
    del.set_key(Key());
  } else {
    auto [key, end] = KeyAndEnd();
    del.set_key(std::move(key));
    del.set_range_end(std::move(end));
  }
  del.set_prev_kv(draws_.Chance(2));
}

void RequestWriter::Range(RangeRequest& range) {
  auto [key, end] = KeyAndEnd();
  range.set_key(std::move(key));
  range.set_range_end(std::move(end));
  range.set_revision(Revision());
  range.set_limit(Limit());
  if (draws_.Chance(3)) {
    range.set_sort_order(static_cast<RangeRequest::SortOrder>(draws_.Below(3)));
    range.set_sort_target(static_cast<RangeRequest::SortTarget>(draws_.Below(5)));
  }
  if (draws_.Chance(40)) range.set_sort_order(static_cast<RangeRequest::SortOrder>(draws_.One<int>({3, 7, -1})));
  if (draws_.Chance(40)) range.set_sort_target(static_cast<RangeRequest::SortTarget>(draws_.One<int>({5, 100, -1})));
  range.set_serializable(draws_.Chance(4));
  range.set_keys_only(draws_.Chance(5));
  range.set_count_only(draws_.Chance(8));
  if (!draws_.Chance(4)) return;
  if (draws_.Chance(3)) range.set_min_mod_revision(Revision());
  if (draws_.Chance(3)) range.set_max_mod_revision(Revision());
  if (draws_.Chance(3)) range.set_min_create_revision(Revision());
  if (draws_.Chance(3)) range.set_max_create_revision(Revision());
}

void RequestWriter::StreamedRange(RangeRequest& range) {
  Range(range);
  if (draws_.Chance(4)) return;
  range.clear_sort_order();
  range.clear_sort_target();
  range.clear_min_mod_revision();
  range.clear_max_mod_revision();
  range.clear_min_create_revision();
  range.clear_max_create_revision();
  if (draws_.Chance(4)) range.set_sort_order(RangeRequest::ASCEND);
}

void RequestWriter::Txn(TxnRequest& txn) { Nested(txn, 1); }

void RequestWriter::Nested(TxnRequest& txn, int depth) {
  for (uint64_t i = draws_.Below(depth == 1 ? 3 : 2); i > 0; --i) Comparison(*txn.add_compare());
  const bool reads_only = draws_.Chance(6);
  for (auto* branch : {txn.mutable_success(), txn.mutable_failure()}) {
    for (uint64_t i = draws_.Below(4); i > 0; --i) Op(*branch->Add(), reads_only, depth);
  }
  if (depth > 1) return;
  if (draws_.Chance(25)) ManyOps(txn);
  if (draws_.Chance(40)) Deep(txn);
  if (HasOpenDelete(txn)) ClearIgnores(txn);
}

void RequestWriter::Op(RequestOp& op, bool reads_only, int depth) {
  if (draws_.Chance(60)) return;  // an op without a request
  const uint64_t kind = draws_.Below(10);
  if (reads_only || kind < 3) return Range(*op.mutable_request_range());
  if (kind < 6) return Put(*op.mutable_request_put());
  if (kind < 8 || depth > 3) return Delete(*op.mutable_request_delete_range());
  Nested(*op.mutable_request_txn(), depth + 1);
}

// At and over the limit of operations, in each of the places that count.
void RequestWriter::ManyOps(TxnRequest& txn) {
  const uint64_t count = kTxnOpsMax + draws_.Below(2);
  const uint64_t place = draws_.Below(4);
  TxnRequest* target = &txn;
  if (place == 3) {  // what the outer level uses is taken off the inner one's
    target = txn.add_success()->mutable_request_txn();
  }
  while (place == 2 && static_cast<uint64_t>(txn.compare_size()) < count) {
    Compare& compare = *txn.add_compare();
    compare.set_key("k00");
    compare.set_target(Compare::VERSION);
    compare.set_result(Compare::NOT_EQUAL);
    compare.set_version(-1);
  }
  auto& branch = place == 1 ? *target->mutable_failure() : *target->mutable_success();
  const uint64_t fill = place == 3 ? count - static_cast<uint64_t>(std::min<int>(txn.success_size(), 3)) : count;
  while (place != 2 && static_cast<uint64_t>(branch.size()) < fill) {
    branch.Add()->mutable_request_range()->set_key("k00");
  }
}

void RequestWriter::Deep(TxnRequest& txn) {
  TxnRequest* inner = &txn;
  for (uint64_t i = draws_.One<uint64_t>({5, 20, 60, 126, 127, 128}); i > 0; --i) {
    inner = (draws_.Chance(4) ? inner->add_failure() : inner->add_success())->mutable_request_txn();
  }
  Put(*inner->add_success()->mutable_request_put());
}

void RequestWriter::Comparison(Compare& compare) {
  compare.set_key(Key());
  if (draws_.Chance(4)) compare.set_range_end(End(compare.key()));
  compare.set_target(static_cast<Compare::CompareTarget>(draws_.Below(5)));
  compare.set_result(static_cast<Compare::CompareResult>(draws_.Below(4)));
  if (draws_.Chance(40)) compare.set_target(static_cast<Compare::CompareTarget>(draws_.One<int>({5, 99, -1})));
  if (draws_.Chance(40)) compare.set_result(static_cast<Compare::CompareResult>(draws_.One<int>({4, 99, -1})));
  // The union of the target, mostly; none, or another's, sometimes.
  int target = static_cast<int>(compare.target());
  if (draws_.Chance(12)) target = static_cast<int>(draws_.Below(6));
  switch (target) {
    case Compare::VERSION:
      compare.set_version(draws_.Chance(10) ? -1 : static_cast<int64_t>(draws_.Below(4)));
      break;
    case Compare::CREATE:
      compare.set_create_revision(Revision());
      break;
    case Compare::MOD:
      compare.set_mod_revision(Revision());
      break;
    case Compare::VALUE:
      compare.set_value(Value());
      break;
    case Compare::LEASE:
      compare.set_lease(draws_.One<int64_t>({0, 1, -1}));
      break;
    default:
      break;
  }
}

std::pair<std::string, std::string> RequestWriter::KeyAndEnd() {
  std::string key = draws_.Chance(4) ? kNul : Key();
  std::string end = key == kNul && !draws_.Chance(4) ? kNul : End(key);
  return {std::move(key), std::move(end)};
}

// The end of a range that starts at `key`: none, open, or above, at or below the key.
std::string RequestWriter::End(const std::string& key) {
  switch (draws_.Below(7)) {
    case 0:
    case 1:
      return "";
    case 2:
      return kNul;
    case 3:
      return key;
    case 4:
      return key + kNul;
    default:
      return Key();
  }
}

int64_t RequestWriter::Limit() {
  const auto keys = static_cast<int64_t>(key_count_);
  switch (draws_.Below(8)) {
    case 0:
      return 1;
    case 1:
      return draws_.One<int64_t>({-1, kMin, kMax});
    case 2:
      return keys;
    case 3:
      return draws_.One<int64_t>({keys - 1, keys + 1, 2, 10, 11});
    case 4:
      return static_cast<int64_t>(draws_.Below(key_count_ + 1));
    default:
      return 0;
  }
}

}  // namespace detcd::testing
