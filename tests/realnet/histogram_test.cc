#include "realnet/histogram.h"

#include <gtest/gtest.h>

#include <vector>

namespace detcd::realnet {
namespace {

TEST(HistogramTest, AnEmptyOneIsZero) {
  Histogram histogram;
  EXPECT_EQ(histogram.Percentile(50, 100), 0u);
  EXPECT_EQ(histogram.max(), 0u);
}

TEST(HistogramTest, SmallValuesAreExact) {
  Histogram histogram;
  for (uint64_t value = 0; value < 100; ++value) histogram.Add(value);
  EXPECT_EQ(histogram.Percentile(50, 100), 49u);
  EXPECT_EQ(histogram.Percentile(99, 100), 98u);
  EXPECT_EQ(histogram.Percentile(999, 1'000), 99u);
}

TEST(HistogramTest, LargeValuesAreKnownToOnePartInSixtyFour) {
  for (uint64_t value = 1; value < (uint64_t{1} << 40); value = value * 3 + 1) {
    Histogram histogram;
    histogram.Add(value);
    histogram.Add((uint64_t{1} << 40) - 1);
    const uint64_t found = histogram.Percentile(50, 100);
    EXPECT_GE(found, value);
    EXPECT_LE(found - value, value / 64) << value;
  }
}

TEST(HistogramTest, ValuesBeyondTheRangeCountAsItsEnd) {
  Histogram histogram;
  histogram.Add(~uint64_t{0});
  EXPECT_EQ(histogram.max(), (uint64_t{1} << 40) - 1);
  EXPECT_EQ(histogram.Percentile(50, 100), histogram.max());
}

}  // namespace
}  // namespace detcd::realnet
