#include "core/member/member.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/check.h"
#include "core/base/limits.h"
#include "core/base/probe.h"
#include "core/member/member_context.h"
#include "core/proto/raft.pb.h"
#include "core/proto/raft_internal.pb.h"
#include "core/proto/rpc.pb.h"
#include "core/rpc/maintenance_service.h"
#include "core/rpc/messages.h"

namespace detcd::member {
namespace {

// Room for the request and the response of an ordinary put without another allocation.
constexpr size_t kArenaBlockBytes = 16'384;

uint64_t OrDefault(uint64_t value, uint64_t fallback) { return value == 0 ? fallback : value; }

// The bootstrap entry of one member (peer.md 15).
Bytes EncodeAddMember(const rpc::MemberRow& row) {
  raftpb::ConfChange change;
  change.set_type(raftpb::ConfChangeAddNode);
  change.set_node_id(row.id.value);
  change.set_context(EncodeMemberContext({.member = row}));
  return Bytes::Copy(change.SerializeAsString());
}

}  // namespace

Member::Member(Host& host, const MemberOptions& options, MemberListener& listener)
    : host_(host),
      options_(options),
      listener_(listener),
      wal_(host, {.segment_bytes = OrDefault(options.wal_segment_bytes, kWalSegmentBytes), .read_bytes = kWalReadBytes},
           *this),
      apply_state_{.store = store_},
      arena_block_(new char[kArenaBlockBytes]),
      arena_(new google::protobuf::Arena(arena_block_.get(), kArenaBlockBytes)),
      timer_(host.clock().NewTimer(*this, 0)),
      versions_(rpc::kServerVersion) {}

Member::~Member() = default;

void Member::Start() { wal_.Open(MakeBootstrap()); }

// --- recovery ------------------------------------------------------------------------------------------------------

std::vector<raft::Entry> Member::BootstrapEntries(const MemberOptions& options) {
  std::vector<raft::Entry> entries;
  for (const rpc::MemberRow& row : options.initial_members) {
    entries.push_back({.term = Term(1),
                       .index = LogIndex(entries.size() + 1),
                       .type = raft::EntryType::kConfChange,
                       .data = EncodeAddMember(row)});
  }
  return entries;
}

wal::WalBootstrap Member::MakeBootstrap() const {
  wal::WalBootstrap bootstrap{.metadata = {.member = options_.id, .cluster = options_.cluster},
                              .entries = BootstrapEntries(options_)};
  bootstrap.hard_state = {.term = Term(1), .commit = LogIndex(bootstrap.entries.size())};
  return bootstrap;
}

void Member::OnWalMetadata(const wal::WalMetadata& metadata) {
  options_.id = metadata.member;
  options_.cluster = metadata.cluster;
}

void Member::OnWalCommitted(std::vector<raft::Entry> entries) {
  for (const raft::Entry& entry : entries) {
    if (!ApplyOne(entry)) return;
    // The garbage of a long log must not pile up until its end.
    if (entry.index.value % kRecoveryEntriesPerSlice == 0 && store_.HasWork()) store_.Work();
  }
  recovered_.Recover(std::move(entries));
  raft::RaftOptions limits = MakeRaftOptions();
  recovered_.Trim(apply_state_.applied_index, limits.log_entries_in_memory_max, limits.log_bytes_in_memory_max);
}

void Member::OnWalOpened(raft::HardState hard_state, std::vector<raft::Entry> tail) {
  if (stopped_) return;
  if (!apply_state_.members.contains(options_.id)) {
    return Fail(absl::StrFormat("member %x is not in the cluster that its log describes", options_.id.value));
  }
  recovered_.Recover(std::move(tail));

  raft::VoterSet voters;
  std::vector<PeerRow> rows;
  for (const auto& [id, row] : apply_state_.members) {
    voters.AddVoter(id);
    if (id != options_.id) rows.push_back({.id = id, .urls = row.peer_urls});
  }
  Instant now = host_.clock().Now();
  raft_.emplace(raft::MakeRaft(MakeRaftOptions(), hard_state, std::move(recovered_), apply_state_.applied_index,
                               std::move(voters), host_.Random("raft"), host_.trace(), now));
  // Nobody else could win: no reason to wait (semantics.md 23, single member).
  if (rows.empty()) raft_->election_due = now + options_.heartbeat_interval;
  persister_.emplace(wal_, hard_state);
  uint64_t start = 0;
  host_.FillSecure({reinterpret_cast<uint8_t*>(&start), sizeof(start)});
  ids_.emplace(options_.id, start);
  Emit(host_.trace(), LogLevel::kInfo, "member/member", "recovered from the write-ahead log",
       {TraceField::Id("local-member-id", options_.id.value), TraceField::Id("cluster-id", options_.cluster.value),
        TraceField::Number("term", hard_state.term.value), TraceField::Number("commit-index", hard_state.commit.value),
        TraceField::Number("last-index", raft_->log.last_index().value),
        TraceField::Number("revision", static_cast<uint64_t>(store_.revision().value))});
  peers_.emplace(listener_.OnMemberRecovered(options_.id, options_.cluster));
  peers_->Start(*this, rows);
  Publish();
}

raft::RaftOptions Member::MakeRaftOptions() const {
  return {.id = options_.id,
          .heartbeat_interval = options_.heartbeat_interval,
          .election_timeout = options_.election_timeout,
          .pre_vote = options_.pre_vote,
          .check_quorum = options_.check_quorum,
          .lease_reads = options_.lease_reads,
          .clock_drift_ppm_max = options_.clock_drift_ppm_max,
          .append_bytes_max = OrDefault(options_.append_bytes_max, kAppendBytesMax),
          .appends_in_flight_max = OrDefault(options_.appends_in_flight_max, kAppendsInFlightMax),
          .append_bytes_in_flight_max =
              kAppendsOfBytesInFlightMax * OrDefault(options_.append_bytes_max, kAppendBytesMax),
          .uncommitted_bytes_max = OrDefault(options_.uncommitted_bytes_max, kUncommittedBytesMax),
          .log_entries_in_memory_max = OrDefault(options_.log_entries_in_memory_max, kLogEntriesInMemoryMax),
          .log_bytes_in_memory_max = OrDefault(options_.log_bytes_in_memory_max, kLogBytesInMemoryMax)};
}

// --- events --------------------------------------------------------------------------------------------------------

void Member::OnPeerMessage(raft::Message message) {
  // A real etcd's member forwards what its clients ask of it. What this release cannot execute must not reach the log,
  // where it would stop us: dropped, it ends as the timeout of that client.
  if (auto* proposal = std::get_if<raft::Proposal>(&message.body)) {
    if (std::erase_if(proposal->entries, [](const raft::Entry& entry) { return !CanApply(entry); }) > 0) {
      PROBE("member.forwarded_proposal_refused");
    }
    if (proposal->entries.empty()) return;
  }
  if (raft_) raft::Step(*raft_, std::move(message), host_.clock().Now(), output_);
}

void Member::OnChannelUp(MemberId peer, PeerChannel channel) { peers_->OnUp(peer, channel, host_.clock().Now()); }

void Member::OnChannelRoom(MemberId peer, PeerChannel channel) { peers_->OnRoom(peer, channel); }

void Member::OnChannelDown(MemberId peer, PeerChannel channel) {
  peers_->OnDown(peer, channel);
  if (raft_) raft::ReportUnreachable(*raft_, peer, output_);
}

void Member::OnPostFailed(MemberId peer) {
  if (raft_) raft::ReportUnreachable(*raft_, peer, output_);
}

void Member::OnPeerVersion(MemberId peer, std::string version) { versions_.OnAnswer(peer, std::move(version)); }

void Member::OnWalAppended(uint64_t sequence) {
  SendAll(persister_->OnAppended(*raft_, sequence, host_.clock().Now(), output_));
}

void Member::OnWalRead(uint64_t token, std::vector<raft::Entry> entries) {
  raft::SupplyEntries(*raft_, MemberId(token), std::move(entries), host_.clock().Now(), output_);
}

void Member::OnWalFailed(std::string reason) { Fail(std::move(reason)); }

void Member::OnTimer(uint64_t) {
  timer_due_.reset();
  if (!raft_) return;
  Instant now = host_.clock().Now();
  raft::OnTimer(*raft_, now, output_);
  Expire(now);
}

void Member::OnPost(uint64_t) { posted_ = false; }

// --- rpc::Backend --------------------------------------------------------------------------------------------------

void Member::Propose(const rpc::Waiter& waiter, etcdserverpb::InternalRaftRequest& request) {
  auto refuse = [&](rpc::ApiError error) { waiter.transport->Finish(waiter.call, rpc::ToCallStatus(error)); };
  if (!raft_ || stopped_) return refuse(rpc::ApiError::kStopped);
  if (raft_->commit_index > apply_state_.applied_index + kApplyBacklogEntriesMax ||
      proposals_.size() >= kProposalsInFlightMax || unproposed_bytes_ >= kUnproposedBytesMax) {
    PROBE("member.too_many_requests");
    return refuse(rpc::ApiError::kTooManyRequests);
  }
  uint64_t id = ids_->Next();
  request.mutable_header()->set_id(id);
  size_t size = request.ByteSizeLong();
  if (size > kRequestBytesMax) return refuse(rpc::ApiError::kRequestTooLarge);
  Enqueue(id, waiter, Bytes::Build(size, [&](char* out) {
            request.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(out));
          }));
}

