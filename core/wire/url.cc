#include "core/wire/url.h"

#include <charconv>
#include <optional>

namespace detcd::wire {
namespace {

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::optional<UrlScheme> SchemeOf(std::string_view word) {
  if (word == "http") return UrlScheme::kHttp;
  if (word == "https") return UrlScheme::kHttps;
  if (word == "unix") return UrlScheme::kUnix;
  if (word == "unixs") return UrlScheme::kUnixs;
  return std::nullopt;
}

// No white space, control bytes or other parts of a URL (user, query, fragment) inside a host.
bool IsHost(std::string_view host) {
  for (const char c : host) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '\x7f') return false;
    if (c == '@' || c == '?' || c == '#' || c == '[' || c == ']' || c == '/') return false;
  }
  return !host.empty();
}

// Splits `host:port`, where an IPv6 host stands in brackets.
bool SplitHostPort(std::string_view authority, Url& url) {
  const size_t colon = authority.rfind(':');
  if (colon == std::string_view::npos) return false;
  std::string_view host = authority.substr(0, colon);
  const std::string_view port = authority.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return false;
  }
  if (!IsHost(host) || port.empty()) return false;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), url.port);
  if (error != std::errc() || end != port.data() + port.size()) return false;
  url.host = std::string(host);
  return true;
}

}  // namespace

absl::StatusOr<Url> ParseUrl(std::string_view text) {
  const std::string_view trimmed = Trim(text);
  const size_t separator = trimmed.find("://");
  std::optional<UrlScheme> scheme;
  if (separator != std::string_view::npos) scheme = SchemeOf(trimmed.substr(0, separator));
  if (!scheme) return InvalidArgument("URL scheme must be http, https, unix, or unixs: %s", trimmed);

  Url url{.scheme = *scheme};
  std::string_view rest = trimmed.substr(separator + 3);
  if (url.IsUnix()) {
    if (rest.empty() || rest.find('\0') != std::string_view::npos) {
      return InvalidArgument("URL has no socket path: %s", trimmed);
    }
    url.host = std::string(rest);
    return url;
  }
  const size_t slash = rest.find('/');
  if (!SplitHostPort(rest.substr(0, slash), url)) {
    return InvalidArgument("URL address does not have the form \"host:port\": %s", trimmed);
  }
  if (slash != std::string_view::npos) return InvalidArgument("URL must not contain a path: %s", trimmed);
  return url;
}

std::string HostAndPort(const Url& url) {
  if (url.IsUnix()) return url.host;
  if (url.host.find(':') != std::string::npos) return absl::StrFormat("[%s]:%d", url.host, url.port);
  return absl::StrFormat("%s:%d", url.host, url.port);
}

}  // namespace detcd::wire
