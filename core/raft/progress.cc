#include "core/raft/progress.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/probe.h"

namespace detcd::raft {

bool Progress::MayCarryEntries(uint64_t appends_max, uint64_t bytes_max) const {
  if (mode == Mode::kProbe) return !probe_in_flight;
  return in_flight.size() < appends_max && bytes_in_flight < bytes_max;
}

void Progress::OnSent(uint64_t count, uint64_t bytes, LogIndex commit) {
  commit_sent = std::max(commit_sent, std::min(commit, next + count - 1));
  if (mode == Mode::kProbe) {
    probe_in_flight = true;
    return;
  }
  if (count == 0) return;
  next = next + count;
  in_flight.push_back({.last = next - 1, .bytes = bytes});
  bytes_in_flight += bytes;
}

bool Progress::OnAccepted(LogIndex index) {
  const bool rose = index > match;
  if (!rose && (mode == Mode::kReplicate || index < match)) return false;
  match = index;
  next = std::max(next, match + 1);
  if (mode == Mode::kProbe) {
    BecomeReplicate();
    return true;
  }
  while (!in_flight.empty() && in_flight.front().last <= index) {
    bytes_in_flight -= in_flight.front().bytes;
    in_flight.pop_front();
  }
  return true;
}

bool Progress::OnRefused(LogIndex refused, LogIndex newest_shared) {
  if (mode == Mode::kReplicate) {
    if (refused <= match) {
      PROBE("raft.progress_stale_refusal");
      return false;
    }
    BecomeProbe();
    return true;
  }
  if (refused + 1 != next) {
    PROBE("raft.progress_stale_refusal_of_probe");
    return false;
  }
  // Never below what it acknowledged: a follower that lost entries is asked for the same again.
  next = std::max(std::min(refused, newest_shared + 1), match + 1);
  commit_sent = std::min(commit_sent, next - 1);
  probe_in_flight = false;
  return true;
}

void Progress::BecomeProbe() {
  mode = Mode::kProbe;
  probe_in_flight = false;
  next = match + 1;
  commit_sent = std::min(commit_sent, match);
  in_flight.clear();
  bytes_in_flight = 0;
}

void Progress::BecomeReplicate() {
  CHECK(in_flight.empty());
  mode = Mode::kReplicate;
  probe_in_flight = false;
  next = match + 1;
}

}  // namespace detcd::raft
