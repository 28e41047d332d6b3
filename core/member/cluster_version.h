// What version the cluster as a whole speaks (reference/semantics.md 19): the leader asks the members for the versions of
// their servers, and proposes the lowest one when it is above the cluster's. Asking is a round: begun at the first commit
// of a term and every kClusterVersionInterval after it; over when all have answered or kClusterVersionAnswerTimeout is.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time.h"
#include "core/base/types.h"

namespace detcd::member {

// The version of the server in the body of /version; nullopt: no JSON object, or none with a version X.Y.Z.
std::optional<std::string> DecodeServerVersion(std::string_view json);

// What to propose: `X.Y.0`; nullopt: nothing. `current` is the cluster's version, empty before it has one. An element of
// `servers` (all members', our own included) is empty where it is not known: then a cluster without a version gets the
// lowest there is, and one with a version keeps it. A cluster version never falls here, and never leaves its major.
std::optional<std::string> DecideClusterVersion(std::string_view current, const std::vector<std::string>& servers);

class VersionRounds {
 public:
  explicit VersionRounds(std::string own_version) : own_version_(std::move(own_version)) {}

  // We lead and have committed in our term: the next round is due at once.
  void OnLead(Instant now);
  // We do not lead: no round until OnLead.
  void OnLeadLost();
  bool IsDue(Instant now) const { return due_ && now >= *due_ && !round_; }
  // Begins a round that is due; the caller asks `peers`.
  void Start(Instant now, const std::vector<MemberId>& peers);
  // Empty: no answer will come. Ignored outside a round.
  void OnAnswer(MemberId peer, std::string version);
  // Ends the round when it is over, and returns what DecideClusterVersion is to look at.
  std::optional<std::vector<std::string>> TakeFinished(Instant now);
  std::optional<Instant> NextDeadline() const;

 private:
  struct Round {
    std::map<MemberId, std::optional<std::string>> answers;
    Instant deadline;
  };

  std::string own_version_;
  std::optional<Instant> due_;    // set while we lead
  std::optional<Round> round_;
};

}  // namespace detcd::member
