// The URLs of flags and of member rows: http://10.0.0.1:2380, https://db1:2379, unix:///run/detcd.sock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace detcd::wire {

enum class UrlScheme : uint8_t { kHttp, kHttps, kUnix, kUnixs };

struct Url {
  UrlScheme scheme = UrlScheme::kHttp;
  std::string host;   // name or numeric address, IPv6 without its brackets; of a Unix URL the path of the socket
  uint16_t port = 0;  // none for Unix URLs

  bool IsUnix() const { return scheme == UrlScheme::kUnix || scheme == UrlScheme::kUnixs; }
  bool IsTls() const { return scheme == UrlScheme::kHttps || scheme == UrlScheme::kUnixs; }
  friend bool operator==(const Url&, const Url&) = default;
};

// Reads one URL, white space around it ignored. kInvalidArgument, in etcd's words and with the URL: another scheme, no
// `host:port`, a port that is no 16-bit number, a path behind it, a Unix URL without a path.
absl::StatusOr<Url> ParseUrl(std::string_view text);

// `host:port` as the Host header and log lines have it: IPv6 in brackets; the path for a Unix URL.
std::string HostAndPort(const Url& url);

}  // namespace detcd::wire