void Member::ProposeInternal(etcdserverpb::InternalRaftRequest& request, uint64_t& id) {
  id = ids_->Next();
  request.mutable_header()->set_id(id);
  Enqueue(id, rpc::Waiter(), Bytes::Copy(request.SerializeAsString()));
}

void Member::Enqueue(uint64_t id, const rpc::Waiter& waiter, Bytes data) {
  Instant now = host_.clock().Now();
  proposals_.Add(id, {.waiter = waiter, .start = now, .deadline = now + RequestTimeout()});
  unproposed_bytes_ += data.size();
  unproposed_.push_back({.id = id, .entry = {.data = std::move(data)}});
}

void Member::LinearizableRead(const rpc::Waiter& waiter, rpc::ReadListener& listener, uint64_t token) {
  reads_.Add({.waiter = waiter, .listener = &listener, .token = token, .deadline = host_.clock().Now() + RequestTimeout()});
}

void Member::HashKv(const rpc::Waiter& waiter, rpc::HashListener& listener, Revision revision) {
  const mvcc::Store::HashRequest request = store_.RequestHash(revision);
  if (request.error != mvcc::RangeError::kOk) return listener.OnHashReady(waiter, rpc::ToApiError(request.error), {});
  if (request.too_many) return listener.OnHashReady(waiter, rpc::ApiError::kTooManyRequests, {});
  hashes_.emplace(request.ticket, WaitingHash{waiter, &listener});
}

