#include "scenarios/shrink_edits.h"

namespace detcd::scenario {

uint32_t MembersOf(const Scenario& scenario) { return scenario.members() != 0 ? scenario.members() : 3; }

uint32_t ElectionTimeoutMs(const Scenario& scenario) {
  constexpr uint32_t kProduction = 1'000;
  return scenario.knobs().election_timeout_ms() != 0 ? scenario.knobs().election_timeout_ms() : kProduction;
}

void RemoveEpisodes(Scenario& scenario, const std::set<uint32_t>& ids) {
  RemoveIf(*scenario.mutable_episodes(), [&](const Episode& episode) { return ids.contains(episode.id()); });
}

void RemoveOperations(Scenario& scenario, const std::set<uint32_t>& ids) {
  RemoveIf(*scenario.mutable_operations(), [&](const Operation& operation) { return ids.contains(operation.id()); });
}

std::vector<MemberNumbers*> MemberLists(Episode& episode) {
  switch (episode.fault_case()) {
    case Episode::kPartition: return {episode.mutable_partition()->mutable_group()};
    case Episode::kOneWay: return {episode.mutable_one_way()->mutable_from(), episode.mutable_one_way()->mutable_to()};
    case Episode::kClientPartition: return {episode.mutable_client_partition()->mutable_members()};
    case Episode::kSlow: return {episode.mutable_slow()->mutable_members()};
    case Episode::kLoss: return {episode.mutable_loss()->mutable_members()};
    case Episode::kResets: return {episode.mutable_resets()->mutable_members()};
    case Episode::kCrash: return {episode.mutable_crash()->mutable_members()};
    case Episode::kPause: return {episode.mutable_pause()->mutable_members()};
    case Episode::kSyncStall: return {episode.mutable_sync_stall()->mutable_members()};
    case Episode::kTransfer: return {episode.mutable_transfer()->mutable_to()};
    case Episode::kBridge: return {episode.mutable_bridge()->mutable_left(), episode.mutable_bridge()->mutable_right()};
    case Episode::kRing: return {episode.mutable_ring()->mutable_members()};
    case Episode::kClog: return {episode.mutable_clog()->mutable_from(), episode.mutable_clog()->mutable_to()};
    case Episode::kHalfOpen: return {episode.mutable_half_open()->mutable_members()};
    case Episode::kBitFlips: return {episode.mutable_bit_flips()->mutable_members()};
    case Episode::kDiskErrors: return {episode.mutable_disk_errors()->mutable_members()};
    case Episode::kFullDisk: return {episode.mutable_full_disk()->mutable_members()};
    case Episode::kCorruption: return {episode.mutable_corruption()->mutable_members()};
    case Episode::kClockLeap: return {episode.mutable_clock_leap()->mutable_members()};
    case Episode::kClockFreeze: return {episode.mutable_clock_freeze()->mutable_members()};
    case Episode::kWallJump: return {episode.mutable_wall_jump()->mutable_members()};
    case Episode::kSlowProcessor: return {episode.mutable_slow_processor()->mutable_members()};
    case Episode::kCrashLoop: return {episode.mutable_crash_loop()->mutable_members()};
    case Episode::kLyingDrive: return {episode.mutable_lying_drive()->mutable_members()};
    case Episode::kZeroedTail: return {episode.mutable_zeroed_tail()->mutable_members()};
    case Episode::kWipedDisk: return {episode.mutable_wiped_disk()->mutable_members()};
    case Episode::kMisdirectedWrites: return {episode.mutable_misdirected_writes()->mutable_members()};
    case Episode::kBlackout:  // all of them
    case Episode::kDrift:
    case Episode::FAULT_NOT_SET: break;
  }
  return {};
}

std::vector<Law*> Laws(Scenario& scenario) {
  std::vector<Law*> laws;
  if (scenario.links().has_delay()) laws.push_back(scenario.mutable_links()->mutable_delay());
  if (scenario.disks().has_write()) laws.push_back(scenario.mutable_disks()->mutable_write());
  if (scenario.disks().has_sync()) laws.push_back(scenario.mutable_disks()->mutable_sync());
  for (Episode& episode : *scenario.mutable_episodes()) {
    if (episode.has_slow()) laws.push_back(episode.mutable_slow()->mutable_delay());
  }
  return laws;
}

void KeepMembers(Scenario& scenario, uint32_t members) {
  scenario.set_members(members);
  RemoveIf(*scenario.mutable_clocks(), [&](const ClockSetting& clock) { return clock.member() > members; });
  RemoveIf(*scenario.mutable_lost_members(), [&](uint32_t member) { return member > members; });
  RemoveIf(*scenario.mutable_expectations(), [&](const Expectation& expected) { return expected.member() > members; });
  if (scenario.has_knobs()) {
    RemoveIf(*scenario.mutable_knobs()->mutable_no_pre_vote_members(), [&](uint32_t member) { return member > members; });
    RemoveIf(*scenario.mutable_knobs()->mutable_no_lease_reads(), [&](uint32_t member) { return member > members; });
  }
  // Fewer than half may be lost: the highest of them come back.
  while (2 * scenario.lost_members_size() >= static_cast<int>(members) && scenario.lost_members_size() > 0) {
    scenario.mutable_lost_members()->RemoveLast();
  }
  RemoveIf(*scenario.mutable_episodes(), [&](Episode& episode) {
    bool empty = episode.has_drift() && episode.drift().member() > members;
    for (MemberNumbers* list : MemberLists(episode)) {
      RemoveIf(*list, [&](uint32_t member) { return member > members; });
      empty |= list->empty();
    }
    return empty;
  });
}

void RenumberMembers(Scenario& scenario, const std::map<uint32_t, uint32_t>& numbers) {
  const auto renumber = [&](MemberNumbers& list) {
    for (uint32_t& member : list) member = numbers.at(member);
    std::sort(list.begin(), list.end());
  };
  for (Episode& episode : *scenario.mutable_episodes()) {
    for (MemberNumbers* list : MemberLists(episode)) {
      if (!episode.has_ring()) {
        renumber(*list);
      } else {
        for (uint32_t& member : *list) member = numbers.at(member);  // its order says who is whose neighbour
      }
    }
    if (episode.has_drift()) episode.mutable_drift()->set_member(numbers.at(episode.drift().member()));
  }
  for (ClockSetting& clock : *scenario.mutable_clocks()) clock.set_member(numbers.at(clock.member()));
  renumber(*scenario.mutable_lost_members());
  if (scenario.has_knobs()) {
    renumber(*scenario.mutable_knobs()->mutable_no_pre_vote_members());
    renumber(*scenario.mutable_knobs()->mutable_no_lease_reads());
  }
  for (Expectation& expected : *scenario.mutable_expectations()) {
    if (expected.member() != 0) expected.set_member(numbers.at(expected.member()));
  }
}

void ForgetClient(Scenario& scenario, uint32_t client) {
  RemoveIf(*scenario.mutable_episodes(), [&](Episode& episode) {
    if (!episode.has_client_partition()) return false;
    MemberNumbers& clients = *episode.mutable_client_partition()->mutable_clients();
    RemoveIf(clients, [&](uint32_t number) { return number == client; });
    return clients.empty();
  });
}

void KeepFirstCalls(Operation& operation, uint32_t kept) {
  operation.set_times(kept);
  if (kept > 1) return;
  operation.clear_times();
  operation.clear_every_ms();
}

void KeepLastCalls(Operation& operation, uint32_t kept) {
  const uint32_t gone = operation.times() - kept;
  operation.set_id(operation.id() + gone);
  operation.set_at_ms(operation.at_ms() + gone * operation.every_ms());
  KeepFirstCalls(operation, kept);
}

void RemoveCallsBefore(Scenario& scenario, uint32_t from_ms) {
  RemoveIf(*scenario.mutable_operations(), [&](Operation& operation) {
    if (operation.at_ms() >= from_ms) return false;
    const uint64_t last_ms = operation.at_ms() + uint64_t{std::max(1u, operation.times()) - 1} * operation.every_ms();
    if (last_ms < from_ms) return true;
    KeepLastCalls(operation, static_cast<uint32_t>(last_ms - from_ms) / operation.every_ms() + 1);
    return false;
  });
}

void CutEnd(Scenario& scenario, uint32_t end_ms) {
  scenario.set_chaos_ms(end_ms);
  RemoveIf(*scenario.mutable_episodes(), [&](const Episode& episode) { return episode.at_ms() >= end_ms; });
  RemoveIf(*scenario.mutable_operations(), [&](Operation& operation) {
    if (operation.at_ms() > end_ms) return true;
    if (operation.times() < 2 || operation.every_ms() == 0) return false;
    const uint32_t before_end = (end_ms - operation.at_ms()) / operation.every_ms() + 1;
    if (before_end < operation.times()) KeepFirstCalls(operation, before_end);
    return false;
  });
}

void MoveEarlier(Scenario& scenario, uint32_t from_ms, uint32_t by_ms) {
  const auto moved = [&](uint32_t at) { return at < from_ms ? at : at - by_ms; };
  for (Episode& episode : *scenario.mutable_episodes()) episode.set_at_ms(moved(episode.at_ms()));
  for (Operation& operation : *scenario.mutable_operations()) operation.set_at_ms(moved(operation.at_ms()));
  for (Expectation& expected : *scenario.mutable_expectations()) {
    expected.set_from_ms(moved(expected.from_ms()));
    expected.set_to_ms(moved(expected.to_ms()));
  }
  scenario.set_chaos_ms(moved(scenario.chaos_ms()));
}

}  // namespace detcd::scenario
