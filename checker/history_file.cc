#include "checker/history_file.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "checker/api_messages.h"
#include "checker/history.pb.h"
#include "checker/requests.h"
#include "core/base/check.h"
#include "core/base/codec.h"

namespace detcd::checker {
namespace {

constexpr std::string_view kFormat = "detcd history";
constexpr uint32_t kVersion = 1;

std::string Delimited(const history::Record& record) {
  const std::string body = record.SerializeAsString();
  std::string text;
  ByteWriter(text).Varint(body.size());
  return text + body;
}


// --- reading ---

absl::Status Wrong(std::string_view what) { return absl::InvalidArgumentError(absl::string_view(what.data(), what.size())); }

// What the generated enums let through, though etcd has no such number.
bool NumbersAreKnown(const Request& request) {
  if (request.sort_order > SortOrder::kDescend || request.sort_target > SortTarget::kValue) return false;
  for (const Condition& condition : request.compares) {
    if (condition.result > CompareResult::kNotEqual || condition.target > CompareTarget::kLease) return false;
  }
  return std::ranges::all_of(request.success, NumbersAreKnown) && std::ranges::all_of(request.failure, NumbersAreKnown);
}

std::optional<Request> RequestOf(const history::Operation& recorded) {
  std::optional<Request> request;
  switch (recorded.request_case()) {
    case history::Operation::kPut: request = ReadRequest(recorded.put()); break;
    case history::Operation::kDeleteRange: request = ReadRequest(recorded.delete_range()); break;
    case history::Operation::kRange: request = ReadRequest(recorded.range()); break;
    case history::Operation::kTxn: request = ReadRequest(recorded.txn()); break;
    case history::Operation::kCompaction: request = ReadRequest(recorded.compaction()); break;
    case history::Operation::kHashKv: request = ReadRequest(recorded.hash_kv()); break;
    case history::Operation::REQUEST_NOT_SET: break;
  }
  if (request.has_value()) request->streamed = recorded.streamed();
  return request;
}

// nullptr: the result is no response to the request.
const google::protobuf::Message* ResponseOf(const history::Operation& recorded) {
  switch (recorded.request_case()) {
    case history::Operation::kPut: return recorded.has_put_response() ? &recorded.put_response() : nullptr;
    case history::Operation::kDeleteRange:
      return recorded.has_delete_range_response() ? &recorded.delete_range_response() : nullptr;
    case history::Operation::kRange: return recorded.has_range_response() ? &recorded.range_response() : nullptr;
    case history::Operation::kTxn: return recorded.has_txn_response() ? &recorded.txn_response() : nullptr;
    case history::Operation::kCompaction:
      return recorded.has_compaction_response() ? &recorded.compaction_response() : nullptr;
    case history::Operation::kHashKv: return recorded.has_hash_kv_response() ? &recorded.hash_kv_response() : nullptr;
    case history::Operation::REQUEST_NOT_SET: break;
  }
  return nullptr;
}

absl::Status ReadResult(const history::Operation& recorded, Operation& operation) {
  const bool has_error = recorded.result_case() == history::Operation::kError;
  switch (recorded.outcome()) {
    case history::ANSWERED: {
      operation.outcome = Outcome::kAnswered;
      if (has_error) {
        operation.answer.error = recorded.error();
        return recorded.error().empty() ? Wrong("an answer with an empty error") : absl::OkStatus();
      }
      const google::protobuf::Message* response = ResponseOf(recorded);
      if (response == nullptr) return Wrong("ANSWERED without a response to its request");
      operation.answer = ReadAnswer(operation.request, *response);
      return absl::OkStatus();
    }
    case history::REFUSED:
      operation.outcome = Outcome::kRefused;
      if (has_error) operation.answer.error = recorded.error();
      return has_error || recorded.result_case() == history::Operation::RESULT_NOT_SET
                 ? absl::OkStatus()
                 : Wrong("REFUSED with a response");
    case history::UNKNOWN:
      operation.outcome = Outcome::kUnknown;
      return recorded.result_case() == history::Operation::RESULT_NOT_SET ? absl::OkStatus() : Wrong("UNKNOWN with a result");
    default: return Wrong(absl::StrFormat("outcome %d is none", static_cast<int>(recorded.outcome())));
  }
}

// In order of time; of one time calls come first, so that what may have been concurrent is.
struct Edge {
  int64_t nanos = 0;
  bool is_end = false;
  size_t operation = 0;

