#include "core/rpc/services.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "core/base/check.h"
#include "core/base/limits.h"
#include "core/base/probe.h"
#include "core/proto/health.pb.h"
#include "core/proto/rpc.pb.h"
#include "core/rpc/cluster_service.h"
#include "core/rpc/health_service.h"
#include "core/rpc/kv_service.h"
#include "core/rpc/long_range.h"
#include "core/rpc/maintenance_service.h"
#include "core/rpc/messages.h"
#include "core/rpc/range_stream.h"
#include "core/rpc/txn.h"
#include "core/rpc/utf8.h"

namespace detcd::rpc {
namespace {

using ProtoMessage = google::protobuf::Message;

// An open call: `read` and its size only while it waits for its read index or its turn among the long ranges, and needs
// the request again afterwards; `stream` while a RangeStream is under way.
struct OpenCall {
  Method method = Method::kRange;
  bool has_message = false;
  std::unique_ptr<ProtoMessage> read;
  size_t read_bytes = 0;
  bool is_long = false;  // stands among the long ranges
  std::unique_ptr<RangeStream> stream;
};

// The calls of one transport. There is one transport a thread and kind, so a handful; found by identity.
struct TransportCalls {
  CallTransport* transport = nullptr;
  absl::flat_hash_map<CallId, OpenCall> calls;  // look-up only
};

// The methods of this release; every other one is refused as soon as it is called, also before a stream's first message.
constexpr Method kBuilt[] = {Method::kRange,       Method::kRangeStream, Method::kPut,        Method::kDeleteRange,
                             Method::kTxn,         Method::kCompact,     Method::kMemberList, Method::kAlarm,
                             Method::kStatus,      Method::kHashKV,      Method::kMoveLeader, Method::kHealthCheck,
                             Method::kHealthList,  Method::kHealthWatch};

// Of a range request or answer whose memory is kept for the next one.
constexpr size_t kKeepBytes = 4'096;
constexpr size_t kSpareReadsMax = 1'024;

bool IsSmall(const etcdserverpb::RangeResponse& answer) {
  if (answer.kvs_size() != 1) return answer.kvs_size() == 0;
  return answer.kvs(0).key().size() + answer.kvs(0).value().size() <= kKeepBytes;
}

CallStatus NotBuilt(Method method, std::string_view what) {
  const MethodInfo& info = Info(method);
  return {StatusCode::kUnimplemented,
          absl::StrFormat("detcd: %s/%s%s is not part of this release yet", info.service, info.name, what)};
}

}  // namespace

class Services::Impl {
 public:
  Impl(Services& self, Backend& backend, ServicesOptions options) : self_(self), backend_(backend), options_(options) {}

  void Open(CallTransport& transport, CallId call, const CallContext& context);
  void HandleMessage(CallTransport& transport, CallId call, const ProtoMessage& request);
  void HalfClose(CallTransport& transport, CallId call);
  void Cancel(CallTransport& transport, CallId call);
  void OnReadReady(const Waiter& waiter, ApiError error);
  void OnHashReady(const Waiter& waiter, ApiError error, const mvcc::HashResult& result);
  void SendParts(const Waiter& waiter);
  void WorkOnLongRanges();
  size_t OpenCallCount() const;

 private:
  ApiError CheckCommon(const CallContext& context) const;
  TransportCalls& CallsOf(CallTransport& transport);
  // Null: the call is dead.
  OpenCall* Find(CallTransport& transport, CallId call);
  void Drop(CallTransport& transport, CallId call);