// etcd waits as long as the caller does; we wait no longer than for a proposal, since raft gives up long before.
void Member::MoveLeader(const rpc::Waiter& waiter, MemberId target) {
  auto refuse = [&](rpc::ApiError error) { waiter.transport->Finish(waiter.call, rpc::ToCallStatus(error)); };
  if (!raft_ || stopped_) return refuse(rpc::ApiError::kStopped);
  if (raft_->LeaderId() != options_.id) return refuse(rpc::ApiError::kNotLeader);
  auto row = apply_state_.members.find(target);
  if (row == apply_state_.members.end() || row->second.is_learner) return refuse(rpc::ApiError::kBadLeaderTransferee);
  if (leader_moves_.size() >= kLeaderMovesWaitingMax) return refuse(rpc::ApiError::kTooManyRequests);
  Instant now = host_.clock().Now();
  leader_moves_.Add({.waiter = waiter, .target = target, .deadline = now + RequestTimeout()});
  raft::TransferLeadership(*raft_, target, now, output_);
}

MemberId Member::HandOverLeadership() {
  if (!raft_ || stopped_ || raft_->LeaderId() != options_.id) return MemberId();
  MemberId target;
  std::optional<Instant> longest;
  for (const auto& [id, row] : apply_state_.members) {
    if (id == options_.id || row.is_learner) continue;
    std::optional<Instant> since = peers_->ActiveSince(id);
    if (!since || (longest && *longest <= *since)) continue;
    longest = since;
    target = id;
  }
  if (target.IsZero()) return target;
  raft::TransferLeadership(*raft_, target, host_.clock().Now(), output_);
  RequestTurn();
  return target;
}

