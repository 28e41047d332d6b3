#include "sim/sim_disk.h"

#include <gtest/gtest.h>

#include <set>

namespace detcd::sim {
namespace {

// A disk with one synced folder entry `file`, written with '0' and synced.
struct Disk {
  explicit Disk(uint64_t seed, size_t size = 2'048) : random(seed, "disk") {
    disk.root()->Add("file", disk.MakeFile());
    disk.root()->EntriesSynced();
    file()->Write(0, std::string(size, '0'));
    file()->Synced();
  }
  std::shared_ptr<Inode> file() { return disk.Walk("file"); }
  std::string Content() { return std::string(file()->Read(0, 1 << 20).view()); }
  void Crash() { disk.Crash(random, effects); }

  SimDisk disk;
  KeyedRandom random;
  EventQueue queue{1};
  EffectLedger ledger{queue, 1};
  Effects effects = ledger.At(0);
};

TEST(SimDiskTest, SyncedBytesAndNamesSurviveEveryCrash) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Disk disk(seed);
    disk.Crash();
    EXPECT_EQ(disk.Content(), std::string(2'048, '0'));
  }
}

TEST(SimDiskTest, UnsyncedSectorsAreOldOrNewNeverMixed) {
  std::set<std::string> outcomes;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Disk disk(seed);
    disk.file()->Write(0, std::string(2'048, '1'));
    disk.Crash();
    std::string pattern;
    for (size_t sector = 0; sector < 4; ++sector) {
      const std::string bytes = disk.Content().substr(sector * kSectorBytes, kSectorBytes);
      ASSERT_EQ(bytes, std::string(kSectorBytes, bytes[0]));
      pattern += bytes[0];
    }
    outcomes.insert(pattern);
  }
  EXPECT_EQ(outcomes.size(), 16u) << "every combination happens";
}

TEST(SimDiskTest, GrownSizeIsKeptOrLost) {
  std::set<size_t> sizes;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Disk disk(seed, 512);
    disk.file()->Write(512, std::string(512, '1'));
    disk.Crash();
    sizes.insert(disk.Content().size());
    EXPECT_EQ(disk.Content().substr(0, 512), std::string(512, '0'));
  }
  EXPECT_EQ(sizes, (std::set<size_t>{512, 1'024}));
}

TEST(SimDiskTest, LostTruncationBringsOldBytesBack) {
  bool back = false;
  bool cut = false;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Disk disk(seed, 10'000);
    disk.file()->Truncate(100);
    disk.Crash();
    back |= disk.Content() == std::string(10'000, '0');
    cut |= disk.Content() == std::string(100, '0');
  }
  EXPECT_TRUE(back && cut);
}

TEST(SimDiskTest, EntryWithoutFolderSyncIsSometimesLost) {
  int lost = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Disk disk(seed);
    auto made = disk.disk.MakeFile();
    made->Write(0, "content");
    made->Synced();
    disk.disk.root()->Add("new", made);
    disk.Crash();
    lost += disk.disk.Walk("new") == nullptr ? 1 : 0;
  }
  EXPECT_GT(lost, 20);
  EXPECT_LT(lost, 80);
}

TEST(SimDiskTest, RenameOverAFileIsAtomic) {
  int renamed = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Disk disk(seed);
    auto made = disk.disk.MakeFile();
    made->Write(0, "new");
    made->Synced();
    disk.disk.root()->Add("temporary", made);
    disk.disk.root()->EntriesSynced();
    disk.disk.root()->Rename("temporary", "file");
    disk.Crash();
    ASSERT_NE(disk.file(), nullptr);
    const bool is_new = disk.Content() == "new";
    EXPECT_EQ(is_new, disk.disk.Walk("temporary") == nullptr);
    renamed += is_new ? 1 : 0;
  }
  EXPECT_GT(renamed, 20);
  EXPECT_LT(renamed, 80);
}

TEST(SimDiskTest, FailedSyncDropsPagesAndReportsCleanAfterwards) {
  Disk disk(3, 64 * kSectorBytes);
  disk.file()->Write(0, std::string(64 * kSectorBytes, '1'));
  disk.file()->SyncFailed(disk.random, disk.effects);
  EXPECT_EQ(disk.file()->unsynced_sectors(), 0u);
  EXPECT_NE(disk.Content(), std::string(64 * kSectorBytes, '1'));
  EXPECT_GT(disk.ledger.counts().effective(FaultKind::kSectorLost), 0u);
}

TEST(SimDiskTest, WhatALyingSyncReportedSafeIsLostAndTheDiskHarmed) {
  Disk disk(3);
  disk.file()->Write(0, std::string(1'024, '1'));
  disk.file()->SyncLied();
  disk.file()->Write(1'024, std::string(512, '2'));  // of which nobody was told that it is safe
  disk.disk.Crash(disk.random, disk.effects, Survival::kNothing);
  EXPECT_EQ(disk.Content(), std::string(2'048, '0'));
  EXPECT_EQ(disk.ledger.counts().effective(FaultKind::kLyingSync), 2u);
  EXPECT_EQ(disk.ledger.counts().effective(FaultKind::kSectorLost), 1u);
  EXPECT_TRUE(disk.disk.harmed());
}

TEST(SimDiskTest, AnHonestSyncAfterALyingOneLosesNothing) {
  Disk disk(3);
  disk.file()->Write(0, std::string(1'024, '1'));
  disk.file()->SyncLied();
  disk.file()->Synced();
  disk.disk.root()->Add("new", disk.disk.MakeFile());
  disk.disk.root()->EntriesSyncLied();
  disk.disk.root()->EntriesSynced();
  disk.disk.Crash(disk.random, disk.effects, Survival::kNothing);
  EXPECT_EQ(disk.Content().substr(0, 1'024), std::string(1'024, '1'));
  EXPECT_NE(disk.disk.Walk("new"), nullptr);
  EXPECT_FALSE(disk.disk.harmed());
}

TEST(SimDiskTest, ALyingSyncOfAFolderLosesItsEntries) {
  Disk disk(3);
  disk.disk.root()->Add("new", disk.disk.MakeFile());
  disk.disk.root()->EntriesSyncLied();
  disk.disk.Crash(disk.random, disk.effects, Survival::kNothing);
  EXPECT_EQ(disk.disk.Walk("new"), nullptr);
  EXPECT_EQ(disk.ledger.counts().effective(FaultKind::kLyingSync), 1u);
  EXPECT_TRUE(disk.disk.harmed());
}

TEST(SimDiskTest, TheLastSectorsThatHoldAnythingBecomeZeros) {
  Disk disk(3, 3 * kSectorBytes);
  disk.file()->Truncate(100 * kSectorBytes);  // space behind them
  disk.file()->Synced();
  EXPECT_EQ(disk.file()->ZeroTail(2), 2u);
  EXPECT_EQ(disk.Content(), std::string(kSectorBytes, '0') + std::string(99 * kSectorBytes, '\0'));
  EXPECT_EQ(disk.file()->ZeroTail(2), 1u);
  EXPECT_EQ(disk.file()->ZeroTail(2), 0u);
}

TEST(SimDiskTest, AWipedDiskIsEmptyAndTakesNoSpace) {
  Disk disk(3);
  EXPECT_TRUE(disk.disk.Wipe());
  EXPECT_EQ(disk.file(), nullptr);
  EXPECT_EQ(disk.disk.space().used, 0u);
  EXPECT_FALSE(disk.disk.Wipe());
}

TEST(SimDiskTest, SpaceIsTakenAndGivenBack) {
  SimDisk disk;
  disk.LimitTo(10 * kPageBytes);
  auto file = disk.MakeFile();
  disk.root()->Add("a", file);
  EXPECT_TRUE(file->Preallocate(10 * kPageBytes));
  EXPECT_FALSE(file->Preallocate(10 * kPageBytes + 1));
  EXPECT_TRUE(file->Write(9 * kPageBytes, "inside what was taken"));
  EXPECT_FALSE(file->Write(10 * kPageBytes, "beyond"));
  file->Truncate(kPageBytes);
  EXPECT_EQ(disk.space().used, kPageBytes);
  file.reset();
  disk.root()->Remove("a");
  disk.root()->EntriesSynced();
  EXPECT_EQ(disk.space().used, 0u);
}

TEST(SimDiskTest, APreallocatedSegmentCostsNoMemoryUntilWritten) {
  SimDisk disk;
  auto file = disk.MakeFile();
  EXPECT_TRUE(file->Preallocate(64'000'000));
  EXPECT_EQ(file->size(), 64'000'000u);
  EXPECT_EQ(file->unsynced_sectors(), 0u);
}

}  // namespace
}  // namespace detcd::sim
