// KV.RangeStream: the answer of a Range in parts, so that neither side holds all of it (reference/semantics.md 4). The
// revision is fixed by the first part; the pairs come in key order whatever the sort target. As in etcd the parts start
// at ten pairs and grow or shrink by two with their encoded size; other than there a part also ends at a bound of bytes,
// so that no run of large values makes a message of gigabytes. A negative limit is none, and asks for one part.
#pragma once

#include <cstdint>
#include <string>

#include "core/mvcc/store.h"
#include "core/rpc/api_error.h"
#include "core/rpc/backend.h"

namespace etcdserverpb {
class RangeRequest;
class RangeStreamResponse;
}  // namespace etcdserverpb

namespace detcd::rpc {

// The checks that need nothing but the request.
ApiError CheckRangeStream(const etcdserverpb::RangeRequest& request);

class RangeStream {
 public:
  explicit RangeStream(const etcdserverpb::RangeRequest& request);

  // The next message, into an empty `response`. An error ends the stream, as done() does after the last message.
  ApiError Next(const Backend& backend, etcdserverpb::RangeStreamResponse& response);
  bool done() const { return done_; }

 private:
  std::string next_key_;
  std::string range_end_;
  int64_t revision_;     // as asked, <= 0 until the first part
  int64_t limit_;        // <= 0: none
  bool keys_only_;
  bool count_only_;
  int64_t sent_ = 0;     // pairs
  size_t pairs_max_;     // of the next part
  Revision header_revision_;
  bool done_ = false;
};

}  // namespace detcd::rpc
