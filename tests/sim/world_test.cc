#include "sim/world.h"

#include <gtest/gtest.h>

namespace detcd::sim {
namespace {

WorldKnobs SmallWorld(uint32_t members) {
  WorldKnobs knobs;
  knobs.members = members;
  knobs.member.wal_segment_bytes = 65'536;
  knobs.universe.seed = 3;
  return knobs;
}

void RunUntil(World& world, Instant time) {
  while (world.universe().now() < time.nanos && world.Step().running) {
  }
}

PlannedOperation PutOf(uint64_t id, Instant at) {
  PlannedOperation put = {.id = id, .at = at};
  put.request.kind = checker::OperationKind::kPut;
  put.request.key = "k";
  put.request.value = "v" + std::to_string(id);
  return put;
}

TEST(WorldTest, AMemberThatStopsByItselfIsAViolationWithoutNumbersInItsSignature) {
  World world(SmallWorld(1));
  world.StartMember(0);
  for (uint64_t id = 1; id <= 20; ++id) world.client(0).Plan(PutOf(id, Instant{} + Seconds(2)));
  RunUntil(world, Instant{} + Seconds(4));
  ASSERT_EQ(world.counts().answered, 20u);

  world.EndMember(0);
  const std::shared_ptr<Inode> folder = world.universe().disk(0).Walk("member/wal");
  ASSERT_NE(folder, nullptr);
  ASSERT_FALSE(folder->entries().empty());
  const std::string path = "member/wal/" + folder->entries().rbegin()->first;  // before it: the next segment, being made
  ASSERT_TRUE(world.universe().CorruptFile(0, path, 700, 0)) << path;
  world.StartMember(0);
  RunUntil(world, Instant{} + Seconds(6));
  ASSERT_TRUE(world.violation().has_value());
  EXPECT_EQ(world.violation()->property, "member stopped");
  EXPECT_EQ(world.violation()->signature.find_first_of("0123456789"), std::string::npos) << world.violation()->signature;
}

TEST(WorldTest, JudgesAreToldOfEachMemberWhetherItWasStartedWithPreVote) {
  WorldKnobs knobs = SmallWorld(3);
  knobs.no_pre_vote = {2};
  World world(knobs);
  for (uint32_t member = 0; member < 3; ++member) world.StartMember(member);
  RunUntil(world, Instant{} + Seconds(1));
  EXPECT_TRUE(world.Seen(0).pre_vote);
  EXPECT_FALSE(world.Seen(2).pre_vote);
  world.SetPreVote(2, true);
  RunUntil(world, Instant{} + Seconds(2));
  EXPECT_FALSE(world.Seen(2).pre_vote);  // not before its next start
  world.EndMember(2);
  world.StartMember(2);
  RunUntil(world, Instant{} + Seconds(3));
  EXPECT_TRUE(world.Seen(2).pre_vote);
}

TEST(WorldTest, ACallToADeadProcessIsRefusedAndToADeadMachineTimesOut) {
  for (const bool power : {false, true}) {
    WorldKnobs knobs = SmallWorld(1);
    knobs.client_try_timeout = Seconds(1);
    knobs.client_total_timeout = Seconds(3);
    World world(knobs);
    world.StartMember(0);
    RunUntil(world, Instant{} + Seconds(2));
    if (power) {
      world.CrashMember(0, Survival::kMixed);
    } else {
      world.EndMember(0);
    }
    world.client(0).Plan(PutOf(1, Instant{} + Seconds(2)));
    RunUntil(world, Instant{} + Seconds(8));
    EXPECT_EQ(world.counts().refused, power ? 0u : 1u);
    EXPECT_EQ(world.counts().unknown, power ? 1u : 0u);
    EXPECT_FALSE(world.violation().has_value());
  }
}

// Whatever the judges say of it: what a disk lost is found on the disk.
TEST(WorldTest, WhatADiskLostIsFoundOnTheDisk) {
  for (const bool lies : {false, true}) {
    World world(SmallWorld(1));
    world.StartMember(0);
    RunUntil(world, Instant{} + Seconds(2));
    world.universe().disk_knobs(0).sync_lies = lies;
    world.client(0).Plan(PutOf(1, Instant{} + Seconds(2)));
    RunUntil(world, Instant{} + Seconds(3));
    ASSERT_EQ(world.counts().answered, 1u);
    world.CrashMember(0, Survival::kNothing);
    ASSERT_EQ(world.universe().disk(0).harmed(), lies);
    world.StartMember(0);
    EXPECT_EQ(world.loss(), "") << "the member has not gone on yet";
    RunUntil(world, Instant{} + Seconds(4));
    EXPECT_EQ(world.loss().empty(), !lies) << world.loss();
    EXPECT_EQ(world.violation().has_value(), lies);
  }
}

TEST(WorldTest, DestroyingAMemberAtAnyEventIsACrash) {
  for (const Fidelity fidelity : {Fidelity::kDirect, Fidelity::kWire}) {
    for (uint64_t crash_at = 1; crash_at < 400; crash_at += 7) {
      WorldKnobs knobs = SmallWorld(3);
      knobs.fidelity = fidelity;
      World world(knobs);
      for (uint32_t member = 0; member < 3; ++member) world.StartMember(member);
      while (world.universe().queue().popped() < crash_at) ASSERT_TRUE(world.Step().running);
      world.CrashMember(1, Survival::kDrawn);
      world.StartMember(1);
      world.BeginProbing(1, Millis(10), Millis(10));
      while (!world.Settled()) {
        ASSERT_TRUE(world.Step().running) << crash_at << " " << world.violation()->sentence;
      }
      world.Finish();
      EXPECT_FALSE(world.violation().has_value()) << crash_at;
    }
  }
}

}  // namespace
}  // namespace detcd::sim
