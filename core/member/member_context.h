// The JSON form of a member in the context of a conf change (reference/peer.md 14), as etcd writes and reads it:
//   {"id":11,"peerURLs":["http://a:2380"],"name":"a"}
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/rpc/backend.h"

namespace detcd::member {

struct MemberContext {
  rpc::MemberRow member;
  bool is_promote = false;

  friend bool operator==(const MemberContext&, const MemberContext&) = default;
};

// Members of the object that are not known are passed over; null stands for absent. nullopt: not a JSON object, or a
// known member of it has the wrong type.
std::optional<MemberContext> DecodeMemberContext(std::string_view json);

// id and peerURLs always (null when there is none), the others only when not empty.
std::string EncodeMemberContext(const MemberContext& context);

}  // namespace detcd::member