rpc::MemberStatus Member::Status() const {
  rpc::MemberStatus status{.cluster = options_.cluster,
                           .member = options_.id,
                           .applied_term = apply_state_.applied_term,
                           .applied_index = apply_state_.applied_index,
                           .backend_bytes = store_.bytes(),
                           .backend_bytes_in_use = store_.bytes(),
                           .storage_version = apply_state_.cluster_version,
                           .downgrade = apply_state_.downgrade,
                           .alarms = {apply_state_.alarms.begin(), apply_state_.alarms.end()}};
  if (raft_) {
    status.leader = raft_->LeaderId();
    status.term = raft_->term;
    status.commit_index = raft_->commit_index;
  }
  return status;
}

std::vector<rpc::MemberRow> Member::Members() const {
  std::vector<rpc::MemberRow> rows;
  for (const auto& [id, row] : apply_state_.members) rows.push_back(row);
  return rows;
}

bool Member::HasLeader() const { return raft_ && !raft_->LeaderId().IsZero(); }

Duration Member::RequestTimeout() const { return kRequestTimeoutBase + options_.election_timeout * 2; }

// --- the end of a turn ---------------------------------------------------------------------------------------------

void Member::EndTurn() {
  if (!raft_ || stopped_) return;
  Instant now = host_.clock().Now();
  NoteLeader(now);
  PassProposals(now);
  TakeReadAnswers();  // before rounds that seem overdue are asked again
  StartReadRounds(now);

  SendAll(persister_->EndTurn(*raft_, output_));
  TakeReadAnswers();
  FetchOlderEntries();

  ApplyCommitted();
  if (stopped_) return;
  ServeReads();
  WorkOnStore();
  LendTurn();
  FollowVersions(now);
  FinishLeaderMoves();
  // Applying and answering may have asked for more, and a batch of applies is bounded: another turn for the rest.
  bool more = apply_state_.applied_index < raft_->commit_index || (!unproposed_.empty() && MayPropose()) ||
              reads_.WantsRound() || store_.HasWork() || worker_ != nullptr;
  if (more) RequestTurn();
  ArmTimer();
}

void Member::RequestTurn() {
  if (posted_) return;
  posted_ = true;
  host_.events().Post(*this, 0);
}

void Member::NoteLeader(Instant now) {
  MemberId leader = raft_->LeaderId();
  if (leader == leader_seen_) return;
  leader_seen_ = leader;
  if (leader != options_.id) versions_.OnLeadLost();
  if (leader.IsZero()) return;
  if (leader == options_.id) became_leader_ = now;
  // Their answer, if it still came, would be the former leader's.
  for (const Reads::Pending& read : reads_.TakeUnanswered()) {
    read.listener->OnReadReady(read.waiter, read.token, rpc::ApiError::kLeaderChanged);
  }
}

