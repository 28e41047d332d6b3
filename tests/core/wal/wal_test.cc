#include "core/wal/wal.h"

#include "core/wal/record.h"
#include "core/wal/recovery.h"
#include "core/wal/segment.h"
#include "tests/core/wal/wal_harness.h"

namespace detcd::wal {
namespace {

using ::testing::HasSubstr;

constexpr char kFirst[] = "member/wal/0000000000000000-0000000000000000.wal";

// The frames of `fill` as the first segment of a log.
template <class Fill>
std::string Segment(Fill&& fill) {
  FrameWriter writer(0);
  writer.AddCrc();
  writer.AddMetadata(EncodeMetadata(Bootstrap().metadata));
  writer.AddEmptySnapshot();
  fill(writer);
  std::string out;
  for (const Bytes& piece : writer.TakePieces()) out.append(piece.view());
  return out;
}

template <class Fill>
std::string FailureOf(Fill&& fill) {
  ::detcd::testing::MemoryDisk disk;
  disk.Put(kFirst, Segment(fill));
  WalRun run(disk);
  run.Open();
  EXPECT_FALSE(run.opened);
  return run.failed;
}

TEST(WalTest, FreshLogHandsOverItsBootstrap) {
  ::detcd::testing::MemoryDisk disk;
  WalRun run(disk);
  run.Open(Bootstrap());
  EXPECT_TRUE(run.opened);
  EXPECT_FALSE(run.metadata);
  EXPECT_EQ(run.committed, 1u);
  EXPECT_EQ(run.log, (LogModel{Bootstrap().entries, Bootstrap().hard_state}));
  EXPECT_TRUE(disk.Folder("member/snap"));
  EXPECT_FALSE(disk.Folder("member/wal.tmp"));
}

TEST(WalTest, MissingLogWithoutBootstrapFails) {
  ::detcd::testing::MemoryDisk disk;
  WalRun run(disk);
  run.Open();
  EXPECT_THAT(run.failed, HasSubstr("member/wal"));
}

TEST(WalTest, LeftoversOfACreationAreReplaced) {
  ::detcd::testing::MemoryDisk disk;
  disk.Put("member/wal.tmp/0000000000000000-0000000000000000.wal", "junk");
  disk.Put("member/wal/0.tmp", "junk");
  WalRun run(disk);
  run.Open(Bootstrap());
  EXPECT_TRUE(run.opened) << run.failed;
  EXPECT_FALSE(disk.Folder("member/wal.tmp"));
}

TEST(WalTest, WhatWasAppendedIsRecoveredAcrossSegments) {
  ::detcd::testing::MemoryDisk disk;
  LogModel model{Bootstrap().entries, Bootstrap().hard_state};
  {
    WalRun run(disk);
    run.Open(Bootstrap());
    for (uint64_t i = 2; i < 40; ++i) {
      raft::Entry entry = MakeEntry(2, i, std::string(i * 37 % 500, 'v'));
      model.Add(entry);
      model.hard_state = MakeState(2, 1, i - 1);
      run.Append({entry}, model.hard_state);
      EXPECT_EQ(run.appended, i - 1);
      EXPECT_FALSE(run.wal.Busy());
    }
  }
  EXPECT_GT(disk.Folder("member/wal")->entries.size(), 8u);
  WalRun run(disk);
  run.Open(Bootstrap());
  EXPECT_TRUE(run.opened) << run.failed;
  EXPECT_EQ(run.metadata, Bootstrap().metadata);
  EXPECT_EQ(run.committed, 38u);
  EXPECT_EQ(run.log, model);
}

TEST(WalTest, FinishedSegmentEndsAtItsLastRecordAndNamesTheNextEntry) {
  ::detcd::testing::MemoryDisk disk;
  WalRun run(disk);
  run.Open(Bootstrap());
  run.Append({MakeEntry(2, 2, std::string(1000, 'v')), MakeEntry(2, 3, "w")}, MakeState(2, 1, 1));
  auto second = disk.File("member/wal/0000000000000001-0000000000000004.wal");
  ASSERT_TRUE(second);
  EXPECT_EQ(second->content.size(), 1024u);
  EXPECT_GT(disk.File(kFirst)->content.size(), 1024u);
  EXPECT_TRUE(disk.File("member/wal/1.tmp"));
  // Head: crc, metadata, state.
  EXPECT_EQ(second->content[8 + 1], 4);
}

TEST(WalTest, CommitOnlyBatchIsNotSynced) {
  ::detcd::testing::MemoryDisk disk;
  WalRun run(disk);
  run.Open(Bootstrap());
  std::vector<std::string> calls;
  run.host.memory.on_call = [&](std::string_view call) { calls.emplace_back(call); };
  run.Append({}, MakeState(1, 0, 1), false);
  EXPECT_EQ(calls, (std::vector<std::string>{"write 0000000000000000-0000000000000000.wal"}));
  EXPECT_EQ(run.appended, 1u);
}

TEST(WalTest, SecondIncarnationIsRefusedWhileTheFirstRuns) {
  ::detcd::testing::MemoryDisk disk;
  WalRun run(disk);
  run.Open(Bootstrap());
  // The same file system object, because locks are of the machine.
  WalListener& listener = run;
  Wal second(run.host, {.segment_bytes = 1024, .read_bytes = 512}, listener);
  second.Open(std::nullopt);
  run.Pump();
  EXPECT_THAT(run.failed, HasSubstr("locked"));
}

TEST(WalTest, UncommittedEntriesAreReplaced) {
  ::detcd::testing::MemoryDisk disk;
  {
    WalRun run(disk);
    run.Open(Bootstrap());
    run.Append({MakeEntry(2, 2, "a"), MakeEntry(2, 3, "b"), MakeEntry(2, 4, "c")}, MakeState(2, 0, 1));
    run.Append({MakeEntry(3, 3, "B")}, MakeState(3, 0, 1));
  }
  WalRun run(disk);
  run.Open();
  EXPECT_EQ(run.log.entries, (std::vector<raft::Entry>{Bootstrap().entries[0], MakeEntry(2, 2, "a"), MakeEntry(3, 3, "B")}));
}

TEST(WalTest, ContradictingRecordsAreDamage) {
  EXPECT_THAT(FailureOf([](FrameWriter& w) { w.AddEntry(MakeEntry(1, 2, "")); }), HasSubstr("gap in the log: found entry 2"));
  EXPECT_THAT(FailureOf([](FrameWriter& w) { w.AddEntry(MakeEntry(1, 0, "")); }), HasSubstr("gap"));
  EXPECT_THAT(FailureOf([](FrameWriter& w) { w.AddState(MakeState(1, 0, 1)); }), HasSubstr("commit index 1"));
  EXPECT_THAT(FailureOf([](FrameWriter& w) {
                w.AddEntry(MakeEntry(1, 1, ""));
                w.AddState(MakeState(1, 0, 1));
                w.AddEntry(MakeEntry(2, 1, ""));
              }),
              HasSubstr("replaces a committed one"));
  EXPECT_THAT(FailureOf([](FrameWriter& w) { w.AddMetadata("\x08\x01"); }), HasSubstr("metadata differs"));
  EXPECT_THAT(FailureOf([](FrameWriter& w) {
                w.AddEntry(MakeEntry(3, 1, ""));
                w.AddEntry(MakeEntry(2, 2, ""));
              }),
              HasSubstr("term 2 after one of term 3"));
  EXPECT_THAT(FailureOf([](FrameWriter& w) { w.AddEntry(MakeEntry(0, 1, "")); }), HasSubstr("term 0"));
}

TEST(WalTest, GapsBetweenSegmentsAreDamage) {
  ::detcd::testing::MemoryDisk disk;
  disk.Put(kFirst, Segment([](FrameWriter&) {}));
  disk.Put("member/wal/0000000000000002-0000000000000001.wal", "");
  WalRun run(disk);
  run.Open();
  EXPECT_THAT(run.failed, HasSubstr("want sequence number 1, found 2"));
}

// Whoever put it there would not want it removed for a fresh log.
TEST(WalTest, ForeignFilesThatLookLikeALogAreRefused) {
  ::detcd::testing::MemoryDisk disk;
  disk.Put("member/wal/backup-0.wal", "junk");
  WalRun run(disk);
  run.Open(Bootstrap());
  EXPECT_THAT(run.failed, HasSubstr("member/wal/backup-0.wal"));
}

TEST(WalTest, LogsThatBeginAtASnapshotAreRefused) {
  ::detcd::testing::MemoryDisk disk;
  disk.Put("member/wal/0000000000000002-0000000000000001.wal", "");
  WalRun run(disk);
  run.Open();
  EXPECT_THAT(run.failed, HasSubstr("not supported"));
}

TEST(WalTest, ShortSegmentWithoutPreallocationIsAccepted) {
  ::detcd::testing::MemoryDisk disk;
  disk.Put(kFirst, Segment([](FrameWriter& w) { w.AddEntry(MakeEntry(1, 1, "x")); }));
  WalRun run(disk);
  run.Open();
  EXPECT_TRUE(run.opened) << run.failed;
  EXPECT_EQ(run.log.entries.size(), 1u);
}

TEST(WalTest, TornRecordIsCopiedAwayAndCutOff) {
  ::detcd::testing::MemoryDisk disk;
  std::string good = Segment([](FrameWriter& w) { w.AddEntry(MakeEntry(1, 1, "x")); });
  std::string torn = good + std::string("\x40\0\0\0\0\0\0\0\x08", 9);
  disk.Put(kFirst, torn);
  WalRun run(disk);
  run.Open();
  EXPECT_TRUE(run.opened) << run.failed;
  EXPECT_EQ(run.log.entries.size(), 1u);
  EXPECT_EQ(disk.File(std::string(kFirst) + ".broken")->content, torn);
  good.resize(1024, '\0');
  EXPECT_EQ(disk.File(kFirst)->content, good);
}

TEST(WalTest, TornRecordBeforeTheLastSegmentIsDamage) {
  ::detcd::testing::MemoryDisk disk;
  {
    WalRun run(disk);
    run.Open(Bootstrap());
    run.Append({MakeEntry(2, 2, std::string(1000, 'v'))});
  }
  auto file = disk.File(kFirst);
  disk.Put(kFirst, file->content.substr(0, file->content.size() - 8));
  WalRun run(disk);
  run.Open();
  EXPECT_THAT(run.failed, HasSubstr("0000000000000000-0000000000000000.wal at offset"));
}

TEST(WalReadTest, ReadsBackWhatIsThere) {
  ::detcd::testing::MemoryDisk disk;
  WalRun run(disk, {.segment_bytes = 300'000, .read_bytes = 4096});
  run.Open(Bootstrap());
  LogModel model{Bootstrap().entries, {}};
  for (uint64_t i = 2; i < 60; ++i) {
    raft::Entry entry = MakeEntry(2 + i, i, std::string(i * 977 % 30'000, static_cast<char>('a' + i % 26)));
    model.Add(entry);
    run.Append({entry});
    if (i % 10 == 0) {  // the last three are replaced
      for (uint64_t j = i - 2; j <= i; ++j) {
        entry = MakeEntry(3 + i, j, "replaced");
        model.Add(entry);
        run.Append({entry});
      }
    }
  }
  for (int again = 0; again < 2; ++again) {
    WalRun reopened(disk, {.segment_bytes = 300'000, .read_bytes = 4096});
    WalRun& reader = again == 0 ? run : reopened;
    if (again == 1) reader.Open();
    for (uint64_t first = 1; first < 60; ++first) reader.wal.Read(LogIndex(first), LogIndex(59), SIZE_MAX, first);
    reader.Pump();
    for (uint64_t first = 1; first < 60; ++first) {
      ASSERT_EQ(reader.reads[first], std::vector<raft::Entry>(model.entries.begin() + static_cast<long>(first) - 1, model.entries.end()))
          << first;
    }
    reader.wal.Read(LogIndex(5), LogIndex(50), 1, 1000);
    reader.wal.Read(LogIndex(60), LogIndex(70), 1, 1001);
    reader.Pump();
    EXPECT_EQ(reader.reads[1000], std::vector<raft::Entry>{model.entries[4]});
    EXPECT_EQ(reader.reads.count(1001), 1u);
    EXPECT_TRUE(reader.reads[1001].empty());
    EXPECT_EQ(reader.failed, "");
  }
}

TEST(WalReadTest, ReplacementEndsReadsUnderWay) {
  ::detcd::testing::MemoryDisk disk;
  WalRun run(disk);
  run.Open(Bootstrap());
  run.Append({MakeEntry(2, 2, "a"), MakeEntry(2, 3, "b"), MakeEntry(2, 4, "c")});
  run.wal.Read(LogIndex(1), LogIndex(4), SIZE_MAX, 1);
  run.Append({MakeEntry(3, 3, "B")});
  EXPECT_EQ(run.reads[1], (std::vector<raft::Entry>{Bootstrap().entries[0], MakeEntry(2, 2, "a")}));
}

TEST(WalReadTest, DamageFoundWhileReadingEndsTheLog) {
  ::detcd::testing::MemoryDisk disk;
  WalRun run(disk);
  run.Open(Bootstrap());
  run.Append({MakeEntry(2, 2, "aaaaaaaaaa")});
  std::string& content = disk.File(kFirst)->content;
  content[content.find("aaaaaaaaaa")] = 'b';
  run.wal.Read(LogIndex(1), LogIndex(2), SIZE_MAX, 1);
  run.Pump();
  EXPECT_THAT(run.failed, HasSubstr("found damage"));
  EXPECT_TRUE(run.reads.empty());
}

}  // namespace
}  // namespace detcd::wal
