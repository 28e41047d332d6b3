// Requests and answers of the KV service, between the checker's words and the API's.
#pragma once

#include <memory>

#include <google/protobuf/message.h>

#include "checker/history.h"
#include "core/rpc/method.h"

namespace detcd::sim {

rpc::Method MethodOf(const checker::Request& request);
// Whether etcd's client tries it again after an error that does not tell whether it was served.
bool MayRepeat(const checker::Request& request);

std::unique_ptr<google::protobuf::Message> MakeRequest(const checker::Request& request);
// The successful answer of a unary call.
checker::Answer ReadAnswer(const checker::Request& request, const google::protobuf::Message& response);
// One message of a RangeStream, added to those before.
void AddPiece(const google::protobuf::Message& message, checker::Answer& answer);

}  // namespace detcd::sim
