// What a client may ask of its HTTP/2 connection beside calls: frames that are cheap to send and cost the server work
// (pings, resets, settings, empty frames; those of unknown type are skipped as bytes and cost nothing more). Plain
// counting by the clock that the caller reads; the answer to too much is GOAWAY with ENHANCE_YOUR_CALM and the text
// that a method here returns (empty: all is well).
//
// Pings follow etcd's gRPC library to the letter, since clients tune themselves by it: a ping that comes sooner than
// allowed is a strike, the third strike in a row ends the connection, and headers or data of ours forgive all strikes.
// The other bounds are far above any client that is not at war.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/time.h"

namespace detcd::wire {

// Frames that carry nothing of a call.
enum class Http2Overhead : uint8_t {
  kSettings,  // applied to every open stream (RFC 9113 §6.9.2)
  kOther,     // WINDOW_UPDATE, PRIORITY, PING, and DATA and CONTINUATION without bytes
};

class Http2Guard {
 public:
  // `ping_interval_min`: between pings, while calls are open; kPingIntervalIdleMin without one.
  explicit Http2Guard(Duration ping_interval_min) : ping_interval_min_(ping_interval_min) {}

  std::string_view OnPing(Instant now, bool calls_open);
  // A stream was reset: by the client, or by us for something that the client did wrong (CVE-2023-44487,
  // CVE-2025-8671).
  std::string_view OnReset(Instant now);
  std::string_view OnOverhead(Instant now, Http2Overhead kind);
  // A HEADERS or DATA frame of ours left. A client that takes answers owes window updates, so they pay for those.
  void OnAnswerFrame();

 private:
  // Counts by the second; a burst on both sides of a second's end passes twice the bound.
  struct Meter {
    Instant second = {};
    uint32_t count = 0;

    uint32_t Add(Instant now, uint32_t weight);
  };

  const Duration ping_interval_min_;
  std::optional<Instant> last_ping_;
  uint32_t ping_strikes_ = 0;
  bool forgive_pings_ = false;  // headers or data were sent since the last ping
  Meter resets_;
  Meter overhead_;
};

}  // namespace detcd::wire
