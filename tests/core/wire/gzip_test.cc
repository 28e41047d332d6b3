#include "core/wire/gzip.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace detcd::wire {
namespace {

std::string Compressed(std::string_view bytes) {
  Gzip gzip;
  std::string out;
  gzip.Compress(bytes, out);
  return out;
}

Gzip::Result Decompress(std::string_view bytes, std::string& out, size_t bytes_max = 1'000'000) {
  Gzip gzip;
  return gzip.Decompress(bytes, bytes_max, out);
}

RC_GTEST_PROP(GzipProperty, BytesComeBack, (std::string bytes)) {
  std::string out = "before";
  RC_ASSERT(Decompress(Compressed(bytes), out) == Gzip::Result::kOk);
  RC_ASSERT(out == "before" + bytes);
}

RC_GTEST_PROP(GzipProperty, DamageIsNoticedOrHarmless, (std::string bytes)) {
  std::string damaged = Compressed(bytes);
  const auto at = *rc::gen::inRange<size_t>(0, damaged.size());
  damaged[at] = static_cast<char>(damaged[at] ^ *rc::gen::inRange<int>(1, 256));
  std::string out;
  // Bytes of the header other than its magic say nothing about the data.
  if (Decompress(damaged, out) == Gzip::Result::kOk) RC_ASSERT(out == bytes);
}

TEST(GzipTest, LimitIsExact) {
  const std::string bytes(100'000, 'x');
  std::string out;
  EXPECT_EQ(Decompress(Compressed(bytes), out, 100'000), Gzip::Result::kOk);
  out.clear();
  EXPECT_EQ(Decompress(Compressed(bytes), out, 99'999), Gzip::Result::kTooLarge);
  EXPECT_EQ(out.size(), 100'000u);
}

TEST(GzipTest, BombStopsAtTheLimit) {
  const std::string bomb = Compressed(std::string(100 << 20, '\0'));
  ASSERT_LT(bomb.size(), 200'000u);
  std::string out;
  EXPECT_EQ(Decompress(bomb, out, 1'000), Gzip::Result::kTooLarge);
  EXPECT_LE(out.capacity(), 4'096u);
}

TEST(GzipTest, SeveralMembersAreOneMessage) {
  std::string out;
  EXPECT_EQ(Decompress(Compressed("a") + Compressed("") + Compressed("b"), out), Gzip::Result::kOk);
  EXPECT_EQ(out, "ab");
  EXPECT_EQ(Decompress(Compressed("a") + "xyz", out), Gzip::Result::kCutOff);
  EXPECT_EQ(Decompress(Compressed("a") + std::string(20, 'x'), out), Gzip::Result::kCorrupt);
}

TEST(GzipTest, EveryCutIsNoticed) {
  const std::string whole = Compressed("some text");
  for (size_t size = 0; size < whole.size(); ++size) {
    std::string out;
    EXPECT_EQ(Decompress(whole.substr(0, size), out), size < 10 ? Gzip::Result::kNoHeader : Gzip::Result::kCutOff)
        << size;
  }
}

TEST(GzipTest, WhatIsNoGzipHasABadHeader) {
  std::string out;
  EXPECT_EQ(Decompress("no gzip at all, surely", out), Gzip::Result::kBadHeader);
}

TEST(GzipTest, FailureLeavesNothingBehindForTheNext) {
  Gzip gzip;
  std::string out;
  EXPECT_NE(gzip.Decompress(Compressed("text").substr(0, 15), 100, out), Gzip::Result::kOk);
  out.clear();
  EXPECT_EQ(gzip.Decompress(Compressed("text"), 100, out), Gzip::Result::kOk);
  EXPECT_EQ(out, "text");
}

}  // namespace
}  // namespace detcd::wire
