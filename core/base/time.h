// Time as integers. An Instant is monotonic time of one incarnation's clock in nanoseconds since an arbitrary origin; a
// WallTime is civil time in nanoseconds since 1970. The three kinds never mix by accident.
#pragma once

#include <compare>
#include <cstdint>

namespace detcd {

// A length of time, in nanoseconds; may be negative as a difference.
struct Duration {
  int64_t nanos = 0;

  friend constexpr auto operator<=>(Duration, Duration) = default;
  constexpr Duration operator+(Duration d) const { return {nanos + d.nanos}; }
  constexpr Duration operator-(Duration d) const { return {nanos - d.nanos}; }
  constexpr Duration operator*(int64_t n) const { return {nanos * n}; }
  constexpr Duration operator/(int64_t n) const { return {nanos / n}; }
  constexpr int64_t millis() const { return nanos / 1'000'000; }
  constexpr int64_t micros() const { return nanos / 1'000; }
};

constexpr Duration Nanos(int64_t n) { return {n}; }
constexpr Duration Micros(int64_t n) { return {n * 1'000}; }
constexpr Duration Millis(int64_t n) { return {n * 1'000'000}; }
constexpr Duration Seconds(int64_t n) { return {n * 1'000'000'000}; }

// A reading of a monotonic clock. Never falls within an incarnation; may drift, leap and freeze.
struct Instant {
  int64_t nanos = 0;

  friend constexpr auto operator<=>(Instant, Instant) = default;
  constexpr Instant operator+(Duration d) const { return {nanos + d.nanos}; }
  constexpr Instant operator-(Duration d) const { return {nanos - d.nanos}; }
  constexpr Duration operator-(Instant i) const { return {nanos - i.nanos}; }
};

// A reading of the wall clock, in nanoseconds since 1970-01-01 UTC. May do anything.
struct WallTime {
  int64_t nanos = 0;
};

}  // namespace detcd
