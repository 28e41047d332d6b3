// How often each value occurred, in bounded memory: log-linear buckets, 64 to a power of two, so that a value is known to
// one part in 64. Values are below 2^40 (in microseconds: twelve days); larger ones count as that.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace detcd::realnet {

class Histogram {
 public:
  void Add(uint64_t value) {
    value = std::min(value, kValueMax);
    ++counts_[BucketOf(value)];
    ++count_;
    max_ = std::max(max_, value);
  }

  uint64_t count() const { return count_; }
  uint64_t max() const { return max_; }

  // The smallest value that at least `numerator` of `denominator` of all values do not exceed, as the upper end of its
  // bucket but at most max(); 0 when there are no values.
  uint64_t Percentile(uint64_t numerator, uint64_t denominator) const {
    // Rounded up: of 100 values, p99 is the 99th, and p99.9 the 100th.
    const uint64_t rank = std::max<uint64_t>(1, (count_ * numerator + denominator - 1) / denominator);
    uint64_t seen = 0;
    for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
      seen += counts_[bucket];
      if (seen >= rank) return std::min(LastOf(bucket), max_);
    }
    return max_;
  }

 private:
  static constexpr unsigned kSubBits = 6;
  static constexpr uint64_t kSub = uint64_t{1} << kSubBits;
  static constexpr unsigned kBits = 40;
  static constexpr uint64_t kValueMax = (uint64_t{1} << kBits) - 1;
  static constexpr size_t kBuckets = static_cast<size_t>((kBits - kSubBits + 1) * kSub);

  // Values below kSub have a bucket each; above, the leading bit chooses the group, the next kSubBits the bucket in it.
  static size_t BucketOf(uint64_t value) {
    const unsigned width = static_cast<unsigned>(std::bit_width(value));
    if (width <= kSubBits) return static_cast<size_t>(value);
    const unsigned shift = width - 1 - kSubBits;
    return static_cast<size_t>((shift + 1) * kSub + ((value >> shift) - kSub));
  }
  static uint64_t LastOf(size_t bucket) {
    if (bucket < kSub) return bucket;
    const unsigned shift = static_cast<unsigned>(bucket / kSub - 1);
    return ((bucket % kSub + kSub + 1) << shift) - 1;
  }

  std::array<uint64_t, kBuckets> counts_{};
  uint64_t count_ = 0;
  uint64_t max_ = 0;
};

}  // namespace detcd::realnet
