#include "core/member/reads.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/limits.h"
#include "core/base/probe.h"

namespace detcd::member {

bool Reads::WantsRound() const { return !next_.empty() && rounds_.size() < kReadRoundsInFlightMax; }

void Reads::StartRound(raft::ReadId id, Instant now) {
  rounds_.push_back({.ids = {id}, .asked = now, .reads = std::exchange(next_, {})});
}

bool Reads::HasOverdueRound(Instant now) const {
  return std::any_of(rounds_.begin(), rounds_.end(), [&](const Round& round) { return IsOverdue(round, now); });
}

void Reads::RetryRound(raft::ReadId new_id, Instant now) {
  PROBE("reads.round_retried");
  auto round = std::find_if(rounds_.begin(), rounds_.end(), [&](const Round& r) { return IsOverdue(r, now); });
  round->ids.push_back(new_id);
  round->asked = now;
}

void Reads::OnIndex(raft::ReadId id, LogIndex index) {
  for (Round& round : rounds_) {
    if (std::find(round.ids.begin(), round.ids.end(), id) != round.ids.end()) round.index = index;
  }
}

std::vector<Reads::Pending> Reads::TakeServable(LogIndex applied) {
  std::vector<Pending> servable;
  for (auto round = rounds_.begin(); round != rounds_.end();) {
    if (!round->index || *round->index > applied) {
      ++round;
      continue;
    }
    std::move(round->reads.begin(), round->reads.end(), std::back_inserter(servable));
    round = rounds_.erase(round);
  }
  return servable;
}

std::vector<Reads::Pending> Reads::TakeExpired(Instant now) {
  std::vector<Pending> expired;
  auto take = [&](std::vector<Pending>& reads) {
    // Deadlines rise with the order of arrival: the overdue ones are a prefix.
    auto first_left = std::find_if(reads.begin(), reads.end(), [&](const Pending& read) { return read.deadline > now; });
    std::move(reads.begin(), first_left, std::back_inserter(expired));
    reads.erase(reads.begin(), first_left);
  };
  for (Round& round : rounds_) take(round.reads);
  take(next_);
  std::erase_if(rounds_, [](const Round& round) { return round.reads.empty(); });
  return expired;
}

std::vector<Reads::Pending> Reads::TakeUnanswered() {
  std::vector<Pending> unanswered;
  for (Round& round : rounds_) {
    if (!round.index) std::move(round.reads.begin(), round.reads.end(), std::back_inserter(unanswered));
  }
  std::erase_if(rounds_, [](const Round& round) { return !round.index; });
  return unanswered;
}

std::optional<Instant> Reads::NextDeadline() const {
  std::optional<Instant> next;
  auto consider = [&](Instant due) { next = next ? std::min(*next, due) : due; };
  for (const Round& round : rounds_) {
    if (!round.index) consider(round.asked + kReadIndexRetry);
    if (!round.reads.empty()) consider(round.reads.front().deadline);
  }
  if (!next_.empty()) consider(next_.front().deadline);
  return next;
}

size_t Reads::size() const {
  size_t count = next_.size();
  for (const Round& round : rounds_) count += round.reads.size();
  return count;
}

}  // namespace detcd::member
