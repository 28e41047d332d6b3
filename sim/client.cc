#include "sim/client.h"

#include <algorithm>
#include <string>
#include <utility>

#include "checker/api_messages.h"
#include "checker/execution.h"
#include "checker/requests.h"
#include "core/base/check.h"
#include "core/rpc/api_error.h"
#include "sim/kv_messages.h"

namespace detcd::sim {
namespace {

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

void Client::PlanAhead(PlannedOperation operation) {
  const auto later = std::find_if(planned_.begin(), planned_.end(),
                                  [&](const PlannedOperation& planned) { return planned.at > operation.at; });
  const bool is_next = later == planned_.begin();
  planned_.insert(later, std::move(operation));
  if (!busy_ && is_next) timer_->Arm(planned_.front().at);
}

void Client::OnTimer(uint64_t) { Pump(); }

void Client::Pump() {
  const Instant now = host_.clock().Now();
  if (busy_ && now >= total_due_) {
    const bool sent = std::exchange(trying_, false);
    if (sent) calls_->Cancel();
    End(sent || checker::ReadsOnly(operation_.request) ? Outcome::kUnknown : Outcome::kRefused);
  }
  if (busy_ && trying_ && now >= try_due_) {
    trying_ = false;
    calls_->Cancel();
    if (MayRepeat(operation_.request)) {
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
  FillIn(planned);
  operation_ = {.id = planned.id, .client = knobs_.number, .request = std::move(planned.request)};
  busy_ = true;
  trying_ = false;
  total_due_ = now + knobs_.total_timeout;
  if (planned.cancel_after > Duration()) total_due_ = std::min(total_due_, now + planned.cancel_after);
  tried_in_a_row_ = 0;
  operation_.member = listener_.MemberAt(knobs_.members[next_member_]);
  listener_.OnOperationCall(operation_);
  Try(now);
}

// What the plan leaves to what this client has seen by now.
void Client::FillIn(PlannedOperation& planned) const {
  checker::Request& request = planned.request;
  if (planned.revisions_back.has_value() && revision_seen_ > 0) {
    request.revision = std::max<int64_t>(1, revision_seen_ - *planned.revisions_back);
  }
  for (const size_t index : planned.as_seen) {
    checker::Condition& condition = request.compares[index];
    const auto seen = seen_.find(condition.key);
    const checker::ObservedKeyValue kv = seen == seen_.end() ? checker::ObservedKeyValue() : seen->second;
    switch (condition.target) {
      case checker::CompareTarget::kVersion: condition.number = kv.version; break;
      case checker::CompareTarget::kCreate: condition.number = kv.create_revision; break;
      case checker::CompareTarget::kMod: condition.number = kv.mod_revision; break;
      case checker::CompareTarget::kValue: condition.value = kv.value; break;
      case checker::CompareTarget::kLease: condition.number = 0; break;
    }
  }
}

// A client that compares what it saw with what is there: pairs of reads are what it goes by.
void Client::Remember(const checker::Operation& operation) {
  revision_seen_ = std::max(revision_seen_, operation.answer.header_revision);
  for (const checker::ShownPair& pair : checker::ShownPairs(operation.request, operation.answer)) {
    if (pair.has_value) seen_[pair.kv->key] = *pair.kv;
  }
}

// Asks the next member that is up; when each was tried once, or none is up, a pause comes first.
void Client::Try(Instant now) {
  operation_.answer = {};
  const size_t in_a_row = knobs_.members.size() / 2 + 1;
  for (size_t passed_over = 0; tried_in_a_row_ < in_a_row && passed_over < knobs_.members.size();) {
    const EndpointId member = knobs_.members[next_member_];
    next_member_ = (next_member_ + 1) % knobs_.members.size();
    const Duration timeout = std::min(knobs_.try_timeout, total_due_ - now);
    if (!calls_->IsUp(member) || !calls_->Start(member, MethodOf(operation_.request), checker::MakeRequest(operation_.request),
                                                last_token_ + 1, timeout)) {
      ++passed_over;
      continue;
    }
    ++last_token_;
    ++tried_in_a_row_;
    operation_.member = listener_.MemberAt(member);
    trying_ = true;
    try_due_ = now + timeout;
    return;
  }
  retry_at_ = now + knobs_.retry_pause;
}

void Client::OnCallMessage(uint64_t token, const google::protobuf::Message& message) {
  if (!busy_ || !trying_ || token != last_token_) return;
  checker::AddPiece(message, operation_.answer);
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
    if (!operation_.request.streamed) {
      CHECK(response != nullptr);
      operation_.answer = checker::ReadAnswer(operation_.request, *response);
    }
    Remember(operation_);
    End(Outcome::kAnswered);
    Pump();
    return;
  }
  Failed(status);
  Pump();
}

void Client::Failed(const rpc::CallStatus& status) {
  if (MayRepeat(operation_.request) && status.code == rpc::StatusCode::kUnavailable) return Try(host_.clock().Now());
  operation_.answer = {};
  const KnownError* known = FindError(status);
  if (known == nullptr || known->outcome == kUnknown) return End(Outcome::kUnknown);
  operation_.answer.error = status.message;
  const bool about_state =
      status.code == rpc::StatusCode::kInvalidArgument || status.code == rpc::StatusCode::kOutOfRange;
  End(about_state ? Outcome::kAnswered : Outcome::kRefused);
}

void Client::End(Outcome outcome) {
  if (outcome == Outcome::kUnknown) operation_.answer = {};  // pieces of a stream that broke off
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
