#include "tests/support/raft_harness.h"

#include <algorithm>

#include "core/base/check.h"

namespace detcd::raft {

RaftOptions HarnessOptions() {
  return {.id = MemberId(1),
          .heartbeat_interval = kTick,
          .election_timeout = kElectionTimeout,
          .append_bytes_max = 1 << 20,
          .appends_in_flight_max = 256,
          .append_bytes_in_flight_max = 16 << 20,
          .uncommitted_bytes_max = 1 << 30,
          .log_entries_in_memory_max = 1000,
          .log_bytes_in_memory_max = 1 << 20};
}

RaftHarness::RaftHarness(size_t members, RaftOptions options, uint64_t seed) : options_(options), seed_(seed) {
  SetVerify(true);
  members_.resize(members);
  for (uint64_t id = 1; id <= members; ++id) {
    member(id).up = false;
    Restart(id);
  }
}

void RaftHarness::Restart(uint64_t id) {
  Member& m = member(id);
  if (m.up) return;
  ++m.incarnation;
  RaftOptions options = options_;
  options.id = MemberId(id);
  VoterSet voters;
  for (uint64_t i = 1; i <= members_.size(); ++i) voters.AddVoter(MemberId(i));
  RaftLog log;
  log.Recover(m.disk);
  m.raft = MakeRaft(options, m.disk_state, std::move(log), LogIndex(), voters,
                    KeyedRandom(seed_, "raft").Sub(id * 1000 + m.incarnation), trace_, m.now);
  m.up = true;
  Output output;
  After(id, output);
}

void RaftHarness::Crash(uint64_t id, size_t batches_kept) {
  Member& m = member(id);
  if (!m.up) return;
  for (; batches_kept > 0 && !m.writes.empty(); --batches_kept) SyncOne(id);
  m.up = false;
  m.writes.clear();
  m.held.clear();
  m.fetches.clear();
  m.applied.clear();
  m.collected = m.durable = m.term_vote_batch = 0;
  m.commit_seen = LogIndex();
  m.led_term = Term();
}

uint64_t RaftHarness::LeaderId() const {
  uint64_t leader = 0;
  Term term;
  for (const Member& m : members_) {
    if (!m.up || !std::holds_alternative<Leader>(m.raft.role) || m.raft.term < term) continue;
    term = m.raft.term;
    leader = m.raft.options.id.value;
  }
  return leader;
}

std::vector<std::string> RaftHarness::Applied(uint64_t id) {
  std::vector<std::string> data;
  for (const Entry& entry : member(id).applied) {
    if (!entry.data.empty()) data.emplace_back(entry.data.view());
  }
  return data;
}

void RaftHarness::After(uint64_t id, Output& output) {
  Member& m = member(id);
  const bool state_dirty = m.raft.term != m.raft.collected.term || m.raft.voted_for != m.raft.collected.vote;
  const uint64_t state_batch = state_dirty ? m.collected + 1 : m.term_vote_batch;
  const uint64_t log_batch = m.raft.log.HasUnwritten() ? m.collected + 1 : m.collected;
  for (Outgoing& out : output.messages) {
    const bool log = out.dependency == Dependency::kLog;
    m.held.push_back({std::move(out.message), log ? std::max(log_batch, state_batch) : state_batch, log});
  }
  for (const LogFetch& fetch : output.fetches) m.fetches.push_back(fetch);
  for (const ReadReady& read : output.reads) {
    m.reads.push_back(read);
    if (read.index < reads_asked_[read.read]) Fail("F15: read index below what was committed when it was asked");
  }
  m.reads_dropped.insert(m.reads_dropped.end(), output.reads_dropped.begin(), output.reads_dropped.end());
  for (LogIndex i = m.raft.applied_index + 1; i <= m.raft.commit_index; ++i) m.applied.push_back(m.raft.log.At(i));
  if (m.raft.applied_index < m.raft.commit_index) AcknowledgeApplied(m.raft, m.raft.commit_index);
  Release(m);
  Judge();
}

void RaftHarness::Release(Member& m) {
  std::vector<Held> kept;
  for (Held& held : m.held) {
    if (held.batch > m.durable) {
      kept.push_back(std::move(held));
    } else if (!held.log || held.message.term == m.raft.term) {
      network_.push_back(std::move(held.message));
    }
  }
  m.held = std::move(kept);
}

void RaftHarness::Advance(uint64_t id, Duration time) { member(id).now = member(id).now + time; }

void RaftHarness::FireTimer(uint64_t id) {
  if (!member(id).up) return;
  Output output;
  OnTimer(raft(id), member(id).now, output);
  After(id, output);
}

void RaftHarness::Timeout(uint64_t id) {
  if (!member(id).up) return;
  member(id).now = std::max(member(id).now, NextDeadline(raft(id)));
  FireTimer(id);
}

ProposeResult RaftHarness::Propose(uint64_t id, std::string data) {
  if (!member(id).up) return ProposeResult::kNoLeader;
  std::vector<Entry> entries(1);
  entries[0].data = Bytes::Copy(data);
  Output output;
  ProposeResult result = raft::Propose(raft(id), std::move(entries), member(id).now, output);
  After(id, output);
  return result;
}

void RaftHarness::Read(uint64_t id, uint64_t read) {
  if (!member(id).up) return;
  reads_asked_[ReadId(read)] = LogIndex(canon_.size());
  Output output;
  RequestRead(raft(id), ReadId(read), member(id).now, output);
  After(id, output);
}

void RaftHarness::Transfer(uint64_t id, uint64_t target) {
  if (!member(id).up) return;
  Output output;
  TransferLeadership(raft(id), MemberId(target), member(id).now, output);
  After(id, output);
}

void RaftHarness::Step(Message message) {
  const uint64_t id = message.to.value;
  if (id == 0 || id > members_.size() || !member(id).up) return;
  Output output;
  raft::Step(raft(id), std::move(message), member(id).now, output);
  After(id, output);
}

void RaftHarness::Write(uint64_t id) {
  Member& m = member(id);
  if (!m.up) return;
  const HardState before = m.raft.collected;
  Output output;
  Collect(m.raft, output);
  if (!output.hard_state.has_value() && output.entries.empty()) return;
  ++m.collected;
  if (output.hard_state && (output.hard_state->term != before.term || output.hard_state->vote != before.vote)) {
    m.term_vote_batch = m.collected;
  }
  m.writes.push_back({output.hard_state, std::move(output.entries)});
}

void RaftHarness::SyncOne(uint64_t id) {
  Member& m = member(id);
  if (!m.up || m.writes.empty()) return;
  Batch batch = std::move(m.writes.front());
  m.writes.pop_front();
  ++m.durable;
  if (!batch.entries.empty()) {
    m.disk.resize(batch.entries.front().index.value - 1);
    m.disk.insert(m.disk.end(), batch.entries.begin(), batch.entries.end());
  }
  if (batch.hard_state.has_value()) {
    m.disk_state = *batch.hard_state;
    auto [vote, fresh] = votes_.try_emplace({MemberId(id), m.disk_state.term}, m.disk_state.vote);
    if (vote->second.IsZero()) vote->second = m.disk_state.vote;
    if (vote->second != m.disk_state.vote) Fail("F2: two durable votes in one term");
  }
  Output output;
  if (m.disk_state.vote == MemberId(id)) AcknowledgeVote(m.raft, m.disk_state.term, m.now, output);
  if (!batch.entries.empty()) {
    AcknowledgeDurable(m.raft, batch.entries.back().term, batch.entries.back().index, m.now, output);
  }
  After(id, output);
}

void RaftHarness::Sync(uint64_t id) {
  Write(id);
  while (!member(id).writes.empty()) SyncOne(id);
}

void RaftHarness::AnswerFetch(uint64_t id) {
  Member& m = member(id);
  if (!m.up || m.fetches.empty()) return;
  const LogFetch fetch = m.fetches.front();
  m.fetches.pop_front();
  std::vector<Entry> entries;
  size_t bytes = 0;
  for (uint64_t i = fetch.first.value; i <= fetch.last.value && i <= m.disk.size(); ++i) {
    entries.push_back(m.disk[i - 1]);
    bytes += entries.back().data.size();
    if (bytes >= fetch.bytes_max) break;
  }
  Output output;
  SupplyEntries(m.raft, fetch.follower, std::move(entries), m.now, output);
  After(id, output);
}

void RaftHarness::Unreachable(uint64_t id, uint64_t peer) {
  if (!member(id).up) return;
  Output output;
  ReportUnreachable(raft(id), MemberId(peer), output);
  After(id, output);
}

void RaftHarness::Deliver(size_t position, bool duplicate) {
  Message message = network_[position];
  if (!duplicate) network_.erase(network_.begin() + static_cast<std::ptrdiff_t>(position));
  if (cut_.contains({message.from.value, message.to.value})) return;
  Step(std::move(message));
}

void RaftHarness::Isolate(uint64_t id) {
  for (uint64_t other = 1; other <= size(); ++other) Cut(id, other);
}

std::vector<Message> RaftHarness::Take(const std::function<bool(const Message&)>& wanted) {
  std::vector<Message> taken;
  std::vector<Message> rest;
  for (Message& message : network_) (wanted(message) ? taken : rest).push_back(std::move(message));
  network_ = std::move(rest);
  return taken;
}

void RaftHarness::Settle() {
  for (size_t steps = 0; steps < 100'000; ++steps) {
    for (uint64_t id = 1; id <= size(); ++id) {
      if (!member(id).slow_disk) Sync(id);
      while (!member(id).fetches.empty()) AnswerFetch(id);
    }
    if (!network_.empty()) {
      Deliver(0);
      continue;
    }
    bool quiet = true;
    for (Member& m : members_) quiet &= !m.up || m.slow_disk || m.held.empty();
    if (quiet) return;
  }
  Fail("the cluster does not settle");
}

void RaftHarness::Elect(uint64_t id) {
  for (uint64_t i = 1; i <= size(); ++i) Advance(i, kElectionTimeout * 2);
  Timeout(id);
  Settle();
}

void RaftHarness::Run(Duration time) {
  for (Duration passed; passed < time; passed = passed + kTick) {
    for (uint64_t id = 1; id <= size(); ++id) {
      Advance(id, kTick);
      FireTimer(id);
    }
    Settle();
  }
}

void RaftHarness::Fail(std::string what) {
  if (violation_.empty()) violation_ = std::move(what);
}

size_t RaftHarness::DurableHolders(const Entry& entry) const {
  size_t holders = 0;
  for (const Member& m : members_) {
    holders += m.disk.size() >= entry.index.value && m.disk[entry.index.value - 1] == entry ? 1 : 0;
  }
  return holders;
}

void RaftHarness::JudgeLeader(Member& m) {
  if (!std::holds_alternative<Leader>(m.raft.role)) return;
  auto [leader, fresh] = leaders_.try_emplace(m.raft.term, m.raft.options.id);
  if (leader->second != m.raft.options.id) Fail("F1: two leaders in one term");
  if (fresh) {
    for (const Entry& entry : canon_) {
      if (m.raft.log.TermAt(entry.index) != entry.term) Fail("F6: a new leader lacks a committed entry");
    }
  }
  // F5 makes equal terms at an index equal logs, so F4 needs the last index only.
  if (m.led_term == m.raft.term && m.raft.log.last_index() < m.led_last) Fail("F4: a leader's log shrank");
  m.led_term = m.raft.term;
  m.led_last = m.raft.log.last_index();
}

void RaftHarness::JudgeCommit(Member& m) {
  if (m.raft.commit_index < m.commit_seen) Fail("F10: a commit index fell");
  m.commit_seen = m.raft.commit_index;
  if (m.raft.commit_index > m.raft.log.last_index()) return Fail("F10: commit beyond the log");
  for (uint64_t i = 1; i <= m.raft.commit_index.value; ++i) {
    const LogIndex index(i);
    if (i <= canon_.size()) {
      if (m.raft.log.TermAt(index) != canon_[i - 1].term) return Fail("F7: two entries committed at one index");
      continue;
    }
    if (!std::holds_alternative<Leader>(m.raft.role)) return Fail("F8: a follower commits before a leader");
    if (m.raft.log.TermAt(m.raft.commit_index) != m.raft.term) return Fail("F8: commit of a former term's entry");
    canon_.push_back(m.applied.at(i - 1));
    if (DurableHolders(canon_.back()) < size() / 2 + 1) return Fail("F8: commit without a durable majority");
  }
}

void RaftHarness::Judge() {
  for (Member& m : members_) {
    if (!m.up) continue;
    // A single voter may lead a term, and forget it, before it is durable: nobody heard of it.
    for (LogIndex i = m.raft.log.first_in_memory(); i <= m.raft.log.last_index(); ++i) {
      const Entry& entry = m.raft.log.At(i);
      if (entry.term > m.disk_state.term) break;
      const std::pair<Term, Bytes> content{*m.raft.log.TermAt(i - 1), entry.data};
      auto known = entries_.try_emplace({i, entry.term}, content).first;
      if (known->second != content) Fail("F5: equal index and term, other content or history");
    }
    JudgeLeader(m);
    JudgeCommit(m);
  }
  for (const Entry& entry : canon_) {
    if (DurableHolders(entry) < size() / 2 + 1) Fail("F9: a committed entry is no longer durable on a majority");
  }
}

}  // namespace detcd::raft