  void Dispatch(const Waiter& waiter, const ProtoMessage& request);
  void StartRange(const Waiter& waiter, const etcdserverpb::RangeRequest& request);
  void StartRangeStream(const Waiter& waiter, const etcdserverpb::RangeRequest& request);
  void StartTxn(const Waiter& waiter, const etcdserverpb::TxnRequest& request);
  void StartMemberList(const Waiter& waiter, const etcdserverpb::MemberListRequest& request);
  void StartHealthWatch(const Waiter& waiter, const grpc::health::v1::HealthCheckRequest& request);
  void WaitForReadIndex(const Waiter& waiter, const ProtoMessage& request);
  bool KeepRequest(const Waiter& waiter, const ProtoMessage& request);
  std::unique_ptr<ProtoMessage> TakeRequest(OpenCall& open);
  void Recycle(Method method, std::unique_ptr<ProtoMessage> request, size_t bytes);
  void AnswerRange(const Waiter& waiter, const etcdserverpb::RangeRequest& request);
  void OpenStream(const Waiter& waiter, const etcdserverpb::RangeRequest& request);
  void AnswerTxn(const Waiter& waiter, const etcdserverpb::TxnRequest& request);
  void AnswerMemberList(const Waiter& waiter);

  void Answer(const Waiter& waiter, const ProtoMessage& response);
  void Fail(const Waiter& waiter, CallStatus status);
  void Fail(const Waiter& waiter, ApiError error) { Fail(waiter, ToCallStatus(error)); }

