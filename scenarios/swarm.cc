#include "scenarios/swarm.h"

#include "scenarios/swarm_draws.h"

namespace detcd::scenario {
namespace {

void DrawKnobs(uint64_t seed, Knobs& knobs) {
  KeyedRandom random = Piece(seed, "swarm.knobs");
  const uint64_t election_ms = Pick(random, {500, 1000, 1000, 1000, 2000});
  knobs.set_election_timeout_ms(static_cast<uint32_t>(election_ms));
  knobs.set_heartbeat_ms(static_cast<uint32_t>(election_ms / 10));
  knobs.set_no_pre_vote(random.Chance(1, 8));
  knobs.set_wal_segment_bytes(Pick(random, {0, 2'048, 8'192, 65'536, 1'048'576}));
  knobs.set_append_bytes_max(Pick(random, {0, 0, 64, 1'024, 16'384}));
  knobs.set_appends_in_flight_max(Pick(random, {0, 0, 1, 2, 8}));
  knobs.set_uncommitted_bytes_max(Pick(random, {0, 0, 0, 256, 4'096}));
  knobs.set_log_entries_in_memory_max(Pick(random, {0, 4, 16, 64}));
  knobs.set_turn_events_max(static_cast<uint32_t>(Pick(random, {1, 1, 4, 16})));
  knobs.set_event_cost_us(static_cast<uint32_t>(Pick(random, {0, 0, 10, 200})));
  knobs.set_client_timeout_ms(static_cast<uint32_t>(Pick(random, {300, 1'000, 3'000})));
  knobs.set_socket_buffer_bytes(static_cast<uint32_t>(Pick(random, {0, 512, 4'096})));
  KeyedRandom turns = Piece(seed, "swarm.turns");
  knobs.set_by_source_ppm(static_cast<uint32_t>(Pick(turns, {0, 100'000, 1'000'000, 1'000'000})));
  knobs.set_lease_reads(Piece(seed, "swarm.leases").Chance(1, 2));
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
      // With slow ones so frequent, a new leader is heard long before its first entry is durable.
      sync.set_slow_ppm(static_cast<uint32_t>(Pick(random, {30'000, 300'000})));
  }
}

void DrawClocks(uint64_t seed, uint32_t members, Scenario& scenario) {
  KeyedRandom random = Piece(seed, "swarm.clocks");
  if (random.Chance(1, 3)) return;
  uint64_t worst = Pick(random, {200, 5'000, 100'000});
  // Leases assume what is drawn here, so that windows are wide where clocks are bad.
  if (scenario.knobs().lease_reads()) worst = Pick(random, {200, 100'000, 300'000});
  for (uint32_t member = 1; member <= members; ++member) {
    ClockSetting& clock = *scenario.add_clocks();
    clock.set_member(member);
    clock.set_drift_ppm(static_cast<int32_t>(random.Between(0, 2 * worst)) - static_cast<int32_t>(worst));
  }
}

Profile DrawProfile(uint64_t seed, ProfileChoice choice) {
  const bool beyond = Piece(seed, "swarm.profile").Chance(1, 10);
  switch (choice) {
    case ProfileChoice::kMixed: return beyond ? BEYOND : TOLERATED;
    case ProfileChoice::kTolerated: return TOLERATED;
    case ProfileChoice::kBeyond: return BEYOND;
    case ProfileChoice::kNegative: return NEGATIVE;
    case ProfileChoice::kClocks: return CLOCKS;
  }
  return TOLERATED;
}

// Without some of its members for ever: what only all of them together bring about is no service.
void DrawLost(uint64_t seed, Scenario& scenario) {
  KeyedRandom random = Piece(seed, "swarm.lost");
  uint32_t left = (scenario.members() - 1) / 2;
  if (left == 0 || scenario.profile() == NEGATIVE || !random.Chance(1, 4)) return;
  left = static_cast<uint32_t>(random.Between(1, left));
  for (uint32_t member = 1; left > 0; ++member) {
    if (!random.Chance(left, scenario.members() - member + 1)) continue;
    scenario.add_lost_members(member);
    --left;
  }
}

}  // namespace

Scenario MakeSwarm(uint64_t seed, FidelityChoice fidelity, ProfileChoice profile) {
  Scenario scenario;
  scenario.set_format_version(1);
  scenario.set_seed(seed);
  KeyedRandom random = Piece(seed, "swarm.shape");
  const bool wire = random.Chance(1, 10);
  const bool is_wire = fidelity == FidelityChoice::kWire || (fidelity == FidelityChoice::kMixed && wire);
  scenario.set_fidelity(is_wire ? WIRE : DIRECT);
  scenario.set_profile(DrawProfile(seed, profile));
  scenario.set_verify(random.Chance(1, 64));
  const uint64_t size = random.Below(20);
  scenario.set_members(size < 3 ? 1 : size < 14 ? 3 : 5);
  scenario.set_clients(static_cast<uint32_t>(random.Between(2, 6)));
  if (Piece(seed, "swarm.clients").Chance(1, 4)) scenario.set_clients(4 * scenario.clients());
  scenario.set_chaos_ms(static_cast<uint32_t>(random.Between(44'000, 74'000)));
  DrawKnobs(seed, *scenario.mutable_knobs());
  if (scenario.profile() == CLOCKS) scenario.mutable_knobs()->set_lease_reads(true);
  DrawLinks(seed, *scenario.mutable_links());
  // A window a round trip: the smallest buffers over long ways carry less than the load and the bound on convergence ask.
  if (scenario.links().delay().max_us() > 1'000 && scenario.knobs().socket_buffer_bytes() == 512) {
    scenario.mutable_knobs()->set_socket_buffer_bytes(4'096);
  }
  // What is altered on purpose lies in a segment that others follow.
  if (scenario.profile() == BEYOND) {
    KeyedRandom segments = Piece(seed, "swarm.segments");
    scenario.mutable_knobs()->set_wal_segment_bytes(Pick(segments, {2'048, 2'048, 8'192}));
  }
  DrawDisks(seed, *scenario.mutable_disks());
  DrawClocks(seed, scenario.members(), scenario);
  DrawEpisodes(seed, scenario);
  DrawOperations(seed, scenario);
  DrawLost(seed, scenario);
  return scenario;
}

}  // namespace detcd::scenario
