#include "sim/client.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/proto/rpc.pb.h"
#include "core/rpc/api_error.h"

namespace detcd::sim {
namespace {

using checker::OperationKind;
using checker::Outcome;

// What the error table says of a status: nullptr when it is not in the table (made by a transport).
struct KnownError {
  rpc::StatusCode code;
  std::string_view text;
  rpc::Outcome outcome;
};
constexpr rpc::Outcome kDefinite = rpc::Outcome::kDefinite;
constexpr rpc::Outcome kUnknown = rpc::Outcome::kUnknown;
constexpr KnownError kKnownErrors[] = {
#define X(name, code, text, outcome) {rpc::StatusCode::code, text, outcome},
#include "core/rpc/errors.def"
#undef X
};

const KnownError* FindError(const rpc::CallStatus& status) {
  for (const KnownError& known : kKnownErrors) {
    if (known.code == status.code && known.text == status.message) return &known;
  }
  return nullptr;
}

// --- Requests and answers between the checker's words and the API's ---

rpc::Method MethodOf(OperationKind kind) {
  switch (kind) {
    case OperationKind::kPut: return rpc::Method::kPut;
    case OperationKind::kDelete: return rpc::Method::kDeleteRange;
    case OperationKind::kRange: return rpc::Method::kRange;
  }
  return rpc::Method::kRange;
}

std::unique_ptr<google::protobuf::Message> MakeRequest(const checker::Request& r) {
  switch (r.kind) {
    case OperationKind::kPut: {
      auto put = std::make_unique<etcdserverpb::PutRequest>();
      put->set_key(r.key);
      put->set_value(r.value);
      put->set_prev_kv(r.prev_kv);
      put->set_ignore_value(r.ignore_value);
      return put;
    }
    case OperationKind::kDelete: {
      auto del = std::make_unique<etcdserverpb::DeleteRangeRequest>();
      del->set_key(r.key);
      del->set_range_end(r.range_end);
      del->set_prev_kv(r.prev_kv);
      return del;
    }
    case OperationKind::kRange:
      break;
  }
  auto range = std::make_unique<etcdserverpb::RangeRequest>();
  range->set_key(r.key);
  range->set_range_end(r.range_end);
  range->set_limit(r.limit);
  range->set_revision(r.revision);
  range->set_sort_order(static_cast<etcdserverpb::RangeRequest::SortOrder>(r.sort_order));
  range->set_sort_target(static_cast<etcdserverpb::RangeRequest::SortTarget>(r.sort_target));
  range->set_serializable(r.serializable);
  range->set_keys_only(r.keys_only);
  range->set_count_only(r.count_only);
  range->set_min_mod_revision(r.min_mod_revision);
  range->set_max_mod_revision(r.max_mod_revision);
  range->set_min_create_revision(r.min_create_revision);
  range->set_max_create_revision(r.max_create_revision);
  return range;
}

void AddPair(const mvccpb::KeyValue& kv, checker::Answer& answer) {
  answer.kvs.push_back({.key = kv.key(),
                        .value = kv.value(),
                        .create_revision = kv.create_revision(),
                        .mod_revision = kv.mod_revision(),
                        .version = kv.version()});
}

void TakeHeader(const etcdserverpb::ResponseHeader& header, checker::Answer& answer) {
  answer.header_revision = header.revision();
  answer.header_member = header.member_id();
}

checker::Answer ReadAnswer(OperationKind kind, const google::protobuf::Message& message) {
  checker::Answer answer;
  switch (kind) {
    case OperationKind::kPut: {
      const auto& put = static_cast<const etcdserverpb::PutResponse&>(message);
      TakeHeader(put.header(), answer);
      if (put.has_prev_kv()) AddPair(put.prev_kv(), answer);
      break;
    }
    case OperationKind::kDelete: {
      const auto& del = static_cast<const etcdserverpb::DeleteRangeResponse&>(message);
      TakeHeader(del.header(), answer);
      for (const mvccpb::KeyValue& kv : del.prev_kvs()) AddPair(kv, answer);
      answer.count = del.deleted();
      break;
    }
    case OperationKind::kRange: {
      const auto& range = static_cast<const etcdserverpb::RangeResponse&>(message);
      TakeHeader(range.header(), answer);
      for (const mvccpb::KeyValue& kv : range.kvs()) AddPair(kv, answer);
      answer.count = range.count();
      answer.more = range.more();
      break;
    }
  }
  return answer;
}

}  // namespace

Client::Client(Host& host, const ClientKnobs& knobs, ClientListener& listener)
    : host_(host),
      knobs_(knobs),
      listener_(listener),
      timer_(host.clock().NewTimer(*this, 0)),
      next_member_(knobs.number % std::max<size_t>(knobs.members.size(), 1)) {}

void Client::Plan(PlannedOperation operation) {
  planned_.push_back(std::move(operation));
  if (!busy_ && planned_.size() == 1) timer_->Arm(planned_.front().at);
}

void Client::OnTimer(uint64_t) { Pump(); }

void Client::Pump() {
  const Instant now = host_.clock().Now();
  if (busy_ && now >= total_due_) {
    const bool sent = std::exchange(trying_, false);
    if (sent) calls_->Cancel();
    End(sent || IsRead() ? Outcome::kUnknown : Outcome::kRefused);
  }
  if (busy_ && trying_ && now >= try_due_) {
    trying_ = false;
    calls_->Cancel();
    if (IsRead()) {
      Try(now);
    } else {
      End(Outcome::kUnknown);
    }
  }
  if (busy_ && !trying_ && now >= retry_at_) {
    tried_in_a_row_ = 0;
    Try(now);
  }
  if (!busy_ && !planned_.empty() && now >= planned_.front().at) Begin(now);
  Arm();
}

void Client::Begin(Instant now) {
  PlannedOperation planned = std::move(planned_.front());
  planned_.pop_front();
  if (planned.revisions_back > 0 && revision_seen_ > 0) {
    planned.request.revision = std::max<int64_t>(1, revision_seen_ - planned.revisions_back);
  }
  operation_ = {.id = planned.id, .client = knobs_.number, .request = std::move(planned.request)};
  busy_ = true;
  trying_ = false;
  total_due_ = now + knobs_.total_timeout;
  tried_in_a_row_ = 0;
  operation_.member = listener_.MemberAt(knobs_.members[next_member_]);
  listener_.OnOperationCall(operation_);
  Try(now);
}

// Asks the next member that is up; when each was tried once, or none is up, a pause comes first.
void Client::Try(Instant now) {
  while (tried_in_a_row_ < knobs_.members.size()) {
    ++tried_in_a_row_;
    const EndpointId member = knobs_.members[next_member_];
    next_member_ = (next_member_ + 1) % knobs_.members.size();
    if (!calls_->IsUp(member)) continue;
    const Duration timeout = std::min(knobs_.try_timeout, total_due_ - now);
    operation_.member = listener_.MemberAt(member);
    if (!calls_->Start(member, MethodOf(operation_.request.kind), MakeRequest(operation_.request), ++last_token_, timeout)) {
      continue;
    }
    trying_ = true;
    try_due_ = now + timeout;
    return;
  }
  retry_at_ = now + knobs_.retry_pause;
}

void Client::OnCallEnd(uint64_t token, const google::protobuf::Message* response, const rpc::CallStatus& status, bool sent) {
  if (!busy_ || !trying_ || token != last_token_) return;
  trying_ = false;
  if (!sent) {
    Try(host_.clock().Now());
    Arm();
    return;
  }
  if (status.ok()) {
    CHECK(response != nullptr);
    operation_.answer = ReadAnswer(operation_.request.kind, *response);
    revision_seen_ = std::max(revision_seen_, operation_.answer.header_revision);
    End(Outcome::kAnswered);
    Pump();
    return;
  }
  Failed(status);
  Pump();
}

void Client::Failed(const rpc::CallStatus& status) {
  if (IsRead() && status.code == rpc::StatusCode::kUnavailable) return Try(host_.clock().Now());
  const KnownError* known = FindError(status);
  if (known == nullptr || known->outcome == kUnknown) return End(Outcome::kUnknown);
  operation_.answer.error = status.message;
  const bool about_state =
      status.code == rpc::StatusCode::kInvalidArgument || status.code == rpc::StatusCode::kOutOfRange;
  End(about_state ? Outcome::kAnswered : Outcome::kRefused);
}

void Client::End(Outcome outcome) {
  operation_.outcome = outcome;
  busy_ = false;
  listener_.OnOperationEnd(operation_);
}

void Client::Arm() {
  if (busy_) {
    timer_->Arm(std::min(total_due_, trying_ ? try_due_ : retry_at_));
  } else if (!planned_.empty()) {
    timer_->Arm(planned_.front().at);
  } else {
    timer_->Disarm();
  }
}

}  // namespace detcd::sim