  friend auto operator<=>(const Edge&, const Edge&) = default;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : reader_(bytes) {}

  absl::StatusOr<RecordedHistory> Run() {
    while (!reader_.AtEnd()) {
      at_ = reader_.position();
      if (absl::Status read = ReadOne(); !read.ok()) return Placed(read);
    }
    at_ = reader_.position();
    if (!ended_) return Placed(Wrong("the file ends without its End record: it was cut off"));
    if (absl::Status order = CheckClients(); !order.ok()) return order;
    Number();
    return std::move(history_);
  }

 private:
  absl::Status Placed(const absl::Status& status) const {
    return absl::Status(status.code(), absl::StrFormat("at byte %d: %s", at_, status.message()));
  }

  absl::Status ReadOne() {
    if (ended_) return Wrong("something follows the End record");
    const uint64_t size = reader_.Varint();
    if (!reader_.ok()) return Wrong("a length that is no varint");
    if (size > kHistoryRecordBytesMax) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("a record of %d bytes, want at most %d", size, kHistoryRecordBytesMax));
    }
    if (size > reader_.remaining()) {
      return Wrong(absl::StrFormat("a record of %d bytes, of which %d are there", size, reader_.remaining()));
    }
    const std::string_view body = reader_.Raw(size);
    history::Record record;
    if (!record.ParseFromArray(body.data(), static_cast<int>(body.size()))) return Wrong("bytes that are no Record");
    if (!begun_ && record.kind_case() != history::Record::kHeader) return Wrong("the first record is no Header");
    switch (record.kind_case()) {
      case history::Record::kHeader: return ReadHeader(record.header());
      case history::Record::kOperation: return ReadOperation(record.operation());
      case history::Record::kFinalState: return ReadFinal(record.final_state());
      case history::Record::kEnd: return ReadEnd(record.end());
      case history::Record::KIND_NOT_SET: break;
    }
    return Wrong("a Record with nothing in it");
  }

  absl::Status ReadHeader(const history::Header& header) {
    if (begun_) return Wrong("a second Header");
    if (header.format() != kFormat || header.version() != kVersion) {
      return Wrong(absl::StrFormat("want format `%s` version %d, got `%s` version %d", kFormat, kVersion, header.format(),
                                   header.version()));
    }
    if (header.endpoints().empty()) return Wrong("a Header without endpoints");
    begun_ = true;
    history_.endpoints.assign(header.endpoints().begin(), header.endpoints().end());
    history_.note = header.note();
    return absl::OkStatus();
  }

  absl::Status ReadOperation(const history::Operation& recorded) {
    auto wrong = [&](std::string_view what) { return Wrong(absl::StrFormat("operation %d: %s", recorded.id(), what)); };
    if (history_.operations.size() == kHistoryOperationsMax) {
      return absl::ResourceExhaustedError(absl::StrFormat("more than %d operations", kHistoryOperationsMax));
    }
    if (recorded.id() == 0) return wrong("an operation without a number");
    if (!ids_.insert(recorded.id()).second) return wrong("a number that another one has");
    if (recorded.endpoint() > history_.endpoints.size()) return wrong(absl::StrFormat("endpoint %d is none", recorded.endpoint()));
    if (recorded.call_ns() < 0 || recorded.end_ns() < recorded.call_ns()) {
      return wrong(absl::StrFormat("ended at %d ns, and was called at %d", recorded.end_ns(), recorded.call_ns()));
    }
    std::optional<Request> request = RequestOf(recorded);
    if (!request.has_value()) return wrong("no request, or one that no judge knows");
    if (!NumbersAreKnown(*request)) return wrong("a sort order, target or comparison that etcd does not have");
    if (request->streamed && request->kind != OperationKind::kRange) return wrong("streamed, and no range");
    Operation operation{.id = recorded.id(),
                        .client = recorded.client(),
                        .member = MemberId(recorded.endpoint()),
                        .request = *std::move(request)};
    operation.call.true_time = Instant{recorded.call_ns()};
    operation.end.true_time = Instant{recorded.end_ns()};
    if (absl::Status result = ReadResult(recorded, operation); !result.ok()) {
      return wrong(std::string_view(result.message().data(), result.message().size()));
    }
    history_.operations.push_back(std::move(operation));
    return absl::OkStatus();
  }

