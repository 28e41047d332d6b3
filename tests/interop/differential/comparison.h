// The same calls to two servers, one after the other, until their answers differ.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "realnet/real_host.h"
#include "tests/interop/differential/accepted.h"
#include "tests/interop/differential/link.h"

namespace detcd::differential {

// A call that the servers answered differently.
struct Difference {
  size_t index = 0;       // of the call in its sequence
  testing::ApiCall call;  // as it was sent: its revisions are real ones
  Answer etcd;
  Answer detcd;
};

// Both servers, on fresh data directories that hold the same.
class Comparison final : private TurnListener {
 public:
  Comparison(realnet::RealHost& host, uint16_t etcd_port, uint16_t detcd_port);

  // Sends `calls` in turn, each to both servers at once. The first difference that `accepted` does not know ends it.
  std::optional<Difference> Run(const std::vector<testing::ApiCall>& calls, AcceptedDifferences& accepted);

 private:
  void OnEndTurn() override;

  realnet::RealHost& host_;
  Link etcd_;
  Link detcd_;
  testing::SeenRevisions seen_;
};

}  // namespace detcd::differential
