// The paths between endpoints, one for each ordered pair: delay, what is lost on it, and whether it is blocked. Byte
// streams and messages obey the same links.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/delay_law.h"
#include "sim/event_queue.h"
#include "sim/faults/effects.h"

namespace detcd::sim {

struct LinkLaw {
  DelayLaw delay;
  bool slow = false;                  // `delay` is a fault's
  int64_t clogged_until = 0;          // nothing arrives before this true time; nothing is lost, the order is kept
  uint32_t segment_loss_permille = 0;  // streams: a delivery waits for retransmissions, and in the end is a reset
  uint32_t flip_permille = 0;          // streams: altered bytes, found by their checksum: the connection is reset
  uint32_t message_loss_permille = 0;
  uint32_t message_duplicate_permille = 0;
  uint32_t message_reorder_permille = 0;  // a message may overtake earlier ones

  // When something arrives that would at `at`.
  int64_t Unclogged(int64_t at, int64_t now, const Effects& effects) const {
    if (at >= clogged_until) return at;
    effects.Effective(FaultKind::kClog, Nanos(clogged_until - now));
    return clogged_until;
  }
  // A delivery takes `drawn`, of `delay`.
  void CountDelay(Duration drawn, const Effects& effects) const {
    if (slow) {
      effects.Effective(FaultKind::kSlowLink, drawn);
    } else if (IsSlowMode(delay, drawn)) {
      effects.Effective(FaultKind::kDelaySpike, drawn);
    }
  }
};

class Links {
 public:
  // All links start unblocked under `law`; an endpoint's link to itself takes `loopback` and is never blocked.
  Links(uint32_t endpoints, const LinkLaw& law, const LinkLaw& loopback);

  uint32_t endpoints() const { return endpoints_; }
  const LinkLaw& Law(EndpointId from, EndpointId to) const { return laws_[law_[Index(from, to)]]; }
  bool IsBlocked(EndpointId from, EndpointId to) const {
    return from != to && blocked_[Index(from, to)] != Blocked();
  }

  // Blocks one direction. `why` is one of the kinds that block. Counted: overlapping partitions each take theirs back.
  void Block(EndpointId from, EndpointId to, FaultKind why);
  void Unblock(EndpointId from, EndpointId to, FaultKind why);
  // Something was held or lost on this way: counts it for each kind that blocks it.
  void CountHeld(EndpointId from, EndpointId to, const Effects& effects) const;
  // Gives one direction a law of its own.
  void SetLaw(EndpointId from, EndpointId to, const LinkLaw& law);
  // Unblocks everything and gives all links the law they started with.
  void Heal();

 private:
  // How many partitions of each kind block one direction.
  using Blocked = std::array<uint8_t, static_cast<size_t>(FaultKind::kRing) + 1>;

  size_t Index(EndpointId from, EndpointId to) const { return size_t{from} * endpoints_ + to; }

  uint32_t endpoints_;
  std::vector<Blocked> blocked_;
  std::vector<uint32_t> law_;  // index into laws_; 0 the common law, 1 loopback
  std::vector<LinkLaw> laws_;
};

}  // namespace detcd::sim
