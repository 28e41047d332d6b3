// A Range whose answer takes more than a slice of work: read at one revision, a slice a turn, and encoded piece by piece,
// so that heartbeats and other clients wait for a slice at the most. The one message that the client gets is the same,
// byte for byte. Its checks were made when it began; a compaction above its revision meanwhile does not end it, as it
// does not end a read that etcd has begun.
#pragma once

#include <memory>
#include <vector>

#include "core/base/bytes.h"
#include "core/mvcc/range_scan.h"
#include "core/mvcc/store.h"
#include "core/rpc/api_error.h"
#include "core/rpc/backend.h"

namespace etcdserverpb {
class RangeRequest;
class RangeResponse;
}  // namespace etcdserverpb

namespace detcd::rpc {

class LongRange {
 public:
  // Of the current state, or the revision that `request` names, which can be read (CheckLongRange). Both outlive this
  // object.
  LongRange(const Backend& backend, const etcdserverpb::RangeRequest& request);
  ~LongRange();

  // One slice. True: the answer is whole.
  bool Step();
  // The encoded answer, once.
  std::vector<Bytes> TakeAnswer();

 private:
  void AddPiece(const etcdserverpb::RangeResponse& part);

  const Backend& backend_;
  Revision header_revision_;
  mvcc::RangeOptions options_;
  mvcc::Store::Hold hold_;
  mvcc::RangeScan scan_;
  std::vector<mvcc::KeyValue> kvs_;                    // of one slice; these two keep their memory
  std::unique_ptr<etcdserverpb::RangeResponse> part_;
  std::vector<Bytes> pieces_;                          // the first waits for the header
};

// Whether the revision can be read now.
ApiError CheckLongRange(const mvcc::Store& store, const etcdserverpb::RangeRequest& request);

}  // namespace detcd::rpc
