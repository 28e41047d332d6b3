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
  }

  void Write(KeyedRandom& random, Operation& operation) const {
    const uint64_t kind = random.Below(100);
    if (kind < put_weight_) {
      Put& put = *operation.mutable_put();
      put.set_key(Key(random));
      put.set_prev_kv(random.Chance(1, 8));
      if (random.Chance(large_ppm_, 1'000'000)) put.set_value_bytes(static_cast<uint32_t>(LogBetween(random, 300, large_bytes_max_)));
    } else if (kind < put_weight_ + delete_weight_) {
      Delete& del = *operation.mutable_delete_();
      del.set_key(Key(random));
      if (random.Chance(1, 4)) del.set_range_end(Key(random));
      del.set_prev_kv(random.Chance(1, 4));
    } else {
      WriteRange(random, *operation.mutable_range());
    }
  }

 private:
  std::string Key(KeyedRandom& random) const { return "k" + std::to_string(random.Below(key_count_)); }

  void WriteRange(KeyedRandom& random, Range& range) const {
    range.set_serializable(random.Chance(serializable_ppm_, 1'000'000));
    if (random.Chance(1, 2)) {
      range.set_key(Key(random));
    } else {
      range.set_key(random.Chance(1, 2) ? std::string(1, '\0') : Key(random));
      range.set_range_end(std::string(1, '\0'));
    }
    if (random.Chance(1, 6)) range.set_revisions_back(static_cast<int64_t>(random.Between(1, 20)));
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
    writer.Write(own, operation);
  }
  std::sort(scenario.mutable_operations()->begin(), scenario.mutable_operations()->end(),
            [](const Operation& a, const Operation& b) {
              return a.at_ms() != b.at_ms() ? a.at_ms() < b.at_ms() : a.id() < b.id();
            });
}

}  // namespace detcd::scenario
