// Any sequence of API calls, as one member that answers and one that does not apply it.
#include <google/protobuf/arena.h>

#include "core/base/limits.h"
#include "core/member/apply.h"
#include "core/proto/raft_internal.pb.h"
#include "core/proto/rpc.pb.h"
#include "core/rpc/kv_service.h"
#include "core/rpc/txn.h"
#include "tests/support/api_sequence.h"

namespace detcd::member {
namespace {

using etcdserverpb::InternalRaftRequest;
using rpc::ApiError;
using rpc::Method;

struct Everybody final : LocalWaiters {
  bool Waits(uint64_t) const override { return true; }
};

// What is proposed for `call` after the checks of the services; nothing when it is refused, or changes nothing.
std::optional<InternalRaftRequest> Proposal(const testing::ApiCall& call, const google::protobuf::Message& request) {
  InternalRaftRequest proposal;
  proposal.mutable_header()->set_id(42);
  ApiError error = ApiError::kOk;
  switch (call.method) {
    case Method::kPut:
      proposal.mutable_put()->CopyFrom(request);
      error = rpc::CheckPut(proposal.put());
      break;
    case Method::kDeleteRange:
      proposal.mutable_delete_range()->CopyFrom(request);
      error = rpc::CheckDeleteRange(proposal.delete_range());
      break;
    case Method::kTxn:
      proposal.mutable_txn()->CopyFrom(request);
      error = rpc::CheckTxn(proposal.txn(), kTxnOpsMax);
      break;
    case Method::kCompact:
      proposal.mutable_compaction()->CopyFrom(request);
      break;
    default:
      return std::nullopt;
  }
  return error == ApiError::kOk ? std::optional(proposal) : std::nullopt;
}

RC_GTEST_PROP(ApplyProperty, AnsweringChangesNothingAndRevisionsOnlyRise, (uint64_t seed)) {
  Everybody everybody;
  mvcc::Store stores[2];
  ApplyState answering{
      .store = stores[0], .members = {}, .cluster_version = {}, .applied_index = {}, .applied_term = {}};
  ApplyState silent{.store = stores[1], .members = {}, .cluster_version = {}, .applied_index = {}, .applied_term = {}};
  testing::SeenRevisions seen;
  for (const testing::ApiCall& call : testing::DrawApiSequence(seed)) {
    if (call.request == nullptr) continue;
    google::protobuf::Arena arena;
    google::protobuf::Message& request = *call.request->New(&arena);
    request.CopyFrom(*call.request);
    testing::ResolveRevisions(seen, request);
    const std::optional<InternalRaftRequest> proposal = Proposal(call, request);
    if (!proposal.has_value()) continue;
    const Revision before = stores[0].revision();
    const raft::Entry entry{.term = Term(2),
                            .index = answering.applied_index + 1,
                            .type = raft::EntryType::kNormal,
                            .data = Bytes::Copy(proposal->SerializeAsString())};
    RC_ASSERT(CanApply(entry));
    const absl::StatusOr<ApplyResult> answered = ApplyEntry(answering, entry, &everybody, arena);
    const absl::StatusOr<ApplyResult> applied = ApplyEntry(silent, entry, nullptr, arena);
    RC_ASSERT(answered.ok());
    RC_ASSERT(applied.ok());
    RC_ASSERT(answered->error == applied->error);
    RC_ASSERT(answered->effect_digest == applied->effect_digest);
    RC_ASSERT((answered->response != nullptr) == (answered->error == ApiError::kOk));
    RC_ASSERT(applied->response == nullptr);
    RC_ASSERT(stores[0].history_digest() == stores[1].history_digest());
    // One revision for each call that changes something, none for an error.
    const int64_t steps = stores[0].revision().value - before.value;
    RC_ASSERT(steps == 0 || (steps == 1 && answered->error == ApiError::kOk && call.method != Method::kCompact));
    if (answered->response != nullptr) seen.See(request, *answered->response);
    RC_ASSERT(call.method == Method::kCompact || answered->response == nullptr ||
              seen.head == stores[0].revision().value);
  }
}

}  // namespace
}  // namespace detcd::member
