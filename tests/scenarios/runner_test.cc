#include "scenarios/runner.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_format.h"
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

namespace detcd::scenario {
namespace {

using sim::FaultKind;

Scenario Parse(const std::string& text) {
  Scenario scenario;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &scenario)) << text;
  return scenario;
}

// A minute's load in little: two clients, puts and reads of two keys over `chaos_ms`.
Scenario Calm(Fidelity fidelity, uint32_t members, uint32_t chaos_ms = 5'000) {
  Scenario scenario = Parse("format_version: 1 seed: 5 clients: 2");
  scenario.set_fidelity(fidelity);
  scenario.set_members(members);
  scenario.set_chaos_ms(chaos_ms);
  for (uint32_t i = 1; i <= 40; ++i) {
    Operation& operation = *scenario.add_operations();
    operation.set_id(i);
    operation.set_client(i % 2 + 1);
    operation.set_at_ms(chaos_ms * i / 50);
    const std::string key = i % 4 < 2 ? "a" : "b";
    if (i % 3 == 0) {
      operation.mutable_range()->set_key(key);
    } else {
      operation.mutable_put()->set_key(key);
    }
  }
  return scenario;
}

// `text` is one or more lines of a scenario.
RunResult RunWith(Scenario scenario, const std::string& text) {
  scenario.MergeFrom(Parse(text));
  return RunScenario(scenario, {});
}

// One episode or setting was planned, and it bit.
void ExpectBites(const RunResult& result, FaultKind kind) {
  EXPECT_EQ(result.verdict, Verdict::kFine) << result.story;
  EXPECT_EQ(result.effects.armed(kind), 1u) << sim::FaultKindName(kind);
  EXPECT_GT(result.effects.effective(kind), 0u) << sim::FaultKindName(kind);
}
void ExpectAbsent(const RunResult& result, FaultKind kind) {
  EXPECT_EQ(result.effects.armed(kind), 0u) << sim::FaultKindName(kind);
  EXPECT_EQ(result.effects.effective(kind), 0u) << sim::FaultKindName(kind);
  EXPECT_EQ(result.effects.changing(kind), 0u) << sim::FaultKindName(kind);
}

class CalmWorld : public testing::TestWithParam<std::tuple<Fidelity, uint32_t>> {};

TEST_P(CalmWorld, AnswersEverythingAndRepeatsExactly) {
  const auto [fidelity, members] = GetParam();
  const Scenario scenario = Calm(fidelity, members);
  const RunResult first = RunScenario(scenario, {});
  EXPECT_EQ(first.verdict, Verdict::kFine) << first.story;
  EXPECT_EQ(first.operations, 40 + 2 * members);
  EXPECT_EQ(first.answered, first.operations);
  EXPECT_EQ(first.leader_changes, 1u);
  const RunResult second = RunScenario(scenario, {});
  EXPECT_EQ(first.digest, second.digest);
  EXPECT_EQ(first.events, second.events);
  Scenario other = scenario;
  other.set_seed(6);
  EXPECT_NE(RunScenario(other, {}).digest, first.digest);
}

INSTANTIATE_TEST_SUITE_P(Sizes, CalmWorld,
                         testing::Combine(testing::Values(DIRECT, WIRE), testing::Values(1u, 3u, 5u)));

class FaultyWorld : public testing::TestWithParam<Fidelity> {
 protected:
  RunResult Run(const std::string& episode) { return RunWith(Calm(GetParam(), 3), "episodes { id: 1 " + episode + " }"); }
  RunResult RunSetting(const std::string& setting) { return RunWith(Calm(GetParam(), 3), setting); }
};

TEST_P(FaultyWorld, NothingPlannedHasNoEffect) {
  const RunResult result = RunSetting("");
  for (size_t kind = 0; kind < sim::kFaultKindCount; ++kind) ExpectAbsent(result, static_cast<FaultKind>(kind));
}

TEST_P(FaultyWorld, PartitionHoldsMessages) {
  const RunResult result = Run("at_ms: 1500 for_ms: 3000 partition { group: 1 }");
  ExpectBites(result, FaultKind::kPartition);
  EXPECT_GT(result.effects.effective(FaultKind::kPartition), 10u);
  ExpectAbsent(result, FaultKind::kOneWay);
  ExpectAbsent(result, FaultKind::kClientPartition);
}

TEST_P(FaultyWorld, APartitionOfEverybodyFromNobodyIsNotArmed) {
  ExpectAbsent(Run("at_ms: 1500 for_ms: 3000 partition { group: 1 group: 2 group: 3 }"), FaultKind::kPartition);
}

TEST_P(FaultyWorld, OneWayHoldsMessages) {
  const RunResult result = Run("at_ms: 1500 for_ms: 3000 one_way { from: 1 to: 2 to: 3 }");
  ExpectBites(result, FaultKind::kOneWay);
  ExpectAbsent(result, FaultKind::kPartition);
}

