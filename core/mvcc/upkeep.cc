#include "core/mvcc/upkeep.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/limits.h"
#include "core/base/probe.h"

namespace detcd::mvcc {

void Upkeep::AddCompaction(Revision revision, Revision former) {
  jobs_.push_back({.kind = Job::Kind::kCompaction,
                   .scope = {.revision = revision, .compact_revision = former, .keeps_tombstones = true},
                   .asked = revision});
  ++compactions_waiting_;
  Forgo();
}

// A hash that newer compactions will have pushed out as soon as it is kept need not be made, and a removal that the next
// one in the queue includes need not be done: the queue stays as short as the results that count.
void Upkeep::Forgo() {
  size_t newer = compactions_waiting_;
  for (size_t i = 0; i + 1 < jobs_.size(); ++i) {
    if (jobs_[i].kind != Job::Kind::kCompaction) continue;
    --newer;
    if (newer < kCompactionHashesMax) return;
    if (i == 0 || jobs_[i + 1].kind != Job::Kind::kCompaction) continue;
    const bool awaited = std::any_of(jobs_.begin(), jobs_.end(),
                                     [&](const Job& job) { return job.kept && job.asked == jobs_[i].asked; });
    if (awaited) continue;
    PROBE("mvcc.compaction_forgone");
    jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(i));
    --compactions_waiting_;
    return;
  }
}

bool Upkeep::KeepsHash(Revision revision) const {
  size_t left = kCompactionHashesMax;
  for (auto job = jobs_.rbegin(); job != jobs_.rend() && left > 0; ++job) {
    if (job->kind != Job::Kind::kCompaction) continue;
    if (job->asked == revision) return true;
    if (job->hash_wanted) --left;  // else it is among the kept ones already
  }
  left = std::min(left, kept_.size());
  return std::any_of(kept_.end() - static_cast<std::ptrdiff_t>(left), kept_.end(),
                     [&](const KeptHash& kept) { return kept.asked == revision; });
}

std::optional<uint64_t> Upkeep::AddHash(Revision asked, const HashScope& scope, bool kept) {
  if (hashes_waiting_ >= kHashesWaitingMax) {
    PROBE("mvcc.too_many_hashes");
    return std::nullopt;
  }
  ++hashes_waiting_;
  jobs_.push_back({.kind = Job::Kind::kHash, .kept = kept, .scope = scope, .asked = asked, .ticket = next_ticket_});
  return next_ticket_++;
}

// What a removal takes is hidden at its revision, and at all above it.
bool Upkeep::Held(const Job& job) const {
  return job.kind == Job::Kind::kCompaction && !job.hash_wanted && !holds_.empty() && *holds_.begin() < job.scope.revision;
}

uint64_t Upkeep::Work(size_t changes_max) {
  CHECK(HasWork());
  Job& job = jobs_.front();
  if (job.kept) {
    finished_.push_back({.ticket = job.ticket, .result = KeptFor(job.asked)});
    --hashes_waiting_;
    jobs_.pop_front();
    return 0;
  }
  if (job.hash_wanted) {
    if (WorkOnHash(job, changes_max) && job.kind == Job::Kind::kHash) {
      --hashes_waiting_;
      jobs_.pop_front();
    }
    return 0;
  }
  const Garbage::Collected collected = garbage_.Collect(index_, job.scope.revision, changes_max);
  if (collected.done) {
    removed_revision_ = job.scope.revision;
    --compactions_waiting_;
    jobs_.pop_front();
  } else {
    PROBE("mvcc.removal_in_several_slices");
  }
  return collected.bytes;
}

// Whether the hash is done.
bool Upkeep::WorkOnHash(Job& job, size_t changes_max) {
  if (!hash_) hash_.emplace(index_, job.scope);
  if (!hash_->Step(changes_max)) return false;
  FinishHash(job, hash_->result());
  hash_.reset();
  job.hash_wanted = false;
  return true;
}

void Upkeep::FinishHash(const Job& job, const HashResult& result) {
  if (job.kind == Job::Kind::kHash) {
    finished_.push_back({.ticket = job.ticket, .result = result});
    return;
  }
  kept_.push_back({job.asked, result});
  if (kept_.size() > kCompactionHashesMax) kept_.pop_front();
}

// It was among the last ten when it was asked for, and the compactions since then come behind the question.
const HashResult& Upkeep::KeptFor(Revision asked) const {
  auto kept = std::find_if(kept_.begin(), kept_.end(), [&](const KeptHash& k) { return k.asked == asked; });
  CHECK(kept != kept_.end());
  return kept->result;
}

std::vector<FinishedHash> Upkeep::TakeHashes() { return std::exchange(finished_, {}); }

}  // namespace detcd::mvcc
