#include "scenarios/measures.h"

#include <algorithm>

namespace detcd::scenario {
namespace {

using checker::OperationKind;
using checker::Outcome;
using checker::Role;

// What is shorter is the time that calls take, not a time without service.
constexpr int64_t kOutageMinNanos = 100'000'000;

bool IsWrite(const checker::Request& request) {
  return request.kind == OperationKind::kPut || request.kind == OperationKind::kDelete ||
         request.kind == OperationKind::kTxn;
}
bool IsLinearizableRead(const checker::Request& request) {
  return request.kind == OperationKind::kRange && !request.serializable;
}

bool IsTime(Metric metric) {
  return metric == Metric::kWriteGap || metric == Metric::kReadGap || metric == Metric::kWriteOutage ||
         metric == Metric::kReadOutage;
}

}  // namespace

Measures::Measures(sim::World& world, std::vector<Window> windows) : world_(world), seats_(world.members()) {
  for (Window& window : windows) tallies_.push_back({.window = window, .counts = {}});
  world_.SetListener(this);
}

// --- What is counted ---

void Measures::AddOfAll(Metric metric, uint64_t amount) {
  const int64_t now = world_.universe().now();
  for (Tally& tally : tallies_) {
    const Window& window = tally.window;
    if (window.member.has_value() || now < window.from || now >= window.to) continue;
    tally.counts[static_cast<size_t>(metric)] += amount;
    changed_ = true;
  }
}

void Measures::AddOfMember(Metric metric, uint32_t member, uint64_t amount) {
  const int64_t now = world_.universe().now();
  for (Tally& tally : tallies_) {
    const Window& window = tally.window;
    if (window.member != member || now < window.from || now >= window.to) continue;
    tally.counts[static_cast<size_t>(metric)] += amount;
    changed_ = true;
  }
}

void Measures::Count(Metric metric, uint32_t member) {
  AddOfAll(metric, 1);
  AddOfMember(metric, member, 1);
}

std::optional<uint32_t> Measures::NumberOf(MemberId id) const {
  for (uint32_t member = 0; member < world_.members(); ++member) {
    if (world_.Seen(member).member == id) return member;
  }
  return std::nullopt;
}

uint64_t Measures::Value(size_t window, Metric metric) const {
  const Tally& tally = tallies_[window];
  const uint64_t count = tally.counts[static_cast<size_t>(metric)];
  if (IsTime(metric)) return count / 1'000'000;
  if (metric != Metric::kMessagesPerSecond) return count;
  const int64_t length = std::min(world_.universe().now(), tally.window.to) - tally.window.from;
  return length <= 0 ? 0 : count * 1'000 / std::max<uint64_t>(1, static_cast<uint64_t>(length) / 1'000'000);
}

// --- Members ---

void Measures::AfterStep(const sim::WorldStep& step) {
  if (step.is_control) RefreshConnections();
  if (step.ran && step.endpoint < world_.members()) OnMember(step.endpoint);
  for (; history_seen_ < world_.history().size(); ++history_seen_) OnEnd(world_.history()[history_seen_]);
}

void Measures::OnEpisode(const Episode& episode, bool begins) {
  const auto hamper = [&](const auto& members) {
    for (const uint32_t member : members) begins ? ++seats_[member - 1].hampered : --seats_[member - 1].hampered;
  };
  if (episode.has_pause()) hamper(episode.pause().members());
  if (episode.has_sync_stall()) hamper(episode.sync_stall().members());
}

void Measures::RefreshConnections() {
  const sim::Links& links = world_.universe().links();
  const auto arrives = [&](uint32_t from, uint32_t to) {
    return !links.IsBlocked(from, to) && links.Law(from, to).clogged_until <= world_.universe().now();
  };
  const auto runs = [this](uint32_t member) { return world_.IsUp(member) && seats_[member].hampered == 0; };
  for (uint32_t member = 0; member < world_.members(); ++member) {
    uint32_t reached = 0;
    for (uint32_t other = 0; other < world_.members(); ++other) {
      if (runs(other) && arrives(member, other) && arrives(other, member)) ++reached;
    }
    std::optional<int64_t>& since = seats_[member].connected_since;
    if (!runs(member) || reached <= world_.members() / 2) {
      since.reset();
    } else if (!since.has_value()) {
      since = world_.universe().now();
    }
  }
}

void Measures::OnMember(uint32_t member) {
  const checker::MemberObservation& seen = world_.Seen(member);
  Seat& seat = seats_[member];
  const Term term = seen.term;
  if (term > term_highest_) {
    AddOfAll(Metric::kTermGrowth, term.value - term_highest_.value);
    term_highest_ = term;
  }
  if (term > seat.term_highest) {
    AddOfMember(Metric::kTermGrowth, member, term.value - seat.term_highest.value);
    seat.term_highest = term;
  }
  const bool same = seen.incarnation == seat.incarnation && term == seat.term && seen.role == seat.role;
  if (same) return;
  const bool won = seen.role == Role::kLeader && term == seat.term;
  if (seat.role == Role::kCandidate && !won) Count(Metric::kElectionsLost, member);
  const bool led_on = seen.role == Role::kLeader && term == leader_term_;
  if (leader_ == member && !led_on) LeadershipEnds();
  if (seen.role == Role::kCandidate) Count(Metric::kElections, member);
  if (seen.role == Role::kLeader) OnLeader(member, term);
  seat.incarnation = seen.incarnation;
  seat.term = term;
  seat.role = seen.role;
}

void Measures::OnLeader(uint32_t member, Term term) {
  // The leader of one member, and of a transfer's target, may go from pre-candidate to leader within one event.
  Count(Metric::kLeaderChanges, member);
  if (term < leader_term_) return;
  if (leader_.has_value()) LeadershipEnds();
  leader_ = member;
  leader_term_ = term;
}

void Measures::LeadershipEnds() {
  const uint32_t member = *leader_;
  leader_.reset();
  const std::optional<int64_t>& since = seats_[member].connected_since;
  const int64_t long_enough = world_.universe().now() - world_.knobs().member.election_timeout.nanos;
  if (since.has_value() && *since <= long_enough && transfer_term_ != leader_term_) Count(Metric::kDisruptions, member);
}

void Measures::OnPeerMessage(const raft::Message& message) {
  AddOfAll(Metric::kMessagesPerSecond, 1);
  if (const auto from = NumberOf(message.from)) AddOfMember(Metric::kMessagesPerSecond, *from, 1);
  if (std::holds_alternative<raft::TimeoutNow>(message.body)) transfer_term_ = message.term;
}

// --- Clients ---

void Measures::OnEnd(const checker::Operation& operation) {
  const bool write = IsWrite(operation.request);
  const bool read = IsLinearizableRead(operation.request);
  const bool probe = operation.client > world_.clients();
  const std::optional<uint32_t> member = NumberOf(operation.member);
  const auto count = [&](Metric metric) {
    AddOfAll(metric, 1);
    if (member) AddOfMember(metric, *member, 1);
  };
  if (operation.outcome == Outcome::kAnswered) {
    if (operation.request.kind == OperationKind::kRange && operation.answer.error.empty() && IsStale(operation)) {
      count(read ? Metric::kStaleReads : Metric::kStaleSerializableReads);
    }
    const int64_t revision = operation.answer.header_revision;
    if (answered_.empty() || revision > answered_.back().second) answered_.emplace_back(operation.end.event, revision);
    if (write) OnServed(writes_, operation.call.true_time.nanos);
    if (read) OnServed(reads_, operation.call.true_time.nanos);
  } else if (!probe && (write || read)) {
    count(write ? Metric::kFailedWrites : Metric::kFailedReads);
    std::optional<int64_t>& since = (write ? writes_ : reads_).waits_since;
    since = std::min(since.value_or(operation.call.true_time.nanos), operation.call.true_time.nanos);
  }
}

bool Measures::IsStale(const checker::Operation& read) const {
  const auto after = std::ranges::lower_bound(answered_, read.call.event, {}, &std::pair<uint64_t, int64_t>::first);
  return after != answered_.begin() && std::prev(after)->second > read.answer.header_revision;
}

std::optional<int64_t> Measures::EarliestWaiting(bool reads) const {
  std::optional<int64_t> earliest;
  for (const checker::Operation& operation : world_.UnderWay()) {
    const bool of_kind = reads ? IsLinearizableRead(operation.request) : IsWrite(operation.request);
    if (operation.client > world_.clients() || !of_kind) continue;
    earliest = std::min(earliest.value_or(operation.call.true_time.nanos), operation.call.true_time.nanos);
  }
  return earliest;
}

void Measures::OnServed(Service& service, int64_t since) {
  since = std::min(since, service.waits_since.value_or(since));
  since = std::min(since, EarliestWaiting(&service == &reads_).value_or(since));
  AddWait(service, since);
  service.served_at = world_.universe().now();
  service.waits_since.reset();
}

void Measures::AddWait(const Service& service, int64_t since) {
  const int64_t from = std::max(since, service.served_at);
  const int64_t to = world_.universe().now();
  for (Tally& tally : tallies_) {
    const int64_t inside = std::min(to, tally.window.to) - std::max(from, tally.window.from);
    if (tally.window.member.has_value() || inside <= 0) continue;
    uint64_t& gap = tally.counts[static_cast<size_t>(service.gap)];
    gap = std::max(gap, static_cast<uint64_t>(inside));
    uint64_t& outage = tally.counts[static_cast<size_t>(service.outage)];
    if (to - from >= kOutageMinNanos) outage += static_cast<uint64_t>(inside);
    changed_ = true;
  }
}

void Measures::Finish() {
  for (Service* service : {&writes_, &reads_}) {
    std::optional<int64_t> since = service->waits_since;
    if (const auto waiting = EarliestWaiting(service == &reads_)) since = std::min(since.value_or(*waiting), *waiting);
    if (since.has_value()) AddWait(*service, *since);
  }
}

}  // namespace detcd::scenario
