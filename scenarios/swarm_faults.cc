#include <algorithm>
#include <vector>

#include "scenarios/settings.h"
#include "scenarios/swarm.h"
#include "scenarios/swarm_draws.h"

namespace detcd::scenario {
namespace {

using Numbers = google::protobuf::RepeatedField<uint32_t>;

// Draws the fault of one episode: one function for each family.
class EpisodeWriter {
 public:
  EpisodeWriter(const Scenario& scenario, KeyedRandom random)
      : members_(scenario.members()),
        clients_(scenario.clients()),
        tolerated_(scenario.profile() == TOLERATED || scenario.profile() == CLOCKS),
        random_(random) {}

  void WritePartition(Episode& episode) { Members(*episode.mutable_partition()->mutable_group(), Part()); }

  void WriteOneWay(Episode& episode) {
    Members(*episode.mutable_one_way()->mutable_from(), Part());
    Members(*episode.mutable_one_way()->mutable_to(), random_.Chance(1, 2) ? members_ : Part());
  }

  void WriteClientPartition(Episode& episode) {
    for (uint32_t client = 1; client <= clients_; ++client) {
      if (random_.Chance(1, 2)) episode.mutable_client_partition()->add_clients(client);
    }
    Members(*episode.mutable_client_partition()->mutable_members(), Part());
  }

  void WriteSlow(Episode& episode) {
    Members(*episode.mutable_slow()->mutable_members(), Part());
    Law& delay = *episode.mutable_slow()->mutable_delay();
    delay.set_kind(random_.Chance(1, 2) ? Law::UNIFORM : Law::EXPONENTIAL);
    delay.set_min_us(Pick(random_, {5'000, 50'000}));
    delay.set_max_us(Pick(random_, {60'000, 300'000, 1'500'000}));
  }

