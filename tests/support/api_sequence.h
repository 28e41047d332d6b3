// Sequences of API calls from a seed, mostly edge cases: the one generator behind the differential comparison with etcd
// (tests/interop/differential) and the properties of the apply loop. The same seed gives the same calls everywhere.
//
// A request may name a revision by its distance from one that is known only when it is sent: numbers around kFromHead
// and kFromCompacted stand for such, and ResolveRevisions puts the real ones in their place.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/rpc/method.h"

namespace google::protobuf {
class Message;
}

namespace detcd::testing {

// Revisions in [kFromHead - kFromSpan, kFromHead + kFromSpan] are relative to the newest, likewise those around
// kFromCompacted to the last compaction.
inline constexpr int64_t kFromHead = int64_t{1} << 50;
inline constexpr int64_t kFromCompacted = int64_t{1} << 51;
inline constexpr int64_t kFromSpan = 1'000;

struct ApiCall {
  rpc::Method method = rpc::Method::kRange;                  // of the request and the responses
  std::shared_ptr<const google::protobuf::Message> request;  // null: a broken call, sent as the bytes below
  std::string path;                                          // of a broken call
  std::string body;                                          // of a broken call: frames and all
  bool has_leader = false;
};

// The revisions that the answers so far have shown.
struct SeenRevisions {
  int64_t head = 1;
  int64_t compacted = 0;  // of the last compaction that succeeded
  // Of transactions that may have deleted a key and put it again, through an open end. An etcd 3.7.3 that is compacted
  // at just such a revision ends when it reads the key: compactions are resolved to the next one.
  std::set<int64_t> reborn;

  // Takes note of `response`, the good answer to `request`.
  void See(const google::protobuf::Message& request, const google::protobuf::Message& response);
};

// The calls of `seed`. The first deletes every key, so that what follows depends little on what was there before. None
// is one of those that end an etcd 3.7.3: a transaction that deletes a key through an open end and then puts it with
// ignore_value or ignore_lease; an alarm action that does not exist.
std::vector<ApiCall> DrawApiSequence(uint64_t seed);

// Puts real revisions in the place of relative ones, in all fields and nested messages.
void ResolveRevisions(const SeenRevisions& seen, google::protobuf::Message& request);

// One line: the method and the request as text (long strings cut), or the path and the bytes of a broken call.
std::string Describe(const ApiCall& call);
// `message` on one line, its long strings cut.
std::string Describe(const google::protobuf::Message& message);

}  // namespace detcd::testing
