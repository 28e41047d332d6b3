#include "scenarios/swarm.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/io/random.h"

namespace detcd::scenario {
namespace {

template <size_t N>
uint64_t Pick(KeyedRandom& random, const uint64_t (&choices)[N]) {
  return choices[random.Below(N)];
}

// A span between `low` and `high` whose logarithm is about uniform: short and long ones are equally common.
uint64_t LogBetween(KeyedRandom& random, uint64_t low, uint64_t high) {
  uint64_t doublings = 0;
  while (low << (doublings + 1) <= high) ++doublings;
  uint64_t base = low << random.Below(doublings + 1);
  return std::min(high, base + random.Below(base + 1));
}

// Draws of one piece of the scenario, named so that another piece's draws do not move them.
KeyedRandom Piece(uint64_t seed, std::string_view label) { return KeyedRandom(seed, label); }

// --- shape ---------------------------------------------------------------------------------------------------------

void DrawKnobs(uint64_t seed, Knobs& knobs) {
  KeyedRandom random = Piece(seed, "swarm.knobs");
  const uint64_t election_ms = Pick(random, {500, 1000, 1000, 1000, 2000});
  knobs.set_election_timeout_ms(static_cast<uint32_t>(election_ms));
  knobs.set_heartbeat_ms(static_cast<uint32_t>(election_ms / 10));
  knobs.set_no_pre_vote(random.Chance(1, 8));
  knobs.set_wal_segment_bytes(Pick(random, {0, 2'048, 8'192, 65'536, 1'048'576}));
  knobs.set_append_bytes_max(Pick(random, {0, 0, 64, 1'024, 16'384}));
  knobs.set_appends_in_flight_max(Pick(random, {0, 0, 1, 2, 8}));
  knobs.set_log_entries_in_memory_max(Pick(random, {0, 4, 16, 64}));
  knobs.set_turn_events_max(static_cast<uint32_t>(Pick(random, {1, 1, 4, 16})));
  knobs.set_event_cost_us(static_cast<uint32_t>(Pick(random, {0, 0, 10, 200})));
  knobs.set_client_timeout_ms(static_cast<uint32_t>(Pick(random, {300, 1'000, 3'000})));
  knobs.set_socket_buffer_bytes(static_cast<uint32_t>(Pick(random, {0, 512, 4'096})));
}

void DrawLinks(uint64_t seed, Links& links) {
  KeyedRandom random = Piece(seed, "swarm.links");
  Law& delay = *links.mutable_delay();
  switch (random.Below(4)) {
    case 0:
      delay.set_min_us(100);
      delay.set_max_us(500);
      break;
    case 1:
      delay.set_min_us(500);
      delay.set_max_us(10'000);
      break;
    case 2:
      delay.set_kind(Law::EXPONENTIAL);
      delay.set_min_us(200);
      delay.set_max_us(200 + Pick(random, {1'000, 5'000, 20'000}));
      break;
    default:
      delay.set_kind(Law::BIMODAL);
      delay.set_min_us(500);
      delay.set_max_us(Pick(random, {20'000, 150'000}));
      delay.set_slow_ppm(20'000);
  }
  if (random.Chance(1, 2)) links.set_loss_ppm(static_cast<uint32_t>(Pick(random, {1'000, 10'000, 50'000})));
  if (random.Chance(1, 2)) links.set_duplicate_ppm(static_cast<uint32_t>(Pick(random, {1'000, 20'000})));
}

void DrawDisks(uint64_t seed, Disks& disks) {
  KeyedRandom random = Piece(seed, "swarm.disks");
  disks.mutable_write()->set_min_us(5);
  disks.mutable_write()->set_max_us(50);
  Law& sync = *disks.mutable_sync();
  switch (random.Below(3)) {
    case 0:
      sync.set_min_us(200);
      sync.set_max_us(2'000);
      break;
    case 1:
      sync.set_kind(Law::EXPONENTIAL);
      sync.set_min_us(500);
      sync.set_max_us(Pick(random, {5'000, 25'000}));
      break;
    default:
      sync.set_kind(Law::BIMODAL);
      sync.set_min_us(1'000);
      sync.set_max_us(Pick(random, {100'000, 400'000}));
      sync.set_slow_ppm(30'000);
  }
}

void DrawClocks(uint64_t seed, uint32_t members, Scenario& scenario) {
  KeyedRandom random = Piece(seed, "swarm.clocks");
  if (random.Chance(1, 3)) return;
  const uint64_t worst = Pick(random, {200, 5'000, 100'000});
  for (uint32_t member = 1; member <= members; ++member) {
    ClockSetting& clock = *scenario.add_clocks();
    clock.set_member(member);
    clock.set_drift_ppm(static_cast<int32_t>(random.Between(0, 2 * worst)) - static_cast<int32_t>(worst));
  }
}

// --- faults --------------------------------------------------------------------------------------------------------

enum Family : uint32_t {
  kPartition, kOneWay, kClientPartition, kSlow, kLoss, kResets, kCrash, kPowerLoss, kPause, kSyncStall, kDrift,
  kFamilyCount
};

class EpisodeWriter {
 public:
  EpisodeWriter(const Scenario& scenario, KeyedRandom random)
      : members_(scenario.members()), clients_(scenario.clients()), random_(random) {}

  void Write(Family family, Episode& episode) {
    switch (family) {
      case kPartition:
        Members(*episode.mutable_partition()->mutable_group(), Part());
        break;
      case kOneWay:
        Members(*episode.mutable_one_way()->mutable_from(), Part());
        Members(*episode.mutable_one_way()->mutable_to(), random_.Chance(1, 2) ? members_ : Part());
        break;
      case kClientPartition:
        for (uint32_t client = 1; client <= clients_; ++client) {
          if (random_.Chance(1, 2)) episode.mutable_client_partition()->add_clients(client);
        }
        Members(*episode.mutable_client_partition()->mutable_members(), Part());
        break;
      case kSlow: {
        Members(*episode.mutable_slow()->mutable_members(), Part());
        Law& delay = *episode.mutable_slow()->mutable_delay();
        delay.set_kind(random_.Chance(1, 2) ? Law::UNIFORM : Law::EXPONENTIAL);
        delay.set_min_us(Pick(random_, {5'000, 50'000}));
        delay.set_max_us(Pick(random_, {60'000, 300'000, 1'500'000}));
        break;
      }
      case kLoss:
        Members(*episode.mutable_loss()->mutable_members(), Part());
        episode.mutable_loss()->set_loss_ppm(static_cast<uint32_t>(Pick(random_, {100'000, 400'000})));
        episode.mutable_loss()->set_duplicate_ppm(static_cast<uint32_t>(Pick(random_, {0, 200'000})));
        break;
      case kResets:
        Members(*episode.mutable_resets()->mutable_members(), Part());
        episode.mutable_resets()->set_interval_ms(static_cast<uint32_t>(Pick(random_, {20, 100, 500})));
        break;
      case kCrash:
      case kPowerLoss: {
        Crash& crash = *episode.mutable_crash();
        Members(*crash.mutable_members(), family == kPowerLoss ? members_ : 1);
        const uint64_t survival = random_.Below(4);
        crash.set_survival(survival == 0 ? NOTHING : survival == 1 ? EVERYTHING : MIXED);
        break;
      }
      case kPause:
        Members(*episode.mutable_pause()->mutable_members(), Part());
        break;
      case kSyncStall:
        Members(*episode.mutable_sync_stall()->mutable_members(), Part());
        break;
      case kDrift:
        episode.mutable_drift()->set_member(static_cast<uint32_t>(random_.Between(1, members_)));
        episode.mutable_drift()->set_drift_ppm(static_cast<int32_t>(random_.Between(0, 400'000)) - 200'000);
        break;
      case kFamilyCount:
        break;
    }
  }

 private:
  // How many members a fault takes: a minority twice as often as a larger part.
  uint32_t Part() {
    const uint32_t minority = std::max(1u, (members_ - 1) / 2);
    const uint32_t most = random_.Chance(2, 3) ? minority : members_;
    return static_cast<uint32_t>(random_.Between(1, most));
  }

  // `count` different members, ascending.
  void Members(google::protobuf::RepeatedField<uint32_t>& out, uint32_t count) {
    for (uint32_t member = 1, left = count; member <= members_ && left > 0; ++member) {
      if (random_.Chance(left, members_ - member + 1)) {
        out.Add(member);
        --left;
      }
    }
  }

  uint32_t members_;
  uint32_t clients_;
  KeyedRandom random_;
};

void DrawEpisodes(uint64_t seed, Scenario& scenario) {
  KeyedRandom random = Piece(seed, "swarm.episodes");
  std::vector<Family> families;
  for (uint32_t family = 0; family < kFamilyCount; ++family) {
    const bool possible = (family != kResets || scenario.fidelity() == WIRE) &&
                          ((family != kPartition && family != kOneWay && family != kLoss) || scenario.members() > 1);
    const bool on = random.Chance(1, 2);
    if (possible && on) families.push_back(static_cast<Family>(family));
  }
  if (families.empty()) families.push_back(kCrash);

  const uint64_t count = random.Between(3, 14);
  for (uint32_t id = 1; id <= count; ++id) {
    KeyedRandom own = random.Sub(id);
    Episode& episode = *scenario.add_episodes();
    episode.set_id(id);
    episode.set_at_ms(static_cast<uint32_t>(own.Between(1'000, scenario.chaos_ms() - 1'000)));
    const Family family = families[own.Below(families.size())];
    // Members that are down, stalled or paused for long make the rest of the world quiet: mostly short.
    episode.set_for_ms(static_cast<uint32_t>(LogBetween(own, 20, 8'000)));
    EpisodeWriter(scenario, own.Sub(0)).Write(family, episode);
  }
  std::sort(scenario.mutable_episodes()->begin(), scenario.mutable_episodes()->end(),
            [](const Episode& a, const Episode& b) {
              return a.at_ms() != b.at_ms() ? a.at_ms() < b.at_ms() : a.id() < b.id();
            });
}

// --- load ----------------------------------------------------------------------------------------------------------

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

// Without some of its members for ever: what only all of them together bring about is no service.
void DrawLost(uint64_t seed, Scenario& scenario) {
  KeyedRandom random = Piece(seed, "swarm.lost");
  uint32_t left = (scenario.members() - 1) / 2;
  if (left == 0 || !random.Chance(1, 4)) return;
  left = static_cast<uint32_t>(random.Between(1, left));
  for (uint32_t member = 1; left > 0; ++member) {
    if (!random.Chance(left, scenario.members() - member + 1)) continue;
    scenario.add_lost_members(member);
    --left;
  }
}

}  // namespace

Scenario MakeSwarm(uint64_t seed, FidelityChoice fidelity) {
  Scenario scenario;
  scenario.set_format_version(1);
  scenario.set_seed(seed);
  KeyedRandom random = Piece(seed, "swarm.shape");
  const bool wire = random.Chance(1, 10);
  const bool is_wire = fidelity == FidelityChoice::kWire || (fidelity == FidelityChoice::kMixed && wire);
  scenario.set_fidelity(is_wire ? WIRE : DIRECT);
  scenario.set_verify(random.Chance(1, 64));
  const uint64_t size = random.Below(20);
  scenario.set_members(size < 3 ? 1 : size < 14 ? 3 : 5);
  scenario.set_clients(static_cast<uint32_t>(random.Between(2, 6)));
  if (Piece(seed, "swarm.clients").Chance(1, 4)) scenario.set_clients(4 * scenario.clients());
  scenario.set_chaos_ms(static_cast<uint32_t>(random.Between(30'000, 50'000)));
  DrawKnobs(seed, *scenario.mutable_knobs());
  DrawLinks(seed, *scenario.mutable_links());
  // A window a round trip: the smallest buffers over long ways carry less than the load and the bound on convergence ask.
  if (scenario.links().delay().max_us() > 1'000 && scenario.knobs().socket_buffer_bytes() == 512) {
    scenario.mutable_knobs()->set_socket_buffer_bytes(4'096);
  }
  DrawDisks(seed, *scenario.mutable_disks());
  DrawClocks(seed, scenario.members(), scenario);
  DrawEpisodes(seed, scenario);
  DrawOperations(seed, scenario);
  DrawLost(seed, scenario);
  return scenario;
}

}  // namespace detcd::scenario
