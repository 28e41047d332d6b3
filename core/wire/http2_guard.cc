#include "core/wire/http2_guard.h"

#include <algorithm>
#include <utility>

#include "core/base/limits.h"
#include "core/base/probe.h"

namespace detcd::wire {
namespace {

// One for the connection and one for the stream, twice as often as needed.
constexpr uint32_t kOverheadPaidByFrame = 4;

}  // namespace

uint32_t Http2Guard::Meter::Add(Instant now, uint32_t weight) {
  if (now - second >= Seconds(1)) {
    second = now;
    count = 0;
  }
  return count += weight;
}

std::string_view Http2Guard::OnPing(Instant now, bool calls_open) {
  const std::optional<Instant> last = std::exchange(last_ping_, now);
  if (std::exchange(forgive_pings_, false)) {
    ping_strikes_ = 0;
    return {};
  }
  const Duration interval = calls_open ? ping_interval_min_ : kPingIntervalIdleMin;
  if (last.has_value() && now - *last < interval) ++ping_strikes_;
  if (ping_strikes_ <= kPingStrikesMax) return {};
  PROBE("wire.too_many_pings");
  return "too_many_pings";
}

std::string_view Http2Guard::OnReset(Instant now) {
  if (resets_.Add(now, 1) <= kHttp2ResetsPerSecondMax) return {};
  PROBE("wire.too_many_resets");
  return "too_many_resets";
}

std::string_view Http2Guard::OnOverhead(Instant now, Http2Overhead kind) {
  const uint32_t weight =
      kind == Http2Overhead::kSettings ? kHttp2OverheadPerSecondMax / kHttp2SettingsPerSecondMax : 1;
  if (overhead_.Add(now, weight) <= kHttp2OverheadPerSecondMax) return {};
  PROBE("wire.too_many_frames");
  return "too_many_frames";
}

void Http2Guard::OnAnswerFrame() {
  forgive_pings_ = true;
  overhead_.count -= std::min(overhead_.count, kOverheadPaidByFrame);
}

}  // namespace detcd::wire
