#pragma once
#include "core/base/limits.h"
namespace detcd {
inline constexpr uint32_t kHttp2OverheadPerSecondMax = 10'000;
inline constexpr uint32_t kHttp2SettingsPerSecondMax = 100;
inline constexpr size_t kOpenCallBytes = 1'024;
inline constexpr size_t kClientBytesMax = 1'073'741'824;
inline constexpr Duration kPingIntervalDefault = Seconds(300);
inline constexpr Duration kKeepaliveInterval = Seconds(7'200);
inline constexpr Duration kKeepaliveIntervalMin = Seconds(1);
inline constexpr Duration kKeepaliveTimeout = Seconds(20);
inline constexpr Duration kHttp2HandshakeTimeout = Seconds(120);
inline constexpr Duration kHttp2ExpelTimeout = Seconds(1);
}
