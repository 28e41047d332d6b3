#include "scenarios/recorder.h"

#include <algorithm>
#include <utility>

#include <google/protobuf/descriptor.h>

#include "absl/strings/str_format.h"
#include "checker/revision_order.h"

namespace detcd::scenario {
namespace {

// The fault of an episode: `partition { group: 2 }`.
std::string FaultText(const Episode& episode) {
  Episode fault = episode;
  fault.clear_id();
  fault.clear_at_ms();
  fault.clear_for_ms();
  fault.clear_at_new_leader();
  fault.clear_until_new_leader();
  return fault.ShortDebugString();
}

template <class Numbers>
void Touch(std::vector<uint32_t>& lanes, const Numbers& numbers, uint32_t offset = 0) {
  for (const uint32_t number : numbers) lanes.push_back(number + offset);
}

std::string ResultText(const checker::Operation& operation) {
  switch (operation.outcome) {
    case checker::Outcome::kPending: return "no answer yet";
    case checker::Outcome::kUnknown: return "unknown";
    case checker::Outcome::kRefused: return "refused: " + operation.answer.error;
    case checker::Outcome::kAnswered: break;
  }
  return operation.answer.error.empty() ? absl::StrFormat("revision %d", operation.answer.header_revision) : operation.answer.error;
}

// `put k1=v7` of `operation 7 (client 2: put k1=v7)`.
std::string RequestText(const checker::Operation& operation) {
  const std::string text = checker::Describe(operation);
  const size_t colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2, text.size() - colon - 3);
}

}  // namespace

Recorder::Recorder(sim::World& world) : world_(world), last_(world.members()) {
  record_.members = world.members();
  record_.clients = world.clients() + world.members();
}

void Recorder::Add(uint32_t lane, MarkKind kind, std::string text, uint64_t term) {
  const checker::Moment now = world_.Now();
  record_.marks.push_back({.event = now.event, .nanos = now.true_time.nanos, .lane = lane, .kind = kind, .term = term, .text = std::move(text)});
}

void Recorder::AfterStep(const sim::WorldStep& step) {
  const uint64_t event = world_.Now().event;
  if (event >= record_.parents.size()) {
    record_.parents.resize(event + 1);
    record_.lanes.resize(event + 1);
  }
  if (!step.ran) return;
  record_.parents[event] = world_.universe().LastHost(step.endpoint).parent();
  record_.lanes[event] = step.endpoint + 1;
  if (step.endpoint < world_.members()) Compare(step.endpoint);
}

void Recorder::Compare(uint32_t member) {
  const checker::MemberObservation& seen = world_.Seen(member);
  checker::MemberObservation& last = last_[member];
  const uint64_t term = seen.term.value;
  if (seen.incarnation != last.incarnation) last = {.incarnation = seen.incarnation, .term = seen.term, .voted_for = seen.voted_for};
  if (seen.role != last.role || (seen.term != last.term && seen.role != checker::Role::kFollower)) {
    constexpr const char* kRoles[] = {"follower", "pre-candidate", "candidate", "leader"};
    Add(member + 1, seen.role == checker::Role::kLeader ? MarkKind::kLeader : MarkKind::kRole,
        absl::StrFormat("%s of %d", kRoles[static_cast<size_t>(seen.role)], term), term);
  }
  if (seen.voted_for != last.voted_for && seen.voted_for.value != 0) {
    Add(member + 1, MarkKind::kVote, absl::StrFormat("votes for %s", world_.NameOf(seen.voted_for)), term);
  }
  if (seen.durable_index > last.durable_index) {
    Add(member + 1, MarkKind::kSync, absl::StrFormat("synced to %d", seen.durable_index.value), term);
  }
  if (seen.commit_index > last.commit_index) {
    Add(member + 1, MarkKind::kCommit, absl::StrFormat("commits to %d", seen.commit_index.value), term);
  }
  last = seen;
}