  absl::Status ReadFinal(const history::FinalState& recorded) {
    auto wrong = [&](std::string_view what) {
      return Wrong(absl::StrFormat("final state of endpoint %d: %s", recorded.endpoint(), what));
    };
    if (recorded.endpoint() == 0 || recorded.endpoint() > history_.endpoints.size()) return wrong("no such endpoint");
    if (recorded.at_ns() < 0) return wrong("a negative time");
    RecordedFinal final_state{.member = MemberId(recorded.endpoint()), .revision = recorded.revision()};
    final_state.at.true_time = Instant{recorded.at_ns()};
    for (const RecordedFinal& other : history_.finals) {
      if (other.member == final_state.member) return wrong("there is one already");
    }
    for (const mvccpb::KeyValue& kv : recorded.kvs()) {
      if (!final_state.keys.empty() && final_state.keys.back().key >= kv.key()) return wrong("keys out of order");
      final_state.keys.push_back({.key = kv.key(),
                                  .value = kv.value(),
                                  .create_revision = Revision(kv.create_revision()),
                                  .mod_revision = Revision(kv.mod_revision()),
                                  .version = kv.version()});
    }
    history_.finals.push_back(std::move(final_state));
    return absl::OkStatus();
  }

  absl::Status ReadEnd(const history::End& end) {
    if (end.operations() != history_.operations.size() || end.final_states() != history_.finals.size()) {
      return Wrong(absl::StrFormat("the End record counts %d operations and %d final states, the file holds %d and %d",
                                   end.operations(), end.final_states(), history_.operations.size(), history_.finals.size()));
    }
    ended_ = true;
    return absl::OkStatus();
  }

  // One operation under way at a time; and what is final comes after all else.
  absl::Status CheckClients() {
    std::ranges::stable_sort(history_.operations, {}, [](const Operation& operation) {
      return std::tuple(operation.call.true_time, operation.end.true_time);
    });
    std::map<uint32_t, const Operation*> last;  // by client
    for (const Operation& operation : history_.operations) {
      const Operation*& before = last[operation.client];
      if (before != nullptr && operation.call.true_time < before->end.true_time) {
        return Wrong(absl::StrFormat(
            "client %d called operation %d at %d ns, and its operation %d ended only at %d: a client has one under way at a time",
            operation.client, operation.id, operation.call.true_time.nanos, before->id, before->end.true_time.nanos));
      }
      before = &operation;
      for (const RecordedFinal& final_state : history_.finals) {
        if (ChangesStore(operation) && operation.end.true_time > final_state.at.true_time) {
          return Wrong(absl::StrFormat("the final state of endpoint %d was read at %d ns, and operation %d ended at %d",
                                       final_state.member.value, final_state.at.true_time.nanos, operation.id,
                                       operation.end.true_time.nanos));
        }
      }
    }
    return absl::OkStatus();
  }

  static bool ChangesStore(const Operation& operation) { return !ReadsOnly(operation.request); }

  void Number() {
    std::vector<Edge> edges;
    for (size_t i = 0; i < history_.operations.size(); ++i) {
      edges.push_back({history_.operations[i].call.true_time.nanos, false, i});
      edges.push_back({history_.operations[i].end.true_time.nanos, true, i});
    }
    std::ranges::sort(edges);
    const int64_t zero = edges.empty() ? 0 : edges.front().nanos;
    uint64_t event = 0;
    for (const Edge& edge : edges) {
      Operation& operation = history_.operations[edge.operation];
      Moment& moment = edge.is_end ? operation.end : operation.call;
      moment.event = ++event;
      moment.true_time = Instant{edge.nanos - zero};
    }
    for (RecordedFinal& final_state : history_.finals) {
      final_state.at = {.event = ++event, .true_time = Instant{final_state.at.true_time.nanos - zero}};
    }
  }

