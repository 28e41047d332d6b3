// Who may open which peer stream (reference: peer protocol, sections 1 to 3): pure functions from heads to verdicts.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/types.h"
#include "core/member/peer_carrier.h"
#include "core/wire/peer_http.h"

namespace detcd::wire {

// What a member says of itself to its peers.
struct PeerIdentity {
  MemberId id;
  ClusterId cluster;
  std::vector<std::string> peer_urls;
  std::string server_version = "3.7.3";
  std::string min_cluster_version = "3.0.0";
};

// What a member tells of itself on its peer port beside raft. Answers are given at once.
class PeerInfo {
 public:
  virtual std::string VersionJson() const = 0;  // the body of /version
  virtual std::string MembersJson() const = 0;  // the body of /members, without the final newline
  virtual bool IsRemoved(MemberId id) const = 0;
  // A peer says that this member was removed from the cluster: it should stop.
  virtual void OnSelfRemoved() = 0;

 protected:
  ~PeerInfo() = default;
};

// Lower-case hex without leading zeros, and back (upper case too, at most 16 digits' worth; nothing else).
std::string FormatId(uint64_t id);
std::optional<uint64_t> ParseId(std::string_view text);

// The headers that every answer of stream, pipeline and members paths has.
std::vector<HttpHeader> ClusterHeader(const PeerIdentity& self);

// Refuses a sender whose version or cluster does not fit: 412. nullopt: it fits.
std::optional<HttpAnswer> CheckCompatible(const PeerIdentity& self, const HttpRequestHead& head);

// A request for one of our outgoing streams that passed every check.
struct StreamGrant {
  MemberId peer;
  member::PeerChannel channel;
};
// `is_peer(id)` tells whether the id is a known peer. Checks in etcd's order; the answer has all its headers.
template <class IsPeer>
std::variant<StreamGrant, HttpAnswer> CheckStreamRequest(const PeerIdentity& self, const PeerInfo& info,
                                                         const HttpRequestHead& head, const IsPeer& is_peer);

// The head with which we open the stream that `peer` will send us its messages on.
std::string WriteStreamRequest(const PeerIdentity& self, MemberId peer, member::PeerChannel channel,
                               std::string_view host);

// The heads of other requests of ours: a question, and a posted message of `bytes` bytes.
std::string WriteGetRequest(const PeerIdentity& self, std::string_view target, std::string_view host);
std::string WritePostRequest(const PeerIdentity& self, size_t bytes, std::string_view host);

// What an answer to a request for a stream means; empty `refusal`: the stream is open. `is_removed`: we are no member any more.
struct StreamAnswerVerdict {
  std::string refusal;
  bool is_removed = false;
};
StreamAnswerVerdict JudgeStreamAnswer(const HttpResponseHead& head);

// --- parts of CheckStreamRequest that do not depend on who is a peer -------------------------------------------------

// Method, compatibility, path and sender, and that the sender was not removed.
std::variant<StreamGrant, HttpAnswer> CheckStreamSender(const PeerIdentity& self, const PeerInfo& info,
                                                        const HttpRequestHead& head);
// The receiver; last.
std::optional<HttpAnswer> CheckStreamReceiver(const PeerIdentity& self, const HttpRequestHead& head);
// An error answer of the stream paths.
HttpAnswer StreamRefusal(const PeerIdentity& self, int status, std::string_view text);
HttpAnswer MethodNotAllowed(std::string_view allowed);

template <class IsPeer>
std::variant<StreamGrant, HttpAnswer> CheckStreamRequest(const PeerIdentity& self, const PeerInfo& info,
                                                         const HttpRequestHead& head, const IsPeer& is_peer) {
  std::variant<StreamGrant, HttpAnswer> verdict = CheckStreamSender(self, info, head);
  const auto* grant = std::get_if<StreamGrant>(&verdict);
  if (grant == nullptr) return verdict;
  if (!is_peer(grant->peer)) return StreamRefusal(self, 404, "error sender not found");
  if (std::optional<HttpAnswer> refusal = CheckStreamReceiver(self, head)) return *std::move(refusal);
  return verdict;
}

}  // namespace detcd::wire
