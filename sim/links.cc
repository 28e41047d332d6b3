#include "sim/links.h"

#include <algorithm>

#include "core/base/check.h"

namespace detcd::sim {

Links::Links(uint32_t endpoints, const LinkLaw& law, const LinkLaw& loopback)
    : endpoints_(endpoints), blocked_(size_t{endpoints} * endpoints), law_(blocked_.size()), laws_{law, loopback} {
  for (EndpointId e = 0; e < endpoints; ++e) law_[Index(e, e)] = 1;
}

void Links::Block(EndpointId from, EndpointId to, FaultKind why) {
  uint8_t& count = blocked_[Index(from, to)].at(static_cast<size_t>(why));
  CHECK(count < UINT8_MAX);
  ++count;
}

void Links::Unblock(EndpointId from, EndpointId to, FaultKind why) {
  uint8_t& count = blocked_[Index(from, to)].at(static_cast<size_t>(why));
  if (count > 0) --count;  // Heal may have come between
}

void Links::CountHeld(EndpointId from, EndpointId to, const Effects& effects) const {
  if (from == to) return;
  const Blocked& blocked = blocked_[Index(from, to)];
  for (size_t kind = 0; kind < blocked.size(); ++kind) {
    if (blocked[kind] > 0) effects.Effective(static_cast<FaultKind>(kind));
  }
}

void Links::SetLaw(EndpointId from, EndpointId to, const LinkLaw& law) {
  uint32_t& index = law_[Index(from, to)];
  if (index <= 1) {
    index = static_cast<uint32_t>(laws_.size());
    laws_.push_back(law);
  } else {
    laws_[index] = law;
  }
}

void Links::Heal() {
  std::fill(blocked_.begin(), blocked_.end(), Blocked());
  for (EndpointId from = 0; from < endpoints_; ++from) {
    for (EndpointId to = 0; to < endpoints_; ++to) law_[Index(from, to)] = from == to ? 1 : 0;
  }
  laws_.resize(2);
}

}  // namespace detcd::sim
