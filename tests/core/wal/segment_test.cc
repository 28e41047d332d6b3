#include "core/wal/segment.h"

namespace detcd::wal {
namespace {

TEST(WalSegmentTest, NamesAreSixteenHexDigitsEach) {
  EXPECT_EQ(FormatSegmentName({}), "0000000000000000-0000000000000000.wal");
  SegmentName name{.sequence = 0xab, .index = LogIndex(UINT64_MAX)};
  EXPECT_EQ(FormatSegmentName(name), "00000000000000ab-ffffffffffffffff.wal");
  EXPECT_EQ(ParseSegmentName("00000000000000ab-ffffffffffffffff.wal"), name);
}

TEST(WalSegmentTest, OtherNamesAreNotSegments) {
  for (std::string_view name : {"", "0.tmp", "00000000000000AB-0000000000000000.wal", "0000000000000000-0000000000000000.wal.broken",
                                "0000000000000000_0000000000000000.wal", "0000000000000000-000000000000000g.wal"}) {
    EXPECT_FALSE(ParseSegmentName(name)) << name;
  }
}

EntryPosition At(uint64_t index, size_t segment, uint64_t offset) {
  return {.index = LogIndex(index), .segment = segment, .offset = offset};
}

TEST(WalIndexTest, KeepsOnePositionPerSpacingAndSegment) {
  EntryIndex index;
  EXPECT_FALSE(index.Find(LogIndex(1)));
  index.Add(At(1, 0, 100));
  index.Add(At(2, 0, 200));
  index.Add(At(3, 0, 100 + kIndexSpacingBytes));
  index.Add(At(4, 1, 64));
  EXPECT_EQ(index.Find(LogIndex(2)), At(1, 0, 100));
  EXPECT_EQ(index.Find(LogIndex(3)), At(3, 0, 100 + kIndexSpacingBytes));
  EXPECT_EQ(index.Find(LogIndex(9)), At(4, 1, 64));
  EXPECT_EQ(index.Next(LogIndex(1)), At(3, 0, 100 + kIndexSpacingBytes));
  EXPECT_FALSE(index.Next(LogIndex(4)));
}

TEST(WalIndexTest, ReplacementForgetsWhatItReplacesAndIsRemembered) {
  EntryIndex index;
  index.Add(At(1, 0, 0));
  index.Add(At(2, 0, 8));
  index.Add(At(3, 0, 16));
  index.Add(At(2, 0, 24));
  index.Add(At(3, 0, 32));
  EXPECT_EQ(index.last_index(), LogIndex(3));
  EXPECT_EQ(index.Find(LogIndex(1)), At(1, 0, 0));
  EXPECT_EQ(index.Find(LogIndex(3)), At(2, 0, 24));
  index.Add(At(1, 0, 40));
  EXPECT_EQ(index.Find(LogIndex(3)), At(1, 0, 40));
}

}  // namespace
}  // namespace detcd::wal
