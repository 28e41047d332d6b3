#include <string>

#include "scenarios/swarm_draws.h"

namespace detcd::scenario {
namespace {

class OperationWriter {
 public:
  explicit OperationWriter(uint64_t seed) {
    KeyedRandom random = Piece(seed, "swarm.load");
    key_count_ = Pick(random, {1, 2, 5, 20});
    put_weight_ = random.Between(20, 80);
    delete_weight_ = random.Between(0, 20);
    serializable_ppm_ = Pick(random, {0, 100'000, 500'000});
    large_ppm_ = Pick(random, {0, 50'000, 300'000});
    large_bytes_max_ = Pick(random, {2'000, 20'000});
    // Most seeds have some of these; some have little else.
    KeyedRandom kinds = Piece(seed, "swarm.kinds");
    txn_ppm_ = Pick(kinds, {0, 50'000, 200'000, 700'000});
    compact_ppm_ = Pick(kinds, {0, 5'000, 30'000, 150'000});
    hash_ppm_ = Pick(kinds, {0, 20'000, 60'000});
    stream_ppm_ = Pick(kinds, {0, 200'000, 800'000});
    cancel_ppm_ = Pick(kinds, {0, 0, 30'000, 200'000});
    at_head_ = kinds.Chance(1, 3);
    as_seen_ = kinds.Chance(1, 2);
    if (kinds.Chance(1, 6)) key_count_ = 150;  // ranges of many pieces
  }

  void Write(KeyedRandom& random, Operation& operation) const {
    KeyedRandom own = random.Sub(1);
    if (own.Chance(cancel_ppm_, 1'000'000)) operation.set_cancel_after_ms(static_cast<uint32_t>(LogBetween(own, 1, 500)));
    const uint64_t special = own.Below(1'000'000);
    if (special < txn_ppm_) return WriteTxn(own, *operation.mutable_txn(), 1);
    if (special < txn_ppm_ + compact_ppm_) return WriteCompact(own, *operation.mutable_compact());
    if (special < txn_ppm_ + compact_ppm_ + hash_ppm_) return WriteHash(own, *operation.mutable_hash_kv());
    const uint64_t kind = random.Below(100);
    if (kind < put_weight_) {
      WritePut(random, *operation.mutable_put());
    } else if (kind < put_weight_ + delete_weight_) {
      WriteDelete(random, *operation.mutable_delete_());
    } else {
      WriteRange(random, *operation.mutable_range());
    }
  }

 private:
  std::string Key(KeyedRandom& random) const { return "k" + std::to_string(random.Below(key_count_)); }

  void WritePut(KeyedRandom& random, Put& put) const {
    put.set_key(Key(random));
    put.set_prev_kv(random.Chance(1, 8));
    if (random.Chance(large_ppm_, 1'000'000)) put.set_value_bytes(static_cast<uint32_t>(LogBetween(random, 300, large_bytes_max_)));
    KeyedRandom own = random.Sub(2);
    if (!own.Chance(1, 20)) return;
    put.set_ignore_value(true);
    put.clear_value_bytes();
  }

  void WriteDelete(KeyedRandom& random, Delete& del) const {
    del.set_key(Key(random));
    if (random.Chance(1, 4)) del.set_range_end(random.Chance(1, 4) ? std::string(1, '\0') : Key(random));
    del.set_prev_kv(random.Chance(1, 4));
  }

  // Compare and swap of what the client saw, a lock taken when nobody has it, or anything at all.
  void WriteTxn(KeyedRandom& random, Txn& txn, int depth) const {
    if (depth == 1 && as_seen_ && random.Chance(2, 3)) return WriteSwap(random, txn);
    for (uint64_t i = random.Below(3); i > 0; --i) WriteCompare(random, *txn.add_compare());
    const bool reads_only = random.Chance(1, 5);
    for (auto* branch : {txn.mutable_success(), txn.mutable_failure()}) {
      for (uint64_t i = random.Below(4); i > 0; --i) WriteStep(random, *branch->Add(), reads_only, depth);
      // A key that an open-ended delete of the same transaction took has no value to keep: etcd itself ends there.
      for (int i = depth == 1 ? 1 : 0; i < branch->size(); ++i) {
        if (branch->at(i).has_put()) branch->at(i).mutable_put()->clear_ignore_value();
      }
    }
  }

  void WriteSwap(KeyedRandom& random, Txn& txn) const {
    const std::string key = Key(random);
    Compare& compare = *txn.add_compare();
    compare.set_key(key);
    compare.set_target(random.Chance(1, 4) ? Compare::CREATE : random.Chance(1, 4) ? Compare::VALUE : Compare::MOD);
    compare.set_as_seen(random.Chance(4, 5));  // otherwise: if there is none
    if (random.Chance(1, 6)) {
      txn.add_success()->mutable_delete_()->set_key(key);
    } else {
      txn.add_success()->mutable_put()->set_key(key);
    }
    if (random.Chance(1, 3)) txn.add_success()->mutable_put()->set_key("other-" + key);
    txn.add_failure()->mutable_range()->set_key(key);
  }

  void WriteCompare(KeyedRandom& random, Compare& compare) const {
    compare.set_target(static_cast<Compare::Target>(random.Below(5)));
    compare.set_result(static_cast<Compare::Result>(random.Below(4)));
    compare.set_key(Key(random));
    if (random.Chance(1, 5)) compare.set_range_end(random.Chance(1, 2) ? std::string(1, '\0') : Key(random));
    if (compare.target() == Compare::VALUE) {
      compare.set_value("v" + std::to_string(random.Below(400)));
    } else if (random.Chance(1, 2)) {
      compare.set_number(static_cast<int64_t>(random.Below(compare.target() == Compare::VERSION ? 4 : 200)));
    }
  }

  void WriteStep(KeyedRandom& random, Step& step, bool reads_only, int depth) const {
    const uint64_t kind = random.Below(10);
    if (!reads_only && kind < 4) return WritePut(random, *step.mutable_put());
    if (!reads_only && kind < 6) return WriteDelete(random, *step.mutable_delete_());
    if (!reads_only && kind < 7 && depth < 3) return WriteTxn(random, *step.mutable_txn(), depth + 1);
    Range& range = *step.mutable_range();
    WriteRange(random, range);
    range.clear_stream();
    range.clear_revisions_back();
    if (random.Chance(1, 8)) range.set_revision(static_cast<int64_t>(random.Between(1, 150)));
  }

  void WriteCompact(KeyedRandom& random, Compact& compact) const {
    if (!at_head_ || random.Chance(1, 3)) compact.set_revisions_back(static_cast<int64_t>(random.Below(20)));
    compact.set_physical(random.Chance(1, 4));
  }

  void WriteHash(KeyedRandom& random, HashKv& hash) const {
    if (random.Chance(1, 2)) hash.set_revisions_back(static_cast<int64_t>(random.Between(1, 10)));
  }

  void WriteRange(KeyedRandom& random, Range& range) const {
    range.set_serializable(random.Chance(serializable_ppm_, 1'000'000));
    if (random.Chance(1, 2)) {
      range.set_key(Key(random));
    } else {
      range.set_key(random.Chance(1, 2) ? std::string(1, '\0') : Key(random));
      range.set_range_end(std::string(1, '\0'));
    }
    if (random.Chance(1, 6)) range.set_revisions_back(static_cast<int64_t>(random.Between(1, 20)));
    KeyedRandom own = random.Sub(3);
    range.set_stream(own.Chance(stream_ppm_, 1'000'000));
    if (random.Chance(1, 3)) return;
    if (random.Chance(1, 3)) range.set_limit(static_cast<int64_t>(random.Between(1, 5)));
    if (random.Chance(1, 4)) {
      range.set_sort_order(static_cast<uint32_t>(random.Below(3)));
      range.set_sort_target(static_cast<uint32_t>(random.Below(4)));
    }
    range.set_keys_only(random.Chance(1, 8));
    range.set_count_only(random.Chance(1, 10));
    if (random.Chance(1, 12)) range.set_min_mod_revision(static_cast<int64_t>(random.Between(1, 100)));
    if (random.Chance(1, 12)) range.set_max_create_revision(static_cast<int64_t>(random.Between(1, 100)));
  }

  uint64_t key_count_;
  uint64_t put_weight_;
  uint64_t delete_weight_;
  uint64_t serializable_ppm_;
  uint64_t large_ppm_;
  uint64_t large_bytes_max_;
  uint64_t txn_ppm_;
  uint64_t compact_ppm_;
  uint64_t hash_ppm_;
  uint64_t stream_ppm_;
  uint64_t cancel_ppm_;
  bool at_head_;   // compactions mostly of the newest revision the client knows
  bool as_seen_;   // transactions mostly compare what the client saw
};

}  // namespace

void DrawOperations(uint64_t seed, Scenario& scenario) {
  KeyedRandom random = Piece(seed, "swarm.operations");
  const OperationWriter writer(seed);
  const uint64_t count = random.Between(150, 400);
  const bool near_faults = random.Chance(1, 2);
  // Operations at the same moments: queues, windows and batches hold more than one thing only then.
  KeyedRandom crowds = Piece(seed, "swarm.crowds");
  const uint32_t crowd_ms = crowds.Chance(1, 3) ? static_cast<uint32_t>(Pick(crowds, {100, 1'000, 5'000})) : 1;
  // Those who waited for a leader come together when there is one.
  const bool wait = scenario.members() > 1 && Piece(seed, "swarm.waiting").Chance(1, 2);
  for (uint32_t id = 1; id <= count; ++id) {
    KeyedRandom own = random.Sub(id);
    Operation& operation = *scenario.add_operations();
    operation.set_id(id);
    operation.set_client(static_cast<uint32_t>(own.Between(1, scenario.clients())));
    uint64_t at = own.Between(0, scenario.chaos_ms());
    if (near_faults && own.Chance(1, 2)) {
      // Around the moment in which something changes: that is where order is hard to keep.
      const Episode& episode = scenario.episodes(static_cast<int>(own.Below(static_cast<uint64_t>(scenario.episodes_size()))));
      const uint64_t edge = episode.at_ms() + (own.Chance(1, 2) ? episode.for_ms() : 0);
      const uint64_t spread = own.Below(400);
      at = edge + spread > 200 ? edge + spread - 200 : 0;
    }
    at -= at % crowd_ms;
    operation.set_at_ms(static_cast<uint32_t>(std::min<uint64_t>(at, scenario.chaos_ms())));
    if (KeyedRandom waiting = own.Sub(4); wait && waiting.Chance(1, 3)) {
      operation.set_at_new_leader(true);
      operation.set_later_ms(static_cast<uint32_t>(LogBetween(waiting, 1, 2'000) - 1));
    }
    writer.Write(own, operation);
  }
  std::sort(scenario.mutable_operations()->begin(), scenario.mutable_operations()->end(),
            [](const Operation& a, const Operation& b) {
              return a.at_ms() != b.at_ms() ? a.at_ms() < b.at_ms() : a.id() < b.id();
            });
}

}  // namespace detcd::scenario
