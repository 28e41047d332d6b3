#include "core/rpc/long_range.h"

#include <cstdint>
#include <utility>

#include "core/proto/rpc.pb.h"
#include "core/rpc/messages.h"

namespace detcd::rpc {
namespace {

mvcc::RangeOptions PinnedOptions(const mvcc::Store& store, const etcdserverpb::RangeRequest& request) {
  mvcc::RangeOptions options = OptionsOf(request);
  if (options.revision.value <= 0) options.revision = store.revision();
  return options;
}

}  // namespace

ApiError CheckLongRange(const mvcc::Store& store, const etcdserverpb::RangeRequest& request) {
  if (request.revision() > store.revision().value) return ApiError::kFutureRev;
  if (request.revision() > 0 && request.revision() < store.compact_revision().value) return ApiError::kCompacted;
  return ApiError::kOk;
}

LongRange::LongRange(const Backend& backend, const etcdserverpb::RangeRequest& request)
    : backend_(backend),
      header_revision_(backend.store().revision()),
      options_(PinnedOptions(backend.store(), request)),
      hold_(backend.store(), options_.revision),
      scan_(backend.store().Scan({.key = request.key(), .end = request.range_end()}, options_)),
      part_(std::make_unique<etcdserverpb::RangeResponse>()),
      pieces_(1) {}
LongRange::~LongRange() = default;

bool LongRange::Step() {
  kvs_.clear();
  const bool done = scan_.Step(kRangeSlice, kvs_);
  part_->Clear();
  for (const mvcc::KeyValue& pair : kvs_) ToMessage(pair, *part_->add_kvs());
  AddPiece(*part_);
  return done;
}

// Messages that follow each other are one message (Protocol Buffers, encoding: merge), and these have each field once,
// in the order of the numbers.
void LongRange::AddPiece(const etcdserverpb::RangeResponse& part) {
  const size_t size = part.ByteSizeLong();
  if (size == 0) return;
  pieces_.push_back(Bytes::Build(
      size, [&](char* out) { part.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(out)); }));
}

std::vector<Bytes> LongRange::TakeAnswer() {
  etcdserverpb::RangeResponse end;
  end.set_more(scan_.more());
  end.set_count(scan_.count());
  AddPiece(end);
  etcdserverpb::RangeResponse head;
  FillHeader(backend_.Status(), header_revision_, *head.mutable_header());
  pieces_.front() = Bytes::Copy(head.SerializeAsString());
  return std::exchange(pieces_, {});
}

}  // namespace detcd::rpc