  ByteReader reader_;
  uint64_t at_ = 0;
  bool begun_ = false;
  bool ended_ = false;
  std::set<uint64_t> ids_;
  RecordedHistory history_;
};

}  // namespace

std::string EncodeHeader(const std::vector<std::string>& endpoints, const std::string& note) {
  history::Record record;
  record.mutable_header()->set_format(kFormat.data(), kFormat.size());
  record.mutable_header()->set_version(kVersion);
  for (const std::string& endpoint : endpoints) record.mutable_header()->add_endpoints(endpoint);
  record.mutable_header()->set_note(note);
  return Delimited(record);
}

std::string EncodeOperation(const Operation& operation) {
  CHECK(operation.outcome != Outcome::kPending);
  history::Record record;
  history::Operation& out = *record.mutable_operation();
  out.set_id(operation.id);
  out.set_client(operation.client);
  out.set_endpoint(static_cast<uint32_t>(operation.member.value));
  out.set_call_ns(operation.call.true_time.nanos);
  out.set_end_ns(operation.end.true_time.nanos);
  out.set_streamed(operation.request.streamed);
  const bool answered = operation.outcome == Outcome::kAnswered;
  out.set_outcome(answered ? history::ANSWERED
                           : (operation.outcome == Outcome::kRefused ? history::REFUSED : history::UNKNOWN));
  if (!operation.answer.error.empty()) out.set_error(operation.answer.error);
  const bool responded = answered && operation.answer.error.empty();
  const auto request = MakeRequest(operation.request);
  const auto response = responded ? MakeResponse(operation.request, operation.answer) : nullptr;
  switch (operation.request.kind) {
    case OperationKind::kPut:
      out.mutable_put()->CopyFrom(*request);
      if (responded) out.mutable_put_response()->CopyFrom(*response);
      break;
    case OperationKind::kDelete:
      out.mutable_delete_range()->CopyFrom(*request);
      if (responded) out.mutable_delete_range_response()->CopyFrom(*response);
      break;
    case OperationKind::kRange:
      out.mutable_range()->CopyFrom(*request);
      if (responded) out.mutable_range_response()->CopyFrom(*response);
      break;
    case OperationKind::kTxn:
      out.mutable_txn()->CopyFrom(*request);
      if (responded) out.mutable_txn_response()->CopyFrom(*response);
      break;
    case OperationKind::kCompact:
      out.mutable_compaction()->CopyFrom(*request);
      if (responded) out.mutable_compaction_response()->CopyFrom(*response);
      break;
    case OperationKind::kHashKv:
      out.mutable_hash_kv()->CopyFrom(*request);
      if (responded) out.mutable_hash_kv_response()->CopyFrom(*response);
      break;
  }
  return Delimited(record);
}

std::string EncodeFinalState(const RecordedFinal& final_state) {
  history::Record record;
  history::FinalState& out = *record.mutable_final_state();
  out.set_endpoint(static_cast<uint32_t>(final_state.member.value));
  out.set_at_ns(final_state.at.true_time.nanos);
  out.set_revision(final_state.revision);
  for (const FinalKey& key : final_state.keys) {
    mvccpb::KeyValue& kv = *out.add_kvs();
    kv.set_key(key.key);
    kv.set_value(key.value);
    kv.set_create_revision(key.create_revision.value);
    kv.set_mod_revision(key.mod_revision.value);
    kv.set_version(key.version);
  }
  return Delimited(record);
}

std::string EncodeEnd(uint64_t operations, uint64_t final_states) {
  history::Record record;
  record.mutable_end()->set_operations(operations);
  record.mutable_end()->set_final_states(final_states);
  return Delimited(record);
}

absl::StatusOr<RecordedHistory> ReadHistory(std::string_view bytes) { return Reader(bytes).Run(); }

}  // namespace detcd::checker
