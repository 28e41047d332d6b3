// The seam's contract over the simulator.
#include "sim/sim_universe.h"
#include "tests/seam/contract.h"

namespace detcd {
namespace {

class SimWorld final : public SeamWorld {
 public:
  explicit SimWorld(const sim::UniverseKnobs& knobs) : universe_(knobs) {}

  Host& Start(int host) override { return universe_.Start(Id(host)); }
  void End(int host) override { universe_.End(Id(host)); }
  void Crash(int host) override { universe_.Crash(Id(host)); }
  bool CrashLosesUnsynced() const override { return true; }
  bool RunUntil(const std::function<bool()>& done, Duration limit) override {
    const int64_t end = universe_.now() + limit.nanos;
    while (!done()) {
      int64_t next = 0;
      if (!universe_.queue().NextTime(next) || next > end) {
        universe_.queue().AdvanceTo(end);
        return false;
      }
      universe_.Step();
    }
    return true;
  }
  Address NewAddress(int host) override { return {.host = sim::EndpointHost(Id(host)), .port = next_port_++}; }
  bool LimitDisk(int host, uint64_t bytes) override {
    universe_.disk(Id(host)).LimitTo(bytes);
    return true;
  }

 private:
  static sim::EndpointId Id(int host) { return static_cast<sim::EndpointId>(host); }

  sim::SimUniverse universe_;
  uint16_t next_port_ = 2'379;
};

template <uint64_t kSeed>
std::unique_ptr<SeamWorld> MakePlainWorld() {
  return std::make_unique<SimWorld>(sim::UniverseKnobs{.seed = kSeed, .endpoints = 2});
}

// Every law that may disturb without breaking a promise, turned up.
template <uint64_t kSeed>
std::unique_ptr<SeamWorld> MakeRoughWorld() {
  sim::UniverseKnobs knobs = {.seed = kSeed, .endpoints = 2};
  knobs.link.delay = {sim::DelayShape::kBimodal, Micros(10), Micros(200), Millis(5), 200};
  knobs.link.segment_loss_permille = 20;
  knobs.streams.buffer_bytes = 4'096;
  knobs.streams.partial_write_permille = 500;
  knobs.streams.short_delivery_permille = 800;
  knobs.streams.retransmit_first = Millis(2);
  knobs.processor.wake = sim::DelayLaw::Uniform(Micros(0), Micros(200));
  knobs.processor.service = sim::DelayLaw::Uniform(Micros(0), Micros(5));
  knobs.processor.stall_permille = 100;
  knobs.processor.by_source_permille = 500;
  knobs.processor.stall = sim::DelayLaw::Uniform(Micros(1), Micros(300));
  return std::make_unique<SimWorld>(knobs);
}

INSTANTIATE_TEST_SUITE_P(Plain, SeamContract, ::testing::Values(&MakePlainWorld<1>, &MakePlainWorld<2>),
                         [](const auto& tested) { return "Seed" + std::to_string(tested.index + 1); });
INSTANTIATE_TEST_SUITE_P(Rough, SeamContract,
                         ::testing::Values(&MakeRoughWorld<1>, &MakeRoughWorld<2>, &MakeRoughWorld<3>, &MakeRoughWorld<4>,
                                           &MakeRoughWorld<5>, &MakeRoughWorld<6>, &MakeRoughWorld<7>, &MakeRoughWorld<8>),
                         [](const auto& tested) { return "Seed" + std::to_string(tested.index + 1); });

}  // namespace
}  // namespace detcd