bool Member::MayPropose() const { return HasLeader() && raft_->TransferTarget().IsZero(); }

// A proposal made while leadership is handed over waits for the new leader. (etcd fails it with raft's own words.)
void Member::PassProposals(Instant now) {
  if (unproposed_.empty() || !MayPropose()) return;
  std::vector<raft::Entry> entries;
  std::vector<uint64_t> ids;
  size_t bytes = 0;
  auto pass = [&] {
    if (entries.empty()) return;
    raft::ProposeResult result = raft::Propose(*raft_, std::exchange(entries, {}), now, output_);
    if (result == raft::ProposeResult::kOverloaded) Refuse(ids);
    ids.clear();
    bytes = 0;
  };
  for (; !unproposed_.empty(); unproposed_.pop_front()) {
    Unproposed& next = unproposed_.front();
    unproposed_bytes_ -= next.entry.data.size();
    // Its time ended while nobody led: it must never reach a log, its caller was told so.
    if (!proposals_.Contains(next.id)) continue;
    if (bytes + next.entry.data.size() > kAppendBytesMax) pass();
    bytes += next.entry.data.size();
    proposals_.MarkReachedRaft(next.id);
    ids.push_back(next.id);
    entries.push_back(std::move(next.entry));
  }
  pass();
}

// No log has them, and none will. Our own proposals stay, to be made again when their time is over.
void Member::Refuse(const std::vector<uint64_t>& ids) {
  PROBE("member.too_many_uncommitted_bytes");
  for (uint64_t id : ids) {
    std::optional<Proposals::Pending> pending = proposals_.TakeCall(id);
    if (!pending) continue;
    pending->waiter.transport->Finish(pending->waiter.call, rpc::ToCallStatus(rpc::ApiError::kTooManyRequests));
  }
}

void Member::FollowVersions(Instant now) {
  if (versions_.IsDue(now)) {
    std::vector<MemberId> others;
    for (const auto& [id, row] : apply_state_.members) {
      if (id != options_.id) others.push_back(id);
    }
    versions_.Start(now, others);
    for (MemberId id : others) peers_->AskVersion(id);
  }
  std::optional<std::vector<std::string>> servers = versions_.TakeFinished(now);
  if (!servers) return;
  std::optional<std::string> version = DecideClusterVersion(apply_state_.cluster_version, *servers);
  if (!version) return;
  Emit(host_.trace(), LogLevel::kInfo, "member/member", "proposes a cluster version",
       {TraceField::Text("from", apply_state_.cluster_version), TraceField::Text("to", *version)});
  etcdserverpb::InternalRaftRequest request;
  request.mutable_cluster_version_set()->set_ver(*version);
  uint64_t id = 0;
  ProposeInternal(request, id);
}

void Member::FinishLeaderMoves() {
  for (const LeaderMoves::Pending& move : leader_moves_.TakeDone(raft_->LeaderId())) {
    move.waiter.transport->Send(move.waiter.call, etcdserverpb::MoveLeaderResponse());
    move.waiter.transport->Finish(move.waiter.call, {});
  }
}

void Member::StartReadRounds(Instant now) {
  while (reads_.HasOverdueRound(now)) {
    raft::ReadId id(ids_->Next());
    reads_.RetryRound(id, now);
    raft::RequestRead(*raft_, id, now, output_);
  }
  if (!reads_.WantsRound()) return;
  raft::ReadId id(ids_->Next());
  reads_.StartRound(id, now);
  raft::RequestRead(*raft_, id, now, output_);
}

void Member::TakeReadAnswers() {
  for (const raft::ReadReady& ready : std::exchange(output_.reads, {})) reads_.OnIndex(ready.read, ready.index);
  // A dropped read is asked again when its retry is due, or ends with the leader: etcd's rule.
  output_.reads_dropped.clear();
}

