#include "core/raft/message.h"

namespace detcd::raft {
namespace {

struct Namer {
  std::string_view operator()(const Proposal&) const { return "MsgProp"; }
  std::string_view operator()(const Append&) const { return "MsgApp"; }
  std::string_view operator()(const AppendResponse&) const { return "MsgAppResp"; }
  std::string_view operator()(const VoteRequest& m) const { return m.pre_vote ? "MsgPreVote" : "MsgVote"; }
  std::string_view operator()(const VoteResponse& m) const { return m.pre_vote ? "MsgPreVoteResp" : "MsgVoteResp"; }
  std::string_view operator()(const Heartbeat&) const { return "MsgHeartbeat"; }
  std::string_view operator()(const HeartbeatResponse&) const { return "MsgHeartbeatResp"; }
  std::string_view operator()(const ReadIndexRequest&) const { return "MsgReadIndex"; }
  std::string_view operator()(const ReadIndexResponse&) const { return "MsgReadIndexResp"; }
  std::string_view operator()(const TransferRequest&) const { return "MsgTransferLeader"; }
  std::string_view operator()(const TimeoutNow&) const { return "MsgTimeoutNow"; }
};

}  // namespace

std::string_view KindName(const Message& message) { return std::visit(Namer{}, message.body); }

}  // namespace detcd::raft