TEST_P(FaultyWorld, ClientPartitionHoldsCalls) {
  const RunResult result = Run("at_ms: 1500 for_ms: 3000 client_partition { clients: 1 clients: 2 members: 1 members: 2 }");
  ExpectBites(result, FaultKind::kClientPartition);
  ExpectAbsent(result, FaultKind::kPartition);
}

TEST_P(FaultyWorld, SlowLinksDelay) {
  const RunResult result = Run("at_ms: 1500 for_ms: 3000 slow { members: 2 delay { min_us: 50000 max_us: 60000 } }");
  ExpectBites(result, FaultKind::kSlowLink);
  EXPECT_GT(result.effects.effective(FaultKind::kSlowLink), 10u);
}

TEST_P(FaultyWorld, LossLosesOrDelays) {
  const RunResult result = Run("at_ms: 1500 for_ms: 3000 loss { members: 2 loss_ppm: 300000 duplicate_ppm: 300000 }");
  if (GetParam() == WIRE) {
    ExpectBites(result, FaultKind::kSegmentLoss);
    ExpectAbsent(result, FaultKind::kMessageLoss);
    ExpectAbsent(result, FaultKind::kMessageDuplicate);
  } else {
    ExpectBites(result, FaultKind::kMessageLoss);
    ExpectBites(result, FaultKind::kMessageDuplicate);
    ExpectBites(result, FaultKind::kMessageReorder);
    ExpectAbsent(result, FaultKind::kSegmentLoss);
  }
}

TEST_P(FaultyWorld, TurnsBySourceOvertake) {
  const RunResult result = RunSetting("knobs { by_source_ppm: 1000000 event_cost_us: 3000 }");
  ExpectBites(result, FaultKind::kOvertaking);
  EXPECT_GT(result.effects.effective(FaultKind::kOvertaking), 10u);
}

TEST_P(FaultyWorld, PowerLossTakesMembersDown) {
  const RunResult result = Run("at_ms: 3000 for_ms: 1000 crash { members: 1 members: 2 members: 3 survival: NOTHING }");
  ExpectBites(result, FaultKind::kPowerLoss);
  // The last to go may go unnoticed: nobody is left to send it anything.
  EXPECT_GE(result.effects.effective(FaultKind::kPowerLoss), 2u);
  EXPECT_GE(result.leader_changes, 2u);
  ExpectAbsent(result, FaultKind::kCrash);
}

// Segments of two kilobytes that each hold three values, and syncs that take longer than the load leaves between two: of
// ten moments each kind of loss has some.
TEST_P(FaultyWorld, PowerLossUndoesWhatWasNotSynced) {
  Scenario scenario = Calm(GetParam(), 3);
  for (Operation& operation : *scenario.mutable_operations()) {
    operation.clear_range();
    operation.mutable_put()->set_key("a");
    operation.mutable_put()->set_value_bytes(600);
  }
  constexpr FaultKind kKinds[] = {FaultKind::kSectorLost, FaultKind::kSizeLost, FaultKind::kEntryLost};
  std::map<FaultKind, uint64_t> effective;
  for (int at_ms = 3500; at_ms < 3600; at_ms += 10) {
    const RunResult result =
        RunWith(scenario, absl::StrFormat("knobs { wal_segment_bytes: 2048 } disks { sync { min_us: 30000 max_us: 50000 } } "
                                          "episodes { id: 1 at_ms: %d for_ms: 100 "
                                          "crash { members: 1 members: 2 members: 3 survival: NOTHING } }",
                                          at_ms));
    EXPECT_EQ(result.verdict, Verdict::kFine) << result.story;
    for (const FaultKind kind : kKinds) {
      EXPECT_EQ(result.effects.armed(kind), 1u) << sim::FaultKindName(kind);
      effective[kind] += result.effects.effective(kind);
    }
  }
  for (const FaultKind kind : kKinds) EXPECT_GT(effective[kind], 0u) << sim::FaultKindName(kind);
}

TEST_P(FaultyWorld, EndOfAProcessKeepsWhatWasDone) {
  const RunResult result = Run("at_ms: 1500 for_ms: 1000 crash { members: 1 members: 2 members: 3 survival: EVERYTHING }");
  ExpectBites(result, FaultKind::kCrash);
  EXPECT_EQ(result.effects.effective(FaultKind::kCrash), 3u);
  ExpectAbsent(result, FaultKind::kPowerLoss);
  ExpectAbsent(result, FaultKind::kSectorLost);
}

// Calls that wait for a disk when their member's process ends are over then, not after their time limit: no operation
// planned behind them is left when the world heals.
TEST_P(FaultyWorld, EndOfAProcessIsHeardByItsClients) {
  const RunResult result = RunWith(Calm(GetParam(), 1),
                                   "episodes { id: 1 at_ms: 1500 for_ms: 600 sync_stall { members: 1 } }"
                                   "episodes { id: 2 at_ms: 2000 for_ms: 200 crash { members: 1 survival: EVERYTHING } }");
  ExpectBites(result, FaultKind::kCrash);
  EXPECT_GT(result.unknown, 0u);
  EXPECT_EQ(result.operations, 40u + 2u);
}

