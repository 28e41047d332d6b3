#include "core/base/digest.h"

namespace detcd {
namespace {

// Fixed values: every compiler, build type and machine must agree, or no seed replays elsewhere.
TEST(DigestTest, BytesHaveTheseFingerprints) {
  // XXH3 with 64 bits: its published value for empty input under seed 0.
  EXPECT_EQ(DigestBytes(""), 0x2D06800538D394C2u);
  EXPECT_EQ(DigestBytes("detcd"), 13353235262555239642u);
  EXPECT_EQ(DigestBytes("detcd", 1), 12295654928035280501u);
  EXPECT_EQ(DigestBytes(std::string(1'000, 'x'), 7), 12011178006697514372u);
}

// SplitMix64 from state 0: its first output is the mix of the golden gamma.
TEST(DigestTest, MixIsSplitMix64) { EXPECT_EQ(MixWord(0x9E3779B97F4A7C15u), 0xE220A8397B1DCDAFu); }

TEST(DigestTest, ChainHasThisValue) {
  Digest digest;
  EXPECT_EQ(digest.value(), 0u);
  digest.Add(1);
  digest.Add(2);
  digest.AddBytes("abc");
  EXPECT_EQ(digest.value(), 7788103868601932108u);
}

TEST(DigestTest, OrderAndBoundariesMatter) {
  Digest ab, ba, joined;
  ab.AddBytes("a"), ab.AddBytes("b");
  ba.AddBytes("b"), ba.AddBytes("a");
  joined.AddBytes("ab");
  EXPECT_NE(ab.value(), ba.value());
  EXPECT_NE(ab.value(), joined.value());
  Digest zero;
  zero.Add(0);
  EXPECT_NE(zero.value(), Digest().value());
}

}  // namespace
}  // namespace detcd
