#include "core/rpc/messages.h"

#include <google/protobuf/io/coded_stream.h>

#include "core/base/limits.h"
#include "core/proto/kv.pb.h"
#include "core/proto/rpc.pb.h"

namespace detcd::rpc {
namespace {

using etcdserverpb::RangeRequest;
static_assert(static_cast<int>(mvcc::SortOrder::kNone) == RangeRequest::NONE);
static_assert(static_cast<int>(mvcc::SortOrder::kAscend) == RangeRequest::ASCEND);
static_assert(static_cast<int>(mvcc::SortOrder::kDescend) == RangeRequest::DESCEND);
static_assert(static_cast<int>(mvcc::SortTarget::kKey) == RangeRequest::KEY);
static_assert(static_cast<int>(mvcc::SortTarget::kVersion) == RangeRequest::VERSION);
static_assert(static_cast<int>(mvcc::SortTarget::kCreate) == RangeRequest::CREATE);
static_assert(static_cast<int>(mvcc::SortTarget::kMod) == RangeRequest::MOD);
static_assert(static_cast<int>(mvcc::SortTarget::kValue) == RangeRequest::VALUE);

ApiError FillRange(const mvcc::RangeResult& result, etcdserverpb::RangeResponse& response) {
  if (result.error != mvcc::RangeError::kOk) return ToApiError(result.error);
  response.mutable_kvs()->Reserve(static_cast<int>(result.kvs.size()));
  for (const mvcc::KeyValue& pair : result.kvs) ToMessage(pair, *response.add_kvs());
  response.set_more(result.more);
  response.set_count(result.count);
  return ApiError::kOk;
}

}  // namespace

mvcc::RangeOptions OptionsOf(const etcdserverpb::RangeRequest& request) {
  mvcc::RangeOptions options;
  options.revision = Revision(request.revision());
  options.limit = request.limit();
  if (etcdserverpb::RangeRequest::SortOrder_IsValid(request.sort_order())) {
    options.sort_order = static_cast<mvcc::SortOrder>(request.sort_order());
  }
  if (etcdserverpb::RangeRequest::SortTarget_IsValid(request.sort_target())) {
    options.sort_target = static_cast<mvcc::SortTarget>(request.sort_target());
  }
  options.keys_only = request.keys_only();
  options.count_only = request.count_only();
  options.min_mod_revision = Revision(request.min_mod_revision());
  options.max_mod_revision = Revision(request.max_mod_revision());
  options.min_create_revision = Revision(request.min_create_revision());
  options.max_create_revision = Revision(request.max_create_revision());
  return options;
}

// The second try is for the rare deep one, so that all others take the library's fast path.
bool ParseRequest(std::string_view encoded, google::protobuf::Message& request) {
  const auto size = static_cast<int>(encoded.size());
  if (request.ParseFromArray(encoded.data(), size)) return true;
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(encoded.data()), size);
  input.SetRecursionLimit(kMessageDepthMax);
  return request.ParseFromCodedStream(&input) && input.ConsumedEntireMessage();
}

void FillHeader(const MemberStatus& status, Revision revision, etcdserverpb::ResponseHeader& header) {
  FillHeader(status, header);
  if (header.revision() == 0) header.set_revision(revision.value);
}

void FillHeader(const MemberStatus& status, etcdserverpb::ResponseHeader& header) {
  header.set_cluster_id(status.cluster.value);
  header.set_member_id(status.member.value);
  header.set_raft_term(status.applied_term.value);
}

void ToMessage(const mvcc::KeyValue& pair, mvccpb::KeyValue& out) {
  // In place: the setters of bytes copy twice.
  out.mutable_key()->assign(pair.key.data(), pair.key.size());
  out.set_create_revision(pair.create_revision.value);
  out.set_mod_revision(pair.mod_revision.value);
  out.set_version(pair.version);
  if (!pair.value.empty()) out.mutable_value()->assign(pair.value.data(), pair.value.size());
  out.set_lease(pair.lease.value);
}

void ToMessage(const MemberRow& row, etcdserverpb::Member& out) {
  out.set_id(row.id.value);
  out.set_name(row.name);
  for (const std::string& url : row.peer_urls) out.add_peerurls(url);
  for (const std::string& url : row.client_urls) out.add_clienturls(url);
  out.set_islearner(row.is_learner);
}

ApiError ToApiError(mvcc::RangeError error) {
  switch (error) {
    case mvcc::RangeError::kOk:
      return ApiError::kOk;
    case mvcc::RangeError::kFutureRevision:
      return ApiError::kFutureRev;
    case mvcc::RangeError::kCompacted:
      return ApiError::kCompacted;
  }
  return ApiError::kOk;
}

ApiError ReadRange(const mvcc::Store& store, const etcdserverpb::RangeRequest& request,
                   etcdserverpb::RangeResponse& response) {
  return FillRange(store.Range({.key = request.key(), .end = request.range_end()}, OptionsOf(request)), response);
}

std::optional<ApiError> ReadRangeInOneSlice(const mvcc::Store& store, const etcdserverpb::RangeRequest& request,
                                            etcdserverpb::RangeResponse& response) {
  const std::optional<mvcc::RangeResult> result =
      store.RangeWithin({.key = request.key(), .end = request.range_end()}, OptionsOf(request), kRangeSlice);
  if (!result.has_value()) return std::nullopt;
  return FillRange(*result, response);
}

}  // namespace detcd::rpc