TEST_P(FaultyWorld, PauseHoldsEvents) {
  ExpectBites(Run("at_ms: 1500 for_ms: 3000 pause { members: 1 members: 2 }"), FaultKind::kPause);
}

TEST_P(FaultyWorld, SyncStallHoldsTheDisk) {
  ExpectBites(Run("at_ms: 1500 for_ms: 3000 sync_stall { members: 1 members: 2 }"), FaultKind::kSyncStall);
}

// Whoever leads: one of two targets is another member, and a second request takes the place of the first. A put that
// another member passed on meanwhile is dropped by the leader that hands over: its client never hears of it.
TEST_P(FaultyWorld, TransfersMoveLeadershipUnderLoad) {
  const RunResult result = Run("at_ms: 2500 transfer { to: 1 to: 2 }");
  ExpectBites(result, FaultKind::kTransfer);
  EXPECT_GE(result.leader_changes, 2u);
  EXPECT_LE(result.unknown, 2u);  // of each client at most the one that was under way
}

TEST_P(FaultyWorld, DriftChangesAClock) {
  ExpectBites(Run("at_ms: 1500 for_ms: 3000 drift { member: 1 drift_ppm: 200000 }"), FaultKind::kClockDrift);
  ExpectBites(RunSetting("clocks { member: 2 drift_ppm: -100000 }"), FaultKind::kClockDrift);
}

TEST_P(FaultyWorld, BridgeHoldsMessagesOfItsTwoSides) {
  const RunResult result = Run("at_ms: 1500 for_ms: 3000 bridge { left: 1 right: 3 }");
  ExpectBites(result, FaultKind::kBridge);
  ExpectAbsent(result, FaultKind::kPartition);
}

TEST_P(FaultyWorld, RingHoldsMessagesOfAllButNeighbours) {
  const std::string ring = "at_ms: 1500 for_ms: 3000 ring { members: 3 members: 1 members: 4 members: 2 members: 5 }";
  ExpectBites(RunWith(Calm(GetParam(), 5), "episodes { id: 1 " + ring + " }"), FaultKind::kRing);
  ExpectAbsent(Run("at_ms: 1500 for_ms: 3000 ring { members: 3 members: 1 members: 2 }"), FaultKind::kRing);
}

TEST_P(FaultyWorld, ClogHoldsAndLosesNothing) {
  const RunResult result = Run("at_ms: 1500 for_ms: 3000 clog { from: 1 from: 2 from: 3 to: 1 to: 2 to: 3 }");
  ExpectBites(result, FaultKind::kClog);
  ExpectAbsent(result, FaultKind::kMessageLoss);
}

// Every sync fails, every write, every read of a recovery: the members stop, are started again, and stop again, until the
// disks work. Then all of them serve.
TEST_P(FaultyWorld, DiskErrorsStopMembersAndTheyComeBack) {
  const std::pair<FaultKind, std::string> errors[] = {{FaultKind::kSyncError, "sync_ppm: 1000000"},
                                                      {FaultKind::kDeviceError, "write_ppm: 1000000"},
                                                      {FaultKind::kDeviceError, "write_ppm: 500000 read_ppm: 1000000"}};
  for (const auto& [kind, law] : errors) {
    const RunResult result = Run("at_ms: 2000 for_ms: 2500 disk_errors { members: 1 members: 2 members: 3 " + law + " }");
    ExpectBites(result, kind);
    EXPECT_GT(result.effects.changing(kind), 0u) << law;
    EXPECT_GE(result.leader_changes, 2u) << law;
    ExpectAbsent(result, FaultKind::kCrash);
  }
}

TEST_P(FaultyWorld, AFullDiskStopsMembersAndTheyComeBack) {
  Scenario scenario = Calm(GetParam(), 3);
  for (Operation& operation : *scenario.mutable_operations()) {
    operation.clear_range();
    operation.mutable_put()->set_key("a");
    operation.mutable_put()->set_value_bytes(600);
  }
  const RunResult result = RunWith(scenario, "knobs { wal_segment_bytes: 2048 } "
                                             "episodes { id: 1 at_ms: 2000 for_ms: 2500 full_disk { members: 1 members: 2 members: 3 } }");
  ExpectBites(result, FaultKind::kNoSpace);
  EXPECT_GT(result.effects.changing(FaultKind::kNoSpace), 0u);
}

TEST_P(FaultyWorld, ClocksLeapAndStandStill) {
  ExpectBites(Run("at_ms: 2500 clock_leap { members: 1 members: 2 members: 3 by_ms: 60000 }"), FaultKind::kClockLeap);
  ExpectBites(Run("at_ms: 1500 for_ms: 3000 clock_freeze { members: 1 members: 2 }"), FaultKind::kClockFreeze);
}

