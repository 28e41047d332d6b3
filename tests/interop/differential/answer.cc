#include "tests/interop/differential/answer.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <string_view>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "core/proto/kv.pb.h"
#include "core/proto/rpc.pb.h"
#include "core/wire/grpc_format.h"

namespace detcd::differential {
namespace {

using etcdserverpb::RangeRequest;
using etcdserverpb::RangeResponse;
using etcdserverpb::ResponseHeader;
using etcdserverpb::TxnRequest;
using etcdserverpb::TxnResponse;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

void BlankTerms(Message& message) {
  if (message.GetDescriptor() == ResponseHeader::descriptor()) {
    return static_cast<ResponseHeader&>(message).clear_raft_term();
  }
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
    if (!field->is_repeated()) {
      BlankTerms(*reflection.MutableMessage(&message, field));
    } else {
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        BlankTerms(*reflection.MutableRepeatedMessage(&message, field, i));
      }
    }
  }
}

// Two pairs that the sort of `request` does not tell apart. With keys_only the values are gone: all may be equal then.
bool Tied(const RangeRequest& request, const mvccpb::KeyValue& a, const mvccpb::KeyValue& b) {
  switch (request.sort_target()) {
    case RangeRequest::VERSION:
      return a.version() == b.version();
    case RangeRequest::CREATE:
      return a.create_revision() == b.create_revision();
    case RangeRequest::MOD:
      return a.mod_revision() == b.mod_revision();
    case RangeRequest::VALUE:
      return request.keys_only() || a.value() == b.value();
    default:
      return false;
  }
}

// Go's sort is not stable, so etcd's order of tied pairs is chance: they are put in the order of their keys. Where a
// limit has cut, it is chance which pairs of the last run are there: only what the sort looked at is kept of them.
void OrderTies(const RangeRequest& request, RangeResponse& response) {
  auto& pairs = *response.mutable_kvs();
  for (auto begin = pairs.begin(); begin != pairs.end();) {
    auto end = begin + 1;
    while (end != pairs.end() && Tied(request, *begin, *end)) ++end;
    std::sort(begin, end, [](const auto& a, const auto& b) { return a.key() < b.key(); });
    if (end == pairs.end() && response.more() && request.sort_target() != RangeRequest::KEY) {
      for (auto pair = begin; pair != end; ++pair) {
        mvccpb::KeyValue kept;
        switch (request.sort_target()) {
          case RangeRequest::VERSION:
            kept.set_version(pair->version());
            break;
          case RangeRequest::CREATE:
            kept.set_create_revision(pair->create_revision());
            break;
          case RangeRequest::MOD:
            kept.set_mod_revision(pair->mod_revision());
            break;
          case RangeRequest::VALUE:
            kept.set_value(pair->value());
            break;
          default:
            break;
        }
        *pair = kept;
      }
    }
    begin = end;
  }
}

void OrderTies(const TxnRequest& request, TxnResponse& response) {
  const auto& ops = response.succeeded() ? request.success() : request.failure();
  for (int i = 0; i < std::min(ops.size(), response.responses_size()); ++i) {
    etcdserverpb::ResponseOp& op = *response.mutable_responses(i);
    if (ops[i].has_request_range() && op.has_response_range())
      OrderTies(ops[i].request_range(), *op.mutable_response_range());
    if (ops[i].has_request_txn() && op.has_response_txn()) OrderTies(ops[i].request_txn(), *op.mutable_response_txn());
  }
}

// The first message in the body of a broken call; empty when there is none.
std::string FirstMessage(std::string_view body) {
  std::string first;
  wire::MessageReader().Feed(body, body.size(), false, [&](std::string_view message) {
    first = std::string(message);
    return false;
  });
  return first;
}

}  // namespace

std::string StatusText(const Answer& answer) {
  if (answer.lost) return "connection lost: " + answer.status.message;
  return absl::StrFormat("%d %s", static_cast<int>(answer.status.code), answer.status.message);
}

void Normalise(const testing::ApiCall& call, Answer& answer) {
  // Go's protobuf library writes one of two kinds of space in its errors; which, is decided when etcd is built.
  answer.status.message = absl::StrReplaceAll(answer.status.message, {{"\u00a0", " "}});
  for (const std::unique_ptr<Message>& response : answer.responses) {
    BlankTerms(*response);
    if (call.method == rpc::Method::kStatus) {
      auto& status = static_cast<etcdserverpb::StatusResponse&>(*response);
      status.clear_raftterm();
      status.clear_raftindex();
      status.clear_raftappliedindex();
      status.clear_dbsize();
      status.clear_dbsizeinuse();
      status.clear_storageversion();
    }
    if (call.request == nullptr) {
      // What is read here, and how, is what the servers read: they have answered it.
      RangeRequest range;
      if (call.method == rpc::Method::kRange && range.ParseFromString(FirstMessage(call.body))) {
        OrderTies(range, static_cast<RangeResponse&>(*response));
      }
    } else if (call.method == rpc::Method::kRange) {
      OrderTies(static_cast<const RangeRequest&>(*call.request), static_cast<RangeResponse&>(*response));
    } else if (call.method == rpc::Method::kTxn) {
      OrderTies(static_cast<const TxnRequest&>(*call.request), static_cast<TxnResponse&>(*response));
    }
  }
}

Answer Joined(const Answer& answer) {
  Answer joined{.responses = {}, .status = answer.status, .lost = answer.lost};
  auto whole = std::make_unique<etcdserverpb::RangeStreamResponse>();
  for (const std::unique_ptr<Message>& response : answer.responses) whole->MergeFrom(*response);
  if (!answer.responses.empty()) joined.responses.push_back(std::move(whole));
  return joined;
}

std::string FullText(const Answer& answer) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  for (const std::unique_ptr<Message>& response : answer.responses) {
    std::string one;
    printer.PrintToString(*response, &one);
    text += one + "\n";
  }
  return text + StatusText(answer);
}

std::string BriefText(const Answer& answer) {
  constexpr size_t kLineBytesMax = 1'000;
  std::string text;
  for (const std::unique_ptr<Message>& response : answer.responses) {
    std::string one = testing::Describe(*response);
    if (one.size() > kLineBytesMax)
      one = absl::StrFormat("%s... (%d bytes encoded)", one.substr(0, kLineBytesMax), response->ByteSizeLong());
    text += "{" + one + "}\n";
  }
  return text + StatusText(answer);
}

}  // namespace detcd::differential
