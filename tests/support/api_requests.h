// Single requests of the KV service, most of them edge cases, and their parts: what api_sequence.h makes sequences of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "core/io/random.h"
#include "core/proto/rpc.pb.h"

namespace detcd::testing {

// The draws of one sequence, in the order in which they are asked for.
class Draws {
 public:
  explicit Draws(KeyedRandom random) : random_(std::move(random)) {}

  uint64_t Below(uint64_t limit) { return random_.Below(limit); }
  uint64_t Between(uint64_t first, uint64_t last) { return random_.Between(first, last); }
  bool Chance(uint64_t of) { return random_.Below(of) == 0; }  // one in `of`
  template <class T, size_t N>
  T One(const T (&choices)[N]) {
    return choices[random_.Below(N)];
  }

 private:
  KeyedRandom random_;
};

// Fills in empty requests. Revisions may be relative ones (api_sequence.h).
class RequestWriter {
 public:
  // Mostly over the keys k00, k01, ... of which there are `key_count`. `draws` outlives this object.
  RequestWriter(Draws& draws, uint64_t key_count) : draws_(draws), key_count_(key_count) {}

  std::string Key();
  std::string Value();
  int64_t Revision();
  void Put(etcdserverpb::PutRequest& put);
  void Delete(etcdserverpb::DeleteRangeRequest& del);
  void Range(etcdserverpb::RangeRequest& range);
  // One that RangeStream does not refuse, mostly.
  void StreamedRange(etcdserverpb::RangeRequest& range);
  // With operations at and over their limit, or nested as deep as a parser goes, now and then.
  void Txn(etcdserverpb::TxnRequest& txn);

 private:
  // A range that starts at a key: its key and its end.
  std::pair<std::string, std::string> KeyAndEnd();
  std::string End(const std::string& key);
  int64_t Limit();
  void Nested(etcdserverpb::TxnRequest& txn, int depth);
  void Op(etcdserverpb::RequestOp& op, bool reads_only, int depth);
  void ManyOps(etcdserverpb::TxnRequest& txn);
  void Deep(etcdserverpb::TxnRequest& txn);
  void Comparison(etcdserverpb::Compare& compare);

  Draws& draws_;
  uint64_t key_count_;
};

// Whether a transaction, or one inside it, deletes through an open end, which etcd's check for duplicates does not see.
bool HasOpenDelete(const etcdserverpb::TxnRequest& txn);

}  // namespace detcd::testing