void Recorder::OnEpisode(const Episode& episode, size_t place, bool begins) {
  Add(0, begins ? MarkKind::kFaultBegins : MarkKind::kFaultEnds, FaultText(episode) + (begins ? " begins" : " ends"));
  Mark& mark = record_.marks.back();
  mark.subject = place;
  switch (episode.fault_case()) {
    case Episode::kPartition: Touch(mark.touched, episode.partition().group()); break;
    case Episode::kOneWay: Touch(mark.touched, episode.one_way().to()); break;
    case Episode::kClientPartition: Touch(mark.touched, episode.client_partition().clients(), record_.members); break;
    case Episode::kSlow: Touch(mark.touched, episode.slow().members()); break;
    case Episode::kLoss: Touch(mark.touched, episode.loss().members()); break;
    case Episode::kResets: Touch(mark.touched, episode.resets().members()); break;
    case Episode::kPause: Touch(mark.touched, episode.pause().members()); break;
    case Episode::kSyncStall: Touch(mark.touched, episode.sync_stall().members()); break;
    case Episode::kTransfer: Touch(mark.touched, episode.transfer().to()); break;
    case Episode::kDrift: mark.touched.push_back(episode.drift().member()); break;
    case Episode::kBridge: Touch(mark.touched, episode.bridge().left()); break;
    case Episode::kRing: Touch(mark.touched, episode.ring().members()); break;
    case Episode::kClog: Touch(mark.touched, episode.clog().to()); break;
    case Episode::kHalfOpen: Touch(mark.touched, episode.half_open().members()); break;
    case Episode::kBitFlips: Touch(mark.touched, episode.bit_flips().members()); break;
    case Episode::kDiskErrors: Touch(mark.touched, episode.disk_errors().members()); break;
    case Episode::kFullDisk: Touch(mark.touched, episode.full_disk().members()); break;
    case Episode::kCorruption: Touch(mark.touched, episode.corruption().members()); break;
    case Episode::kClockLeap: Touch(mark.touched, episode.clock_leap().members()); break;
    case Episode::kClockFreeze: Touch(mark.touched, episode.clock_freeze().members()); break;
    case Episode::kWallJump: Touch(mark.touched, episode.wall_jump().members()); break;
    case Episode::kSlowProcessor: Touch(mark.touched, episode.slow_processor().members()); break;
    case Episode::kMisdirectedWrites: Touch(mark.touched, episode.misdirected_writes().members()); break;
    case Episode::kLyingDrive: Touch(mark.touched, episode.lying_drive().members()); break;
    // Each member's own mark tells it.
    case Episode::kCrash:
    case Episode::kCrashLoop:
    case Episode::kBlackout:
    case Episode::kZeroedTail:
    case Episode::kWipedDisk:
    case Episode::FAULT_NOT_SET: record_.marks.pop_back();
  }
}

void Recorder::OnCrash(uint32_t member, std::string_view how) {
  Add(member + 1, MarkKind::kCrash, std::string(how));
  last_[member] = {};
}

void Recorder::OnStart(uint32_t member) { Add(member + 1, MarkKind::kRestart, "starts"); }

void Recorder::OnTrace(const sim::TraceRecord& record) {
  if (record.level < LogLevel::kWarn || record.endpoint >= world_.members()) return;
  Add(record.endpoint + 1, MarkKind::kNote, record.text);
}

RunRecord Recorder::Record() const {
  RunRecord record = record_;
  const auto add = [&](const checker::Operation& operation, const checker::Moment& moment, MarkKind kind, std::string text) {
    record.marks.push_back({.event = moment.event,
                            .nanos = moment.true_time.nanos,
                            .lane = record.members + operation.client,
                            .kind = kind,
                            .subject = operation.id,
                            .text = std::move(text)});
  };
  for (const checker::Operation& operation : world_.history()) {
    add(operation, operation.call, MarkKind::kCall, absl::StrFormat("%s (%d)", RequestText(operation), operation.id));
    if (operation.outcome == checker::Outcome::kUnknown) continue;
    add(operation, operation.end, MarkKind::kReturn,
        absl::StrFormat("%s from %s (%d)", ResultText(operation), world_.NameOf(operation.member), operation.id));
  }
  for (const checker::Operation& operation : world_.UnderWay()) {
    add(operation, operation.call, MarkKind::kCall, absl::StrFormat("%s (%d)", RequestText(operation), operation.id));
  }
  std::ranges::stable_sort(record.marks, {}, &Mark::event);
  return record;
}

}  // namespace detcd::scenario