TEST_P(FaultyWorld, SlowProcessorsTakeLonger) {
  ExpectBites(Run("at_ms: 1500 for_ms: 3000 slow_processor { members: 1 members: 2 members: 3 cost_us: 2000 }"),
              FaultKind::kSlowProcessor);
}

TEST_P(FaultyWorld, CrashLoopsEndMembersBeforeTheyKnowALeader) {
  const RunResult result = Run("at_ms: 2000 for_ms: 2500 crash_loop { members: 1 members: 2 members: 3 up_ms: 5 }");
  ExpectBites(result, FaultKind::kCrashLoop);
  EXPECT_GT(result.effects.effective(FaultKind::kCrashLoop), 100u);
}

TEST_P(FaultyWorld, BlackoutTakesAllMembersAtOnce) {
  const RunResult result = Run("at_ms: 3000 for_ms: 1000 blackout { survival: NOTHING }");
  ExpectBites(result, FaultKind::kBlackout);
  EXPECT_EQ(result.effects.effective(FaultKind::kBlackout), 3u);
  EXPECT_GT(result.effects.changing(FaultKind::kBlackout), 0u);
}

// --- Beyond what is tolerated, and what no format can detect ---

// Segments that hold a value or two each, so that there are many.
Scenario ManySegments(Fidelity fidelity, Profile profile) {
  Scenario scenario = Calm(fidelity, 3);
  scenario.set_profile(profile);
  scenario.mutable_knobs()->set_wal_segment_bytes(1'024);
  for (Operation& operation : *scenario.mutable_operations()) {
    operation.clear_range();
    operation.mutable_put()->set_key("a");
    operation.mutable_put()->set_value_bytes(600);
  }
  return scenario;
}

std::string CorruptAndRestart(const std::string& members) {
  return "episodes { id: 1 at_ms: 4000 corruption { bits: 100 " + members + " } }"
         "episodes { id: 2 at_ms: 4200 for_ms: 100 crash { survival: EVERYTHING " + members + " } }";
}

TEST_P(FaultyWorld, AMemberRefusesToRunOnACorruptedLogAndTheOthersServe) {
  const RunResult result = RunWith(ManySegments(GetParam(), BEYOND), CorruptAndRestart("members: 2"));
  ExpectBites(result, FaultKind::kCorruption);
  EXPECT_EQ(result.operations, 40u + 2u * 2u);
  const RunResult tolerated = RunWith(ManySegments(GetParam(), TOLERATED), CorruptAndRestart("members: 2"));
  ASSERT_EQ(tolerated.verdict, Verdict::kViolation);
  EXPECT_EQ(tolerated.violation->property, "member stopped");
  EXPECT_NE(tolerated.violation->sentence.find("member/wal/"), std::string::npos) << tolerated.violation->sentence;
}

TEST_P(FaultyWorld, ACorruptedMajorityOwesNoService) {
  const RunResult result = RunWith(ManySegments(GetParam(), BEYOND), CorruptAndRestart("members: 1 members: 3"));
  ExpectBites(result, FaultKind::kCorruption);
  EXPECT_LE(result.operations, 40u);
}

TEST_P(FaultyWorld, AJudgeReportsWhatADiskLostThoughASyncHadReportedItSafe) {
  const std::pair<FaultKind, std::string> losses[] = {
      {FaultKind::kLyingSync, "at_ms: 2500 for_ms: 1500 lying_drive { members: 1 members: 2 members: 3 }"},
      {FaultKind::kZeroedTail, "at_ms: 4000 for_ms: 100 zeroed_tail { members: 1 members: 2 members: 3 sectors: 1 }"},
      {FaultKind::kWipedDisk, "at_ms: 4000 for_ms: 100 wiped_disk { members: 1 members: 2 members: 3 }"},
      {FaultKind::kMisdirectedWrite, "at_ms: 3900 for_ms: 300 misdirected_writes { members: 1 members: 2 members: 3 write_ppm: 1000000 }"}};
  for (const auto& [kind, episode] : losses) {
    Scenario scenario = Calm(GetParam(), 3);
    scenario.set_profile(NEGATIVE);
    const RunResult result = RunWith(scenario, "episodes { id: 1 " + episode + " }");
    ExpectBites(result, kind);
    ASSERT_TRUE(result.reported.has_value()) << sim::FaultKindName(kind);
    const std::string& property = result.reported->property;
    EXPECT_TRUE(property == "F19" || property == "F3") << result.reported->sentence;
    scenario.set_profile(TOLERATED);
    EXPECT_EQ(RunWith(scenario, "episodes { id: 1 " + episode + " }").verdict, Verdict::kViolation) << sim::FaultKindName(kind);
  }
}

TEST_P(FaultyWorld, WithoutALossThereIsNothingToReport) {
  Scenario scenario = Calm(GetParam(), 3);
  scenario.set_profile(NEGATIVE);
  const RunResult honest = RunWith(scenario, "episodes { id: 1 at_ms: 4000 for_ms: 100 blackout { survival: NOTHING } }");
  EXPECT_EQ(honest.verdict, Verdict::kFine) << honest.story;
  EXPECT_FALSE(honest.reported.has_value());
  EXPECT_EQ(honest.operations, 40u + 2u * 3u);
  // Empty before anything was kept on it.
  const RunResult early = RunWith(scenario, "episodes { id: 1 at_ms: 0 for_ms: 100 wiped_disk { members: 1 } }");
  EXPECT_EQ(early.verdict, Verdict::kFine) << early.story;
  EXPECT_FALSE(early.reported.has_value());
}

TEST_P(FaultyWorld, StandingLawsAreArmedToo) {
  ExpectBites(RunSetting("links { delay { kind: BIMODAL min_us: 500 max_us: 50000 slow_ppm: 100000 } }"), FaultKind::kDelaySpike);
  ExpectBites(RunSetting("disks { sync { kind: BIMODAL min_us: 500 max_us: 50000 slow_ppm: 300000 } }"), FaultKind::kSlowSync);
  const RunResult lossy = RunSetting("links { loss_ppm: 50000 duplicate_ppm: 50000 }");
  ExpectBites(lossy, GetParam() == WIRE ? FaultKind::kSegmentLoss : FaultKind::kMessageLoss);
  if (GetParam() == DIRECT) ExpectBites(lossy, FaultKind::kMessageDuplicate);
}

// Nothing else happens there: each kind that is planned, made certain, is cause enough for a change of state.
TEST_P(FaultyWorld, EachKindAloneChangesState) {
  const bool wire = GetParam() == WIRE;
  const FaultKind loss = wire ? FaultKind::kSegmentLoss : FaultKind::kMessageLoss;
  const std::pair<FaultKind, std::string> episodes[] = {
      {FaultKind::kPartition, "partition { group: 1 } } episodes { id: 2 at_ms: 8000 for_ms: 8000 partition { group: 2 }"},
      {FaultKind::kOneWay, "one_way { from: 1 from: 2 from: 3 to: 1 to: 2 to: 3 }"},
      {FaultKind::kClientPartition, "client_partition { clients: 1 clients: 2 members: 1 members: 2 members: 3 }"},
      {FaultKind::kSlowLink, "slow { members: 1 members: 2 members: 3 delay { min_us: 2500000 max_us: 2500000 } }"},
      {loss, "loss { members: 1 members: 2 members: 3 loss_ppm: 1000000 }"},
      {FaultKind::kCrash, "crash { members: 1 members: 2 members: 3 survival: EVERYTHING }"},
      {FaultKind::kPowerLoss, "crash { members: 1 members: 2 members: 3 survival: NOTHING }"},
      {FaultKind::kPause, "pause { members: 1 members: 2 members: 3 }"},
      {FaultKind::kBridge, "bridge { left: 1 right: 2 right: 3 } } episodes { id: 2 at_ms: 8000 for_ms: 8000 bridge { left: 2 right: 3 }"},
      {FaultKind::kClockLeap, "clock_leap { members: 1 members: 2 members: 3 by_ms: 60000 }"},
      {FaultKind::kClog, "clog { from: 1 from: 2 from: 3 to: 1 to: 2 to: 3 }"},
      {FaultKind::kSlowProcessor, "slow_processor { members: 1 members: 2 members: 3 cost_us: 1000000 }"},
      {FaultKind::kBlackout, "blackout { survival: NOTHING }"},
      {FaultKind::kCrashLoop, "crash_loop { members: 1 members: 2 members: 3 up_ms: 20 survival: EVERYTHING }"},
      // What is not synced for long is what a power loss finds.
      {FaultKind::kSyncStall, "sync_stall { members: 1 members: 2 members: 3 } } "
                              "episodes { id: 2 at_ms: 8500 for_ms: 500 crash { members: 1 members: 2 members: 3 survival: NOTHING }"},
  };
  for (const auto& [kind, text] : episodes) {
    const RunResult result = RunWith(Calm(GetParam(), 3, 20'000), "episodes { id: 1 at_ms: 8000 for_ms: 8000 " + text + " }");
    EXPECT_EQ(result.verdict, Verdict::kFine) << sim::FaultKindName(kind) << "\n" << result.story;
    EXPECT_GT(result.effects.changing(kind), 0u) << sim::FaultKindName(kind);
    EXPECT_LE(result.effects.changing(kind), result.effects.effective(kind)) << sim::FaultKindName(kind);
  }
}

// A leader whose clock is slow, between followers whose clocks are fast: heartbeats that are in time by clocks that are
// right come too late, where delays are bad luck too. Whoever leads is slow in one of three worlds.
TEST_P(FaultyWorld, DriftAloneChangesState) {
  uint64_t changing = 0;
  for (int world = 0; world < 12; ++world) {
    const int slow = world % 3 + 1;
    Scenario scenario = Calm(GetParam(), 3, 20'000);
    scenario.set_seed(static_cast<uint64_t>(world) / 3);
    scenario.MergeFrom(Parse("knobs { heartbeat_ms: 200 election_timeout_ms: 1000 } links { delay { min_us: 1000 max_us: 600000 } }"));
    for (int member = 1; member <= 3; ++member) {
      *scenario.add_episodes() = Parse("episodes { id: " + std::to_string(member) + " at_ms: 8000 for_ms: 10000 drift { member: " +
                                       std::to_string(member) + " drift_ppm: " + (member == slow ? "-500000" : "500000") + " } }").episodes(0);
    }
    const RunResult result = RunScenario(scenario, {});
    EXPECT_EQ(result.verdict, Verdict::kFine) << result.story;
    changing += result.effects.changing(FaultKind::kClockDrift);
  }
  EXPECT_GT(changing, 0u);
}

// A leader whose clock stands still sends no heartbeats once nobody asks it for anything. Whoever leads stands
// still in one of three worlds.
TEST_P(FaultyWorld, ALeaderWhoseClockStandsStillIsReplaced) {
  uint64_t replaced = 0;
  for (uint64_t world = 0; world < 12; ++world) {
    Scenario scenario = Calm(GetParam(), 3, 20'000);
    scenario.set_seed(world / 3);
    const std::string member = std::to_string(world % 3 + 1);
    const RunResult result = RunWith(scenario, "episodes { id: 1 at_ms: 16500 for_ms: 3500 clock_freeze { members: " + member + " } }");
    ExpectBites(result, FaultKind::kClockFreeze);
    replaced += result.leader_changes >= 2 ? 1 : 0;
  }
  EXPECT_GE(replaced, 4u);
}

INSTANTIATE_TEST_SUITE_P(Fidelities, FaultyWorld, testing::Values(DIRECT, WIRE));

TEST(RunnerTest, ResetsCutConnections) {
  const std::string resets = "episodes { id: 1 at_ms: 1500 for_ms: 3000 resets { members: 1 interval_ms: 20 } }";
  ExpectBites(RunWith(Calm(WIRE, 3), resets), FaultKind::kStreamReset);
  ExpectAbsent(RunWith(Calm(DIRECT, 3), resets), FaultKind::kStreamReset);
}

TEST(RunnerTest, HalfOpenConnectionsAndFlippedBitsAreOfTheWire) {
  const std::pair<FaultKind, std::string> faults[] = {
      {FaultKind::kHalfOpen, "half_open { members: 1 members: 2 interval_ms: 20 }"},
      {FaultKind::kBitFlip, "bit_flips { members: 1 members: 2 members: 3 flip_ppm: 500000 }"}};
  for (const auto& [kind, text] : faults) {
    const std::string episode = "episodes { id: 1 at_ms: 8000 for_ms: 8000 " + text + " }";
    const RunResult result = RunWith(Calm(WIRE, 3, 20'000), episode);
    ExpectBites(result, kind);
    EXPECT_GT(result.effects.changing(kind), 0u) << sim::FaultKindName(kind);
    ExpectAbsent(result, FaultKind::kStreamReset);
    ExpectAbsent(RunWith(Calm(DIRECT, 3), episode), kind);
  }
}

// Peers' answers name the time of day: those that reconnect after the jump show another one.
TEST(RunnerTest, WallClocksJump) {
  ExpectBites(RunWith(Calm(WIRE, 3), "episodes { id: 1 at_ms: 1500 wall_jump { members: 1 members: 2 members: 3 by_ms: -3600000 } }"
                                     "episodes { id: 2 at_ms: 2000 for_ms: 2000 resets { members: 1 members: 2 interval_ms: 20 } }"),
              FaultKind::kWallJump);
}

TEST(RunnerTest, StopsBeforeTheEventAskedFor) {
  const RunResult result = RunScenario(Calm(DIRECT, 3), {.stop_at_event = 500});
  EXPECT_EQ(result.events, 499u);
  EXPECT_NE(result.story.find("stopped before event 500"), std::string::npos) << result.story;
}

TEST(RunnerTest, TracesWhenAskedAndRunsTheSame) {
  uint64_t lines = 0;
  const RunResult traced = RunScenario(Calm(DIRECT, 3), {.trace = [&](std::string_view) { ++lines; }});
  EXPECT_GT(lines, 10u);
  EXPECT_EQ(traced.digest, RunScenario(Calm(DIRECT, 3), {}).digest);
}

TEST(RunnerTest, AnEpisodeThatDoesNothingChangesNoOtherChoice) {
  Scenario with = Calm(DIRECT, 3);
  *with.add_episodes() = Parse("episodes { id: 9 at_ms: 1000 }").episodes(0);
  EXPECT_EQ(RunScenario(with, {}).answered, RunScenario(Calm(DIRECT, 3), {}).answered);
}

// The first waits from 2000 ms on for the leader of a transfer, the last for one that never comes.
TEST(RunnerTest, AnEpisodeMayWaitForTheNextLeader) {
  Scenario scenario = Calm(DIRECT, 3);
  scenario.MergeFrom(
      Parse("episodes { id: 1 at_ms: 2000 for_ms: 200 at_new_leader: true sync_stall { members: [1, 2, 3] } }"
            "episodes { id: 2 at_ms: 2500 transfer { to: 1 } }"
            "episodes { id: 3 at_ms: 2800 transfer { to: 2 } }"
            "episodes { id: 4 at_ms: 4000 for_ms: 100 at_new_leader: true crash { members: 1 } }"));
  std::vector<std::string> told;
  const RunResult result = RunScenario(scenario, {.trace = [&](std::string_view line) {
    for (const char* word : {"became leader", "episode 1 begins", "episode 1 ends", "episode 4 begins"}) {
      if (line.find(word) != std::string_view::npos) told.push_back(word);
    }
  }});
  ExpectBites(result, FaultKind::kSyncStall);
  ExpectAbsent(result, FaultKind::kPowerLoss);
  const size_t leaders = static_cast<size_t>(std::count(told.begin(), told.end(), "became leader"));
  ASSERT_EQ(told.size(), leaders + 2) << "the last one never begins";
  const auto begins = std::find(told.begin(), told.end(), "episode 1 begins");
  EXPECT_EQ(*std::prev(begins), "became leader");
  EXPECT_GE(begins - told.begin(), 2) << "at the second leader, since the first led before 2000 ms";
}

// Where `line` of a trace stands in time: the world's lines tell microseconds, the members' milliseconds with a fraction.
int64_t MicrosOf(std::string_view line) {
  const std::string text(line);
  const size_t point = text.find_first_not_of(" 0123456789");
  const int64_t whole = std::atoll(text.c_str());
  return text[point] == '.' ? whole * 1'000 + std::atoll(text.substr(point + 1, 3).c_str()) : whole;
}

// The moments in a run of `episode` at which it began and ended, and at which a leader was elected after its beginning.
struct Outlasting {
  int64_t began = 0;
  int64_t ended = 0;
  int64_t elected = 0;
  int64_t deposed = 0;
};
Outlasting RunOutlasting(const std::string& fault) {
  Scenario scenario = Calm(DIRECT, 3, 12'000);
  scenario.MergeFrom(Parse("episodes { id: 1 at_ms: 2000 transfer { to: 1 } }"
                           "episodes { id: 2 at_ms: 3000 for_ms: 700 until_new_leader: true " + fault + " }"));
  Outlasting seen;
  const RunResult result = RunScenario(scenario, {.trace = [&](std::string_view line) {
    const auto says = [line](std::string_view word) { return line.find(word) != std::string_view::npos; };
    if (says("episode 2 begins")) seen.began = MicrosOf(line);
    if (says("episode 2 ends")) seen.ended = MicrosOf(line);
    if (seen.began != 0 && seen.elected == 0 && says("became leader")) seen.elected = MicrosOf(line);
    if (seen.elected != 0 && seen.deposed == 0 && says("became follower")) seen.deposed = MicrosOf(line);
  }});
  EXPECT_EQ(result.verdict, Verdict::kFine) << result.story;
  return seen;
}

TEST(RunnerTest, AnEpisodeMayLastUntilSomeTimeAfterTheNextLeader) {
  for (const char* fault : {"pause { members: 1 }", "partition { group: 1 }"}) {
    const Outlasting seen = RunOutlasting(fault);
    EXPECT_EQ(seen.began, 3'000'000) << fault;
    EXPECT_GT(seen.elected, 3'900'000) << fault;
    EXPECT_EQ(seen.ended, seen.elected + 700'000) << fault;
  }
  const Outlasting paused = RunOutlasting("pause { members: 1 }");
  EXPECT_GE(paused.deposed, paused.ended) << "it knows nothing before it wakes";
  EXPECT_LT(paused.deposed, paused.ended + 100'000) << "and wakes when the episode ends";
}

TEST(RunnerTest, AnEpisodeThatWaitsForALeaderInVainEndsNevertheless) {
  const Outlasting seen = RunOutlasting("pause { members: 2 }");
  EXPECT_EQ(seen.elected, 0);
  EXPECT_EQ(seen.ended, seen.began + 4'000'000 + 700'000);
}

// Its client has others to do, before and after; the put fails a millisecond after its beginning.
TEST(RunnerTest, AnOperationMayWaitForTheNextLeader) {
  const auto run = [](const std::string& leader, const std::string& window) {
    Scenario scenario = Parse("format_version: 1 seed: 5 chaos_ms: 6000 disks { sync { min_us: 50000 max_us: 50000 } }"
                              "episodes { id: 1 at_ms: 2000 transfer { to: 1 } }"
                              "operations { id: 1 client: 1 at_ms: 1500 put { key: 'a' } }"
                              "operations { id: 2 client: 1 at_ms: 5500 put { key: 'a' } }"
                              "operations { id: 3 client: 1 at_ms: 2500 at_new_leader: true later_ms: 200 times: 2 every_ms: 100"
                              "             cancel_after_ms: 1 put { key: 'b' } }");
    scenario.MergeFrom(Parse(leader + "expectations { " + window + " }"));
    return RunScenario(scenario, {});
  };
  const std::string next = "episodes { id: 2 at_ms: 3000 transfer { to: 2 } }";
  const RunResult waited = run(next, "from_ms: 3200 to_ms: 3500 failed_writes { min: 2 max: 2 }");
  EXPECT_EQ(waited.verdict, Verdict::kFine) << waited.story;
  const RunResult elsewhere = run(next, "failed_writes { max: 2 }");
  EXPECT_EQ(elsewhere.verdict, Verdict::kFine) << elsewhere.story;
  const RunResult in_vain = run("", "failed_writes { max: 0 }");
  EXPECT_EQ(in_vain.verdict, Verdict::kFine) << in_vain.story;
}

TEST(RunnerTest, TheOthersServeWithoutLostMembers) {
  for (const Fidelity fidelity : {DIRECT, WIRE}) {
    Scenario scenario = Calm(fidelity, 5);
    scenario.add_lost_members(1);
    scenario.add_lost_members(4);
    const RunResult result = RunScenario(scenario, {});
    EXPECT_EQ(result.verdict, Verdict::kFine) << result.story;
    EXPECT_EQ(result.effects.effective(FaultKind::kPowerLoss), 2u);
    EXPECT_EQ(result.operations, 40u + 2 * 3);
  }
}

// Votes take longer than an election timeout: nobody ever leads.
TEST(RunnerTest, AClusterThatNeverServesIsNotLive) {
  Scenario scenario = Calm(DIRECT, 3);
  scenario.mutable_links()->mutable_delay()->set_min_us(4'000'000);
  scenario.mutable_links()->mutable_delay()->set_max_us(4'000'000);
  const RunResult result = RunScenario(scenario, {});
  EXPECT_EQ(result.verdict, Verdict::kNotLive);
  ASSERT_TRUE(result.violation.has_value());
  EXPECT_EQ(result.violation->signature, "convergence: no leader");
}

TEST(RunnerTest, AFailureIsToldInASentenceAndLanes) {
  Scenario scenario = Calm(DIRECT, 3);
  scenario.mutable_links()->mutable_delay()->set_min_us(4'000'000);
  scenario.mutable_links()->mutable_delay()->set_max_us(4'000'000);
  const RunResult lanes = RunScenario(scenario, {.story = StoryDepth::kLanes});
  EXPECT_EQ(lanes.story.rfind(lanes.violation->signature + "\n" + lanes.violation->sentence + "\nat event ", 0), 0u) << lanes.story;
  EXPECT_NE(lanes.story.find("ms  m1"), std::string::npos) << lanes.story;
  const RunResult causes = RunScenario(scenario, {.story = StoryDepth::kCauses});
  const size_t from = causes.story.find("what it follows from:\n");
  ASSERT_NE(from, std::string::npos) << causes.story;
  const std::string past = causes.story.substr(from, causes.story.find("\n\n", from) - from);
  EXPECT_LE(std::count(past.begin(), past.end(), '\n'), 30) << past;
  EXPECT_EQ(causes.digest, lanes.digest);
}

// A key of a zero byte must not end what a terminal, a log or a JSON file shows.
TEST(RunnerTest, AStoryHoldsNoBytesThatCannotBePrinted) {
  Scenario scenario = Calm(DIRECT, 3, 1'000);
  scenario.mutable_links()->mutable_delay()->set_min_us(4'000'000);
  scenario.mutable_links()->mutable_delay()->set_max_us(4'000'000);
  for (Operation& operation : *scenario.mutable_operations()) operation.mutable_put()->set_key(std::string("\0\x07\xFF", 3));
  const RunResult result = RunScenario(scenario, {.story = StoryDepth::kCauses});
  ASSERT_EQ(result.verdict, Verdict::kNotLive);
  EXPECT_TRUE(std::all_of(result.story.begin(), result.story.end(), [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); })) << result.story;
}

TEST(RunnerTest, AScenarioWithNothingInItHealsAndEnds) {
  const RunResult result = RunScenario(Parse("format_version: 1"), {});
  EXPECT_EQ(result.verdict, Verdict::kFine) << result.story;
  EXPECT_EQ(result.answered, 6u);
}

}  // namespace
}  // namespace detcd::scenario