  void WriteLoss(Episode& episode) {
    Members(*episode.mutable_loss()->mutable_members(), Part());
    episode.mutable_loss()->set_loss_ppm(static_cast<uint32_t>(Pick(random_, {100'000, 400'000})));
    episode.mutable_loss()->set_duplicate_ppm(static_cast<uint32_t>(Pick(random_, {0, 200'000})));
  }

  void WriteResets(Episode& episode) {
    Members(*episode.mutable_resets()->mutable_members(), Part());
    episode.mutable_resets()->set_interval_ms(static_cast<uint32_t>(Pick(random_, {20, 100, 500})));
  }

  void WriteCrash(Episode& episode) { Crash(episode, 1); }
  void WriteCrashOfAll(Episode& episode) { Crash(episode, members_); }

  void WritePause(Episode& episode) { Members(*episode.mutable_pause()->mutable_members(), Part()); }

  void WriteSyncStall(Episode& episode) { Members(*episode.mutable_sync_stall()->mutable_members(), Part()); }

  // Mostly one target; a second one while the first is under way is a case of its own.
  void WriteTransfer(Episode& episode) {
    Members(*episode.mutable_transfer()->mutable_to(), random_.Chance(3, 4) ? 1 : 2);
  }

  void WriteDrift(Episode& episode) {
    episode.mutable_drift()->set_member(static_cast<uint32_t>(random_.Between(1, members_)));
    episode.mutable_drift()->set_drift_ppm(static_cast<int32_t>(random_.Between(0, 400'000)) - 200'000);
  }

  // Two sides, and at least one member of neither.
  void WriteBridge(Episode& episode) {
    const auto bridge = static_cast<uint32_t>(random_.Between(1, members_));
    Bridge& sides = *episode.mutable_bridge();
    for (uint32_t member = 1; member <= members_; ++member) {
      if (member == bridge) continue;
      const bool left = sides.left_size() == 0 || (sides.right_size() > 0 && random_.Chance(1, 2));
      left ? sides.add_left(member) : sides.add_right(member);
    }
  }

  void WriteRing(Episode& episode) {
    Numbers& ring = *episode.mutable_ring()->mutable_members();
    for (uint32_t member = 1; member <= members_; ++member) ring.Add(member);
    for (int i = ring.size() - 1; i > 0; --i) {
      ring.SwapElements(i, static_cast<int>(random_.Below(static_cast<uint64_t>(i) + 1)));
    }
  }

  void WriteClog(Episode& episode) {
    Members(*episode.mutable_clog()->mutable_from(), Part());
    Members(*episode.mutable_clog()->mutable_to(), random_.Chance(1, 2) ? members_ : Part());
  }

  void WriteHalfOpen(Episode& episode) {
    Members(*episode.mutable_half_open()->mutable_members(), Part());
    episode.mutable_half_open()->set_interval_ms(static_cast<uint32_t>(Pick(random_, {50, 200, 1'000})));
  }

  void WriteBitFlips(Episode& episode) {
    Members(*episode.mutable_bit_flips()->mutable_members(), Part());
    episode.mutable_bit_flips()->set_flip_ppm(static_cast<uint32_t>(Pick(random_, {2'000, 20'000, 100'000})));
  }

  // Mostly of one kind.
  void WriteDiskErrors(Episode& episode) {
    DiskErrors& errors = *episode.mutable_disk_errors();
    Members(*errors.mutable_members(), DiskPart());
    const uint64_t kinds = random_.Below(4);
    const auto ppm = static_cast<uint32_t>(Pick(random_, {20'000, 200'000, 1'000'000}));
    if (kinds == 0 || kinds == 3) errors.set_read_ppm(ppm);
    if (kinds == 1 || kinds == 3) errors.set_write_ppm(ppm);
    if (kinds == 2 || kinds == 3) errors.set_sync_ppm(ppm);
  }

  void WriteFullDisk(Episode& episode) {
    Members(*episode.mutable_full_disk()->mutable_members(), DiskPart());
    episode.mutable_full_disk()->set_left_bytes(Pick(random_, {0, 4'096, 20'000}));
  }

  void WriteCorruption(Episode& episode) {
    Members(*episode.mutable_corruption()->mutable_members(), Part());
    episode.mutable_corruption()->set_bits(static_cast<uint32_t>(Pick(random_, {1, 1, 3, 30})));
  }

  void WriteClockLeap(Episode& episode) {
    Members(*episode.mutable_clock_leap()->mutable_members(), Part());
    episode.mutable_clock_leap()->set_by_ms(static_cast<uint32_t>(LogBetween(random_, 50, 20'000)));
  }

  void WriteClockFreeze(Episode& episode) { Members(*episode.mutable_clock_freeze()->mutable_members(), Part()); }

  void WriteWallJump(Episode& episode) {
    Members(*episode.mutable_wall_jump()->mutable_members(), Part());
    const auto by = static_cast<int32_t>(LogBetween(random_, 100, 100'000'000));
    episode.mutable_wall_jump()->set_by_ms(random_.Chance(2, 3) ? -by : by);
  }

  void WriteSlowProcessor(Episode& episode) {
    Members(*episode.mutable_slow_processor()->mutable_members(), Part());
    episode.mutable_slow_processor()->set_cost_us(static_cast<uint32_t>(Pick(random_, {500, 3'000, 20'000})));
  }

  void WriteCrashLoop(Episode& episode) {
    Members(*episode.mutable_crash_loop()->mutable_members(), Part());
    episode.mutable_crash_loop()->set_up_ms(static_cast<uint32_t>(Pick(random_, {20, 200, 1'000})));
    episode.mutable_crash_loop()->set_survival(DrawSurvival());
  }

  void WriteBlackout(Episode& episode) {
    episode.mutable_blackout()->set_survival(random_.Chance(1, 2) ? NOTHING : MIXED);
  }

  void WriteLyingDrive(Episode& episode) {
    Members(*episode.mutable_lying_drive()->mutable_members(), DiskPart());
  }

  void WriteZeroedTail(Episode& episode) {
    Members(*episode.mutable_zeroed_tail()->mutable_members(), DiskPart());
    episode.mutable_zeroed_tail()->set_sectors(static_cast<uint32_t>(random_.Between(1, 8)));
  }

  void WriteMisdirectedWrites(Episode& episode) {
    Members(*episode.mutable_misdirected_writes()->mutable_members(), DiskPart());
    episode.mutable_misdirected_writes()->set_write_ppm(static_cast<uint32_t>(Pick(random_, {20'000, 200'000, 1'000'000})));
  }

  void WriteWipedDisk(Episode& episode) { Members(*episode.mutable_wiped_disk()->mutable_members(), DiskPart()); }

 private:
  Survival DrawSurvival() {
    const uint64_t survival = random_.Below(4);
    return survival == 0 ? NOTHING : survival == 1 ? EVERYTHING : MIXED;
  }

  void Crash(Episode& episode, uint32_t count) {
    Members(*episode.mutable_crash()->mutable_members(), count);
    episode.mutable_crash()->set_survival(DrawSurvival());
  }

  // How many members a fault takes: a minority twice as often as a larger part.
  uint32_t Part() {
    const uint32_t minority = std::max(1u, (members_ - 1) / 2);
    const uint32_t most = random_.Chance(2, 3) ? minority : members_;
    return static_cast<uint32_t>(random_.Between(1, most));
  }

  // The disks of a minority at a time, unless more than a cluster tolerates is wanted.
  uint32_t DiskPart() {
    return static_cast<uint32_t>(random_.Between(1, tolerated_ ? std::max(1u, (members_ - 1) / 2) : members_));
  }

  // `count` different members, ascending.
  void Members(Numbers& out, uint32_t count) {
    for (uint32_t member = 1, left = count; member <= members_ && left > 0; ++member) {
      if (random_.Chance(left, members_ - member + 1)) {
        out.Add(member);
        --left;
      }
    }
  }

  uint32_t members_;
  uint32_t clients_;
  bool tolerated_;
  KeyedRandom random_;
};

bool Always(const Scenario&) { return true; }
bool AmongMembers(const Scenario& scenario) { return scenario.members() > 1; }
bool OnWire(const Scenario& scenario) { return scenario.fidelity() == WIRE; }
bool AmongThree(const Scenario& scenario) { return scenario.members() >= 3; }
bool AmongFour(const Scenario& scenario) { return scenario.members() >= 4; }
bool IsBeyond(const Scenario& scenario) { return scenario.profile() == BEYOND; }
bool IsNegative(const Scenario& scenario) { return scenario.profile() == NEGATIVE; }
bool IsOfClocks(const Scenario& scenario) { return scenario.profile() == CLOCKS; }
// Leader leases bear neither, whatever a profile allows disks: the judge's word would be about no disk.
bool ClocksMayLeap(const Scenario& scenario) { return !scenario.knobs().lease_reads(); }

// What a seed turns on and off.
struct Family {
  bool (*possible)(const Scenario& scenario);
  void (EpisodeWriter::*write)(Episode& episode);
};

constexpr Family kFamilies[] = {
    {AmongMembers, &EpisodeWriter::WritePartition},
    {AmongMembers, &EpisodeWriter::WriteOneWay},
    {Always, &EpisodeWriter::WriteClientPartition},
    {Always, &EpisodeWriter::WriteSlow},
    {AmongMembers, &EpisodeWriter::WriteLoss},
    {OnWire, &EpisodeWriter::WriteResets},
    {Always, &EpisodeWriter::WriteCrash},
    {Always, &EpisodeWriter::WriteCrashOfAll},
    {Always, &EpisodeWriter::WritePause},
    {Always, &EpisodeWriter::WriteSyncStall},
    {Always, &EpisodeWriter::WriteDrift},
    {AmongMembers, &EpisodeWriter::WriteTransfer},
    {AmongThree, &EpisodeWriter::WriteBridge},
    {AmongFour, &EpisodeWriter::WriteRing},
    {AmongMembers, &EpisodeWriter::WriteClog},
    {OnWire, &EpisodeWriter::WriteHalfOpen},
    {OnWire, &EpisodeWriter::WriteBitFlips},
    {Always, &EpisodeWriter::WriteDiskErrors},
    {Always, &EpisodeWriter::WriteFullDisk},
    {ClocksMayLeap, &EpisodeWriter::WriteClockLeap},
    {ClocksMayLeap, &EpisodeWriter::WriteClockFreeze},
    {OnWire, &EpisodeWriter::WriteWallJump},
    {Always, &EpisodeWriter::WriteSlowProcessor},
    {Always, &EpisodeWriter::WriteCrashLoop},
    {Always, &EpisodeWriter::WriteBlackout},
};
// What a profile is about: every seed of it has these.
constexpr Family kOfProfile[] = {
    {IsBeyond, &EpisodeWriter::WriteCorruption},
    {IsNegative, &EpisodeWriter::WriteLyingDrive},
    {IsNegative, &EpisodeWriter::WriteZeroedTail},
    {IsNegative, &EpisodeWriter::WriteWipedDisk},
    {IsNegative, &EpisodeWriter::WriteMisdirectedWrites},
    {IsOfClocks, &EpisodeWriter::WriteClockLeap},
    {IsOfClocks, &EpisodeWriter::WriteClockFreeze},
};
constexpr Family kOfNone = {Always, &EpisodeWriter::WriteCrash};

// About half of them: at about the moment at which one of those before it begins or ends.
void SetNearAnother(KeyedRandom random, const Scenario& scenario, Episode& episode) {
  if (random.Chance(1, 2)) return;
  const Episode& other = scenario.episodes(static_cast<int>(random.Below(static_cast<uint64_t>(scenario.episodes_size()) - 1)));
  const uint64_t edge = other.at_ms() + (random.Chance(1, 2) ? other.for_ms() : 0);
  const uint64_t at = edge + random.Below(1'000);
  episode.set_at_ms(static_cast<uint32_t>(std::clamp<uint64_t>(at, 1'500, scenario.chaos_ms() - 500) - 500));
}

// In some seeds leadership wanders: what goes wrong in a change of leader, mostly a matter of milliseconds, has many then.
void DrawRestlessness(uint64_t seed, Scenario& scenario) {
  KeyedRandom random = Piece(seed, "swarm.restless");
  if (scenario.members() == 1 || !random.Chance(1, 4)) return;
  const auto first = static_cast<uint32_t>(scenario.episodes_size()) + 1;
  const uint64_t count = random.Between(5, 30);
  for (uint32_t id = first; id < first + count; ++id) {
    KeyedRandom own = random.Sub(id);
    Episode& episode = *scenario.add_episodes();
    episode.set_id(id);
    episode.set_at_ms(static_cast<uint32_t>(own.Between(1'000, scenario.chaos_ms() - 1'000)));
    SetNearAnother(own.Sub(3), scenario, episode);
    EpisodeWriter(scenario, own.Sub(0)).WriteTransfer(episode);
  }
}

}  // namespace

void DrawEpisodes(uint64_t seed, Scenario& scenario) {
  KeyedRandom random = Piece(seed, "swarm.episodes");
  std::vector<Family> families;
  for (const Family& family : kFamilies) {
    const bool on = random.Chance(1, 3);
    if (on && family.possible(scenario)) families.push_back(family);
  }
  for (const Family& family : kOfProfile) {
    if (family.possible(scenario)) families.push_back(family);
  }
  if (families.empty()) families.push_back(kOfNone);

  // Faults that come together are worse than each alone.
  const bool together = Piece(seed, "swarm.together").Chance(1, 2);
  const uint64_t count = random.Between(4, 20);
  for (uint32_t id = 1; id <= count; ++id) {
    KeyedRandom own = random.Sub(id);
    Episode& episode = *scenario.add_episodes();
    episode.set_id(id);
    episode.set_at_ms(static_cast<uint32_t>(own.Between(1'000, scenario.chaos_ms() - 1'000)));
    if (together && id > 1) SetNearAnother(own.Sub(3), scenario, episode);
    const Family& family = families[own.Below(families.size())];
    // Members that are down, stalled or paused for long make the rest of the world quiet: mostly short.
    episode.set_for_ms(static_cast<uint32_t>(LogBetween(own, 20, 8'000)));
    // Bugs of a leader's first steps are a matter of milliseconds after its election.
    episode.set_at_new_leader(scenario.members() > 1 && own.Sub(1).Chance(1, 4));
    EpisodeWriter writer(scenario, own.Sub(0));
    (writer.*family.write)(episode);
    // And those of who comes back to what went on without it, a matter of the time after another's.
    KeyedRandom outlasting = own.Sub(2);
    if (scenario.members() == 1 || !MayLastUntilLeader(episode) || !outlasting.Chance(1, 3)) continue;
    episode.set_until_new_leader(true);
    episode.set_for_ms(static_cast<uint32_t>(LogBetween(outlasting, 20, 2'000)));
  }
  DrawRestlessness(seed, scenario);
  std::sort(scenario.mutable_episodes()->begin(), scenario.mutable_episodes()->end(),
            [](const Episode& a, const Episode& b) {
              return a.at_ms() != b.at_ms() ? a.at_ms() < b.at_ms() : a.id() < b.id();
            });
}

void DropWhatKnobsForbid(Scenario& scenario) {
  if (ClocksMayLeap(scenario) || IsOfClocks(scenario)) return;
  auto& episodes = *scenario.mutable_episodes();
  const auto leaps = [](const Episode& episode) { return episode.has_clock_leap() || episode.has_clock_freeze(); };
  episodes.erase(std::remove_if(episodes.begin(), episodes.end(), leaps), episodes.end());
}

}  // namespace detcd::scenario
