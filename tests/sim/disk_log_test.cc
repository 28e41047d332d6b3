#include "sim/disk_log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/codec.h"
#include "core/wal/record.h"
#include "core/wal/segment.h"

namespace detcd::sim {
namespace {

// A disk with a log that is written entry by entry, and cut where a test says so.
class LoggedDisk {
 public:
  LoggedDisk() {
    member_->Add("wal", folder_);
    disk.root()->Add("member", member_);
    Cut();
  }

  void Cut() {
    file = disk.MakeFile();
    folder_->Add(wal::FormatSegmentName({.sequence = sequence_, .index = LogIndex(sequence_ == 0 ? 0 : last_ + 1)}), file);
    ++sequence_;
    offset = 0;
    wal::FrameWriter writer(crc_);
    writer.AddCrc();
    if (sequence_ == 1) writer.AddEmptySnapshot();
    Write(writer);
    file->Preallocate(kPageBytes);
  }
  void Append(uint64_t index, uint64_t term) {
    wal::FrameWriter writer(crc_);
    writer.AddEntry({.term = Term(term), .index = LogIndex(index), .data = Bytes::Copy("data")});
    writer.AddState({.term = Term(term)});
    Write(writer);
    last_ = index;
  }
  std::vector<uint64_t> Terms() const {
    std::vector<uint64_t> terms;
    for (const Term term : ReadDiskLog(disk)) terms.push_back(term.value);
    return terms;
  }
  const std::shared_ptr<Inode>& folder() { return folder_; }

  SimDisk disk;
  std::shared_ptr<Inode> file;  // the newest segment
  uint64_t offset = 0;          // of the next frame there

 private:
  void Write(wal::FrameWriter& writer) {
    for (const Bytes& piece : writer.TakePieces()) {
      file->Write(offset, piece.view());
      offset += piece.view().size();
    }
    crc_ = writer.crc();
  }

  std::shared_ptr<Inode> member_ = disk.MakeFolder();
  std::shared_ptr<Inode> folder_ = disk.MakeFolder();
  uint64_t sequence_ = 0;
  uint64_t last_ = 0;
  uint32_t crc_ = 0;
};

using Terms = std::vector<uint64_t>;

TEST(DiskLogTest, AnEmptyDiskHoldsNothing) {
  EXPECT_TRUE(ReadDiskLog(SimDisk()).empty());
  EXPECT_EQ(LoggedDisk().Terms(), Terms());
}

TEST(DiskLogTest, GoesOnFromOneSegmentToTheNext) {
  LoggedDisk log;
  log.Append(1, 1);
  log.Append(2, 1);
  log.Cut();
  log.Append(3, 2);
  EXPECT_EQ(log.Terms(), (Terms{1, 1, 2}));
}

TEST(DiskLogTest, ALaterEntryReplacesAllFromItsIndexOn) {
  LoggedDisk log;
  for (const uint64_t index : {1u, 2u, 3u, 4u}) log.Append(index, 1);
  log.Cut();
  log.Append(2, 5);
  EXPECT_EQ(log.Terms(), (Terms{1, 5}));
}

TEST(DiskLogTest, NothingCountsBehindADamagedRecord) {
  LoggedDisk log;
  log.Append(1, 1);
  const uint64_t damaged = log.offset;
  const std::shared_ptr<Inode> first = log.file;
  log.Append(2, 1);
  log.Append(3, 1);
  log.Cut();
  log.Append(4, 1);
  const wal::FrameLength length = wal::DecodeFrameLength(ByteReader(first->Read(damaged, wal::kFrameHeadBytes).view()).LittleEndian64());
  for (uint64_t byte = 0; byte < wal::kFrameHeadBytes + length.record_bytes; ++byte) {
    for (uint32_t bit = 0; bit < 8; ++bit) {
      ASSERT_TRUE(first->FlipBit(damaged + byte, bit));
      EXPECT_EQ(log.Terms(), (Terms{1})) << byte << " " << bit;
      ASSERT_TRUE(first->FlipBit(damaged + byte, bit));
    }
  }
  EXPECT_EQ(log.Terms(), (Terms{1, 1, 1, 1}));
}

TEST(DiskLogTest, NothingCountsBehindAHole) {
  LoggedDisk log;
  log.Append(1, 1);
  log.Cut();
  log.Append(2, 1);
  const std::string middle = wal::FormatSegmentName({.sequence = 1, .index = LogIndex(2)});
  log.Cut();
  log.Append(3, 1);
  ASSERT_EQ(log.Terms(), (Terms{1, 1, 1}));
  log.folder()->Remove(middle);
  EXPECT_EQ(log.Terms(), (Terms{1}));
  log.folder()->Remove(wal::FormatSegmentName({}));
  EXPECT_EQ(log.Terms(), Terms());
}

TEST(DiskLogTest, ZerosInPlaceOfTheLastRecordsEndTheLog) {
  LoggedDisk log;
  log.Append(1, 1);
  const uint64_t kept = log.offset;
  log.Append(2, 1);
  log.file->Write(kept, std::string(log.offset - kept, '\0'));
  EXPECT_EQ(log.Terms(), (Terms{1}));
}

TEST(DiskLogTest, OnlySegmentsAreRead) {
  LoggedDisk log;
  log.Append(1, 1);
  const std::shared_ptr<Inode> other = log.disk.MakeFile();
  other->Write(0, std::string(64, 'x'));
  log.folder()->Add("0.tmp", other);  // sorts before the segments
  EXPECT_EQ(log.Terms(), (Terms{1}));
}

}  // namespace
}  // namespace detcd::sim
