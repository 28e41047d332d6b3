#include "tests/interop/differential/comparison.h"

#include <utility>

#include "core/proto/rpc.pb.h"

namespace detcd::differential {
namespace {

constexpr Duration kTurnWaitMax = Seconds(1);

// A compaction is always a physical one for etcd. Its answer is the same; but etcd goes on removing and hashing after
// the answer to any other, and what HashKV says then, and whether the next compaction's hash is kept, is a matter of
// time.
testing::ApiCall ForEtcd(const testing::ApiCall& call) {
  testing::ApiCall sent = call;
  if (call.request == nullptr || call.method != rpc::Method::kCompact) return sent;
  auto physical = std::make_shared<etcdserverpb::CompactionRequest>(
      static_cast<const etcdserverpb::CompactionRequest&>(*call.request));
  physical->set_physical(true);
  sent.request = std::move(physical);
  return sent;
}

}  // namespace

Comparison::Comparison(realnet::RealHost& host, uint16_t etcd_port, uint16_t detcd_port)
    : host_(host), etcd_(host, etcd_port), detcd_(host, detcd_port) {
  host_.events().SetTurnListener(*this);
}

std::optional<Difference> Comparison::Run(const std::vector<testing::ApiCall>& calls, AcceptedDifferences& accepted) {
  for (size_t i = 0; i < calls.size(); ++i) {
    testing::ApiCall call = calls[i];
    if (call.request != nullptr) {
      std::shared_ptr<google::protobuf::Message> resolved(call.request->New());
      resolved->CopyFrom(*call.request);
      testing::ResolveRevisions(seen_, *resolved);
      call.request = std::move(resolved);
    }
    etcd_.Start(ForEtcd(call));
    detcd_.Start(call);
    while (etcd_.busy() || detcd_.busy()) host_.RunTurn(kTurnWaitMax);
    Answer etcd = etcd_.TakeAnswer();
    Answer detcd = detcd_.TakeAnswer();
    if (call.request != nullptr && etcd.status.ok()) {
      for (const auto& response : etcd.responses) seen_.See(*call.request, *response);
    }
    Normalise(call, etcd);
    Normalise(call, detcd);
    if (FullText(etcd) == FullText(detcd)) continue;
    if (!etcd.lost && !detcd.lost && accepted.Accept(call, etcd, detcd)) continue;
    return Difference{.index = i, .call = std::move(call), .etcd = std::move(etcd), .detcd = std::move(detcd)};
  }
  return std::nullopt;
}

void Comparison::OnEndTurn() {
  etcd_.EndTurn();
  detcd_.EndTurn();
}

}  // namespace detcd::differential
