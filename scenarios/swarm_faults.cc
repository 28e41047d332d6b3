#include <algorithm>
#include <vector>

#include "scenarios/swarm_draws.h"

namespace detcd::scenario {
namespace {

using Numbers = google::protobuf::RepeatedField<uint32_t>;

// Draws the fault of one episode: one function for each family.
class EpisodeWriter {
 public:
  EpisodeWriter(const Scenario& scenario, KeyedRandom random)
      : members_(scenario.members()), clients_(scenario.clients()), random_(random) {}

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

  void WriteDrift(Episode& episode) {
    episode.mutable_drift()->set_member(static_cast<uint32_t>(random_.Between(1, members_)));
    episode.mutable_drift()->set_drift_ppm(static_cast<int32_t>(random_.Between(0, 400'000)) - 200'000);
  }

 private:
  void Crash(Episode& episode, uint32_t count) {
    Members(*episode.mutable_crash()->mutable_members(), count);
    const uint64_t survival = random_.Below(4);
    episode.mutable_crash()->set_survival(survival == 0 ? NOTHING : survival == 1 ? EVERYTHING : MIXED);
  }

  // How many members a fault takes: a minority twice as often as a larger part.
  uint32_t Part() {
    const uint32_t minority = std::max(1u, (members_ - 1) / 2);
    const uint32_t most = random_.Chance(2, 3) ? minority : members_;
    return static_cast<uint32_t>(random_.Between(1, most));
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
  KeyedRandom random_;
};

bool Always(const Scenario&) { return true; }
bool AmongMembers(const Scenario& scenario) { return scenario.members() > 1; }
bool OnWire(const Scenario& scenario) { return scenario.fidelity() == WIRE; }

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
};
constexpr Family kOfNone = {Always, &EpisodeWriter::WriteCrash};

}  // namespace

void DrawEpisodes(uint64_t seed, Scenario& scenario) {
  KeyedRandom random = Piece(seed, "swarm.episodes");
  std::vector<Family> families;
  for (const Family& family : kFamilies) {
    const bool on = random.Chance(1, 2);
    if (on && family.possible(scenario)) families.push_back(family);
  }
  if (families.empty()) families.push_back(kOfNone);

  const uint64_t count = random.Between(4, 20);
  for (uint32_t id = 1; id <= count; ++id) {
    KeyedRandom own = random.Sub(id);
    Episode& episode = *scenario.add_episodes();
    episode.set_id(id);
    episode.set_at_ms(static_cast<uint32_t>(own.Between(1'000, scenario.chaos_ms() - 1'000)));
    const Family& family = families[own.Below(families.size())];
    // Members that are down, stalled or paused for long make the rest of the world quiet: mostly short.
    episode.set_for_ms(static_cast<uint32_t>(LogBetween(own, 20, 8'000)));
    EpisodeWriter writer(scenario, own.Sub(0));
    (writer.*family.write)(episode);
  }
  std::sort(scenario.mutable_episodes()->begin(), scenario.mutable_episodes()->end(),
            [](const Episode& a, const Episode& b) {
              return a.at_ms() != b.at_ms() ? a.at_ms() < b.at_ms() : a.id() < b.id();
            });
}

}  // namespace detcd::scenario
