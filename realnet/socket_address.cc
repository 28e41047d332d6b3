#include "realnet/socket_address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <string>

namespace detcd::realnet {
namespace {

std::optional<SocketAddress> UnixAddress(const std::string& path) {
  SocketAddress result;
  auto* un = reinterpret_cast<sockaddr_un*>(&result.storage);
  // A leading zero byte would mean the abstract namespace, one inside would cut the path.
  if (path.empty() || path.size() >= sizeof(un->sun_path) || path.find('\0') != std::string::npos) return std::nullopt;
  un->sun_family = AF_UNIX;
  std::memcpy(un->sun_path, path.data(), path.size());
  result.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return result;
}

std::optional<SocketAddress> V6Address(const Address& address) {
  SocketAddress result;
  auto* in6 = reinterpret_cast<sockaddr_in6*>(&result.storage);
  const size_t zone = address.host.find('%');
  if (::inet_pton(AF_INET6, address.host.substr(0, zone).c_str(), &in6->sin6_addr) != 1) return std::nullopt;
  if (zone != std::string::npos) {
    in6->sin6_scope_id = ::if_nametoindex(address.host.c_str() + zone + 1);
    if (in6->sin6_scope_id == 0) return std::nullopt;
  }
  in6->sin6_family = AF_INET6;
  in6->sin6_port = htons(address.port);
  result.size = sizeof(sockaddr_in6);
  return result;
}

}  // namespace

std::optional<SocketAddress> ToSocketAddress(const Address& address) {
  if (address.is_unix) return UnixAddress(address.host);
  if (address.host.find('\0') != std::string::npos) return std::nullopt;
  SocketAddress result;
  auto* in = reinterpret_cast<sockaddr_in*>(&result.storage);
  if (::inet_pton(AF_INET, address.host.c_str(), &in->sin_addr) != 1) return V6Address(address);
  in->sin_family = AF_INET;
  in->sin_port = htons(address.port);
  result.size = sizeof(sockaddr_in);
  return result;
}

Address FromSocketAddress(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.family() == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(&address.storage);
    ::inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
    return {.host = text, .port = ntohs(in->sin_port)};
  }
  if (address.family() == AF_INET6) {
    const auto* in6 = reinterpret_cast<const sockaddr_in6*>(&address.storage);
    if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
      ::inet_ntop(AF_INET, &in6->sin6_addr.s6_addr[12], text, sizeof(text));
      return {.host = text, .port = ntohs(in6->sin6_port)};
    }
    ::inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text));
    std::string host = text;
    char zone[IF_NAMESIZE];
    if (in6->sin6_scope_id != 0 && ::if_indextoname(in6->sin6_scope_id, zone) != nullptr) host.append("%").append(zone);
    return {.host = std::move(host), .port = ntohs(in6->sin6_port)};
  }
  const auto* un = reinterpret_cast<const sockaddr_un*>(&address.storage);
  constexpr size_t kPathStart = offsetof(sockaddr_un, sun_path);
  const size_t path_bytes = address.size > kPathStart ? address.size - kPathStart : 0;
  return {.host = std::string(un->sun_path, ::strnlen(un->sun_path, path_bytes)), .is_unix = true};
}

}  // namespace detcd::realnet
