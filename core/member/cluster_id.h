// Member and cluster ids as etcd derives them (reference/semantics.md 1), so that a detcd member fits into an etcd
// cluster and an etcd data directory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/types.h"

namespace detcd::member {

// The id of a bootstrap member: SHA-1 over its sorted peer URLs and the cluster token, first 8 bytes, big-endian.
MemberId DeriveMemberId(std::vector<std::string> peer_urls, std::string_view cluster_token);

// The id of a cluster: SHA-1 over all member ids in ascending order as 8 big-endian bytes each.
ClusterId DeriveClusterId(std::vector<MemberId> members);

}  // namespace detcd::member
