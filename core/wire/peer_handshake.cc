#include "core/wire/peer_handshake.h"

#include <charconv>
#include <compare>

#include "core/base/status.h"

namespace detcd::wire {
namespace {

using member::PeerChannel;

constexpr std::string_view kOldestVersion = "2.0.0";  // of a sender that names none

// The two parts of a version that compatibility looks at.
struct MajorMinor {
  uint32_t major = 0;
  uint32_t minor = 0;
  friend auto operator<=>(const MajorMinor&, const MajorMinor&) = default;
};
constexpr MajorMinor kStreamsSince{2, 1};

// Reads MAJOR.MINOR.PATCH, anything behind the patch ignored.
std::optional<MajorMinor> ParseVersion(std::string_view text) {
  uint32_t parts[3] = {};
  const char* position = text.data();
  const char* const end = text.data() + text.size();
  for (size_t i = 0; i < 3; ++i) {
    if (i > 0) {
      if (position == end || *position != '.') return std::nullopt;
      ++position;
    }
    const auto [stop, error] = std::from_chars(position, end, parts[i]);
    if (error != std::errc()) return std::nullopt;
    position = stop;
  }
  if (position != end && *position != '-' && *position != '+') return std::nullopt;
  return MajorMinor{parts[0], parts[1]};
}

std::optional<MajorMinor> VersionHeader(const HttpFields& fields, std::string_view name) {
  const std::string_view value = fields.Get(name);
  return ParseVersion(value.empty() ? kOldestVersion : value);
}

std::string JoinUrls(const PeerIdentity& self) {
  std::string urls;
  for (const std::string& url : self.peer_urls) {
    if (!urls.empty()) urls.push_back(',');
    urls.append(url);
  }
  return urls;
}

std::string_view ChannelPath(PeerChannel channel) {
  return channel == PeerChannel::kAppend ? "/raft/stream/msgapp" : "/raft/stream/message";
}

}  // namespace

std::string FormatId(uint64_t id) { return absl::StrFormat("%x", id); }

std::optional<uint64_t> ParseId(std::string_view text) {
  uint64_t id = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), id, 16);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return id;
}

std::vector<HttpHeader> ClusterHeader(const PeerIdentity& self) {
  return {{"X-Etcd-Cluster-Id", FormatId(self.cluster.value)}};
}

HttpAnswer MethodNotAllowed(std::string_view allowed) {
  HttpAnswer answer = TextAnswer(405, "Method Not Allowed");
  answer.headers.push_back({"Allow", std::string(allowed)});
  return answer;
}

HttpAnswer StreamRefusal(const PeerIdentity& self, int status, std::string_view text) {
  HttpAnswer answer = TextAnswer(status, text);
  answer.headers.push_back({"X-Server-Version", self.server_version});
  answer.headers.push_back(ClusterHeader(self).front());
  return answer;
}

std::optional<HttpAnswer> CheckCompatible(const PeerIdentity& self, const HttpRequestHead& head) {
  const auto refuse = [&](std::string_view text) {
    HttpAnswer answer = TextAnswer(412, text);
    answer.headers.push_back(ClusterHeader(self).front());
    return answer;
  };
  const std::optional<MajorMinor> version = VersionHeader(head, "X-Server-Version");
  const std::optional<MajorMinor> minimum = VersionHeader(head, "X-Min-Cluster-Version");
  if (!version || !minimum || *version < *ParseVersion(self.min_cluster_version) ||
      *minimum > *ParseVersion(self.server_version)) {
    return refuse("incompatible version");
  }
  if (head.Get("X-Etcd-Cluster-ID") != FormatId(self.cluster.value)) return refuse("cluster ID mismatch");
  return std::nullopt;
}

std::variant<StreamGrant, HttpAnswer> CheckStreamSender(const PeerIdentity& self, const PeerInfo& info,
                                                        const HttpRequestHead& head) {
  if (head.method != "GET") return MethodNotAllowed("GET");
  if (std::optional<HttpAnswer> refusal = CheckCompatible(self, head)) {
    refusal->headers.push_back({"X-Server-Version", self.server_version});
    return *std::move(refusal);
  }
  const std::string_view path = head.Path();
  const size_t slash = path.rfind('/');
  const std::string_view folder = path.substr(0, slash);
  std::string_view sender = path.substr(slash + 1);
  StreamGrant grant{.channel = PeerChannel::kMessage};
  if (folder == ChannelPath(PeerChannel::kAppend)) {
    grant.channel = PeerChannel::kAppend;
  } else if (folder != ChannelPath(PeerChannel::kMessage)) {
    return StreamRefusal(self, 404, "invalid path");
  }
  const std::optional<uint64_t> id = ParseId(sender);
  if (!id) return StreamRefusal(self, 404, "invalid from");
  grant.peer = MemberId(*id);
  if (info.IsRemoved(grant.peer)) return StreamRefusal(self, 410, "removed member");
  return grant;
}

std::optional<HttpAnswer> CheckStreamReceiver(const PeerIdentity& self, const HttpRequestHead& head) {
  if (head.Get("X-Raft-To") == FormatId(self.id.value)) return std::nullopt;
  return StreamRefusal(self, 412, "to field mismatch");
}

std::string WriteStreamRequest(const PeerIdentity& self, MemberId peer, PeerChannel channel, std::string_view host) {
  const std::string urls = JoinUrls(self);
  const std::string own_id = FormatId(self.id.value);
  return WriteRequestHead("GET", absl::StrFormat("%s/%s", ChannelPath(channel), own_id),
                          {{"Host", std::string(host)},
                           {"User-Agent", "detcd/" + self.server_version},
                           {"X-Etcd-Cluster-Id", FormatId(self.cluster.value)},
                           {"X-Min-Cluster-Version", self.min_cluster_version},
                           {"X-Peerurls", urls},
                           {"X-Raft-To", FormatId(peer.value)},
                           {"X-Server-From", own_id},
                           {"X-Server-Version", self.server_version}});
}

std::string WriteGetRequest(const PeerIdentity& self, std::string_view target, std::string_view host) {
  return WriteRequestHead("GET", target,
                          {{"Host", std::string(host)}, {"User-Agent", "detcd/" + self.server_version}});
}

std::string WritePostRequest(const PeerIdentity& self, size_t bytes, std::string_view host) {
  return WriteRequestHead("POST", "/raft",
                          {{"Host", std::string(host)},
                           {"User-Agent", "detcd/" + self.server_version},
                           {"Content-Length", absl::StrFormat("%d", bytes)},
                           {"Content-Type", "application/protobuf"},
                           {"X-Etcd-Cluster-Id", FormatId(self.cluster.value)},
                           {"X-Min-Cluster-Version", self.min_cluster_version},
                           {"X-Peerurls", JoinUrls(self)},
                           {"X-Server-From", FormatId(self.id.value)},
                           {"X-Server-Version", self.server_version}});
}

StreamAnswerVerdict JudgeStreamAnswer(const HttpResponseHead& head) {
  if (head.status == 410) return {.refusal = "removed member", .is_removed = true};
  if (head.status != 200) return {.refusal = absl::StrFormat("status %d", head.status)};
  const std::optional<MajorMinor> version = VersionHeader(head, "X-Server-Version");
  if (!version || *version < kStreamsSince) return {.refusal = "peer is too old for streams"};
  return {};
}

}  // namespace detcd::wire
