#include "core/mvcc/store.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/check.h"
#include "core/base/digest.h"
#include "core/base/probe.h"
#include "core/mvcc/compaction.h"
#include "core/mvcc/key_index.h"
#include "core/mvcc/range_scan.h"
#include "core/mvcc/upkeep.h"

namespace detcd::mvcc {
namespace {

constexpr std::string_view kFromKey("\0", 1);

}  // namespace

class Store::Impl {
 public:
  const KeyRecord* FindLive(std::string_view key) const;
  // Of a revision to read at.
  RangeError Check(Revision at) const;

  // Calls visit(record) for the keys of the range, alive or not, in key order.
  template <class Visit>
  void ForEach(const KeyRange& range, Visit&& visit) const {
    if (range.end.empty()) {
      if (KeyRecord* record = index.Find(range.key)) visit(*record);
    } else if (range.end == kFromKey) {
      index.ForEach(range.key, std::nullopt, visit);
    } else {
      index.ForEach(range.key, range.end, visit);
    }
  }
  KeyVersion& Append(KeyRecord& record);
  void Bury(KeyRecord& record);

  KeyIndex index;
  Garbage garbage;
  std::multiset<Revision> holds;
  Upkeep upkeep{index, garbage, holds};
  Revision revision{1};  // never falls
  Revision compact_revision{-1};
  bool in_transaction = false;
  uint32_t sub = 0;  // changes so far of the open transaction
  Digest history;
  uint64_t bytes = 0;
  uint64_t live_keys = 0;  // keys whose newest version is a put
};

const KeyRecord* Store::Impl::FindLive(std::string_view key) const {
  const KeyRecord* record = index.Find(key);
  return record != nullptr && record->Newest() != nullptr ? record : nullptr;
}

RangeError Store::Impl::Check(Revision at) const {
  if (at > revision) return RangeError::kFutureRevision;
  if (at < compact_revision) return RangeError::kCompacted;
  return RangeError::kOk;
}

KeyVersion& Store::Impl::Append(KeyRecord& record) {
  CHECK(in_transaction);
  CHECK(sub != std::numeric_limits<uint32_t>::max());
  KeyVersion& version = record.versions.Add();
  version.main = revision + 1;
  version.sub = sub++;
  bytes += sizeof(KeyVersion);
  history.Add(DigestBytes(record.key.view()));
  return version;
}

void Store::Impl::Bury(KeyRecord& record) {
  const KeyVersion& tombstone = Append(record);
  garbage.NoteHidden(record, tombstone);
  garbage.NoteTombstone(record, tombstone);
  history.Add(0);
  --live_keys;
}

Store::Store() : impl_(std::make_unique<Impl>()) {}
Store::~Store() = default;

Revision Store::revision() const { return impl_->revision; }
Revision Store::compact_revision() const { return impl_->compact_revision; }
uint64_t Store::bytes() const { return impl_->bytes; }
uint64_t Store::key_count() const { return impl_->live_keys; }

RangeResult Store::Range(const KeyRange& range, const RangeOptions& options) const {
  std::optional<RangeResult> result = RangeWithin(range, options, {});
  CHECK(result.has_value());
  return *std::move(result);
}

std::optional<RangeResult> Store::RangeWithin(const KeyRange& range, const RangeOptions& options,
                                              const RangeSlice& slice) const {
  std::optional<RangeResult> result(std::in_place);
  // Inside a transaction the current revision includes the transaction's own changes so far.
  Revision at(std::numeric_limits<int64_t>::max());
  if (options.revision.value > 0) {
    at = options.revision;
    result->error = impl_->Check(at);
    if (result->error != RangeError::kOk) return result;
  }

  if (range.end.empty()) {
    const KeyRecord* record = impl_->index.Find(range.key);
    const KeyVersion* version = record == nullptr ? nullptr : record->VisibleAt(at);
    if (version == nullptr) return result;
    result->count = 1;
    if (options.count_only || !PassesFilters(options, *version)) return result;
    result->kvs.push_back(Present(options, MakePair(*record, *version)));
    return result;
  }

  RangeScan scan(impl_->index, range, options, at);
  if (!scan.Step(slice, result->kvs)) return std::nullopt;
  result->count = scan.count();
  result->more = scan.more();
  return result;
}

RangeScan Store::Scan(const KeyRange& range, const RangeOptions& options) const {
  CHECK(!impl_->in_transaction && impl_->Check(options.revision) == RangeError::kOk);
  return RangeScan(impl_->index, range, options, options.revision);
}

Store::Hold::Hold(const Store& store, Revision revision) : holds_(store.impl_->holds), place_(holds_.insert(revision)) {}
Store::Hold::~Hold() { holds_.erase(place_); }

Store::Part Store::ReadPart(const KeyRange& range, const PartOptions& options) const {
  Part part;
  part.error = impl_->Check(options.revision);
  if (part.error != RangeError::kOk) return part;
  const RangeOptions presented{.keys_only = options.keys_only};
  size_t bytes = 0;
  impl_->ForEach(range, [&](const KeyRecord& record) {
    const KeyVersion* version = record.VisibleAt(options.revision);
    if (version == nullptr) return true;
    if (part.kvs.size() == options.pairs_max || (bytes >= options.bytes_max && !part.kvs.empty())) {
      part.more = true;
      return false;
    }
    const KeyValue& pair = part.kvs.emplace_back(Present(presented, MakePair(record, *version)));
    bytes += pair.key.size() + pair.value.size();
    return true;
  });
  return part;
}

std::optional<KeyValue> Store::Get(std::string_view key) const {
  const KeyRecord* record = impl_->FindLive(key);
  if (record == nullptr) return std::nullopt;
  return MakePair(*record, record->versions.back());
}

void Store::Visit(const KeyRange& range, absl::FunctionRef<bool(const KeyValue& pair)> visit) const {
  impl_->ForEach(range, [&](const KeyRecord& record) {
    const KeyVersion* newest = record.Newest();
    return newest == nullptr || visit(MakePair(record, *newest));
  });
}

void Store::Begin() {
  CHECK(!impl_->in_transaction);
  impl_->in_transaction = true;
  impl_->sub = 0;
}

std::optional<KeyValue> Store::Put(Bytes key, Bytes value, LeaseId lease) {
  std::optional<KeyValue> before;
  KeyRecord& record = impl_->index.FindOrAdd(key.view());
  if (record.versions.empty()) {
    impl_->bytes += KeyIndex::KeyBytes(key.size());
  } else if (const KeyVersion* newest = record.Newest()) {
    before = MakePair(record, *newest);
  }

  KeyVersion& version = impl_->Append(record);
  version.create = before ? before->create_revision : version.main;
  version.version = before ? before->version + 1 : 1;
  version.lease = lease;
  // An empty slice would keep the whole request alive for nothing.
  if (!value.empty()) version.value = std::move(value);
  impl_->bytes += version.value.size();
  if (before) {
    impl_->garbage.NoteHidden(record, version);
  } else {
    ++impl_->live_keys;
  }

  impl_->history.Add(static_cast<uint64_t>(version.version));
  impl_->history.Add(static_cast<uint64_t>(lease.value));
  impl_->history.AddBytes(version.value.view());
  return before;
}

std::vector<KeyValue> Store::DeleteRange(const KeyRange& range) {
  std::vector<KeyValue> deleted;
  impl_->ForEach(range, [&](KeyRecord& record) {
    if (const KeyVersion* newest = record.Newest()) {
      deleted.push_back(MakePair(record, *newest));
      impl_->Bury(record);
    }
    return true;
  });
  return deleted;
}

Revision Store::transaction_revision() const {
  CHECK(impl_->in_transaction);
  return impl_->sub == 0 ? impl_->revision : impl_->revision + 1;
}

bool Store::Commit() {
  CHECK(impl_->in_transaction);
  impl_->in_transaction = false;
  if (impl_->sub == 0) {
    PROBE("mvcc.transaction_without_changes");
    return false;
  }
  impl_->revision = impl_->revision + 1;
  impl_->history.Add(static_cast<uint64_t>(impl_->revision.value));
  return true;
}

RangeError Store::Compact(Revision revision) {
  CHECK(!impl_->in_transaction);
  if (revision <= impl_->compact_revision) return RangeError::kCompacted;
  if (revision > impl_->revision) return RangeError::kFutureRevision;
  impl_->upkeep.AddCompaction(revision, impl_->compact_revision);
  impl_->compact_revision = revision;
  // Revisions are positive and end each transaction here: a negative number in their place is no transaction's.
  impl_->history.Add(~static_cast<uint64_t>(revision.value));
  return RangeError::kOk;
}

Revision Store::removed_revision() const { return impl_->upkeep.removed_revision(); }

Store::HashRequest Store::RequestHash(Revision revision) {
  CHECK(!impl_->in_transaction);
  HashRequest request;
  const bool kept = impl_->upkeep.KeepsHash(revision);
  if (!kept && revision.value > 0) request.error = impl_->Check(revision);
  if (request.error != RangeError::kOk) return request;
  const Revision at = revision.value == 0 ? impl_->revision : revision;
  const HashScope scope{.revision = at, .compact_revision = impl_->compact_revision};
  std::optional<uint64_t> ticket = impl_->upkeep.AddHash(revision, scope, kept);
  request.too_many = !ticket.has_value();
  request.ticket = ticket.value_or(0);
  return request;
}

std::vector<FinishedHash> Store::TakeHashes() { return impl_->upkeep.TakeHashes(); }
bool Store::HasWork() const { return impl_->upkeep.HasWork(); }

void Store::Work(size_t changes_max) {
  CHECK(!impl_->in_transaction);
  impl_->bytes -= impl_->upkeep.Work(changes_max);
}

uint64_t Store::history_digest() const { return impl_->history.value(); }

}  // namespace detcd::mvcc
