// The numbers by which a run is measured from outside, and the windows of true time over which.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "scenarios/scenario.pb.h"

namespace detcd::scenario {

// In the order of kMetrics; what each counts is said at the field of Expectation.
enum class Metric : uint8_t {
  kTermGrowth,
  kLeaderChanges,
  kDisruptions,
  kElections,
  kElectionsLost,
  kWriteGap,
  kReadGap,
  kWriteOutage,
  kReadOutage,
  kFailedWrites,
  kFailedReads,
  kStaleReads,
  kStaleSerializableReads,
  kMessagesPerSecond,
};
inline constexpr size_t kMetricCount = static_cast<size_t>(Metric::kMessagesPerSecond) + 1;

struct MetricRow {
  Metric metric;
  std::string_view name;  // the field of Expectation
  std::string_view unit;
  bool of_members;        // has a meaning for one member
  bool grows;             // what is over its maximum stays over it, and is known at once
};

inline constexpr std::array<MetricRow, kMetricCount> kMetrics = {{
    {Metric::kTermGrowth, "term_growth", "terms", true, true},
    {Metric::kLeaderChanges, "leader_changes", "", true, true},
    {Metric::kDisruptions, "disruptions", "", true, true},
    {Metric::kElections, "elections", "", true, true},
    {Metric::kElectionsLost, "elections_lost", "", true, true},
    {Metric::kWriteGap, "write_gap_ms", "ms", false, true},
    {Metric::kReadGap, "read_gap_ms", "ms", false, true},
    {Metric::kWriteOutage, "write_outage_ms", "ms", false, true},
    {Metric::kReadOutage, "read_outage_ms", "ms", false, true},
    {Metric::kFailedWrites, "failed_writes", "", true, true},
    {Metric::kFailedReads, "failed_reads", "", true, true},
    {Metric::kStaleReads, "stale_reads", "", true, true},
    {Metric::kStaleSerializableReads, "stale_serializable_reads", "", true, true},
    {Metric::kMessagesPerSecond, "messages_per_second", "1/s", true, false},
}};

// The bounds of `row` in `expectation`; nullptr: none.
const Bounds* BoundsOf(const Expectation& expectation, const MetricRow& row);

// [from, to) in nanoseconds of true time, of one member or of all together.
struct Window {
  int64_t from = 0;
  int64_t to = std::numeric_limits<int64_t>::max();
  std::optional<uint32_t> member;  // numbered from 0
};

}  // namespace detcd::scenario
