#include "core/wal/record.h"

#include "core/base/crc32c.h"
#include "core/wal/recovery.h"
#include "tests/core/wal/wal_harness.h"

namespace detcd::wal {
namespace {

std::string Join(FrameWriter& writer) {
  std::string out;
  for (const Bytes& piece : writer.TakePieces()) out.append(piece.view());
  return out;
}

TEST(WalRecordTest, LengthFieldHoldsSizeAndPadding) {
  EXPECT_EQ(EncodeFrameLength(8), 8u);
  EXPECT_EQ(EncodeFrameLength(9), 0x8700000000000009u);
  EXPECT_EQ(EncodeFrameLength(15), 0x810000000000000Fu);
  FrameLength length = DecodeFrameLength(0x8700000000000009);
  EXPECT_EQ(length.record_bytes, 9u);
  EXPECT_EQ(length.pad_bytes, 7u);
  EXPECT_EQ(length.frame_bytes(), 24u);
  EXPECT_TRUE(length.canonical);
}

TEST(WalRecordTest, OnlyWrittenLengthFieldsAreCanonical) {
  EXPECT_FALSE(DecodeFrameLength(0).canonical);
  EXPECT_FALSE(DecodeFrameLength(9).canonical);
  EXPECT_FALSE(DecodeFrameLength(0x8800000000000008).canonical);
  EXPECT_FALSE(DecodeFrameLength(0xC700000000000009).canonical);
  EXPECT_TRUE(DecodeFrameLength(EncodeFrameLength((uint64_t{1} << 56) - 1)).canonical);
}

// The bytes of the first records of every log, worked out by hand.
TEST(WalRecordTest, HeadOfAFreshLogHasTheseBytes) {
  FrameWriter writer(0);
  writer.AddCrc();
  writer.AddMetadata(EncodeMetadata({.member = MemberId(1), .cluster = ClusterId(2)}));
  writer.AddEmptySnapshot();
  uint32_t after_metadata = ExtendCrc32c(0, std::string_view("\x08\x01\x10\x02", 4));
  uint32_t after_snapshot = ExtendCrc32c(after_metadata, std::string_view("\x08\x00\x10\x00", 4));
  auto varint32 = [](uint32_t v) {
    std::string out;
    for (; v >= 0x80; v >>= 7) out.push_back(static_cast<char>(v | 0x80));
    return out + static_cast<char>(v);
  };
  std::string crc("\x04\0\0\0\0\0\0\x84\x08\x04\x10\0\0\0\0\0", 16);
  auto record = [&](char type, uint32_t value, std::string data) {
    std::string body = std::string("\x08") + type + "\x10" + varint32(value) + "\x1a" + static_cast<char>(data.size()) + data;
    size_t pad = (8 - body.size() % 8) % 8;
    std::string frame(8, '\0');
    frame[0] = static_cast<char>(body.size());
    if (pad > 0) frame[7] = static_cast<char>(0x80 + pad);
    return frame + body + std::string(pad, '\0');
  };
  EXPECT_EQ(Join(writer), crc + record(1, after_metadata, std::string("\x08\x01\x10\x02", 4)) +
                              record(5, after_snapshot, std::string("\x08\x00\x10\x00", 4)));
  EXPECT_EQ(writer.crc(), after_snapshot);
}

TEST(WalRecordTest, LargeEntryDataIsSharedAndSmallIsCopied) {
  for (size_t size : {0u, 1u, 4095u, 4096u, 4097u, 100'000u}) {
    raft::Entry entry = MakeEntry(3, 7, std::string(size, 'x'));
    FrameWriter writer(5);
    writer.AddState(MakeState(1, 2, 3));
    writer.AddEntry(entry);
    writer.AddState(MakeState(1, 2, 4));
    std::vector<Bytes> pieces = writer.TakePieces();
    EXPECT_EQ(pieces.size(), size < 4096 ? 1u : 3u);
    if (pieces.size() == 3) {
      EXPECT_EQ(pieces[1].data(), entry.data.data());
    }
    std::string all;
    for (const Bytes& piece : pieces) all.append(piece.view());
    EXPECT_EQ(all.size(), writer.size());
    EXPECT_EQ(all.size() % 8, 0u);
    // Frame after frame reads back, in one chain.
    uint32_t crc = 5;
    std::vector<uint64_t> types;
    while (!all.empty()) {
      FrameLength length = DecodeFrameLength(static_cast<uint8_t>(all[0]) | uint64_t{static_cast<uint8_t>(all[1])} << 8 |
                                             uint64_t{static_cast<uint8_t>(all[2])} << 16 |
                                             uint64_t{static_cast<uint8_t>(all[7])} << 56);
      ASSERT_TRUE(length.canonical);
      std::optional<Record> record = DecodeRecord(std::string_view(all).substr(8, length.record_bytes));
      ASSERT_TRUE(record.has_value());
      crc = ExtendCrc32c(crc, record->data);
      EXPECT_EQ(crc, record->crc);
      if (record->type == 2) {
        EXPECT_EQ(raft::DecodeEntry(Bytes::Copy(record->data)), entry);
      }
      size_t prefix = 0;
      ASSERT_TRUE(DecodeRecordPrefix(std::string_view(all).substr(8), prefix).has_value());
      EXPECT_EQ(prefix, length.record_bytes);
      types.push_back(record->type);
      all.erase(0, length.frame_bytes());
    }
    EXPECT_EQ(types, (std::vector<uint64_t>{3, 2, 3}));
    EXPECT_EQ(crc, writer.crc());
  }
}

TEST(WalRecordTest, MalformedRecordsAreRefused) {
  EXPECT_FALSE(DecodeRecord(std::string_view("\x08", 1)));
  EXPECT_FALSE(DecodeRecord(std::string_view("\x0a\x00", 2)));          // type as bytes
  EXPECT_FALSE(DecodeRecord(std::string_view("\x1a\x05" "ab", 4)));     // data past the end
  EXPECT_FALSE(DecodeRecord(std::string_view("\x10\xff\xff\xff\xff\x1f", 6)));  // crc above 32 bits
  EXPECT_TRUE(DecodeRecord(std::string_view("\x08\x02\x10\x01\x20\x07", 6)));   // an unknown field is skipped
}

// zoo-D9: the length reached the disk and the body did not. However large it is, it is a torn tail.
TEST(WalJudgeTest, LengthPastTheEndIsTornWhateverItsSize) {
  for (uint64_t n : std::initializer_list<uint64_t>{512, 100'000'000, (uint64_t{1} << 56) - 1}) {
    std::string rest;
    for (int i = 0; i < 8; ++i) rest.push_back(static_cast<char>(EncodeFrameLength(n) >> (8 * i)));
    rest.append(504, '\0');
    EXPECT_EQ(JudgeTail(rest, 1024, 7).kind, TailKind::kTorn) << n;
  }
  EXPECT_EQ(JudgeTail(std::string(8, '\xff') + std::string(100, '\0'), 1024, 7).kind, TailKind::kTorn);
}

TEST(WalJudgeTest, ZeroLengthIsTheEndUnlessAGoodRecordFollowsInTheSameSector) {
  FrameWriter writer(7);
  writer.AddState(MakeState(1, 2, 3));
  std::string frame = Join(writer);
  frame.replace(0, 8, 8, '\0');
  EXPECT_EQ(JudgeTail(frame, 512, 7).kind, TailKind::kDamaged);
  EXPECT_EQ(JudgeTail(frame, 512 - 8, 7).kind, TailKind::kEnd);  // the sector of the length was lost
  EXPECT_EQ(JudgeTail(frame, 512, 8).kind, TailKind::kEnd);      // not of this chain
  EXPECT_EQ(JudgeTail(std::string(24, '\0'), 512, 7).kind, TailKind::kEnd);
  EXPECT_EQ(JudgeTail("", 512, 7).kind, TailKind::kEnd);
  EXPECT_EQ(JudgeTail("abc", 512, 7).kind, TailKind::kTorn);
}

TEST(WalJudgeTest, BadCrcIsTornOnlyWithAZeroSector) {
  FrameWriter writer(7);
  writer.AddEntry(MakeEntry(1, 1, std::string(1500, 'x')));
  std::string frame = Join(writer);
  std::string torn = frame;
  torn.replace(512, 512, 512, '\0');
  EXPECT_EQ(JudgeTail(torn, 0, 7).kind, TailKind::kTorn);
  EXPECT_EQ(JudgeTail(torn, 8, 7).kind, TailKind::kDamaged);  // zeros that are not a sector
  frame[700] = 'y';
  EXPECT_EQ(JudgeTail(frame, 0, 7).kind, TailKind::kDamaged);
}

TEST(WalJudgeTest, ZeroSectorBeforeLaterBatchesIsDamage) {
  FrameWriter writer(7);
  writer.AddEntry(MakeEntry(1, 1, std::string(1500, '\0')));
  writer.AddState(MakeState(1, 0, 0));
  FrameWriter later = writer;
  later.AddState(MakeState(1, 0, 1));
  later.AddState(MakeState(1, 0, 1));
  std::string one = Join(writer);
  std::string two = Join(later);
  one[700] = two[700] = 'y';
  EXPECT_EQ(JudgeTail(one, 0, 7).kind, TailKind::kTorn);  // cannot be told from a lost sector
  EXPECT_EQ(JudgeTail(two, 0, 7).kind, TailKind::kDamaged);
}

}  // namespace
}  // namespace detcd::wal
