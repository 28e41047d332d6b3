// What a server said to one call, and the same with everything taken out of it that may differ between two servers.
#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <string>
#include <vector>

#include "core/rpc/call.h"
#include "tests/support/api_sequence.h"

namespace detcd::differential {

struct Answer {
  std::vector<std::unique_ptr<google::protobuf::Message>> responses;  // in the order they came
  rpc::CallStatus status;
  bool lost = false;  // the connection ended before the call did
};

// Takes out of `answer` to `call` what chance or layout decides: raft terms and indexes, sizes of the database, its
// version (etcd writes it some seconds after its start), and the order among pairs that a sort holds for equal (their
// choice, too, where a limit cuts through them).
void Normalise(const testing::ApiCall& call, Answer& answer);

// The answer to a RangeStream as if it had come in one part.
Answer Joined(const Answer& answer);

// Everything of it: two answers are equal when these are.
std::string FullText(const Answer& answer);
// For people: long strings cut, a line a response, then a line with code and text.
std::string BriefText(const Answer& answer);
// `0`, or `3 etcdserver: key is not provided`.
std::string StatusText(const Answer& answer);

}  // namespace detcd::differential
