#include "core/base/codec.h"

#include "core/base/crc32c.h"

namespace detcd {
namespace {

TEST(CodecTest, VarintsRoundTripAtTheirEdges) {
  for (uint64_t v : {uint64_t{0}, uint64_t{127}, uint64_t{128}, uint64_t{16383}, uint64_t{16384}, ~uint64_t{0}}) {
    std::string out;
    ByteWriter(out).Varint(v);
    EXPECT_EQ(out.size(), VarintSize(v));
    ByteReader reader(out);
    EXPECT_EQ(reader.Varint(), v);
    EXPECT_TRUE(reader.ok() && reader.AtEnd());
  }
}

TEST(CodecTest, OverlongVarintIsMalformed) {
  ByteReader reader("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02");
  reader.Varint();
  EXPECT_FALSE(reader.ok());
}

TEST(CodecTest, ReadingPastTheEndFailsForGood) {
  ByteReader reader("abc");
  EXPECT_EQ(reader.BigEndian64(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.Raw(1), "");
}

TEST(CodecTest, FieldsOfEveryWireTypeAreWalked) {
  std::string message;
  ByteWriter writer(message);
  writer.VarintField(1, 300);
  writer.BytesField(2, "key");
  message += "\x1d\x01\x02\x03\x04";  // field 3, fixed 32
  std::vector<uint32_t> numbers;
  ProtoField field;
  ProtoFields fields(message);
  while (fields.Next(field)) numbers.push_back(field.number);
  EXPECT_TRUE(fields.ok());
  EXPECT_EQ(numbers, (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_EQ(field.varint, 0x04030201u);
}

RC_GTEST_PROP(CodecTest, AnyBytesAreReadWithoutHarm, (std::string bytes)) {
  ProtoField field;
  ProtoFields fields(bytes);
  size_t seen = 0;
  while (fields.Next(field)) ++seen;
  RC_ASSERT(seen <= bytes.size());
}

TEST(Crc32cTest, MatchesTheCheckValueOfRfc3720) {
  EXPECT_EQ(ExtendCrc32c(0, "123456789"), 0xE3069283u);
  EXPECT_EQ(ExtendCrc32c(ExtendCrc32c(0, "12345"), "6789"), 0xE3069283u);
}

}  // namespace
}  // namespace detcd