  Services& self_;
  Backend& backend_;
  ServicesOptions options_;
  std::vector<TransportCalls> transports_;
  size_t reads_waiting_ = 0;        // calls with `read`
  size_t reads_waiting_bytes_ = 0;  // and the sum of their read_bytes
  std::vector<std::unique_ptr<ProtoMessage>> spare_reads_;  // empty RangeRequests
  etcdserverpb::RangeResponse range_answer_;                // one answer at a time
  // Ranges of more than a slice, one at a time, so that one answer at the most is half made. Some calls may be dead, but
  // not more than half of them.
  std::deque<Waiter> long_ranges_;
  size_t long_ranges_dead_ = 0;
  std::optional<LongRange> long_range_;  // of the first of them, once begun; its request is the call's `read`
};

// --- the life of a call ----------------------------------------------------------------------------------------------

TransportCalls& Services::Impl::CallsOf(CallTransport& transport) {
  for (TransportCalls& calls : transports_) {
    if (calls.transport == &transport) return calls;
  }
  return transports_.emplace_back(TransportCalls{.transport = &transport, .calls = {}});
}

OpenCall* Services::Impl::Find(CallTransport& transport, CallId call) {
  auto& calls = CallsOf(transport).calls;
  auto it = calls.find(call);
  return it == calls.end() ? nullptr : &it->second;
}

void Services::Impl::Drop(CallTransport& transport, CallId call) {
  auto& calls = CallsOf(transport).calls;
  auto it = calls.find(call);
  if (it == calls.end()) return;
  if (it->second.read != nullptr) TakeRequest(it->second);
  const bool reading = long_range_.has_value() && long_ranges_.front().transport == &transport &&
                       long_ranges_.front().call == call;
  if (reading) long_range_.reset();
  const bool was_long = it->second.is_long;
  calls.erase(it);
  if (!was_long || ++long_ranges_dead_ * 2 <= long_ranges_.size()) return;
  std::erase_if(long_ranges_, [&](const Waiter& w) { return Find(*w.transport, w.call) == nullptr; });
  long_ranges_dead_ = 0;
}

bool Services::Impl::KeepRequest(const Waiter& waiter, const ProtoMessage& request) {
  const size_t bytes = request.ByteSizeLong();
  if (reads_waiting_ >= kReadsInFlightMax || bytes > kReadsInFlightBytesMax - reads_waiting_bytes_) {
    PROBE("rpc.too_many_waiting_reads");
    return false;
  }
  OpenCall* open = Find(*waiter.transport, waiter.call);
  if (waiter.method == Method::kRange && !spare_reads_.empty()) {
    open->read = std::move(spare_reads_.back());
    spare_reads_.pop_back();
  } else {
    open->read.reset(request.New());
  }
  open->read->MergeFrom(request);  // CopyFrom first searches all of both by reflection, lest one be part of the other
  open->read_bytes = bytes;
  ++reads_waiting_;
  reads_waiting_bytes_ += bytes;
  return true;
}

std::unique_ptr<ProtoMessage> Services::Impl::TakeRequest(OpenCall& open) {
  --reads_waiting_;
  reads_waiting_bytes_ -= open.read_bytes;
  return std::exchange(open.read, nullptr);
}

// A range is asked for a hundred thousand times a second: its copy is memory that was used a moment ago.
void Services::Impl::Recycle(Method method, std::unique_ptr<ProtoMessage> request, size_t bytes) {
  if (method != Method::kRange || bytes > kKeepBytes || spare_reads_.size() == kSpareReadsMax) return;
  request->Clear();
  spare_reads_.push_back(std::move(request));
}

size_t Services::Impl::OpenCallCount() const {
  size_t count = 0;
  for (const TransportCalls& calls : transports_) count += calls.calls.size();
  return count;
}

void Services::Impl::Open(CallTransport& transport, CallId call, const CallContext& context) {
  if (ApiError error = CheckCommon(context); error != ApiError::kOk) {
    transport.Finish(call, ToCallStatus(error));
    return;
  }
  if (std::find(std::begin(kBuilt), std::end(kBuilt), context.method) == std::end(kBuilt)) {
    return transport.Finish(call, NotBuilt(context.method, ""));
  }
  const bool added = CallsOf(transport).calls.try_emplace(call, OpenCall{.method = context.method}).second;
  CHECK(added);  // ids are unique for the life of a transport
}

// Checks 3 and 4 of reference/errors.md 4. The first two never fail here: every cluster version this release can be in
// has the v3 API, and it refuses to apply a change that would make it a learner.
ApiError Services::Impl::CheckCommon(const CallContext& context) const {
  if (!IsUtf8(context.client_api_version)) return ApiError::kInvalidClientAPIVersion;
  if (context.has_leader && !backend_.HasLeader()) return ApiError::kNoLeader;
  return ApiError::kOk;
}

void Services::Impl::HandleMessage(CallTransport& transport, CallId call, const ProtoMessage& request) {
  OpenCall* open = Find(transport, call);
  if (open == nullptr) return;
  const MethodInfo& info = Info(open->method);
  if (open->has_message && !info.client_streams) {  // a second message of a unary call is ignored (reference/api.md 3)
    PROBE("rpc.second_message_ignored");
    return;
  }
  open->has_message = true;
  Dispatch({.transport = &transport, .call = call, .method = open->method}, request);
}

void Services::Impl::HalfClose(CallTransport& transport, CallId call) {
  OpenCall* open = Find(transport, call);
  if (open == nullptr || open->has_message) return;
  if (!Info(open->method).client_streams) Drop(transport, call);  // ended by the transport: no message came
}

void Services::Impl::Cancel(CallTransport& transport, CallId call) {
  // A proposal, or a read under way, is not taken back: its answer finds a dead id.
  Drop(transport, call);
}

void Services::Impl::Answer(const Waiter& waiter, const ProtoMessage& response) {
  Drop(*waiter.transport, waiter.call);
  waiter.transport->Send(waiter.call, response);
  waiter.transport->Finish(waiter.call, {});
}

void Services::Impl::Fail(const Waiter& waiter, CallStatus status) {
  Drop(*waiter.transport, waiter.call);
  waiter.transport->Finish(waiter.call, std::move(status));
}

// --- the methods -----------------------------------------------------------------------------------------------------

void Services::Impl::Dispatch(const Waiter& waiter, const ProtoMessage& request) {
  switch (waiter.method) {
    case Method::kRange:
      return StartRange(waiter, As<etcdserverpb::RangeRequest>(request));
    case Method::kPut: {
      const auto& put = As<etcdserverpb::PutRequest>(request);
      if (ApiError error = CheckPut(put); error != ApiError::kOk) return Fail(waiter, error);
      Drop(*waiter.transport, waiter.call);
      return ProposePut(backend_, waiter, put);
    }
    case Method::kDeleteRange: {
      const auto& erase = As<etcdserverpb::DeleteRangeRequest>(request);
      if (ApiError error = CheckDeleteRange(erase); error != ApiError::kOk) return Fail(waiter, error);
      Drop(*waiter.transport, waiter.call);
      return ProposeDeleteRange(backend_, waiter, erase);
    }
    case Method::kRangeStream:
      return StartRangeStream(waiter, As<etcdserverpb::RangeRequest>(request));
    case Method::kTxn:
      return StartTxn(waiter, As<etcdserverpb::TxnRequest>(request));
    case Method::kCompact:
      Drop(*waiter.transport, waiter.call);
      return ProposeCompaction(backend_, waiter, As<etcdserverpb::CompactionRequest>(request));
    case Method::kHashKV:
      return backend_.HashKv(waiter, self_, Revision(As<etcdserverpb::HashKVRequest>(request).revision()));
    case Method::kMemberList:
      return StartMemberList(waiter, As<etcdserverpb::MemberListRequest>(request));
    case Method::kAlarm: {
      const auto& alarm = As<etcdserverpb::AlarmRequest>(request);
      if (ApiError error = CheckAlarm(alarm); error != ApiError::kOk) return Fail(waiter, error);
      Drop(*waiter.transport, waiter.call);
      return ProposeAlarm(backend_, waiter, alarm);
    }
    case Method::kStatus: {
      etcdserverpb::StatusResponse response;
      rpc::Status(backend_, options_.quota_bytes, response);
      return Answer(waiter, response);
    }
    case Method::kMoveLeader: {
      Drop(*waiter.transport, waiter.call);
      return backend_.MoveLeader(waiter, MemberId(As<etcdserverpb::MoveLeaderRequest>(request).targetid()));
    }
    case Method::kHealthCheck: {
      grpc::health::v1::HealthCheckResponse response;
      const ApiError error = HealthCheck(As<grpc::health::v1::HealthCheckRequest>(request), response);
      if (error != ApiError::kOk) return Fail(waiter, error);
      return Answer(waiter, response);
    }
    case Method::kHealthList: {
      grpc::health::v1::HealthListResponse response;
      HealthList(response);
      return Answer(waiter, response);
    }
    case Method::kHealthWatch:
      return StartHealthWatch(waiter, As<grpc::health::v1::HealthCheckRequest>(request));

    case Method::kWatch:
    case Method::kLeaseGrant:
    case Method::kLeaseRevoke:
    case Method::kLeaseKeepAlive:
    case Method::kLeaseTimeToLive:
    case Method::kLeaseLeases:
    case Method::kMemberAdd:
    case Method::kMemberRemove:
    case Method::kMemberUpdate:
    case Method::kMemberPromote:
    case Method::kDefragment:
    case Method::kHash:
    case Method::kSnapshot:
    case Method::kDowngrade:
    case Method::kAuthEnable:
    case Method::kAuthDisable:
    case Method::kAuthStatus:
    case Method::kAuthenticate:
    case Method::kUserAdd:
    case Method::kUserGet:
    case Method::kUserList:
    case Method::kUserDelete:
    case Method::kUserChangePassword:
    case Method::kUserGrantRole:
    case Method::kUserRevokeRole:
    case Method::kRoleAdd:
    case Method::kRoleGet:
    case Method::kRoleList:
    case Method::kRoleDelete:
    case Method::kRoleGrantPermission:
    case Method::kRoleRevokePermission:
    case Method::kCampaign:
    case Method::kProclaim:
    case Method::kLeader:
    case Method::kObserve:
    case Method::kResign:
    case Method::kLock:
    case Method::kUnlock:
      break;  // refused by Open
  }
}

void Services::Impl::StartRange(const Waiter& waiter, const etcdserverpb::RangeRequest& request) {
  if (ApiError error = CheckRange(request); error != ApiError::kOk) return Fail(waiter, error);
  if (request.serializable()) return AnswerRange(waiter, request);
  WaitForReadIndex(waiter, request);
}

void Services::Impl::StartRangeStream(const Waiter& waiter, const etcdserverpb::RangeRequest& request) {
  if (ApiError error = CheckRangeStream(request); error != ApiError::kOk) return Fail(waiter, error);
  if (request.serializable()) return OpenStream(waiter, request);
  WaitForReadIndex(waiter, request);
}

void Services::Impl::StartTxn(const Waiter& waiter, const etcdserverpb::TxnRequest& request) {
  if (ApiError error = CheckTxn(request, kTxnOpsMax); error != ApiError::kOk) return Fail(waiter, error);
  if (!IsReadOnly(request)) {
    Drop(*waiter.transport, waiter.call);
    return ProposeTxn(backend_, waiter, request);
  }
  if (IsSerializable(request)) return AnswerTxn(waiter, request);
  WaitForReadIndex(waiter, request);
}

void Services::Impl::StartMemberList(const Waiter& waiter, const etcdserverpb::MemberListRequest& request) {
  if (!request.linearizable()) return AnswerMemberList(waiter);
  WaitForReadIndex(waiter, request);
}

void Services::Impl::StartHealthWatch(const Waiter& waiter, const grpc::health::v1::HealthCheckRequest& request) {
  grpc::health::v1::HealthCheckResponse response;
  HealthWatchStart(request, response);
  waiter.transport->Send(waiter.call, response);
}

void Services::Impl::WaitForReadIndex(const Waiter& waiter, const ProtoMessage& request) {
  if (!KeepRequest(waiter, request)) return Fail(waiter, ApiError::kTooManyRequests);
  backend_.LinearizableRead(waiter, self_, 0);
}

void Services::Impl::OnReadReady(const Waiter& waiter, ApiError error) {
  OpenCall* open = Find(*waiter.transport, waiter.call);
  if (open == nullptr || open->read == nullptr) {
    PROBE("rpc.read_ready_for_dead_call");
    return;
  }
  if (error != ApiError::kOk) return Fail(waiter, error);
  // The answer drops the call.
  const Method method = open->method;
  const size_t bytes = open->read_bytes;
  std::unique_ptr<ProtoMessage> request = TakeRequest(*open);
  switch (method) {
    case Method::kRange:
      AnswerRange(waiter, As<etcdserverpb::RangeRequest>(*request));
      break;
    case Method::kRangeStream:
      OpenStream(waiter, As<etcdserverpb::RangeRequest>(*request));
      break;
    case Method::kTxn:
      AnswerTxn(waiter, As<etcdserverpb::TxnRequest>(*request));
      break;
    case Method::kMemberList:
      AnswerMemberList(waiter);
      break;
    default:
      CHECK_MSG(false, Info(method).name);  // no other method starts a read
  }
  Recycle(method, std::move(request), bytes);
}

void Services::Impl::AnswerRange(const Waiter& waiter, const etcdserverpb::RangeRequest& request) {
  const std::optional<ApiError> error = rpc::Range(backend_, request, range_answer_);
  if (error == ApiError::kOk) Answer(waiter, range_answer_);
  if (IsSmall(range_answer_)) {
    range_answer_.Clear();
  } else {
    range_answer_ = {};
  }
  if (error == ApiError::kOk) return;
  if (error.has_value()) return Fail(waiter, *error);
  PROBE("rpc.long_range");
  if (!KeepRequest(waiter, request)) return Fail(waiter, ApiError::kTooManyRequests);
  Find(*waiter.transport, waiter.call)->is_long = true;
  long_ranges_.push_back(waiter);
  backend_.RequestWork(self_);
}

// One slice of the oldest. Its revision is taken when it begins: a read may see what came after it was asked for.
void Services::Impl::WorkOnLongRanges() {
  OpenCall* open = nullptr;
  for (; !long_ranges_.empty(); long_ranges_.pop_front()) {
    open = Find(*long_ranges_.front().transport, long_ranges_.front().call);
    if (open != nullptr) break;
    PROBE("rpc.long_range_for_dead_call");
    --long_ranges_dead_;
  }
  if (long_ranges_.empty()) return;
  const Waiter waiter = long_ranges_.front();
  const auto& request = As<etcdserverpb::RangeRequest>(*open->read);
  ApiError error = ApiError::kOk;
  if (!long_range_.has_value()) error = CheckLongRange(backend_.store(), request);
  if (error == ApiError::kOk) {
    if (!long_range_.has_value()) long_range_.emplace(backend_, request);
    if (!long_range_->Step()) return backend_.RequestWork(self_);
  }
  std::vector<Bytes> answer;
  if (error == ApiError::kOk) answer = long_range_->TakeAnswer();
  long_range_.reset();
  long_ranges_.pop_front();
  open->is_long = false;
  Drop(*waiter.transport, waiter.call);
  if (error == ApiError::kOk) waiter.transport->SendEncoded(waiter.call, std::move(answer));
  waiter.transport->Finish(waiter.call, ToCallStatus(error));
  if (!long_ranges_.empty()) backend_.RequestWork(self_);
}

void Services::Impl::OpenStream(const Waiter& waiter, const etcdserverpb::RangeRequest& request) {
  Find(*waiter.transport, waiter.call)->stream = std::make_unique<RangeStream>(request);
  SendParts(waiter);
}

// As much as the client's credit allows; its next credit brings the rest.
void Services::Impl::SendParts(const Waiter& waiter) {
  OpenCall* open = Find(*waiter.transport, waiter.call);
  if (open == nullptr || open->stream == nullptr) return;
  while (waiter.transport->Writable(waiter.call)) {
    etcdserverpb::RangeStreamResponse response;
    if (ApiError error = open->stream->Next(backend_, response); error != ApiError::kOk) return Fail(waiter, error);
    if (open->stream->done()) return Answer(waiter, response);
    waiter.transport->Send(waiter.call, response);
  }
  PROBE("rpc.range_stream_waits_for_credit");
}

void Services::Impl::AnswerTxn(const Waiter& waiter, const etcdserverpb::TxnRequest& request) {
  etcdserverpb::TxnResponse response;
  if (ApiError error = rpc::ReadTxn(backend_, request, response); error != ApiError::kOk) return Fail(waiter, error);
  Answer(waiter, response);
}

void Services::Impl::OnHashReady(const Waiter& waiter, ApiError error, const mvcc::HashResult& result) {
  if (Find(*waiter.transport, waiter.call) == nullptr) return;
  if (error != ApiError::kOk) return Fail(waiter, error);
  etcdserverpb::HashKVResponse response;
  FillHeader(backend_.Status(), backend_.store().revision(), *response.mutable_header());
  response.set_hash(result.hash);
  response.set_compact_revision(result.compact_revision.value);
  response.set_hash_revision(result.revision.value);
  Answer(waiter, response);
}

void Services::Impl::AnswerMemberList(const Waiter& waiter) {
  etcdserverpb::MemberListResponse response;
  MemberList(backend_, response);
  Answer(waiter, response);
}

// --- the public class ------------------------------------------------------------------------------------------------

Services::Services(Backend& backend, ServicesOptions options)
    : impl_(std::make_unique<Impl>(*this, backend, options)) {}
Services::~Services() = default;

void Services::Open(CallTransport& transport, CallId call, const CallContext& context) {
  impl_->Open(transport, call, context);
}
void Services::Message(CallTransport& transport, CallId call, const google::protobuf::Message& request) {
  impl_->HandleMessage(transport, call, request);
}
void Services::HalfClose(CallTransport& transport, CallId call) { impl_->HalfClose(transport, call); }
void Services::Cancel(CallTransport& transport, CallId call) { impl_->Cancel(transport, call); }
void Services::Credit(CallTransport& transport, CallId call) {
  impl_->SendParts({.transport = &transport, .call = call, .method = Method::kRangeStream});
}
void Services::OnReadReady(const Waiter& waiter, uint64_t, ApiError error) { impl_->OnReadReady(waiter, error); }
void Services::OnHashReady(const Waiter& waiter, ApiError error, const mvcc::HashResult& result) {
  impl_->OnHashReady(waiter, error, result);
}
void Services::OnWork() { impl_->WorkOnLongRanges(); }
size_t Services::open_call_count() const { return impl_->OpenCallCount(); }

}  // namespace detcd::rpc
