// Strong integers for the quantities of replication. A Term never meets a LogIndex by accident: there is no
// conversion between them, and none from plain integers but the explicit one.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace detcd {

// A 64-bit unsigned quantity with an order; `Tag` only tells kinds apart. Arithmetic is with plain counts.
// Zero is the value before the first (no term yet, no entry yet, no member).
template <class Tag>
struct Strong {
  uint64_t value = 0;

  constexpr Strong() = default;
  constexpr explicit Strong(uint64_t v) : value(v) {}

  friend constexpr auto operator<=>(Strong, Strong) = default;
  constexpr Strong operator+(uint64_t n) const { return Strong(value + n); }
  constexpr Strong operator-(uint64_t n) const { return Strong(value - n); }
  // Distance; the caller knows that `other` is not larger.
  constexpr uint64_t operator-(Strong other) const { return value - other.value; }
  constexpr Strong& operator++() {
    ++value;
    return *this;
  }
  constexpr bool IsZero() const { return value == 0; }
};

// A Raft term. The first election is for term 1 (2 after etcd's bootstrap).
using Term = Strong<struct TermTag>;
// A position in the replicated log; the first entry is 1, and 0 stands before the log.
using LogIndex = Strong<struct LogIndexTag>;
// The id of a member, as etcd derives it (reference: semantics, section 1). 0 is no member.
using MemberId = Strong<struct MemberIdTag>;
// The id of a cluster.
using ClusterId = Strong<struct ClusterIdTag>;

// The store-wide counter of changes. Signed like etcd's: requests may carry zero and negative numbers.
// An empty store is at revision 1.
struct Revision {
  int64_t value = 0;

  constexpr Revision() = default;
  constexpr explicit Revision(int64_t v) : value(v) {}
  friend constexpr auto operator<=>(Revision, Revision) = default;
  constexpr Revision operator+(int64_t n) const { return Revision(value + n); }
  constexpr Revision operator-(int64_t n) const { return Revision(value - n); }
};

// The id of a client lease; 0 is none.
struct LeaseId {
  int64_t value = 0;

  constexpr LeaseId() = default;
  constexpr explicit LeaseId(int64_t v) : value(v) {}
  friend constexpr auto operator<=>(LeaseId, LeaseId) = default;
};

}  // namespace detcd

template <class Tag>
struct std::hash<detcd::Strong<Tag>> {
  size_t operator()(detcd::Strong<Tag> s) const noexcept { return static_cast<size_t>(s.value * 0x9E3779B97F4A7C15u); }
};