void Member::SendAll(std::vector<raft::Message> messages) {
  for (raft::Message& message : messages) {
    MemberId to = message.to;
    if (!peers_->Send(std::move(message))) raft::ReportUnreachable(*raft_, to, output_);
  }
}

void Member::FetchOlderEntries() {
  // The token is the follower's id: raft has one fetch for each follower under way at a time.
  for (const raft::LogFetch& fetch : std::exchange(output_.fetches, {})) {
    wal_.Read(fetch.first, fetch.last, fetch.bytes_max, fetch.follower.value);
  }
}

void Member::ApplyCommitted() {
  size_t applied = 0;
  while (apply_state_.applied_index < raft_->commit_index && applied++ < kApplyBatchEntriesMax) {
    if (!ApplyOne(raft_->log.At(apply_state_.applied_index + 1))) return;
  }
  raft::AcknowledgeApplied(*raft_, apply_state_.applied_index);
}

bool Member::ApplyOne(const raft::Entry& entry) {
  arena_->Reset();
  absl::StatusOr<ApplyResult> result = ApplyEntry(apply_state_, entry, this, *arena_);
  if (!result.ok()) {
    Fail(std::string(result.status().message()));
    return false;
  }
  if (!raft_) return true;  // Recovery: nobody waits, and the voters are read from the members at its end.
  if (result->added_voter) raft_->voters.AddVoter(*result->added_voter);
  std::optional<Proposals::Pending> pending = proposals_.Take(result->request_id);
  if (pending && pending->waiter.transport != nullptr) Answer(pending->waiter, *result);
  if (publish_id_ != 0 && result->request_id == publish_id_ && !ready_) {
    ready_ = true;
    listener_.OnMemberReady();
  }
  bool own_first = entry.data.empty() && entry.term == raft_->term && raft_->LeaderId() == options_.id;
  if (own_first) versions_.OnLead(host_.clock().Now());
  return true;
}

void Member::Answer(const rpc::Waiter& waiter, const ApplyResult& result) {
  if (result.answer_after_removal) {
    compactions_.push_back(
        {.waiter = waiter, .compacted = *result.answer_after_removal, .revision = store_.revision()});
    return;
  }
  if (result.error == rpc::ApiError::kOk) {
    CHECK(result.response != nullptr && result.header != nullptr);
    rpc::FillHeader(Status(), store_.revision(), *result.header);
    waiter.transport->Send(waiter.call, *result.response);
  }
  waiter.transport->Finish(waiter.call, rpc::ToCallStatus(result.error));
}

void Member::ServeReads() {
  for (const Reads::Pending& read : reads_.TakeServable(apply_state_.applied_index)) {
    read.listener->OnReadReady(read.waiter, read.token, rpc::ApiError::kOk);
  }
}

void Member::RequestWork(rpc::WorkListener& listener) {
  worker_ = &listener;
  RequestTurn();
}

void Member::LendTurn() {
  if (rpc::WorkListener* worker = std::exchange(worker_, nullptr)) worker->OnWork();
}

// One slice a turn: whatever a client sends meanwhile waits for one slice at the most.
void Member::WorkOnStore() {
  if (!store_.HasWork()) return;
  store_.Work();
  for (const mvcc::FinishedHash& finished : store_.TakeHashes()) {
    auto waiting = hashes_.extract(finished.ticket);
    CHECK(!waiting.empty());
    waiting.mapped().listener->OnHashReady(waiting.mapped().waiter, rpc::ApiError::kOk, finished.result);
  }
  while (!compactions_.empty() && compactions_.front().compacted <= store_.removed_revision()) {
    const WaitingCompaction done = compactions_.front();
    compactions_.pop_front();
    etcdserverpb::CompactionResponse response;
    rpc::FillHeader(Status(), done.revision, *response.mutable_header());
    done.waiter.transport->Send(done.waiter.call, response);
    done.waiter.transport->Finish(done.waiter.call, {});
  }
}

