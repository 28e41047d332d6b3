// Requests and answers of the KV service, between the checker's words and the API's messages.
#pragma once

#include <memory>
#include <optional>

#include <google/protobuf/message.h>

#include "checker/history.h"
#include "core/base/bytes.h"

namespace etcdserverpb {
class CompactionRequest;
class DeleteRangeRequest;
class HashKVRequest;
class PutRequest;
class RangeRequest;
class TxnRequest;
}  // namespace etcdserverpb

namespace detcd::checker {

// nullopt: something that no judge knows, a lease or an operation with nothing in it.
std::optional<Request> ReadRequest(const etcdserverpb::PutRequest& put);
Request ReadRequest(const etcdserverpb::DeleteRangeRequest& deletion);
Request ReadRequest(const etcdserverpb::RangeRequest& range);
std::optional<Request> ReadRequest(const etcdserverpb::TxnRequest& txn);
Request ReadRequest(const etcdserverpb::CompactionRequest& compaction);
Request ReadRequest(const etcdserverpb::HashKVRequest& hash);

std::unique_ptr<google::protobuf::Message> MakeRequest(const Request& request);
// The data of the log entry that commits it: an encoded InternalRaftRequest. Not of ranges and hashes.
Bytes MakeEntry(const Request& request);

// The successful answer of a unary call; `response` is of the request's kind.
Answer ReadAnswer(const Request& request, const google::protobuf::Message& response);
// One message of a RangeStream, added to those before.
void AddPiece(const google::protobuf::Message& message, Answer& answer);

// The response that ReadAnswer reads as `answer`, which is a successful one. Of a stream: its pieces put together.
std::unique_ptr<google::protobuf::Message> MakeResponse(const Request& request, const Answer& answer);

}  // namespace detcd::checker
