#include "sim/world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "core/base/check.h"
#include "core/member/cluster_id.h"
#include "sim/direct_calls.h"
#include "sim/disk_log.h"
#include "sim/sim_streams.h"
#include "sim/wire_calls.h"

namespace detcd::sim {
namespace {

std::string Url(EndpointId endpoint, uint16_t port) { return absl::StrFormat("http://%s:%d", EndpointHost(endpoint), port); }

UniverseKnobs WithEndpoints(const WorldKnobs& knobs) {
  UniverseKnobs universe = knobs.universe;
  universe.endpoints = knobs.members * 2 + knobs.clients;
  return universe;
}

// On streams messages may wait for room, or be dropped, before they are seen to leave.
uint64_t TurnEventsSeen(const WorldKnobs& knobs) {
  return knobs.fidelity == Fidelity::kDirect ? std::max<uint64_t>(knobs.universe.processor.turn_events_max, 1) : 0;
}

VictimRole RoleOf(checker::Role role) {
  switch (role) {
    case checker::Role::kFollower: return VictimRole::kFollower;
    case checker::Role::kPreCandidate: return VictimRole::kPreCandidate;
    case checker::Role::kCandidate: return VictimRole::kCandidate;
    case checker::Role::kLeader: return VictimRole::kLeader;
  }
  return VictimRole::kDown;
}

// `text` without its numbers, hexadecimal ids included: equal for the same trouble.
std::string WithoutNumbers(std::string_view text) {
  std::string result;
  size_t at = 0;
  while (at < text.size()) {
    size_t end = at;
    bool has_digit = false;
    while (end < text.size() && (absl::ascii_isalnum(static_cast<unsigned char>(text[end])))) {
      has_digit |= absl::ascii_isdigit(static_cast<unsigned char>(text[end]));
      ++end;
    }
    if (end == at) {
      result += text[at++];
      continue;
    }
    result += has_digit ? std::string_view("#") : text.substr(at, end - at);
    at = end;
  }
  return result;
}

}  // namespace

World::World(const WorldKnobs& knobs) : knobs_(knobs), universe_(WithEndpoints(knobs)), payloads_(universe_.messages()) {
  universe_.messages().SetStore(&payloads_);
  for (EndpointId e = 0; e < knobs_.members; ++e) universe_.effects().MakeMember(e, knobs_.member.election_timeout * 2);
  MakeSeats();
  std::vector<EndpointId> everybody;
  for (EndpointId e = 0; e < knobs_.members; ++e) everybody.push_back(e);
  clients_.resize(knobs_.clients + knobs_.members);
  for (uint32_t c = 0; c < knobs_.clients; ++c) MakeClient(c, ClientEndpoint(c), everybody);
}

World::~World() {
  // The hosts first: nothing of theirs is heard while the objects go.
  for (EndpointId e = 0; e < knobs_.members * 2 + knobs_.clients; ++e) {
    if (universe_.IsUp(e)) universe_.End(e);
  }
}

void World::MakeSeats() {
  member::MemberOptions options = knobs_.member;
  for (EndpointId e = 0; e < knobs_.members; ++e) {
    rpc::MemberRow row = {.name = absl::StrFormat("m%d", e + 1), .peer_urls = {Url(e, kPeerPortNumber)}};
    row.id = member::DeriveMemberId(row.peer_urls, "detcd-sim");
    ids_.push_back(row.id);
    options.initial_members.push_back(std::move(row));
  }
  std::sort(options.initial_members.begin(), options.initial_members.end(),
            [](const rpc::MemberRow& a, const rpc::MemberRow& b) { return a.id < b.id; });
  std::vector<MemberId> ascending = ids_;
  std::sort(ascending.begin(), ascending.end());
  options.cluster = member::DeriveClusterId(ascending);

  panel_ = std::make_unique<checker::Panel>(checker::WorldObservation{.members = ascending,
                                                                      .election_timeout = options.election_timeout,
                                                                      .heartbeat_interval = options.heartbeat_interval,
                                                                      .check_quorum = options.check_quorum,
                                                                      .clock_drift_ppm_max = knobs_.clock_drift_ppm_max,
                                                                      .bootstrap_index = LogIndex(knobs_.members),
                                                                      .turn_events_max = TurnEventsSeen(knobs_),
                                                                      .clocks = options.lease_reads ? this : nullptr});
  // What every member starts with is committed before anybody runs.
  for (const raft::Entry& entry : member::Member::BootstrapEntries(options)) {
    committed_.marks.push_back(MarkOf(entry));
    panel_->OnCommitted({.index = entry.index, .term = entry.term, .is_conf_change = true, .data = entry.data}, Now());
  }
  for (EndpointId e = 0; e < knobs_.members; ++e) {
    options.id = ids_[e];
    options.name = absl::StrFormat("m%d", e + 1);
    options.client_urls = {Url(e, kClientPortNumber)};
    options.pre_vote = knobs_.member.pre_vote && !knobs_.no_pre_vote.contains(e);
    const auto& without = knobs_.no_lease_reads;
    options.lease_reads = knobs_.member.lease_reads && std::find(without.begin(), without.end(), e) == without.end();
    seats_.push_back(std::unique_ptr<Seat>(new Seat{.place = {.fidelity = knobs_.fidelity,
                                                              .endpoint = e,
                                                              .options = options,
                                                              .members = ids_,
                                                              .messages = universe_.messages(),
                                                              .payloads = payloads_,
                                                              .observer = *this},
                                                    .watcher = MemberWatcher(ids_[e], committed_)}));
  }
}

void World::MakeClient(uint32_t number, EndpointId endpoint, std::vector<EndpointId> members) {
  ClientSeat& seat = clients_[number];
  Host& host = universe_.Start(endpoint);
  ClientKnobs knobs = {.number = number + 1,
                       .members = std::move(members),
                       .try_timeout = knobs_.client_try_timeout,
                       .total_timeout = knobs_.client_total_timeout};
  const bool is_prober = number >= knobs_.clients;
  if (is_prober) {
    knobs.try_timeout = knobs_.member.election_timeout * 3;
    knobs.total_timeout = knobs.try_timeout;
  }
  seat.client = std::make_unique<Client>(host, knobs, static_cast<ClientListener&>(*this));
  if (knobs_.fidelity == Fidelity::kWire) {
    seat.calls = std::make_unique<WireClientCalls>(host, knobs.members, *seat.client);
    seat.turns = std::make_unique<ClientTurns>(*seat.calls);
    host.events().SetTurnListener(*seat.turns);
  } else {
    auto calls = std::make_unique<DirectClientCalls>(payloads_, host.clock(), endpoint, knobs_.members, *seat.client);
    universe_.messages().SetListener(endpoint, calls.get());
    seat.calls = std::move(calls);
  }
  seat.client->SetCalls(*seat.calls);
}

// --- Members ---

void World::StartMember(uint32_t member) {
  Seat& seat = *seats_[member];
  CHECK(seat.node == nullptr);
  seat.lacks = universe_.disk(member).harmed() ? LackingOnDisk(member) : std::string();
  seat.watcher.Started(++seat.incarnation, seat.place.options.pre_vote);
  seat.node = std::make_unique<MemberNode>(universe_.Start(member), seat.place);
}

std::string World::LackingOnDisk(uint32_t member) {
  const MemberWatcher& watcher = seats_[member]->watcher;
  const LogIndex kept = watcher.kept();
  if (kept.value <= knobs_.members) return {};  // what every log begins with, a new one too
  const std::vector<Term> terms = ReadDiskLog(universe_.disk(member));
  if (terms.size() >= kept.value && terms[kept.value - 1] == watcher.kept_term()) return {};
  return absl::StrFormat("the disk of member %x (number %d) ends at entry %d, of what the member held to be durable up to "
                         "entry %d of term %d", ids_[member].value, member + 1, terms.size(), kept.value,
                         watcher.kept_term().value);
}

void World::CrashMember(uint32_t member, Survival survival) {
  universe_.Crash(member, survival);
  seats_[member]->node.reset();
}

void World::EndMember(uint32_t member) {
  universe_.End(member);
  if (seats_[member]->node->HangUp()) universe_.EndNoticed(member);
  seats_[member]->node.reset();
}

void World::SetPreVote(uint32_t member, bool pre_vote) {
  seats_[member]->place.options.pre_vote = pre_vote;
}

void World::MoveLeader(uint32_t target) {
  for (const auto& seat : seats_) {
    const bool leads = seat->watcher.seen().role == checker::Role::kLeader;
    if (seat->node != nullptr && leads) seat->node->MoveLeader(ids_[target]);
  }
}

void World::LoseMember(uint32_t member) {
  CrashMember(member, Survival::kMixed);
  seats_[member]->lost = true;
}

bool World::MemberStopped(uint32_t member) {
  Seat& seat = *seats_[member];
  const SimHost& host = universe_.LastHost(member);
  seat.node.reset();
  if (universe_.DiskFailed(member)) return true;
  if (knobs_.harmed_may_stop && universe_.disk(member).harmed()) return true;
  if (stopped_.has_value()) return false;
  stopped_ = checker::Violation{
      .property = "member stopped",
      .signature = "member stopped: " + WithoutNumbers(host.stop_reason()),
      .sentence = absl::StrFormat("member %x (number %d) stopped by itself: %s", ids_[member].value, member + 1, host.stop_reason()),
      .moment = Now()};
  return false;
}

// --- The loop ---

checker::Moment World::Now() const {
  SimUniverse& universe = const_cast<SimUniverse&>(universe_);
  return {.event = universe.queue().popped(), .true_time = {universe_.now()}};
}

WorldStep World::Step() {
  const StepResult step = universe_.Step();
  WorldStep result = {.endpoint = step.endpoint, .ran = step.ran};
  if (step.idle) return {.running = false};
  if (step.kind == EventKind::kControl) {
    result.is_control = true;
    result.control = step.control;
  }
  if (step.endpoint < knobs_.members) {
    if (step.ran) Watch(step.endpoint);
    if (step.stopped) result.stopped = MemberStopped(step.endpoint);
  }
  result.running = !violation().has_value();
  return result;
}

void World::Watch(uint32_t member) {
  Seat& seat = *seats_[member];
  if (seat.node == nullptr) return;
  seat.watcher.Observe(seat.node->member(), universe_.clock(member).Local(universe_.now()),
                       universe_.LastHost(member).inbox_size() > 0, Now(), *panel_);
  if (!seat.watcher.recovered()) return;
  const checker::MemberObservation& seen = seat.watcher.seen();
  EffectLedger& effects = universe_.effects();
  if (seen.started) effects.Restarted(member, seat.watcher.changed());
  if (seen.started && loss_.empty()) loss_ = seat.lacks;
  effects.Seen(member, RoleOf(seen.role), !seen.leader.IsZero(), !seen.started && seat.watcher.changed());
  if (seen.role == checker::Role::kLeader && seen.term > last_leader_term_) {
    last_leader_term_ = seen.term;
    ++counts_.leader_changes;
  }
}

const std::optional<checker::Violation>& World::violation() const {
  return panel_->violation().has_value() ? panel_->violation() : stopped_;
}

void World::OnPeerSent(const raft::Message& message) {
  panel_->OnSent(Observe(message), Now());
  if (listener_ != nullptr) listener_->OnPeerMessage(message);
  if (!std::holds_alternative<raft::TimeoutNow>(message.body)) return;
  const auto leader = std::find(ids_.begin(), ids_.end(), message.from);
  universe_.effects().At(static_cast<EndpointId>(leader - ids_.begin())).Effective(FaultKind::kTransfer);
}
void World::OnPeerDelivered(const raft::Message& message) { panel_->OnDelivered(Observe(message), Now()); }

Instant World::Local(MemberId member) const {
  const auto endpoint = std::find(ids_.begin(), ids_.end(), member);
  CHECK(endpoint != ids_.end());
  return universe_.clock(static_cast<EndpointId>(endpoint - ids_.begin())).Local(universe_.now());
}

// --- Clients ---

void World::OnOperationCall(checker::Operation& operation) {
  operation.call = Now();
  ++counts_.operations;
  panel_->OnCall(operation);
}

void World::OnOperationEnd(checker::Operation& operation) {
  operation.end = Now();
  switch (operation.outcome) {
    case checker::Outcome::kAnswered: ++counts_.answered; break;
    case checker::Outcome::kUnknown: ++counts_.unknown; break;
    case checker::Outcome::kRefused: ++counts_.refused; break;
    case checker::Outcome::kPending: CHECK(false);
  }
  universe_.effects().OperationEnded(knobs_.members + operation.client - 1,
                                     operation.outcome == checker::Outcome::kAnswered);
  history_.push_back(operation);
  panel_->OnEnd(operation);
  if (operation.client > knobs_.clients) ProbeEnded(operation.client - knobs_.clients - 1, operation);
}

// --- The end of a run ---

void World::BeginProbing(uint64_t first_id, Duration longest_delay, Duration longest_sync) {
  CHECK(probes_.empty());
  next_probe_id_ = first_id;
  probes_.resize(knobs_.members);
  universe_.effects().Healed();
  panel_->OnHealed(Now(), longest_delay, longest_sync);
  for (uint32_t member = 0; member < knobs_.members; ++member) {
    if (seats_[member]->lost) {
      panel_->OnLost(ids_[member]);
      continue;
    }
    MakeClient(knobs_.clients + member, knobs_.members + knobs_.clients + member, {member});
    PlanProbe(member, Millis(1));
  }
}

void World::PlanProbe(uint32_t member, Duration pause) {
  const EndpointId endpoint = knobs_.members + knobs_.clients + member;
  const uint64_t id = next_probe_id_++;
  PlannedOperation operation = {.id = id, .at = universe_.clock(endpoint).Local(universe_.now()) + pause};
  operation.request.key = absl::StrFormat("probe-%d", member + 1);
  if (probes_[member].kind == checker::ProbeKind::kPut) {
    operation.request.kind = checker::OperationKind::kPut;
    operation.request.value = absl::StrFormat("v%d", id);
  }
  clients_[knobs_.clients + member].client->Plan(std::move(operation));
}

void World::ProbeEnded(uint32_t member, const checker::Operation& operation) {
  Probe& probe = probes_[member];
  const bool ok = operation.outcome == checker::Outcome::kAnswered && operation.answer.error.empty();
  panel_->OnProbe(ids_[member], probe.kind, ok, Now());
  if (ok && probe.kind == checker::ProbeKind::kRead) {
    probe.done = true;
    return;
  }
  if (ok) probe.kind = checker::ProbeKind::kRead;
  PlanProbe(member, ok ? Millis(1) : Millis(20));
}

bool World::Settled() const {
  if (!panel_->converged()) return false;
  for (const ClientSeat& seat : clients_) {
    if (seat.client != nullptr && !seat.client->idle()) return false;
  }
  for (const auto& seat : seats_) {
    if (seat->lost) continue;
    const checker::MemberObservation& seen = seat->watcher.seen();
    if (seat->node == nullptr || !seat->watcher.recovered()) return false;
    if (seen.last_index.value != committed_.marks.size() || seen.applied_index != seen.last_index) return false;
    // Nobody waits for a read any more: what still stands in the queue would stand there for ever.
    const auto* leader = std::get_if<raft::Leader>(&seat->node->member().raft()->role);
    if (leader != nullptr && !leader->reads.empty()) return false;
  }
  return true;
}

void World::Finish() {
  if (violation().has_value()) return;
  for (const auto& seat : seats_) {
    if (seat->lost) continue;
    panel_->OnFinal(seat->place.options.id, FinalKeys(seat->node->member()), Now());
  }
  panel_->Finish(Now());
}

std::string World::NameOf(MemberId id) const {
  const auto found = std::find(ids_.begin(), ids_.end(), id);
  return found == ids_.end() ? std::string("nobody") : absl::StrFormat("m%d", found - ids_.begin() + 1);
}

std::vector<checker::Operation> World::UnderWay() const {
  std::vector<checker::Operation> operations;
  for (const ClientSeat& seat : clients_) {
    if (seat.client != nullptr && seat.client->busy()) operations.push_back(seat.client->current());
  }
  return operations;
}

std::string World::Describe() const {
  std::string text;
  for (const auto& seat : seats_) {
    const checker::MemberObservation& seen = seat->watcher.seen();
    constexpr const char* kRoles[] = {"follower", "pre-candidate", "candidate", "leader"};
    absl::StrAppendFormat(&text, "member %d (%x, %s): %s of term %d, leader %x, last %d, durable %d, commit %d, applied %d\n",
                          seat->place.endpoint + 1, seen.member.value, seat->node == nullptr ? "down" : "up",
                          kRoles[static_cast<size_t>(seen.role)], seen.term.value, seen.leader.value, seen.last_index.value,
                          seen.durable_index.value, seen.commit_index.value, seen.applied_index.value);
  }
  for (const ClientSeat& seat : clients_) {
    if (seat.client == nullptr || !seat.client->busy()) continue;
    absl::StrAppendFormat(&text, "client %d waits for operation %d\n", seat.client->current().client, seat.client->current().id);
  }
  return text;
}

}  // namespace detcd::sim