void Member::Expire(Instant now) {
  for (const Proposals::Expired& expired : proposals_.TakeExpired(now)) {
    if (expired.id == publish_id_ && !ready_) Publish();
    if (expired.pending.waiter.transport != nullptr) FinishTimedOut(expired.pending);
  }
  // While nobody leads, the queue must not outgrow the bound on proposals. It is in the order of the deadlines.
  while (!unproposed_.empty() && !proposals_.Contains(unproposed_.front().id)) {
    unproposed_bytes_ -= unproposed_.front().entry.data.size();
    unproposed_.pop_front();
  }
  for (const LeaderMoves::Pending& move : leader_moves_.TakeExpired(now)) {
    move.waiter.transport->Finish(move.waiter.call, rpc::ToCallStatus(rpc::ApiError::kLeaderTransferTimeout));
  }
  for (const Reads::Pending& read : reads_.TakeExpired(now)) {
    read.listener->OnReadReady(read.waiter, read.token, rpc::ApiError::kTimeout);
  }
}

void Member::FinishTimedOut(const Proposals::Pending& pending) {
  auto finish = [&](rpc::CallStatus status) { pending.waiter.transport->Finish(pending.waiter.call, std::move(status)); };
  // errors.md 1, Timeout: without a leader a proposal never gets to raft and ends as a plain context deadline.
  if (!pending.reached_raft) {
    return finish(rpc::ToCallStatus(rpc::ApiError::kContextDeadlineExceeded));
  }
  Instant lead_lost = became_leader_ - options_.election_timeout * 2;
  if (pending.start > lead_lost && pending.start < became_leader_) {
    return finish(rpc::ToCallStatus(rpc::ApiError::kTimeoutDueToLeaderFail));
  }
  auto lost_since = [&](MemberId peer) {
    std::optional<Instant> active = peers_->ActiveSince(peer);
    return !active || *active >= pending.start;
  };
  MemberId leader = raft_->LeaderId();
  bool connection_lost = false;
  if (leader == options_.id) {
    size_t connected = 1;
    for (const auto& [id, row] : apply_state_.members) {
      if (id != options_.id && !lost_since(id)) ++connected;
    }
    connection_lost = connected < apply_state_.members.size() / 2 + 1;
  } else if (!leader.IsZero()) {
    connection_lost = lost_since(leader);
  }
  finish(rpc::ToCallStatus(connection_lost ? rpc::ApiError::kTimeoutDueToConnectionLost : rpc::ApiError::kTimeout));
}

void Member::Publish() {
  etcdserverpb::InternalRaftRequest request;
  auto* set = request.mutable_cluster_member_attr_set();
  set->set_member_id(options_.id.value);
  set->mutable_member_attributes()->set_name(options_.name);
  for (const std::string& url : options_.client_urls) set->mutable_member_attributes()->add_client_urls(url);
  ProposeInternal(request, publish_id_);
}

void Member::ArmTimer() {
  Instant due = raft::NextDeadline(*raft_);
  if (std::optional<Instant> next = proposals_.NextDeadline()) due = std::min(due, *next);
  if (std::optional<Instant> next = reads_.NextDeadline()) due = std::min(due, *next);
  if (std::optional<Instant> next = leader_moves_.NextDeadline()) due = std::min(due, *next);
  if (std::optional<Instant> next = versions_.NextDeadline()) due = std::min(due, *next);
  // A timer that fires early is cheaper than one moved at every heartbeat.
  if (timer_due_ && *timer_due_ <= due) return;
  timer_due_ = due;
  timer_->Arm(due);
}

void Member::Fail(std::string reason) {
  if (stopped_) return;
  stopped_ = true;
  Emit(host_.trace(), LogLevel::kFatal, "member/member", "the member cannot go on", {TraceField::Text("error", reason)});
  host_.Stop(false, std::move(reason));
}

}  // namespace detcd::member
