#include "core/rpc/range_stream.h"

#include <algorithm>
#include <limits>

#include "core/base/check.h"
#include "core/base/limits.h"
#include "core/base/probe.h"
#include "core/proto/rpc.pb.h"
#include "core/rpc/kv_service.h"
#include "core/rpc/messages.h"

namespace detcd::rpc {

using etcdserverpb::RangeRequest;

ApiError CheckRangeStream(const RangeRequest& request) {
  if (ApiError error = CheckRange(request); error != ApiError::kOk) return error;
  const bool ascending = request.sort_order() == RangeRequest::ASCEND && request.sort_target() == RangeRequest::KEY;
  if (request.sort_order() != RangeRequest::NONE && !ascending) return ApiError::kStreamSortUnsupported;
  const bool filters = request.min_mod_revision() != 0 || request.max_mod_revision() != 0 ||
                       request.min_create_revision() != 0 || request.max_create_revision() != 0;
  return filters ? ApiError::kStreamFilterUnsupported : ApiError::kOk;
}

RangeStream::RangeStream(const RangeRequest& request)
    : next_key_(request.key()),
      range_end_(request.range_end()),
      revision_(request.revision()),
      limit_(request.limit()),
      keys_only_(request.keys_only()),
      count_only_(request.count_only()),
      pairs_max_(limit_ < 0 ? std::numeric_limits<int>::max() : kRangeStreamFirstPairs) {}

ApiError RangeStream::Next(const Backend& backend, etcdserverpb::RangeStreamResponse& response) {
  CHECK(!done_);
  const mvcc::Store& store = backend.store();
  if (header_revision_.value == 0) header_revision_ = store.revision();
  if (revision_ <= 0) revision_ = header_revision_.value;

  size_t pairs = count_only_ ? 0 : pairs_max_;
  if (limit_ > 0) pairs = std::min(pairs, static_cast<size_t>(limit_ - sent_));
  const mvcc::Store::Part part = store.ReadPart({.key = next_key_, .end = range_end_},
                                                {.revision = Revision(revision_),
                                                 .pairs_max = pairs,
                                                 .bytes_max = kRangeStreamChunkBytesMax,
                                                 .keys_only = keys_only_});
  if (part.error != mvcc::RangeError::kOk) return ToApiError(part.error);
  etcdserverpb::RangeResponse& range = *response.mutable_range_response();
  range.mutable_kvs()->Reserve(static_cast<int>(part.kvs.size()));
  for (const mvcc::KeyValue& pair : part.kvs) ToMessage(pair, *range.add_kvs());
  sent_ += static_cast<int64_t>(part.kvs.size());
  if (!part.kvs.empty()) next_key_ = std::string(part.kvs.back().key.view()) + '\0';

  const bool limited = count_only_ || (limit_ > 0 && sent_ == limit_);
  done_ = limited || !part.more;
  if (!done_) {
    const size_t bytes = range.ByteSizeLong();
    if (part.kvs.size() < pairs) {
      PROBE("rpc.range_stream_cut_by_bytes");
      pairs_max_ = part.kvs.size();
    } else if (bytes < kRequestBytesMax / 2) {
      pairs_max_ *= 2;
    } else if (bytes > kRequestBytesMax * 2) {
      pairs_max_ = std::max<size_t>(1, pairs_max_ / 2);
    }
    return ApiError::kOk;
  }

  int64_t left = 0;
  if (part.more) {
    const mvcc::RangeOptions count{.revision = Revision(revision_), .count_only = true};
    left = store.Range({.key = next_key_, .end = range_end_}, count).count;
  }
  FillHeader(backend.Status(), header_revision_, *range.mutable_header());
  range.set_more(part.more && !count_only_);
  range.set_count(sent_ + left);
  return ApiError::kOk;
}

}  // namespace detcd::rpc
